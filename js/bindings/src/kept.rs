//! Texts that the page keeps: snapshots, each with the rows since the one before.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use anygpu::{Snapshot, SnapshotSink};
use js_sys::{Function, Uint8Array};
use wasm_bindgen::JsValue;

/// State of a text that the page keeps.
#[derive(Default)]
pub struct Kept {
    /// The tokens whose states are kept.
    tokens: RefCell<Vec<u32>>,
    /// Whether something is on its way.
    busy: Cell<bool>,
}

impl Kept {
    /// All of a text is kept.
    pub fn have(&self, tokens: &[u32]) {
        self.tokens.replace(tokens.to_vec());
    }

    /// Records whether the snapshot that was on its way was kept; if not, nothing is. More may come in the middle of
    /// a generation if it is ready.
    pub fn arrived(&self, is_kept: bool, is_ready: bool) {
        self.busy.set(!is_ready);
        if !is_kept {
            self.tokens.borrow_mut().clear();
        }
    }
}

/// Keeps a text while it is generated.
pub struct Keeping {
    kept: Rc<Kept>,
    on_snapshot: Function,
}

impl Keeping {
    /// Starts to keep a text that begins with a prompt.
    pub fn new(kept: Rc<Kept>, prompt: &[u32], on_snapshot: Function) -> Keeping {
        let common = kept.tokens.borrow().iter().zip(prompt).take_while(|(a, b)| a == b).count();
        kept.tokens.borrow_mut().truncate(common);
        kept.busy.set(false);
        Keeping { kept, on_snapshot }
    }
}

impl SnapshotSink for Keeping {
    fn position(&self) -> usize {
        self.kept.tokens.borrow().len()
    }

    fn is_ready(&self) -> bool {
        !self.kept.busy.get()
    }

    fn take(&self, snapshot: Snapshot) {
        let (from, position) = (snapshot.header().from, snapshot.header().position);
        let mut tokens = self.kept.tokens.borrow_mut();
        tokens.truncate(from);
        tokens.extend(&snapshot.tokens()[..position - from]);
        drop(tokens);
        self.kept.busy.set(true);
        let bytes = Uint8Array::from(&snapshot.to_bytes()[..]);
        // Whoever throws keeps nothing.
        let told = self.on_snapshot.call3(&JsValue::UNDEFINED, &bytes, &from.into(), &position.into());
        if told.is_err() {
            self.kept.arrived(false, true);
        }
    }
}
