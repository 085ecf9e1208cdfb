//! Tests of speculative decoding on the CPU.

use std::rc::Rc;

use anygpu_model::{BytesSource, DraftError, Gguf, Model, Recipe, Session};
use backend_api::run::NativeHost;

use crate::common::{block_on, drafts, drafts_by_model, models};
use crate::{SAVED, cpu};

#[test]
fn drafts_change_nothing() {
    for backend in [cpu(false), cpu(true)] {
        let others = ["gemma2-swa", "gemma4-ple", "gpt-oss-mxfp4", "mixtral-4x2", "llama-q4_0", "llama-q4_k-mix"];
        let mut saved = 0;
        for name in SAVED.iter().chain(&others) {
            let steps = drafts(name, "f32", &backend, &[1, 3, 7]);
            if ["lfm2-tiny", "falcon-h1-tiny", "qwen35-tiny", "mamba-tiny"].contains(name) {
                assert_eq!(steps, 0, "{name} has states that cannot be wound back");
            }
            saved += steps;
        }
        assert!(saved > 100, "only {saved} steps saved");
        ["f16", "q8_0"].iter().for_each(|kv_cache| assert!(drafts("qwen3-d32", kv_cache, &backend, &[3, 7]) > 0));
    }
}

#[test]
fn drafts_by_a_small_model_change_nothing() {
    // This runs only on the fast CPU backend: the plain one would take a minute.
    for (is_drawn, is_exact) in [(false, true), (false, false), (true, true), (true, false)] {
        drafts_by_model(&cpu(true), is_drawn, is_exact);
    }
}

#[test]
fn states_that_cannot_be_wound_back_are_not_drafted() {
    let session = |name: &str| {
        let (bytes, host) = (models(&format!("fixtures/{name}.gguf")), NativeHost::default());
        let recipe = Recipe::new(&Gguf::from_bytes(&bytes).unwrap(), Some(64)).unwrap();
        let source = BytesSource(bytes);
        let model = block_on(Model::load(&source, recipe, cpu(true), &host, &mut |_, _| {})).unwrap();
        Session::new(Rc::new(model)).unwrap()
    };
    for (name, draft, of) in
        [("mamba-tiny", "llama-gqa-tied", "the model"), ("llama-gqa-tied", "lfm2-tiny", "the model that drafts")]
    {
        let refused = session(name).set_draft(session(draft), 0.1).unwrap_err();
        assert!(matches!(refused, DraftError::States { of: found, .. } if found == of), "{refused}");
    }
}
