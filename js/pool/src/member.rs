//! A member of a pool, for whoever connects it.

use std::cell::RefCell;
use std::rc::Rc;

use anygpu::web::WebHost;
use anygpu::{EngineError, SelectOptions, select};
use anygpu_pool_proto::{
    Failure, Heartbeat, Hello, Reason, Reply, Rung, VERSION, Welcome, Wire, limits, reply, subject,
};
use anygpu_pool_worker::{Message, Vitals, Worker, guess};
use bindings_common::{error, json};
use js_sys::{Function, Promise, Uint8Array};
use serde::{Deserialize, Serialize};
use wasm_bindgen::prelude::{JsValue, wasm_bindgen};
use wasm_bindgen_futures::future_to_promise;

use crate::models::{Fetched, JsModels};
use crate::shown::Shown;

/// Texts that it would hold states for.
const SESSIONS: u32 = 8;

/// Resources that a page offers.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Offer {
    backend: String,
    /// Bytes that weights, states and programs may take.
    memory: u64,
    /// Bytes of a block of the pool's model.
    block_bytes: f64,
    /// Bytes that came in a second.
    bandwidth: f64,
}

/// Backend that computes, for people.
#[derive(Serialize)]
struct Computes<'a> {
    backend: &'static str,
    adapter: &'a str,
    software: bool,
}

/// A member of a pool.
#[wasm_bindgen]
pub struct WasmMember(Rc<Member>);

struct Member {
    memory: u64,
    bandwidth: u64,
    rung: Rung,
    computes: String,
    /// Time of a row through a block, before a stage of the model was measured.
    ///
    /// *Units*: microseconds.
    guess: u32,
    select: SelectOptions,
    host: Rc<WebHost>,
    vitals: Vitals,
    shown: RefCell<Shown>,
    /// Its name, once it has one; and the worker, while it does not work.
    name: RefCell<String>,
    worker: RefCell<Option<Worker>>,
}

/// Opens the backend that computes, and times it. `offer` is JSON.
#[wasm_bindgen]
pub async fn member(offer: String) -> Result<WasmMember, JsValue> {
    let offer: Offer = serde_json::from_str(&offer).map_err(error::options)?;
    let select_options =
        SelectOptions { backend: offer.backend.parse().map_err(error::options)?, ..SelectOptions::default() };
    let host = Rc::new(WebHost::new()?);
    let (backend, report) = select(None, &select_options, &*host).await.map_err(|e| refused(&e))?;
    let info = backend.info();
    let rung = match info.name {
        name if name.starts_with("webgpu") => Rung::Webgpu,
        name if name.starts_with("webgl") => Rung::Webgl,
        _ => Rung::Cpu,
    };
    let computes = json(&Computes { backend: info.name, adapter: &info.adapter, software: info.software })?;
    Ok(WasmMember(Rc::new(Member {
        memory: offer.memory,
        bandwidth: (offer.bandwidth as u64).max(1),
        rung,
        computes,
        guess: guess(report.chosen().and_then(|rung| rung.matvec_ms), offer.block_bytes),
        select: select_options,
        host,
        vitals: Vitals::default(),
        shown: RefCell::default(),
        name: RefCell::default(),
        worker: RefCell::default(),
    })))
}

fn refused(error: &EngineError) -> JsValue {
    let code = if matches!(error, EngineError::NoBackend(_)) { "no_backend" } else { "driver" };
    error::coded(code, &error.to_string()).into()
}

/// Encodes a message of this side, which is always within bounds unless the broker's name is very long.
fn wire(message: &impl Wire) -> Result<Vec<u8>, JsValue> {
    message.to_wire().map_err(error::options)
}

#[wasm_bindgen]
impl WasmMember {
    /// Returns the backend that computes, as JSON: `{ backend, adapter, software }`.
    pub fn computes(&self) -> String {
        self.0.computes.clone()
    }

    /// Makes the message for [`subject::HELLO`], for the first time or again. `hop_micros` is the time of a message
    /// to the broker and back. The worker's unpredictable name may be chosen before it registers, so that it can
    /// subscribe first.
    pub fn hello(&self, worker: String, connection: String, hop_micros: u32) -> Result<Vec<u8>, JsValue> {
        let Member { memory, bandwidth, rung, guess, ref vitals, .. } = *self.0;
        let measured = Some(vitals.block_micros()).filter(|micros| *micros > 0);
        let (model, cached) = vitals.cached();
        wire(&Hello {
            version: VERSION,
            rung: rung.into(),
            memory,
            block_micros: measured.unwrap_or(guess),
            bandwidth,
            hop_micros,
            sessions: SESSIONS,
            model,
            cached,
            connection,
            worker,
            ends: String::new(),
        })
    }

    /// Takes the answer to a hello. Gives JSON: `{ worker, heartbeat_millis }`. Who gets another name begins anew.
    pub fn welcomed(&self, answer: &[u8], models: JsModels) -> Result<String, JsValue> {
        let Welcome { worker, heartbeat_millis } = Welcome::from_wire(answer).map_err(|error| {
            let failure = Reply::from_wire(answer).ok().and_then(|reply| reply.what);
            match failure {
                Some(reply::What::Failure(failure)) => error::coded("pool", &failure.detail),
                _ => error::coded("pool", &error.to_string()),
            }
        })?;
        let member = &self.0;
        if *member.name.borrow() != worker {
            let models = Box::new(Fetched(models));
            let begun = Worker::new(worker.clone(), models, member.select.clone(), member.host.clone());
            member.worker.replace(Some(begun.telling(member.vitals.clone())));
            member.shown.take();
            member.name.replace(worker.clone());
        }
        json(&serde_json::json!({ "worker": worker, "heartbeat_millis": heartbeat_millis }))
    }

    /// Does what a message asks for that came to a subject of the worker. `send(subject, bytes)` is called with what it says;
    /// the promise gives the answer to what is a request. One after the other.
    pub fn deliver(&self, subject: String, payload: Vec<u8>, send: Function) -> Promise {
        let member = self.0.clone();
        future_to_promise(async move {
            let busy =
                || error::options("the worker has not joined, or is at work; wait for the message before this one");
            let mut worker = member.worker.take().ok_or_else(busy)?;
            let name = member.name.borrow().clone();
            let (control, progress, done) = (subject::control(&name), subject::progress(&name), subject::done(&name));
            let is_control = subject == control;
            if is_control {
                member.shown.borrow_mut().asked(&payload);
            }
            let mut say = |Message { subject, payload }: Message| {
                let mut shown = member.shown.borrow_mut();
                if subject == progress {
                    shown.said(&payload);
                }
                shown.steps += u64::from(subject == done);
                drop(shown);
                // A connection that is closed loses what is said, as broken ones do.
                let _ = send.call2(&JsValue::UNDEFINED, &subject.into(), &Uint8Array::from(&payload[..]));
            };
            let answer = worker.deliver(&Message { subject, payload }, &mut say).await;
            member.worker.replace(Some(worker));
            Ok(answer.map_or(JsValue::UNDEFINED, |answer| {
                if is_control {
                    member.shown.borrow_mut().said(&answer);
                }
                Uint8Array::from(&answer[..]).into()
            }))
        })
    }

    /// Makes the periodic message for [`subject::heartbeat`].
    pub fn heartbeat(&self, connection: String, hop_micros: u32, visible: bool) -> Result<Vec<u8>, JsValue> {
        let Member { memory, guess, ref vitals, .. } = *self.0;
        let measured = Some(vitals.block_micros()).filter(|micros| *micros > 0);
        wire(&Heartbeat {
            block_micros: measured.unwrap_or(guess),
            hop_micros,
            memory_free: memory.saturating_sub(vitals.bytes()),
            visible,
            sessions: vitals.sessions().min(limits::SESSIONS),
            connection,
        })
    }

    /// Makes the message for [`subject::progress`] that says that the worker leaves.
    pub fn leaving(&self) -> Result<Vec<u8>, JsValue> {
        let failure =
            Failure { reason: Reason::Leaving.into(), detail: "the page leaves".into(), ..Failure::default() };
        wire(&Reply { what: Some(reply::What::Failure(failure)) })
    }

    /// Returns the state of the worker for people, as JSON.
    pub fn shown(&self) -> Result<String, JsValue> {
        let (vitals, mut shown) = (&self.0.vitals, self.0.shown.borrow().clone());
        shown.block_micros = vitals.block_micros();
        shown.sessions = vitals.sessions();
        json(&shown)
    }
}
