//! Browser calls that wgpu lacks: the name of an adapter, why there is none, and compiling several pipelines at once.

use js_sys::{Function, Object, Promise, Reflect};
use std::cell::Cell;
use std::rc::Rc;
use wasm_bindgen::prelude::Closure;
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::{JsFuture, spawn_local};

/// A browser whose GPU process is starting, or starting again, may offer no adapter for a moment.
const ATTEMPTS: usize = 15;
/// *Units*: milliseconds.
const PAUSE: i32 = 50;

/// Name of an adapter whose own name the browser keeps secret.
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

/// The method of a device that wgpu makes pipelines by.
const MAKES: &str = "createComputePipeline";
const MAKES_AHEAD: &str = "createComputePipelineAsync";

/// A pipeline that the browser compiles meanwhile.
pub struct Compiling(Rc<Cell<Option<Result<JsValue, JsValue>>>>);

impl Compiling {
    /// Takes the outcome, once.
    pub fn take(&self) -> Option<Result<JsValue, JsValue>> {
        self.0.take()
    }
}

/// Begins to compile the pipeline that `make` asks wgpu for, which knows no way to wait for one; what `make` returns is of no use.
pub fn compile(device: &wgpu::Device, make: impl FnOnce() -> wgpu::ComputePipeline) -> Compiling {
    let made = Rc::new(Cell::new(None));
    let asked = Rc::new(Cell::new(JsValue::UNDEFINED));
    let keep = asked.clone();
    instead(
        device,
        move |descriptor| {
            keep.set(descriptor);
            JsValue::UNDEFINED
        },
        make,
    );
    let compiled = made.clone();
    let promise = begin(device, &asked.take());
    spawn_local(async move {
        compiled.set(Some(match promise {
            Ok(promise) => JsFuture::from(promise).await,
            Err(error) => Err(error),
        }));
    });
    Compiling(made)
}

fn begin(device: &wgpu::Device, descriptor: &JsValue) -> Result<Promise, JsValue> {
    let device: &JsValue = device.as_webgpu().ok_or(JsValue::UNDEFINED)?;
    let begin: Function = Reflect::get(device, &MAKES_AHEAD.into())?.dyn_into()?;
    begin.call1(device, descriptor)?.dyn_into()
}

/// Has wgpu take a pipeline that is there for the one that `make` asks for.
pub fn adopt(
    device: &wgpu::Device,
    made: &JsValue,
    make: impl FnOnce() -> wgpu::ComputePipeline,
) -> wgpu::ComputePipeline {
    let made = made.clone();
    instead(device, move |_| made.clone(), make)
}

/// Calls `make` while something else stands in the place of the device's method.
fn instead(
    device: &wgpu::Device,
    method: impl FnMut(JsValue) -> JsValue + 'static,
    make: impl FnOnce() -> wgpu::ComputePipeline,
) -> wgpu::ComputePipeline {
    let Some(raw) = device.as_webgpu() else { return make() };
    let method: Closure<dyn FnMut(JsValue) -> JsValue> = Closure::new(method);
    // An own property hides the method of the device's class.
    let hidden = Reflect::set(raw, &MAKES.into(), method.as_ref());
    let made = make();
    if hidden.is_ok() {
        let _ = Reflect::delete_property(raw, &MAKES.into());
    }
    made
}
