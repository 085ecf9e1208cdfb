//! A file that JavaScript reads.

use model::gguf::ReadFuture;
use model::{ByteSource, SourceError};
use js_sys::{Promise, Uint8Array};
use wasm_bindgen::prelude::{JsCast, JsValue, wasm_bindgen};
use wasm_bindgen_futures::JsFuture;

#[wasm_bindgen]
extern "C" {
    /// `{ size: number, files?: number[], readAt(offset: number, length: number): Promise<Uint8Array> }`. Of several files
    /// that lie one behind the other, `files` has the sizes. Numbers are floats, which count bytes up to 2^53.
    pub type JsSource;

    #[wasm_bindgen(method, getter)]
    fn size(this: &JsSource) -> f64;

    #[wasm_bindgen(method, getter)]
    fn files(this: &JsSource) -> Option<Vec<f64>>;

    #[wasm_bindgen(method, catch, js_name = readAt)]
    fn read_at(this: &JsSource, offset: f64, length: f64) -> Result<Promise, JsValue>;
}

/// Such a file as the model reads it.
pub struct Source(pub JsSource);

impl Source {
    async fn read(&self, offset: u64, buf: &mut [u8]) -> Result<(), SourceError> {
        let failed = |reason: String| SourceError { offset, len: buf.len() as u64, reason };
        let thrown = |value: JsValue| {
            let error = value.dyn_ref::<js_sys::Error>().map(|e| String::from(e.message()));
            failed(error.or_else(|| value.as_string()).unwrap_or_else(|| "the source gives no reason".into()))
        };
        let promise = self.0.read_at(offset as f64, buf.len() as f64).map_err(thrown)?;
        let bytes = JsFuture::from(promise).await.map_err(thrown)?;
        let bytes: Uint8Array =
            bytes.dyn_into().map_err(|_| failed("the source gives no Uint8Array; repair it".into()))?;
        if bytes.length() as usize != buf.len() {
            let got = bytes.length();
            return Err(failed(format!("the source gives {got} bytes; load the whole file again")));
        }
        bytes.copy_to(buf);
        Ok(())
    }
}

impl ByteSource for Source {
    fn len(&self) -> u64 {
        // Negative sizes and NaN become 0, which no GGUF file has.
        self.0.size() as u64
    }

    fn files(&self) -> Vec<u64> {
        self.0.files().map_or_else(|| vec![self.len()], |sizes| sizes.iter().map(|size| *size as u64).collect())
    }

    fn read_at<'a>(&'a self, offset: u64, buf: &'a mut [u8]) -> ReadFuture<'a> {
        Box::pin(self.read(offset, buf))
    }
}
