//! Services for programs in browsers: a clock, and turns of the event loop.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::Waker;

use js_sys::{Function, Reflect};
use model::Host;
use wasm_bindgen::prelude::{Closure, JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;
use web_sys::{MessageChannel, MessageEvent, MessagePort};

/// Work that a turn brings, such as encoding steps, takes longer than this; a poll takes a tenth of it.
///
/// *Units*: milliseconds.
const IDLE_MS: f64 = 0.25;
/// How long waiting goes on by messages, which come at once, before it goes on by timers, which leave the processor to
/// others (a software GPU needs it).
///
/// *Units*: milliseconds.
const EAGER_MS: f64 = 4.0;

/// The time of day, for texts that tell it.
///
/// *Units*: seconds since 1970-01-01, in the user's time zone.
pub(crate) fn seconds() -> i64 {
    (js_sys::Date::now() / 1e3 - js_sys::Date::new_0().get_timezone_offset() * 60.0) as i64
}

/// Returns the place that a selection is remembered for: the browser. Whoever keeps it knows which module it is of.
pub(crate) fn place() -> String {
    let get = |of: &JsValue, name: &str| Reflect::get(of, &name.into()).unwrap_or_default();
    let navigator = get(&js_sys::global(), "navigator");
    get(&navigator, "userAgent").as_string().unwrap_or_default()
}

thread_local! {
    /// The function that [`before_cpu`] was given, until it is called.
    static BEFORE_CPU: RefCell<Option<Function>> = const { RefCell::new(None) };
}

/// Has a function called, and what it promises awaited, before the CPU is opened for the first time. It starts threads, which
/// takes turns of the event loop; where it fails, there is one.
pub fn before_cpu(start: Function) {
    BEFORE_CPU.set(Some(start));
}

/// Does what is to be done before the CPU is opened.
pub(crate) async fn prepare_cpu() {
    let Some(start) = BEFORE_CPU.take() else { return };
    if let Ok(promise) = start.call0(&JsValue::NULL) {
        // Whoever starts threads says why there are fewer.
        let _ = JsFuture::from(js_sys::Promise::resolve(&promise)).await;
    }
}

/// The event loop of a page, a worker or a runtime.
pub struct WebHost {
    soon: Soon,
    state: Rc<State>,
    on_timer: Closure<dyn FnMut()>,
    set_timeout: Function,
    now: Box<dyn Fn() -> f64>,
}

/// The way to a turn that comes at once.
enum Soon {
    /// `setImmediate` of Node.js, Deno and Bun. A channel that posts to itself is served there up to a thousand times before any
    /// other port, so that an abort would arrive seconds late.
    Immediate(Function),
    /// Browsers do not have `setImmediate`. They serve ports in turn.
    Message {
        port: MessagePort,
        /// Called by the channel for as long as the host lives.
        _on_message: Closure<dyn FnMut(MessageEvent)>,
    },
}

impl Soon {
    /// Asks for a turn; returns whether it will come.
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
    /// When the last turn began, and since when turns have brought neither work nor what was waited for.
    turned: Cell<f64>,
    idle_since: Cell<f64>,
}

impl State {
    fn wake(&self, now: f64) {
        self.turned.set(now);
        // Those who are woken may ask for the next turn at once.
        let wakers = std::mem::take(&mut *self.wakers.borrow_mut());
        wakers.into_iter().for_each(Waker::wake);
    }
}

impl WebHost {
    /// A host for the page, worker or runtime that this runs in.
    ///
    /// *Errors*: a function that it needs is missing; it is named.
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
        // A message that cannot be posted is no reason to stop: the timer remains.
        if !(eager && self.soon.ask(self.on_timer.as_ref())) {
            // Fails only if `setTimeout` throws, which it does not for these arguments.
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
