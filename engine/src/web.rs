//! Services for programs in browsers: a clock, and turns of the event loop.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::Waker;

use js_sys::{Function, Reflect};
use model::Host;
use wasm_bindgen::prelude::{Closure, JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;
use web_sys::{MessageChannel, MessageEvent, MessagePort};

/// Longest time between turns in which nothing was done: work such as encoding steps takes longer, and a poll takes a
/// tenth of it.
///
/// *Units*: milliseconds.
const IDLE_MS: f64 = 0.25;
/// Time of waiting by messages, which come at once. After that, waiting uses timers, which leave the processor to
/// others (a software GPU needs it).
///
/// *Units*: milliseconds.
const EAGER_MS: f64 = 4.0;

/// Returns the time of day, for chat templates.
///
/// *Units*: seconds since 1970-01-01, in the user's time zone.
pub(crate) fn seconds() -> i64 {
    (js_sys::Date::now() / 1e3 - js_sys::Date::new_0().get_timezone_offset() * 60.0) as i64
}

/// Returns the place that a selection's cached results are valid for: the browser. The caller that stores them adds the
/// version of this module.
pub(crate) fn place() -> String {
    let get = |of: &JsValue, name: &str| Reflect::get(of, &name.into()).unwrap_or_default();
    let navigator = get(&js_sys::global(), "navigator");
    get(&navigator, "userAgent").as_string().unwrap_or_default()
}

thread_local! {
    /// The function that was given to [`before_cpu`], until it is called.
    static BEFORE_CPU: RefCell<Option<Function>> = const { RefCell::new(None) };
}

/// Sets a function that is called, and whose promise is awaited, before the CPU backend is opened for the first time.
/// It starts threads, which takes turns of the event loop. If it fails, the CPU backend has a single thread.
pub fn before_cpu(start: Function) {
    BEFORE_CPU.set(Some(start));
}

/// Calls the function that was given to [`before_cpu`], if it was not called yet.
pub(crate) async fn prepare_cpu() {
    let Some(start) = BEFORE_CPU.take() else { return };
    if let Ok(promise) = start.call0(&JsValue::NULL) {
        // The function reports by itself why there are fewer threads.
        let _ = JsFuture::from(js_sys::Promise::resolve(&promise)).await;
    }
}

/// Host on the event loop of a page, a worker or a JavaScript runtime.
pub struct WebHost {
    soon: Soon,
    state: Rc<State>,
    on_timer: Closure<dyn FnMut()>,
    set_timeout: Function,
    now: Box<dyn Fn() -> f64>,
}

/// Way to get a turn of the event loop at once.
enum Soon {
    /// `setImmediate` of Node.js, Deno and Bun. They would serve a channel that posts to itself up to a thousand times
    /// before any other port, so an abort would arrive seconds late.
    Immediate(Function),
    /// A message channel, for browsers, which do not have `setImmediate`. They serve ports in turn.
    Message {
        port: MessagePort,
        /// Called by the channel for as long as the host lives.
        _on_message: Closure<dyn FnMut(MessageEvent)>,
    },
}

impl Soon {
    /// Requests a turn; returns whether it will come.
    fn ask(&self, on_turn: &JsValue) -> bool {
        match self {
            Soon::Immediate(set_immediate) => set_immediate.call1(&JsValue::UNDEFINED, on_turn).is_ok(),
            Soon::Message { port, .. } => port.post_message(&JsValue::NULL).is_ok(),
        }
    }
}

#[derive(Default)]
struct State {
    wakers: RefCell<Vec<Waker>>,
    /// Time of the last turn, and the time since which turns have brought neither work nor an awaited result.
    turned: Cell<f64>,
    idle_since: Cell<f64>,
}

impl State {
    fn wake(&self, now: f64) {
        self.turned.set(now);
        // A woken task may request the next turn at once, so the list must not be borrowed.
        let wakers = std::mem::take(&mut *self.wakers.borrow_mut());
        wakers.into_iter().for_each(Waker::wake);
    }
}

impl WebHost {
    /// Makes a host for the page, worker or runtime that this runs in.
    ///
    /// *Errors*: a function that it needs is missing; the error names it.
    pub fn new() -> Result<WebHost, JsValue> {
        let global = js_sys::global();
        let set_timeout: Function = Reflect::get(&global, &"setTimeout".into())?.dyn_into()?;
        let performance: web_sys::Performance = Reflect::get(&global, &"performance".into())?.dyn_into()?;
        let now = move || performance.now();
        let state = Rc::new(State::default());
        let soon = match Reflect::get(&global, &"setImmediate".into())?.dyn_into() {
            Ok(set_immediate) => Soon::Immediate(set_immediate),
            Err(_) => {
                let channel = MessageChannel::new()?;
                let (woken, clock) = (state.clone(), now.clone());
                let on_message = Closure::new(move |_: MessageEvent| woken.wake(clock()));
                channel.port1().set_onmessage(Some(on_message.as_ref().unchecked_ref()));
                Soon::Message { port: channel.port2(), _on_message: on_message }
            }
        };
        let (woken, clock) = (state.clone(), now.clone());
        let on_timer = Closure::new(move || woken.wake(clock()));
        Ok(WebHost { soon, state, on_timer, set_timeout, now: Box::new(now) })
    }
}

impl Host for WebHost {
    fn wake_later(&self, waker: &Waker) {
        let first = {
            let mut wakers = self.state.wakers.borrow_mut();
            wakers.push(waker.clone());
            wakers.len() == 1
        };
        if !first {
            return;
        }
        let now = self.now_ms();
        if now - self.state.turned.get() > IDLE_MS {
            self.state.idle_since.set(now);
        }
        let eager = now - self.state.idle_since.get() < EAGER_MS;
        // If a message cannot be posted, the timer remains.
        if !(eager && self.soon.ask(self.on_timer.as_ref())) {
            // This fails only if `setTimeout` throws, which it does not for these arguments.
            let _ = self.set_timeout.call2(&JsValue::UNDEFINED, self.on_timer.as_ref(), &JsValue::from(1));
        }
    }

    fn arrived(&self) {
        self.state.idle_since.set(self.now_ms());
    }

    fn now_ms(&self) -> f64 {
        (self.now)()
    }
}

impl Drop for WebHost {
    fn drop(&mut self) {
        if let Soon::Message { port, .. } = &self.soon {
            port.close();
        }
    }
}
