//! Files of models, which JavaScript fetches.

use anygpu_pool_proto::{Assign, Manifest, Reason, Wire};
use anygpu_pool_worker::{Chunks, GotFuture, Models, OpenFuture, Opened, PutFuture, Refused};
use bindings_common::source::{JsSource, Source};
use js_sys::{Promise, Uint8Array};
use wasm_bindgen::prelude::{JsCast, JsValue, wasm_bindgen};
use wasm_bindgen_futures::JsFuture;

#[wasm_bindgen]
extern "C" {
    /// `{ manifest(address: string): Promise<Uint8Array>, source(address: string, size: number): JsSource,
    /// kept(name: string): Promise<Uint8Array | null>, keep(name: string, bytes: Uint8Array): Promise<void> }`.
    #[derive(Clone)]
    pub type JsModels;

    #[wasm_bindgen(method, catch)]
    fn manifest(this: &JsModels, address: &str) -> Result<Promise, JsValue>;

    #[wasm_bindgen(method, catch)]
    fn source(this: &JsModels, address: &str, size: f64) -> Result<JsSource, JsValue>;

    #[wasm_bindgen(method, catch)]
    fn kept(this: &JsModels, name: &str) -> Result<Promise, JsValue>;

    #[wasm_bindgen(method, catch)]
    fn keep(this: &JsModels, name: &str, bytes: Uint8Array) -> Result<Promise, JsValue>;
}

/// Such files as a worker reads them.
pub struct Fetched(pub JsModels);

impl Fetched {
    async fn open(&self, assign: &Assign) -> Result<Opened, Refused> {
        let promise = self.0.manifest(&assign.address).map_err(thrown)?;
        let bytes = JsFuture::from(promise).await.map_err(thrown)?;
        let bytes: Uint8Array = bytes
            .dyn_into()
            .map_err(|_| Refused::new(Reason::Fetch, "the manifest comes as no Uint8Array; repair it"))?;
        let manifest = Manifest::from_wire(&bytes.to_vec())?;
        let source = self.0.source(&assign.address, manifest.bytes as f64).map_err(thrown)?;
        Ok(Opened { source: Box::new(Source(source)), manifest, kept: Some(Box::new(Kept(self.0.clone()))) })
    }
}

/// Chunks that JavaScript keeps.
struct Kept(JsModels);

impl Chunks for Kept {
    fn get<'a>(&'a self, name: &'a str) -> GotFuture<'a> {
        Box::pin(async move {
            let bytes = JsFuture::from(self.0.kept(name).ok()?).await.ok()?;
            Some(bytes.dyn_into::<Uint8Array>().ok()?.to_vec())
        })
    }

    fn put<'a>(&'a self, name: &'a str, bytes: &'a [u8]) -> PutFuture<'a> {
        Box::pin(async move {
            if let Ok(kept) = self.0.keep(name, Uint8Array::from(bytes)) {
                // It works without.
                let _ = JsFuture::from(kept).await;
            }
        })
    }
}

impl Models for Fetched {
    fn open<'a>(&'a self, assign: &'a Assign) -> OpenFuture<'a> {
        Box::pin(self.open(assign))
    }
}

fn thrown(value: JsValue) -> Refused {
    let message = value.dyn_ref::<js_sys::Error>().map(|error| String::from(error.message()));
    Refused::new(Reason::Fetch, message.unwrap_or_else(|| "the file cannot be fetched, and no reason is given".into()))
}
