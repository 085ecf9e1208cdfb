//! Drafts that are verified in one step.

use crate::common::drafts;
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
