//! Split models give the same numbers as the whole file, bit for bit.

use anygpu_model::{BytesSource, Files, Model, Session};
use backend_api::run::NativeHost;
use std::rc::Rc;

use crate::common::{block_on, load, load_from, models};
use crate::cpu;
use crate::split::split;

fn logits(model: Rc<Model>) -> Vec<f32> {
    let tokens: Vec<u32> = (1..=20).collect();
    block_on(Session::new(model).unwrap().logits(&tokens, true, &NativeHost::default())).unwrap()
}

#[test]
fn logits_of_split_models() {
    // These files have tied and untied embeddings, several formats, joined tensors and generated ones.
    for name in ["llama-gqa-tied", "llama-e96-q5_0-mix", "gpt2-tiny", "llama-yarn4"] {
        let whole = models(&format!("fixtures/{name}.gguf"));
        let expected = logits(load(whole.clone(), Some(64), cpu(true)));
        for counts in [&[5, 1][..], &[0, 7], &[0], &[1, 1, 1, 1, 1]] {
            let mut files = split(&whole, counts);
            for _ in 0..2 {
                let source = Files(files.iter().map(BytesSource).collect());
                assert!(
                    logits(load_from(&source, Some(64), cpu(true))) == expected,
                    "{name} as {counts:?} and the rest"
                );
                files.reverse();
            }
        }
    }
}
