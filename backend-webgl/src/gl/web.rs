//! A context of a canvas that nobody sees, in a page or a worker.

use backend_api::Error;
use wasm_bindgen::{JsCast, JsValue};
use web_sys::{
    HtmlCanvasElement, OffscreenCanvas, WebGl2RenderingContext, WebGlContextAttributes, WebGlPowerPreference,
};

/// A context that is given back when dropped: browsers allow few of them, and would take the oldest away.
pub(super) struct Canvas {
    context: WebGl2RenderingContext,
    /// Whether the browser says that drawing here is much slower than usual, so mostly without a GPU.
    pub(super) slow: bool,
}

/// Browsers see to threads: none has to wait for its turn.
pub(super) enum Turn {}

impl Canvas {
    /// Opens a context, by preference one of a GPU.
    ///
    /// *Errors*: the browser has no WebGL2 here.
    pub(super) fn open() -> Result<Canvas, Error> {
        let asked = |fail_if_slow: bool| -> Option<WebGl2RenderingContext> {
            let attributes = WebGlContextAttributes::new();
            attributes.set_alpha(false);
            attributes.set_antialias(false);
            attributes.set_depth(false);
            attributes.set_stencil(false);
            attributes.set_power_preference(WebGlPowerPreference::HighPerformance);
            attributes.set_fail_if_major_performance_caveat(fail_if_slow);
            // A canvas that refused a context once may refuse others, so each gets its own.
            context(&attributes).ok().flatten()?.dyn_into().ok()
        };
        let fast = asked(true);
        let slow = fast.is_none();
        let context = fast.or_else(|| asked(false)).ok_or_else(|| Error::Absent {
            backend: "webgl",
            reason: "the browser gives no WebGL2 context here; turn on hardware acceleration, or update the browser"
                .into(),
        })?;
        Ok(Canvas { context, slow })
    }

    /// The functions of the context.
    pub(super) fn functions(&self) -> glow::Context {
        glow::Context::from_webgl2_context(self.context.clone())
    }

    /// The renderer's name, where the browser does not keep it secret.
    pub(super) fn renderer(&self) -> Option<String> {
        const UNMASKED_RENDERER_WEBGL: u32 = 0x9246;
        self.context.get_extension("WEBGL_debug_renderer_info").ok().flatten()?;
        self.context.get_parameter(UNMASKED_RENDERER_WEBGL).ok()?.as_string().filter(|name| !name.is_empty())
    }

    /// Makes sure that the context is still there: after a loss its calls do nothing, and `getError` tells only once.
    ///
    /// *Errors*: it was lost.
    pub(super) fn enter(&self) -> Result<Option<Turn>, Error> {
        let lost = || Error::Lost("the browser took the WebGL context away".into());
        if self.context.is_context_lost() { Err(lost()) } else { Ok(None) }
    }
}

impl Drop for Canvas {
    fn drop(&mut self) {
        if let Ok(Some(extension)) = self.context.get_extension("WEBGL_lose_context") {
            extension.unchecked_into::<web_sys::WebglLoseContext>().lose_context();
        }
    }
}

/// The context of a new canvas: off screen where the browser can, else of an element outside the page.
fn context(attributes: &WebGlContextAttributes) -> Result<Option<js_sys::Object>, JsValue> {
    let attributes = attributes.as_ref();
    if let Ok(canvas) = OffscreenCanvas::new(1, 1)
        && let Ok(Some(context)) = canvas.get_context_with_context_options("webgl2", attributes)
    {
        return Ok(Some(context));
    }
    let Some(document) = web_sys::window().and_then(|window| window.document()) else { return Ok(None) };
    let canvas: HtmlCanvasElement = document.create_element("canvas")?.unchecked_into();
    canvas.get_context_with_context_options("webgl2", attributes)
}
