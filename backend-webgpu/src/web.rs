//! What wgpu does not tell of a browser's adapter: its name, and why there is none.

use js_sys::{Function, Object, Promise, Reflect};
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;

/// A browser whose GPU process is starting, or starting again, may offer no adapter for a moment.
const ATTEMPTS: usize = 3;
/// *Units*: milliseconds.
const PAUSE: i32 = 250;

/// What an adapter is called whose name the browser keeps secret.
const SECRET: &str = "a GPU that the browser does not name";

/// Waits for the browser to offer an adapter, and gives its name, such as "nvidia hopper".
///
/// *Errors*: why there is none, and what to do.
pub async fn adapter_name() -> Result<String, String> {
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
            return Ok(name(&adapter));
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
