//! Dispatches of a token for the shapes of larger models: their programs are compiled, but no weights are loaded.

#[path = "shapes/recurrent.rs"]
mod recurrent;

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

/// Types of metadata and of tensors, by their numbers in GGUF.
const U32: u32 = 4;
const FLOAT: u32 = 6;
const BOOL: u32 = 7;
const STRING: u32 = 8;
const ARRAY: u32 = 9;
const F32: u32 = 0;
const Q4_0: u32 = 2;

/// Sizes of a model.
struct Sizes {
    blocks: u32,
    width: u64,
    heads: u64,
    heads_kv: u64,
    feed_forward: u64,
    vocabulary: u64,
}

/// Width of the per-layer embeddings of Gemma 4.
const PER_LAYER: u64 = 256;

/// A file under construction.
struct Writer {
    architecture: &'static str,
    metadata: Vec<u8>,
    pairs: u64,
    tensors: Vec<u8>,
    count: u64,
    offset: u64,
}

impl Writer {
    fn new(architecture: &'static str, sizes: &Sizes) -> Writer {
        let mut file =
            Writer { architecture, metadata: Vec::new(), pairs: 0, tensors: Vec::new(), count: 0, offset: 0 };
        let mut name = Vec::new();
        text(&mut name, architecture);
        file.pair("general.architecture", STRING, &name);
        file.float("attention.layer_norm_rms_epsilon", 1e-5);
        for (key, value) in [
            ("block_count", sizes.blocks),
            ("embedding_length", sizes.width as u32),
            ("attention.head_count", sizes.heads as u32),
            ("feed_forward_length", sizes.feed_forward as u32),
            ("context_length", 4096),
            ("vocab_size", sizes.vocabulary as u32),
        ] {
            file.number(key, value);
        }
        file
    }

    fn number(&mut self, key: &str, value: u32) {
        self.pair(&format!("{}.{key}", self.architecture), U32, &value.to_le_bytes());
    }

    /// Writes a number for each block.
    fn numbers(&mut self, key: &str, values: &[u32]) {
        let mut bytes = U32.to_le_bytes().to_vec();
        bytes.extend((values.len() as u64).to_le_bytes());
        bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
        self.pair(&format!("{}.{key}", self.architecture), ARRAY, &bytes);
    }

    /// Writes the same flag for each block.
    fn all(&mut self, key: &str, answer: bool, blocks: u32) {
        let mut bytes = BOOL.to_le_bytes().to_vec();
        bytes.extend(u64::from(blocks).to_le_bytes());
        bytes.extend(vec![u8::from(answer); blocks as usize]);
        self.pair(&format!("{}.{key}", self.architecture), ARRAY, &bytes);
    }

    fn pair(&mut self, key: &str, kind: u32, value: &[u8]) {
        self.pairs += 1;
        text(&mut self.metadata, key);
        self.metadata.extend(kind.to_le_bytes());
        self.metadata.extend(value);
    }

    fn float(&mut self, key: &str, value: f32) {
        self.pair(&format!("{}.{key}", self.architecture), FLOAT, &value.to_le_bytes());
    }

    /// Adds a Q4_0 matrix, or several in one tensor; as floats a vector, the taps of a convolution, a router, or
    /// biases.
    fn tensor(&mut self, name: &str, dims: &[u64]) {
        let floats = [".conv", ".ssm_conv1d", "ffn_gate_inp"];
        match name.ends_with(".bias") {
            true => self.floats(name, dims),
            false => {
                let dense = dims.len() == 1 || floats.iter().any(|ending| name.ends_with(ending));
                self.whole(&format!("{name}.weight"), dims, dense);
            }
        }
    }

    /// Adds floats under a complete name.
    fn floats(&mut self, name: &str, dims: &[u64]) {
        self.whole(name, dims, true);
    }

    fn whole(&mut self, name: &str, dims: &[u64], dense: bool) {
        self.count += 1;
        text(&mut self.tensors, name);
        self.tensors.extend((dims.len() as u32).to_le_bytes());
        dims.iter().for_each(|dim| self.tensors.extend(dim.to_le_bytes()));
        let (kind, bytes) = if dense {
            (F32, dims.iter().product::<u64>() * 4)
        } else {
            (Q4_0, dims.iter().product::<u64>() / 32 * 18)
        };
        self.tensors.extend(kind.to_le_bytes());
        self.tensors.extend(self.offset.to_le_bytes());
        self.offset += bytes.next_multiple_of(32);
    }

    fn header(self) -> Header {
        let mut bytes = b"GGUF\x03\0\0\0".to_vec();
        bytes.extend([self.count, self.pairs].map(u64::to_le_bytes).as_flattened());
        bytes.extend(self.metadata);
        bytes.extend(self.tensors);
        bytes.resize(bytes.len().next_multiple_of(32), 0);
        let len = bytes.len() as u64 + self.offset;
        Header { bytes, len }
    }
}

/// Number of experts, and of those that a token is routed to.
const EXPERTS: [u64; 2] = [8, 2];

fn is_routed(family: &str) -> bool {
    matches!(family, "mixtral" | "qwen3moe" | "granitemoe" | "lfm2moe" | "gpt-oss")
}

/// Writes the keys of families with experts.
fn experts(file: &mut Writer, feed_forward: u64) {
    for (key, value) in [
        ("expert_count", EXPERTS[0]),
        ("expert_used_count", EXPERTS[1]),
        ("expert_feed_forward_length", feed_forward),
        ("expert_shared_feed_forward_length", feed_forward),
        ("attention.sliding_window", 128),
    ] {
        file.number(key, value as u32);
    }
}

/// Adds the feed-forward layer of a block.
fn feed_forward(file: &mut Writer, family: &str, block: u32, [width, feed_forward]: [u64; 2]) {
    let [n, _] = EXPERTS;
    let mut tensor = |name: &str, dims: &[u64]| file.tensor(&format!("blk.{block}.{name}"), dims);
    if !is_routed(family) {
        return tensor("ffn_down", &[feed_forward, width]);
    }
    tensor("ffn_gate_inp", &[width, n]);
    for (name, dims) in
        [("gate", [width, feed_forward]), ("up", [width, feed_forward]), ("down", [feed_forward, width])]
    {
        let [cols, rows] = dims;
        tensor(&format!("ffn_{name}_exps"), &[cols, rows, n]);
        match family {
            "granitemoe" => tensor(&format!("ffn_{name}_shexp"), &dims),
            "gpt-oss" => tensor(&format!("ffn_{name}_exps.bias"), &[rows, n]),
            _ => {}
        }
    }
    match family {
        "lfm2moe" => tensor("exp_probs_b.bias", &[n]),
        "gpt-oss" => tensor("ffn_gate_inp.bias", &[n]),
        _ => {}
    }
}

/// Makes a model of a family; its heads divide the width evenly.
fn model(family: &'static str, sizes: &Sizes) -> Header {
    let Sizes { blocks, width, heads, heads_kv, feed_forward, vocabulary } = *sizes;
    let (head, kv) = (width / heads, width / heads * heads_kv);
    let mut file = Writer::new(if family == "mixtral" { "llama" } else { family }, sizes);
    let routed = is_routed(family);
    if routed {
        experts(&mut file, feed_forward);
    }
    // In LFM2 only the first block has attention.
    let convolves = family.starts_with("lfm2");
    let attends = |block: u32| !convolves || block == 0;
    if convolves {
        let heads: Vec<u32> = (0..blocks).map(|block| if attends(block) { heads_kv as u32 } else { 0 }).collect();
        file.numbers("attention.head_count_kv", &heads);
        file.number("shortconv.l_cache", 3);
    } else {
        file.number("attention.head_count_kv", heads_kv as u32);
    }
    if family == "mistral3" {
        file.float("attention.temperature_scale", 0.1);
    }
    if family.starts_with("granite") {
        file.float("embedding_scale", 12.0);
        file.float("residual_scale", 0.22);
        file.float("logit_scale", 8.0);
    }
    if family == "gemma4" {
        file.all("attention.sliding_window_pattern", true, blocks);
        file.number("attention.sliding_window", 512);
        file.number("embedding_length_per_layer_input", PER_LAYER as u32);
        file.tensor("per_layer_token_embd", &[PER_LAYER * u64::from(blocks), vocabulary]);
        file.tensor("per_layer_model_proj", &[width, PER_LAYER * u64::from(blocks)]);
        file.tensor("per_layer_proj_norm", &[PER_LAYER]);
    }
    let norms: &[(&str, u64)] = match family {
        "qwen3" | "qwen3moe" | "lfm2" | "lfm2moe" => {
            &[("attn_norm", width), ("ffn_norm", width), ("attn_q_norm", head), ("attn_k_norm", head)]
        }
        "gemma2" | "gemma3" | "gemma4" => &[
            ("attn_norm", width),
            ("ffn_norm", width),
            ("post_attention_norm", width),
            ("post_ffw_norm", width),
            ("attn_q_norm", head),
            ("attn_k_norm", head),
        ],
        "olmo2" => {
            &[("post_attention_norm", width), ("post_ffw_norm", width), ("attn_q_norm", width), ("attn_k_norm", kv)]
        }
        "gpt-oss" => &[("attn_norm", width), ("post_attention_norm", width), ("attn_sinks", heads)],
        _ => &[("attn_norm", width), ("ffn_norm", width)],
    };
    let fused = [("attn_qkv", width + 2 * kv), ("ffn_up", 2 * feed_forward)];
    let apart =
        [("attn_q", width), ("attn_k", kv), ("attn_v", kv), ("ffn_gate", feed_forward), ("ffn_up", feed_forward)];
    file.tensor("token_embd", &[width, vocabulary]);
    for block in 0..blocks {
        for (norm, len) in norms {
            file.tensor(&format!("blk.{block}.{norm}"), &[*len]);
        }
        let parts: &[(&str, u64)] = match family {
            "phi3" => &fused,
            _ if !attends(block) => {
                file.tensor(&format!("blk.{block}.shortconv.conv"), &[3, width]);
                &[("shortconv.in_proj", 3 * width), ("ffn_gate", feed_forward), ("ffn_up", feed_forward)]
            }
            _ => &apart,
        };
        for (part, rows) in parts.iter().filter(|(part, _)| !routed || !part.starts_with("ffn")) {
            if family == "gpt-oss" {
                file.tensor(&format!("blk.{block}.{part}.bias"), &[*rows]);
            }
            file.tensor(&format!("blk.{block}.{part}"), &[width, *rows]);
        }
        let output = if attends(block) { "attn_output" } else { "shortconv.out_proj" };
        file.tensor(&format!("blk.{block}.{output}"), &[width, width]);
        self::feed_forward(&mut file, family, block, [width, feed_forward]);
        if family == "gemma4" {
            file.tensor(&format!("blk.{block}.inp_gate"), &[width, PER_LAYER]);
            file.tensor(&format!("blk.{block}.proj"), &[PER_LAYER, width]);
            file.tensor(&format!("blk.{block}.post_norm"), &[width]);
            file.tensor(&format!("blk.{block}.layer_output_scale"), &[1]);
        }
    }
    file.tensor(if convolves { "token_embd_norm" } else { "output_norm" }, &[width]);
    file.tensor("output", &[width, vocabulary]);
    file.header()
}

/// Returns the dispatches of a greedy step of one token.
fn dispatches(source: &Header, backend: &dyn Backend) -> Result<usize, ModelError> {
    let gguf = block_on(Gguf::read(source)).unwrap();
    let graph = Recipe::new(&gguf, Some(64)).unwrap().graph(1, Head::GREEDY)?;
    Ok(Rig::new(backend, &graph)?.kernels().len())
}

fn skipped(backend: &str) -> bool {
    let skip = std::env::var("ANYGPU_SKIP").unwrap_or_default();
    let named = skip.split(',').any(|name| name.trim() == backend);
    if named {
        println!("SKIPPED: ANYGPU_SKIP names {backend}");
    }
    named
}

/// Expected cost of a block of each family: its name, dispatches and draws.
fn families() -> Vec<(&'static str, [usize; 2])> {
    let row = |line: &'static str| {
        let mut cells = line.split('|').map(str::trim).skip(1);
        let (name, dispatches, draws) = (cells.next()?, cells.next()?, cells.next()?);
        Some((name, [dispatches.parse().ok()?, draws.parse().ok()?]))
    };
    include_str!("../../docs/families.md").lines().filter_map(row).collect()
}

#[test]
fn a_block_of_each_family_takes_few_dispatches_and_draws() {
    let families = families();
    assert!(families.len() > 20, "docs/families.md has few rows");
    let mut wrong = Vec::new();
    let mut check = |name: &str, backend: &dyn Backend, which: usize| {
        for (family, expected) in &families {
            let model = if recurrent::FAMILIES.contains(family) { recurrent::model } else { model };
            let all = [4, 8].map(|blocks| {
                let sizes = Sizes { blocks, width: 512, heads: 8, heads_kv: 4, feed_forward: 1024, vocabulary: 1024 };
                dispatches(&model(family, &sizes), backend).unwrap()
            });
            let each = (all[1] - all[0]) / 4;
            println!("{name}: {family} takes {each} a block, and {} besides", all[0] as isize - 4 * each as isize);
            if all[1] - all[0] != 4 * expected[which] {
                wrong.push(format!("{name}: {family} takes {each}, not {}", expected[which]));
            }
        }
    };
    if !skipped("webgpu") {
        let backend = block_on(backend_webgpu::WebGpu::open(Default::default())).unwrap();
        check("webgpu", &backend, 0);
    }
    if !skipped("webgl") {
        let backend = backend_webgl::WebGl::open(Default::default()).unwrap();
        check("webgl", &backend, 1);
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Phi-3-mini has 32 blocks of 32 heads of 96 channels. Other engines publish 228 and 342 dispatches a token for it.
#[test]
fn a_token_of_phi_3_mini_takes_six_dispatches_a_block_and_three() {
    if skipped("webgpu") {
        return;
    }
    let sizes = Sizes { blocks: 32, width: 3072, heads: 32, heads_kv: 32, feed_forward: 8192, vocabulary: 32_064 };
    let backend = block_on(backend_webgpu::WebGpu::open(Default::default())).unwrap();
    assert_eq!(dispatches(&model("phi3", &sizes), &backend).unwrap(), 6 * 32 + 3);
}
