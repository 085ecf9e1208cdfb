//! What wgpu does not tell of a browser's adapter.

use js_sys::{Function, Object, Promise, Reflect};
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;

/// The adapter as the browser names it, such as "nvidia hopper"; nothing if it keeps that secret.
pub async fn adapter_name() -> String {
    let parts = async {
        let navigator = Reflect::get(&js_sys::global(), &"navigator".into())?;
        let gpu = Reflect::get(&navigator, &"gpu".into())?;
        let request: Function = Reflect::get(&gpu, &"requestAdapter".into())?.dyn_into()?;
        let options = Object::new();
        Reflect::set(&options, &"powerPreference".into(), &"high-performance".into())?;
        let adapter = JsFuture::from(request.call1(&gpu, &options)?.dyn_into::<Promise>()?).await?;
        let info = Reflect::get(&adapter, &"info".into())?;
        let part = |key: &str| Reflect::get(&info, &key.into()).ok().and_then(|text| text.as_string());
        Ok::<_, JsValue>(["vendor", "architecture", "device", "description"].map(|key| part(key).unwrap_or_default()))
    };
    let mut parts: Vec<String> = parts.await.map(Vec::from).unwrap_or_default();
    parts.retain(|part| !part.is_empty());
    parts.dedup();
    parts.join(" ")
}
