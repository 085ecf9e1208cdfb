//! all-MiniLM-L6-v2 as a GGUF file, from its weights as published.

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Where tensors begin in a GGUF file.
const ALIGN: usize = 32;
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

/// Metadata of a GGUF file.
enum Value<'a> {
    U32(u32),
    F32(f32),
    Bool(bool),
    Text(&'a str),
    Texts(Vec<String>),
    Ints(Vec<i32>),
}

fn text(out: &mut Vec<u8>, text: &str) {
    out.extend((text.len() as u64).to_le_bytes());
    out.extend(text.as_bytes());
}

impl Value<'_> {
    fn write(&self, key: &str, out: &mut Vec<u8>) {
        text(out, key);
        let kind = |out: &mut Vec<u8>, kind: u32| out.extend(kind.to_le_bytes());
        match self {
            Value::U32(value) => {
                kind(out, 4);
                out.extend(value.to_le_bytes());
            }
            Value::F32(value) => {
                kind(out, 6);
                out.extend(value.to_le_bytes());
            }
            Value::Bool(value) => {
                kind(out, 7);
                out.push(u8::from(*value));
            }
            Value::Text(value) => {
                kind(out, 8);
                text(out, value);
            }
            Value::Texts(values) => {
                kind(out, 9);
                kind(out, 8);
                out.extend((values.len() as u64).to_le_bytes());
                values.iter().for_each(|value| text(out, value));
            }
            Value::Ints(values) => {
                kind(out, 9);
                kind(out, 5);
                out.extend((values.len() as u64).to_le_bytes());
                values.iter().for_each(|value| out.extend(value.to_le_bytes()));
            }
        }
    }
}

/// Pieces as GGUF has them, with a mark before those that begin a word, and their kinds.
fn vocabulary(lines: &str) -> (Vec<String>, Vec<i32>) {
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
    lines.lines().map(|piece| (stored(piece), kind(piece))).unzip()
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

    let pairs = [
        ("general.architecture", Value::Text("bert")),
        ("general.name", Value::Text("all-MiniLM-L6-v2")),
        ("general.file_type", Value::U32(0)),
        ("bert.context_length", Value::U32(512)),
        ("bert.embedding_length", Value::U32(384)),
        ("bert.block_count", Value::U32(N_BLOCKS as u32)),
        ("bert.feed_forward_length", Value::U32(1536)),
        ("bert.attention.head_count", Value::U32(12)),
        ("bert.attention.layer_norm_epsilon", Value::F32(1e-12)),
        ("bert.attention.causal", Value::Bool(false)),
        ("bert.pooling_type", Value::U32(1)),
        ("tokenizer.ggml.model", Value::Text("bert")),
        ("tokenizer.ggml.token_type_count", Value::U32(2)),
        ("tokenizer.ggml.tokens", Value::Texts(pieces)),
        ("tokenizer.ggml.token_type", Value::Ints(kinds)),
        ("tokenizer.ggml.bos_token_id", Value::U32(101)),
        ("tokenizer.ggml.unknown_token_id", Value::U32(100)),
        ("tokenizer.ggml.seperator_token_id", Value::U32(102)),
        ("tokenizer.ggml.padding_token_id", Value::U32(0)),
        ("tokenizer.ggml.mask_token_id", Value::U32(103)),
    ];
    let names = names();
    let mut head = b"GGUF".to_vec();
    head.extend(3u32.to_le_bytes());
    head.extend((names.len() as u64).to_le_bytes());
    head.extend((pairs.len() as u64).to_le_bytes());
    pairs.iter().for_each(|(key, value)| value.write(key, &mut head));
    let (mut offset, mut parts) = (0, Vec::new());
    for (published, name) in &names {
        let entry = header.remove(published).with_context(|| format!("{published} is missing"))?;
        let entry: Entry = serde_json::from_value(entry)?;
        ensure!(entry.dtype == "F32", "{published} is {}, not F32", entry.dtype);
        text(&mut head, name);
        head.extend((entry.shape.len() as u32).to_le_bytes());
        entry.shape.iter().rev().for_each(|dim| head.extend(dim.to_le_bytes()));
        head.extend(0u32.to_le_bytes());
        head.extend((offset as u64).to_le_bytes());
        let [start, end] = entry.data_offsets;
        let bytes = end.checked_sub(start).with_context(|| format!("{published} ends before it begins"))? as usize;
        offset += bytes.next_multiple_of(ALIGN);
        parts.push((8 + len + start, bytes));
    }
    head.resize(head.len().next_multiple_of(ALIGN), 0);

    let mut out = BufWriter::new(File::create(out)?);
    out.write_all(&head)?;
    for (start, bytes) in parts {
        weights.seek(SeekFrom::Start(start))?;
        let copied = std::io::copy(&mut Read::by_ref(&mut weights).take(bytes as u64), &mut out)?;
        ensure!(copied == bytes as u64, "the weights end early");
        out.write_all(&[0; ALIGN][..bytes.next_multiple_of(ALIGN) - bytes])?;
    }
    Ok(out.flush()?)
}
