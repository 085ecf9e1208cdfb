//! all-MiniLM-L6-v2 as a GGUF file, from its weights as published.

use crate::gguf::{self, Tensor};
use anyhow::{Context, Result, bail, ensure};
use model::gguf::{StringArray, Value};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// No header of a file of so few tensors is longer.
const MAX_HEADER: u64 = 1 << 20;
const N_BLOCKS: usize = 6;

/// The tensors of a block: the end of the name as published, and in GGUF.
const BLOCK: [(&str, &str); 8] = [
    ("attention.self.query", "attn_q"),
    ("attention.self.key", "attn_k"),
    ("attention.self.value", "attn_v"),
    ("attention.output.dense", "attn_output"),
    ("attention.output.LayerNorm", "attn_output_norm"),
    ("intermediate.dense", "ffn_up"),
    ("output.dense", "ffn_down"),
    ("output.LayerNorm", "layer_output_norm"),
];

/// Where a tensor lies in a safetensors file, from the end of its header on.
#[derive(Deserialize)]
struct Entry {
    dtype: String,
    shape: Vec<u64>,
    data_offsets: [u64; 2],
}

/// Pieces as GGUF has them, with a mark before those that begin a word, and their kinds.
fn vocabulary(lines: &str) -> (StringArray, Vec<i32>) {
    let kind = |piece: &str| match piece {
        "[PAD]" | "[CLS]" | "[SEP]" | "[MASK]" => 3,
        "[UNK]" => 2,
        _ => 1,
    };
    let stored = |piece: &str| match (kind(piece), piece.strip_prefix("##")) {
        (1, Some(rest)) => rest.to_owned(),
        (1, None) => format!("\u{2581}{piece}"),
        _ => piece.to_owned(),
    };
    (lines.lines().map(stored).collect(), lines.lines().map(kind).collect())
}

/// The names of all tensors, as published and in GGUF.
fn names() -> Vec<(String, String)> {
    let mut names: Vec<(String, String)> = [
        ("embeddings.word_embeddings.weight", "token_embd.weight"),
        ("embeddings.position_embeddings.weight", "position_embd.weight"),
        ("embeddings.token_type_embeddings.weight", "token_types.weight"),
        ("embeddings.LayerNorm.weight", "token_embd_norm.weight"),
        ("embeddings.LayerNorm.bias", "token_embd_norm.bias"),
    ]
    .map(|(published, name)| (published.into(), name.into()))
    .into();
    for block in 0..N_BLOCKS {
        for (published, name) in BLOCK {
            names.extend(["weight", "bias"].map(|part| {
                (format!("encoder.layer.{block}.{published}.{part}"), format!("blk.{block}.{name}.{part}"))
            }));
        }
    }
    names
}

/// Makes the GGUF file of weights (safetensors) and a vocabulary.
///
/// *Errors*: files that are not the ones that were published; they cannot be read or written.
pub fn make(files: &[PathBuf], out: &Path) -> Result<()> {
    let [weights, vocabulary_file] = files else { bail!("MiniLM is made of two files, not of {}", files.len()) };
    let mut weights = File::open(weights)?;
    let mut len = [0; 8];
    weights.read_exact(&mut len)?;
    let len = u64::from_le_bytes(len);
    ensure!(len <= MAX_HEADER, "a header of {len} bytes is not MiniLM's");
    let mut header = vec![0; len as usize];
    weights.read_exact(&mut header)?;
    let mut header: BTreeMap<String, serde_json::Value> = serde_json::from_slice(&header)?;
    let (pieces, kinds) = vocabulary(&fs::read_to_string(vocabulary_file)?);

    let text = |text: &str| Value::String(text.into());
    let pairs = [
        ("general.architecture", text("bert")),
        ("general.name", text("all-MiniLM-L6-v2")),
        ("general.file_type", Value::Uint(0)),
        ("bert.context_length", Value::Uint(512)),
        ("bert.embedding_length", Value::Uint(384)),
        ("bert.block_count", Value::Uint(N_BLOCKS as u64)),
        ("bert.feed_forward_length", Value::Uint(1536)),
        ("bert.attention.head_count", Value::Uint(12)),
        ("bert.attention.layer_norm_epsilon", Value::Float(1e-12)),
        ("bert.attention.causal", Value::Bool(false)),
        ("bert.pooling_type", Value::Uint(1)),
        ("tokenizer.ggml.model", text("bert")),
        ("tokenizer.ggml.token_type_count", Value::Uint(2)),
        ("tokenizer.ggml.tokens", Value::Strings(Arc::new(pieces))),
        ("tokenizer.ggml.token_type", Value::Ints(kinds)),
        ("tokenizer.ggml.bos_token_id", Value::Uint(101)),
        ("tokenizer.ggml.unknown_token_id", Value::Uint(100)),
        ("tokenizer.ggml.seperator_token_id", Value::Uint(102)),
        ("tokenizer.ggml.padding_token_id", Value::Uint(0)),
        ("tokenizer.ggml.mask_token_id", Value::Uint(103)),
    ];
    let (mut tensors, mut starts) = (Vec::new(), Vec::new());
    for (published, name) in names() {
        let entry = header.remove(&published).with_context(|| format!("{published} is missing"))?;
        let entry: Entry = serde_json::from_value(entry)?;
        ensure!(entry.dtype == "F32", "{published} is {}, not F32", entry.dtype);
        let [start, end] = entry.data_offsets;
        let bytes = end.checked_sub(start).with_context(|| format!("{published} ends before it begins"))? as usize;
        tensors.push(Tensor { name, dims: entry.shape.into_iter().rev().collect(), format: 0, bytes });
        starts.push(8 + len + start);
    }

    let mut out = BufWriter::new(File::create(out)?);
    out.write_all(&gguf::header(&pairs, &tensors)?)?;
    for (start, Tensor { bytes, .. }) in starts.into_iter().zip(tensors) {
        weights.seek(SeekFrom::Start(start))?;
        let copied = std::io::copy(&mut Read::by_ref(&mut weights).take(bytes as u64), &mut out)?;
        ensure!(copied == bytes as u64, "the weights end early");
        out.write_all(gguf::padding(bytes))?;
    }
    Ok(out.flush()?)
}
