//! Texts with names, for JavaScript. The text without one has an empty name.

use std::rc::Rc;

use anygpu::{EngineError, ModelError, SessionInfo, Sessions, Snapshot};
use bindings_common::{engine_error as error, json};
use js_sys::{Promise, Uint8Array, Uint32Array};
use serde::Serialize;
use wasm_bindgen::prelude::{JsValue, wasm_bindgen};
use wasm_bindgen_futures::future_to_promise;

use crate::engine::{Loaded, WasmEngine, Work};
use crate::kept::Kept;
use crate::request::Request;

/// Texts of which it is known what is kept; there may be any number of names.
const MAX_KEPT: usize = 1024;

/// [`anygpu::SessionInfo`] for JSON.
#[derive(Serialize)]
struct Info<'a> {
    name: &'a str,
    tokens: usize,
    bytes: usize,
    /// How its last generation ended.
    finish: Option<&'static str>,
}

/// A generation that may go on.
#[derive(Serialize)]
struct Asked<'a> {
    prompt: &'a [u32],
    done: &'a [u32],
    generate: Request,
    finish: Option<&'static str>,
}

#[wasm_bindgen]
impl WasmEngine {
    /// Returns a name that tells texts of this model and KV cache from those of others.
    pub fn identity(&self) -> String {
        let model = self.0.engine.model();
        format!("{}/{}", model.identity(), model.recipe().kv_cache())
    }

    /// All texts, last used first, as JSON.
    pub fn sessions(&self) -> Result<String, JsValue> {
        let all = |sessions: &Sessions| {
            let finish = |name| Some(sessions.request(name)?.0.finish?.name());
            let info = |SessionInfo { name, tokens, bytes, .. }| Info { name, tokens, bytes, finish: finish(name) };
            json(&sessions.list().into_iter().map(info).collect::<Vec<_>>())
        };
        self.0.with_texts(all, || Ok("[]".into()))
    }

    /// Forgets a text; gives whether it was there.
    pub fn remove(&self, name: &str) -> Result<bool, JsValue> {
        self.0.kept.borrow_mut().remove(name);
        let mut sessions = self.0.take_texts()?;
        let was = sessions.remove(name);
        self.0.work.replace(Some(Work::Text(sessions)));
        Ok(was)
    }

    /// The tokens of a text, or of that which was used last; undefined if there is no such text.
    pub fn text(&self, name: Option<String>) -> Option<Vec<u32>> {
        let tokens = |sessions: &Sessions| {
            let name = name.as_deref().unwrap_or_else(|| sessions.name());
            sessions.tokens(name).map(<[u32]>::to_vec)
        };
        self.0.with_texts(tokens, || None)
    }

    /// The last generation of a text, as what asks for it again with what it gave, as JSON; undefined if there was
    /// none.
    pub fn asked(&self, name: &str) -> Result<Option<String>, JsValue> {
        let asked = |sessions: &Sessions| {
            let ((request, sampling), tokens) = sessions.request(name).zip(sessions.tokens(name))?;
            let (prompt, done) = tokens.split_at(request.prompt.min(tokens.len()));
            let (finish, generate) = (request.finish.map(|finish| finish.name()), Request::saved(request, sampling));
            Some(json(&Asked { prompt, done, generate, finish }))
        };
        self.0.with_texts(asked, || None).transpose()
    }

    /// A text, or that which was used last, with what was computed of it. The promise gives a `Uint8Array`, or
    /// undefined if there is no such text.
    pub fn export(&self, name: Option<String>) -> Promise {
        let loaded = self.0.clone();
        future_to_promise(async move {
            let mut sessions = loaded.take_texts()?;
            let name = name.unwrap_or_else(|| sessions.name().to_owned());
            let exported = match sessions.export(&name, loaded.engine.host()).await {
                Ok(snapshot) => Ok(snapshot.map(|snapshot| snapshot.to_bytes())),
                Err(error) => Err(error::engine(&error.into())),
            };
            loaded.work.replace(Some(Work::Text(sessions)));
            Ok(exported?.map_or(JsValue::UNDEFINED, |bytes| Uint8Array::from(&bytes[..]).into()))
        })
    }

    /// Takes a text that was exported, under a name; `is_kept` says whether it comes from where snapshots go. The
    /// promise gives its tokens.
    pub fn import(&self, name: String, bytes: Vec<u8>, is_kept: bool) -> Promise {
        let loaded = self.0.clone();
        future_to_promise(async move {
            let refused = |e: ModelError| error::engine(&EngineError::from(e));
            let snapshot = Snapshot::from_bytes(&bytes).map_err(|e| refused(e.into()))?;
            drop(bytes);
            let mut sessions = loaded.take_texts()?;
            let imported = sessions.import(&name, &snapshot, loaded.engine.host()).await;
            loaded.work.replace(Some(Work::Text(sessions)));
            imported.map_err(refused)?;
            let tokens = snapshot.tokens();
            if is_kept {
                loaded.kept(&name).have(&tokens[..snapshot.header().position]);
            }
            Ok(Uint32Array::from(tokens).into())
        })
    }

    /// Records whether the snapshot that `generate` gave was kept. If not, the next snapshot has all of the text.
    /// Unless the page is ready for more, that is the one at the end of the generation.
    pub fn kept(&self, name: &str, is_kept: bool, is_ready: bool) {
        self.0.kept(name).arrived(is_kept, is_ready);
    }
}

impl Loaded {
    /// Returns the state of a text that the page keeps.
    pub fn kept(&self, name: &str) -> Rc<Kept> {
        // What is forgotten is written as a whole the next time.
        if self.kept.borrow().len() >= MAX_KEPT {
            self.kept.borrow_mut().clear();
        }
        self.kept.borrow_mut().entry(name.into()).or_default().clone()
    }

    /// Looks at the texts; of a model that makes none, or while it works, there is nothing to see.
    fn with_texts<T>(&self, look: impl FnOnce(&Sessions) -> T, nothing: impl FnOnce() -> T) -> T {
        match &*self.work.borrow() {
            Some(Work::Text(sessions)) => look(sessions),
            _ => nothing(),
        }
    }
}
