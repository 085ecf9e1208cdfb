//! Dispatches of a token for the shapes of larger models: their programs are compiled, but their weights stay away.

use std::pin::Pin;

use anygpu::native::block_on;
use backend_api::Backend;
use backend_api::run::Rig;
use model::{ByteSource, Gguf, Head, ModelError, Recipe, SourceError};

/// A GGUF file without its weights.
struct Header {
    bytes: Vec<u8>,
    len: u64,
}

impl ByteSource for Header {
    fn len(&self) -> u64 {
        self.len
    }

    fn read_at<'a>(
        &'a self,
        offset: u64,
        buffer: &'a mut [u8],
    ) -> Pin<Box<dyn Future<Output = Result<(), SourceError>> + 'a>> {
        for (at, byte) in (offset as usize..).zip(buffer.iter_mut()) {
            *byte = self.bytes.get(at).copied().unwrap_or(0);
        }
        Box::pin(std::future::ready(Ok(())))
    }
}

fn text(out: &mut Vec<u8>, text: &str) {
    out.extend((text.len() as u64).to_le_bytes());
    out.extend(text.bytes());
}

/// Types of metadata and of tensors, as GGUF numbers them.
const U32: u32 = 4;
const FLOAT: u32 = 6;
const STRING: u32 = 8;
const F32: u32 = 0;
const Q4_0: u32 = 2;

/// A llama of so many blocks, with as many KV heads as heads, in Q4_0.
fn llama(blocks: u32, width: u64, heads: u32, feed_forward: u64, vocabulary: u64) -> Header {
    let mut metadata = Vec::new();
    let mut pairs = 0u64;
    let mut pair = |key: &str, kind: u32, value: &[u8]| {
        pairs += 1;
        text(&mut metadata, key);
        metadata.extend(kind.to_le_bytes());
        metadata.extend(value);
    };
    let mut architecture = Vec::new();
    text(&mut architecture, "llama");
    pair("general.architecture", STRING, &architecture);
    pair("llama.attention.layer_norm_rms_epsilon", FLOAT, &1e-5f32.to_le_bytes());
    for (key, value) in [
        ("block_count", blocks),
        ("embedding_length", width as u32),
        ("attention.head_count", heads),
        ("attention.head_count_kv", heads),
        ("feed_forward_length", feed_forward as u32),
        ("context_length", 4096),
        ("vocab_size", vocabulary as u32),
    ] {
        pair(&format!("llama.{key}"), U32, &value.to_le_bytes());
    }
    let mut tensors = Vec::new();
    let mut count = 0u64;
    let mut offset = 0u64;
    let mut tensor = |name: &str, dims: &[u64]| {
        count += 1;
        text(&mut tensors, name);
        tensors.extend((dims.len() as u32).to_le_bytes());
        dims.iter().for_each(|dim| tensors.extend(dim.to_le_bytes()));
        let (kind, bytes) = if dims.len() == 1 { (F32, dims[0] * 4) } else { (Q4_0, dims[0] / 32 * 18 * dims[1]) };
        tensors.extend(kind.to_le_bytes());
        tensors.extend(offset.to_le_bytes());
        offset += bytes.next_multiple_of(32);
    };
    tensor("token_embd.weight", &[width, vocabulary]);
    for block in 0..blocks {
        for norm in ["attn_norm", "ffn_norm"] {
            tensor(&format!("blk.{block}.{norm}.weight"), &[width]);
        }
        for part in ["attn_q", "attn_k", "attn_v", "attn_output"] {
            tensor(&format!("blk.{block}.{part}.weight"), &[width, width]);
        }
        for part in ["ffn_gate", "ffn_up"] {
            tensor(&format!("blk.{block}.{part}.weight"), &[width, feed_forward]);
        }
        tensor(&format!("blk.{block}.ffn_down.weight"), &[feed_forward, width]);
    }
    tensor("output_norm.weight", &[width]);
    tensor("output.weight", &[width, vocabulary]);
    let mut bytes = b"GGUF\x03\0\0\0".to_vec();
    bytes.extend([count, pairs].map(u64::to_le_bytes).as_flattened());
    bytes.extend(metadata);
    bytes.extend(tensors);
    bytes.resize(bytes.len().next_multiple_of(32), 0);
    let len = bytes.len() as u64 + offset;
    Header { bytes, len }
}

/// The dispatches of a greedy step of one token.
fn dispatches(source: &Header, backend: &dyn Backend) -> Result<usize, ModelError> {
    let gguf = block_on(Gguf::read(source)).unwrap();
    let graph = Recipe::new(&gguf, Some(64)).unwrap().graph(1, Head::Greedy)?;
    Ok(Rig::new(backend, &graph)?.kernels().len())
}

/// What norms of query and key heads cost: a dispatch more than llama's five, a draw more than its seven.
#[test]
fn a_block_with_norms_of_heads_takes_six_dispatches_or_eight_draws() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../models/fixtures/qwen3-d32.gguf");
    let gguf = Gguf::from_bytes(&std::fs::read(file).unwrap()).unwrap();
    let recipe = Recipe::new(&gguf, Some(64)).unwrap();
    let kernels = |backend: &dyn Backend| {
        let graph = recipe.graph(1, Head::Greedy).unwrap();
        Rig::new(backend, &graph).unwrap().kernels().len()
    };
    let skip = std::env::var("ANYGPU_SKIP").unwrap_or_default();
    let skipped = |backend: &str| {
        let named = skip.split(',').any(|name| name.trim() == backend);
        if named {
            println!("SKIPPED: ANYGPU_SKIP names {backend}");
        }
        named
    };
    if !skipped("webgpu") {
        let backend = block_on(backend_webgpu::WebGpu::open(Default::default())).unwrap();
        assert_eq!(kernels(&backend), 6 * recipe.n_blocks() + 3);
    }
    if !skipped("webgl") {
        let backend = backend_webgl::WebGl::open(Default::default()).unwrap();
        assert_eq!(kernels(&backend), 8 * recipe.n_blocks() + 4);
    }
}

/// Phi-3-mini: 32 blocks of 32 heads of 96 channels, for which others publish 228 and 342 dispatches a token.
#[test]
fn a_token_of_phi_3_mini_takes_five_dispatches_a_block_and_three() {
    if std::env::var("ANYGPU_SKIP").is_ok_and(|skip| skip.split(',').any(|name| name.trim() == "webgpu")) {
        println!("SKIPPED: ANYGPU_SKIP names webgpu");
        return;
    }
    let phi = llama(32, 3072, 32, 8192, 32_064);
    let backend = block_on(backend_webgpu::WebGpu::open(Default::default())).unwrap();
    assert_eq!(dispatches(&phi, &backend).unwrap(), 5 * 32 + 3);
}
