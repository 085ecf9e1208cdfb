//! Results that are not finite give an error that names the operator, on every backend.

use std::rc::Rc;

use crate::backends::backends;
use anygpu::native::{NativeHost, block_on};
use anygpu::{Engine, EngineError, EngineOptions};
use backend_api::{Backend, Codec, Format};
use model::{BytesSource, Fault, GenerateOptions, Gguf, KvCache, ModelError, Sampling};

const LLAMA: &[u8] = include_bytes!("../../models/fixtures/llama-gqa-tied.gguf");
const GPT2: &[u8] = include_bytes!("../../models/fixtures/gpt2-tiny.gguf");
/// A model with soft caps of scores and logits, which map infinity to a finite number.
const GEMMA2: &[u8] = include_bytes!("../../models/fixtures/gemma2-swa.gguf");

/// Replaces one value of a tensor in a model.
fn broken(model: &[u8], tensor: &str, at: usize, value: f32) -> Vec<u8> {
    let mut bytes = model.to_vec();
    let gguf = Gguf::from_bytes(&bytes).unwrap();
    let tensor = gguf.tensors.iter().find(|t| &*t.name == tensor).unwrap();
    assert_eq!(tensor.format, Format::F32);
    let start = tensor.offset as usize + 4 * at;
    bytes[start..start + 4].copy_from_slice(&value.to_le_bytes());
    bytes
}

fn load(bytes: &[u8], backend: Box<dyn Backend>, kv_cache: KvCache) -> Engine {
    let options = EngineOptions { n_ctx: Some(64), kv_cache, ..Default::default() };
    let (source, host) = (BytesSource(bytes.to_vec()), Rc::new(NativeHost::default()));
    block_on(Engine::with_backend(backend, &source, &options, host, &mut |_| {})).unwrap()
}

/// Returns the faults of a greedy generation, a sampled one, and a computation of logits.
fn faults(engine: &Engine, prompt: &[u32]) -> Vec<Option<Fault>> {
    let random = Sampling::Random { temperature: 0.8, top_k: 0, top_p: 0.9, seed: 1 };
    let mut session = engine.session().unwrap();
    let mut found = Vec::new();
    for (sampling, fetch_interval) in [(Sampling::Greedy, Some(4)), (random, None)] {
        let options = GenerateOptions { sampling, fetch_interval, max_tokens: Some(9), ..Default::default() };
        match block_on(engine.generate(&mut session, prompt, &options, &mut |_| {})) {
            Err(EngineError::Model(ModelError::NotANumber { fault, .. })) => found.push(fault),
            other => panic!("{} {sampling:?}: {other:?}", engine.backend().info().adapter),
        }
    }
    for all in [false, true] {
        session.rewind(0);
        match block_on(session.logits(prompt, all, engine.host())) {
            Err(ModelError::NotANumber { fault, .. }) => found.push(fault),
            other => panic!("{}: {other:?}", engine.backend().info().adapter),
        }
    }
    found
}

/// Asserts that all backends report the same fault of a broken model, however the logits are requested.
fn all_name(bytes: &[u8], prompt: &[u32], operator: &str, weight: &str, position: usize) {
    for (name, backend) in backends() {
        let engine = load(bytes, backend, KvCache::default());
        for fault in faults(&engine, prompt) {
            let Fault { operator: of, weight: with, position: at, .. } = fault.expect(name);
            assert_eq!((of, with.as_deref(), at), (operator, Some(weight), position), "{name}");
        }
    }
}

#[test]
fn a_weight_that_is_nan_is_named() {
    all_name(&broken(LLAMA, "blk.1.attn_norm.weight", 3, f32::NAN), &[5], "norm", "blk.1.attn_norm.weight", 0);
}

#[test]
fn a_weight_that_is_infinite_is_named() {
    all_name(&broken(LLAMA, "blk.2.ffn_norm.weight", 60, f32::INFINITY), &[5], "norm", "blk.2.ffn_norm.weight", 0);
}

#[test]
fn a_number_that_grows_too_large_is_named_where_it_does() {
    all_name(&broken(LLAMA, "blk.1.ffn_norm.weight", 7, 3e38), &[5], "glu", "blk.1.ffn_gate_up.weight", 0);
}

#[test]
fn a_token_before_the_last_is_named_by_what_it_left_in_the_cache() {
    let bytes = broken(GPT2, "position_embd.weight", 2 * 64 + 1, f32::NAN);
    all_name(&bytes, &[5, 6, 7, 8, 9], "get_rows", "position_embd.weight", 2);
}

#[test]
fn a_codec_of_the_cache_does_not_hide_it() {
    let bytes = broken(GPT2, "position_embd.weight", 2 * 64 + 1, f32::NAN);
    for codec in Codec::ALL {
        let cpu = Box::new(reference_cpu::Cpu::new(Default::default()));
        for fault in faults(&load(&bytes, cpu, KvCache::coded(*codec)), &[7, 8, 9, 10]) {
            let found = fault.map(|fault| (fault.operator, fault.position));
            assert_eq!(found, Some(("get_rows", 2)), "{codec:?}");
        }
    }
}

#[test]
fn the_message_is_one_line_with_cause_and_remedy() {
    let engine =
        load(&broken(LLAMA, "blk.1.attn_norm.weight", 3, f32::NAN), backends().swap_remove(0).1, KvCache::default());
    let mut session = engine.session().unwrap();
    let text = block_on(session.logits(&[5, 6], false, engine.host())).unwrap_err().to_string();
    assert!(
        text.contains("norm with blk.1.attn_norm.weight, of the token at 1;") && text.lines().count() == 1,
        "{text}"
    );
}

#[test]
fn keys_that_are_nan_are_not_hidden_by_their_softmax() {
    all_name(&broken(LLAMA, "blk.1.attn_k.weight", 5, f32::NAN), &[5], "matmul", "blk.1.attn_qkv.weight", 0);
}

#[test]
fn soft_caps_do_not_hide_it() {
    all_name(&broken(GEMMA2, "blk.1.attn_norm.weight", 3, f32::NAN), &[5], "norm", "blk.1.attn_norm.weight", 0);
}

#[test]
fn a_session_goes_on_from_what_was_right() {
    let engine =
        load(&broken(GPT2, "position_embd.weight", 2 * 64, f32::NAN), backends().swap_remove(0).1, KvCache::default());
    let mut session = engine.session().unwrap();
    assert!(block_on(session.logits(&[5, 6, 7, 8], false, engine.host())).is_err());
    assert_eq!(session.tokens(), [5, 6]);
    session.rewind(1);
    assert!(block_on(session.logits(&[9], false, engine.host())).is_ok());
}
