//! What wgpu does not tell of a browser's adapter: its name, why there is none, and its subgroups.

use js_sys::{Array, Function, Object, Promise, Reflect, Set};
use wasm_bindgen::closure::Closure;
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;

/// A browser whose GPU process is starting, or starting again, may offer no adapter for a moment.
const ATTEMPTS: usize = 3;
/// *Units*: milliseconds.
const PAUSE: i32 = 250;

/// What an adapter is called whose name the browser keeps secret.
const SECRET: &str = "a GPU that the browser does not name";

/// The feature of browsers that wgpu knows on other systems only.
const SUBGROUPS: &str = "subgroups";

/// An adapter of the browser.
pub struct Adapter(JsValue);

impl Adapter {
    /// Its name, such as "nvidia hopper".
    pub fn name(&self) -> String {
        name(&self.0)
    }

    /// Calls `request`, which has wgpu ask for a device. It gets one of this adapter, with subgroups if there are any:
    /// meanwhile the method that it calls is another. No other code can run in that time.
    pub fn with_subgroups<T>(&self, request: impl FnOnce() -> T) -> T {
        let method = JsValue::from("requestDevice");
        let prototype = Object::get_prototype_of(&self.0);
        let original = Reflect::get(&prototype, &method).and_then(|f| f.dyn_into::<Function>());
        let (Ok(original), true) = (original, has_subgroups(&self.0)) else { return request() };
        let (adapter, ask) = (self.0.clone(), original.clone());
        let closure = Closure::<dyn FnMut(JsValue) -> JsValue>::new(move |descriptor: JsValue| {
            if let Ok(features) = Reflect::get(&descriptor, &"requiredFeatures".into()) {
                features.unchecked_into::<Array>().push(&SUBGROUPS.into());
            }
            ask.call1(&adapter, &descriptor).unwrap_or_else(|error| Promise::reject(&error).into())
        });
        let replaced = Reflect::set(&prototype, &method, closure.as_ref());
        let requested = request();
        if replaced.is_ok() {
            // What could be set can be set again.
            let _ = Reflect::set(&prototype, &method, &original);
        }
        requested
    }
}

/// Whether an adapter or a device of the browser has subgroups.
pub fn has_subgroups(of: &JsValue) -> bool {
    let features = Reflect::get(of, &"features".into()).unwrap_or_default();
    features.is_object() && features.unchecked_into::<Set>().has(&SUBGROUPS.into())
}

/// Waits for the browser to offer an adapter.
///
/// *Errors*: why there is none, and what to do.
pub async fn adapter() -> Result<Adapter, String> {
    let global = js_sys::global();
    let gpu = Reflect::get(&global, &"navigator".into()).and_then(|navigator| Reflect::get(&navigator, &"gpu".into()));
    let gpu = gpu.ok().filter(JsValue::is_object).ok_or(
        "this browser has no WebGPU, or has it turned off (navigator.gpu is missing); update it, or serve the page over \
         HTTPS",
    )?;
    for attempt in 0..ATTEMPTS {
        if attempt > 0 {
            pause(&global).await;
        }
        // Whatever goes wrong here goes wrong again where the adapter is needed.
        let adapter = request(&gpu).await.unwrap_or_default();
        if adapter.is_object() {
            return Ok(Adapter(adapter));
        }
    }
    Err("the browser has WebGPU but offers no adapter; turn on hardware acceleration, or update the graphics driver"
        .into())
}

async fn request(gpu: &JsValue) -> Result<JsValue, JsValue> {
    let request: Function = Reflect::get(gpu, &"requestAdapter".into())?.dyn_into()?;
    let options = Object::new();
    Reflect::set(&options, &"powerPreference".into(), &"high-performance".into())?;
    JsFuture::from(request.call1(gpu, &options)?.dyn_into::<Promise>()?).await
}

fn name(adapter: &JsValue) -> String {
    let info = Reflect::get(adapter, &"info".into()).unwrap_or_default();
    let part = |key: &str| Reflect::get(&info, &key.into()).ok().and_then(|text| text.as_string()).unwrap_or_default();
    let mut parts = Vec::from(["vendor", "architecture", "device", "description"].map(part));
    parts.retain(|part| !part.is_empty());
    parts.dedup();
    if parts.is_empty() { SECRET.to_owned() } else { parts.join(" ") }
}

async fn pause(global: &JsValue) {
    let timer = Promise::new(&mut |resolve, _| {
        let set = Reflect::get(global, &"setTimeout".into()).and_then(|set| set.dyn_into::<Function>());
        // Without timers there is no pause.
        let _ = match set {
            Ok(set) => set.call2(&JsValue::UNDEFINED, &resolve, &PAUSE.into()),
            Err(_) => resolve.call0(&JsValue::UNDEFINED),
        };
    });
    let _ = JsFuture::from(timer).await;
}
