//! Models in the shapes that people run, with random weights: what a text costs does not depend on what it says.

use crate::gguf::{self, Tensor};
use crate::{models, progress, root};
use anyhow::{Context, Result, bail};
use backend_api::Format;
use clap::{Args, ValueEnum};
use model::Gguf;
use model::gguf::Value;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// Tokens and tokenizer are those of the model that tests use.
const OF: &str = "SmolLM2-135M-Instruct.Q4_1.gguf";
/// Weights repeat after so many bytes: as many as no cache takes for the same.
const POOL: usize = 1 << 24;

/// A shape, of the family of Llama.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Shape {
    /// SmolLM2-135M: 30 blocks of 576
    #[value(name = "135m")]
    Small,
    /// SmolLM2-1.7B: 24 blocks of 2,048
    #[value(name = "1.7b")]
    Middle,
    /// Phi-3-mini: 32 blocks of 3,072
    #[value(name = "3.8b")]
    Phi,
    /// 32 blocks of 4,096, four queries for a key: the blocks of Llama 3 8B, with the vocabulary of SmolLM2 (7.2 billion)
    #[value(name = "8b")]
    Large,
}

/// Options of a shape.
#[derive(Debug, Args)]
pub struct Options {
    /// The shape
    #[arg(value_enum)]
    shape: Shape,
    /// Format of the weights, as files name it
    #[arg(long, default_value = "Q4_0")]
    format: String,
    /// The file to write [default: models/cache/random-SHAPE.FORMAT.gguf, which `cargo xtask bench --model` finds by name]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Sizes of a model.
pub struct Sizes {
    pub blocks: u64,
    pub width: u64,
    pub heads: u64,
    pub key_heads: u64,
    pub hidden: u64,
}

impl Shape {
    fn sizes(self) -> Sizes {
        let of = |blocks, width, heads, key_heads, hidden| Sizes { blocks, width, heads, key_heads, hidden };
        match self {
            Shape::Small => of(30, 576, 9, 3, 1536),
            Shape::Middle => of(24, 2048, 32, 32, 8192),
            Shape::Phi => of(32, 3072, 32, 32, 8192),
            Shape::Large => of(32, 4096, 32, 8, 14336),
        }
    }
}

impl Sizes {
    /// The metadata that tell them.
    fn pairs(&self) -> [(&'static str, u64); 7] {
        [
            ("llama.block_count", self.blocks),
            ("llama.embedding_length", self.width),
            ("llama.feed_forward_length", self.hidden),
            ("llama.attention.head_count", self.heads),
            ("llama.attention.head_count_kv", self.key_heads),
            ("llama.rope.dimension_count", self.width / self.heads),
            ("llama.context_length", 8192),
        ]
    }

    /// The tensors with their dimensions, the innermost first.
    fn tensors(&self, vocabulary: u64) -> Vec<(String, Vec<u64>)> {
        let (width, keys, hidden) = (self.width, self.width / self.heads * self.key_heads, self.hidden);
        let block: [(&str, &[u64]); 9] = [
            ("attn_norm", &[width]),
            ("attn_q", &[width, width]),
            ("attn_k", &[width, keys]),
            ("attn_v", &[width, keys]),
            ("attn_output", &[width, width]),
            ("ffn_norm", &[width]),
            ("ffn_gate", &[width, hidden]),
            ("ffn_up", &[width, hidden]),
            ("ffn_down", &[hidden, width]),
        ];
        let ends = [("token_embd.weight", vec![width, vocabulary]), ("output_norm.weight", vec![width])];
        let ends = ends.map(|(name, dims)| (name.to_owned(), dims));
        let blocks = (0..self.blocks)
            .flat_map(|at| block.map(|(name, dims)| (format!("blk.{at}.{name}.weight"), dims.to_vec())));
        ends.into_iter().chain(blocks).collect()
    }
}

/// Writes a model.
///
/// *Errors*: a format that does not exist, or whose blocks do not fit the shape; the file cannot be written.
pub fn run(options: &Options) -> Result<()> {
    let named = |format: &&Format| format.spec().name.eq_ignore_ascii_case(&options.format);
    let Some(format) = Format::ALL.iter().find(named) else {
        let all = Format::ALL.iter().map(|format| format.spec().name).collect::<Vec<_>>().join(", ");
        bail!("a format {:?} is not known; choose one of {all}", options.format);
    };
    let cache = root().join("models").join("cache");
    let of = cache.join(OF);
    if !of.is_file() {
        models::fetch()?;
    }
    let shape = options.shape.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
    let out = options.out.clone().unwrap_or_else(|| cache.join(format!("random-{shape}.{}.gguf", format.spec().name)));
    // Whoever looks for the file finds all of it, or nothing.
    let part = out.with_extension("part");
    let written =
        progress::during(&format!("writing {}", out.display()), || write(&options.shape.sizes(), *format, &of, &part));
    match written.and_then(|bytes| Ok((fs::rename(&part, &out)?, bytes))) {
        Ok((_, bytes)) => println!("{}: {:.2} GB", out.display(), bytes as f64 / 1e9),
        Err(error) => {
            // It may not have been made.
            let _ = fs::remove_file(&part);
            return Err(error.context(format!("cannot write {}", out.display())));
        }
    }
    Ok(())
}

/// Writes a model of such sizes in 4 bits, with the tokens of another. Whoever looks for the file finds all of it, or
/// nothing.
///
/// *Errors*: as [`run`].
pub fn make(sizes: &Sizes, of: &Path, out: &Path) -> Result<()> {
    let part = out.with_extension("part");
    write(sizes, Format::Q4_0, of, &part).with_context(|| format!("cannot write {}", out.display()))?;
    Ok(fs::rename(&part, out)?)
}

/// Writes it, and says how many bytes it has.
fn write(sizes: &Sizes, format: Format, of: &Path, out: &Path) -> Result<u64> {
    let head = Gguf::from_bytes(&fs::read(of)?).context(OF)?;
    let replaced = sizes.pairs();
    let is_replaced = |key: &str| replaced.iter().any(|(name, _)| *name == key);
    let kept = head.metadata.iter().filter(|(key, _)| !is_replaced(key) && !key.starts_with("llama.attention.key_"));
    let pairs: Vec<(&str, Value)> = kept
        .map(|(key, value)| (key, value.clone()))
        .chain(replaced.iter().map(|(key, value)| (*key, Value::Uint(*value))))
        .collect();
    let vocabulary = head.tensor("token_embd.weight").and_then(|tensor| tensor.shape.first());
    let vocabulary = *vocabulary.context("the model has no embedding")? as u64;
    let tensors = sizes.tensors(vocabulary).into_iter().map(|(name, dims)| {
        let format = if dims.len() == 1 { Format::F32 } else { format };
        let row = format.row_bytes(dims[0] as usize)?;
        let bytes = row * dims[1..].iter().product::<u64>() as usize;
        Ok(Tensor { name, dims, format: format.spec().ggml_id, bytes })
    });
    let tensors = tensors.collect::<Result<Vec<Tensor>>>()?;
    let pool = random(format);
    let mut file = BufWriter::new(File::create(out)?);
    let mut written = 0;
    let mut put = |bytes: &[u8]| {
        written += bytes.len() as u64;
        file.write_all(bytes)
    };
    put(&gguf::header(&pairs, &tensors)?)?;
    for tensor in &tensors {
        let is_norm = tensor.dims.len() == 1;
        let mut left = tensor.bytes;
        while left > 0 {
            let now = left.min(pool.len());
            match is_norm {
                true => put(&1f32.to_le_bytes().repeat(now / 4))?,
                false => put(&pool[..now])?,
            }
            left -= now;
        }
        put(gguf::padding(tensor.bytes))?;
    }
    file.flush()?;
    Ok(written)
}

/// Makes whole blocks from a fixed seed.
fn random(format: Format) -> Vec<u8> {
    let mut state = 7u64;
    let mut next = || {
        // The generator SplitMix64.
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    };
    let mut pool = Vec::with_capacity(POOL + 1024);
    while pool.len() < POOL {
        format.spec().random_block(&mut next, &mut pool);
    }
    pool
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_takes_over_what_it_does_not_tell() {
        let folder = tempfile::tempdir().unwrap();
        let (of, out) = (folder.path().join("of.gguf"), folder.path().join("out.gguf"));
        let pairs = [
            ("general.architecture", Value::String("llama".into())),
            ("llama.block_count", Value::Uint(9)),
            ("llama.attention.key_length", Value::Uint(9)),
            ("llama.rope.freq_base", Value::Float(500.0)),
        ];
        let table = Tensor { name: "token_embd.weight".into(), dims: vec![4, 96], format: 0, bytes: 4 * 96 * 4 };
        let mut file = gguf::header(&pairs, std::slice::from_ref(&table)).unwrap();
        file.resize(file.len() + table.bytes, 0);
        fs::write(&of, file).unwrap();

        let sizes = Sizes { blocks: 2, width: 64, heads: 4, key_heads: 2, hidden: 128 };
        let bytes = write(&sizes, Format::Q4_0, &of, &out).unwrap();
        let file = fs::read(&out).unwrap();
        assert_eq!(file.len() as u64, bytes);
        let made = Gguf::from_bytes(&file).unwrap();
        let number = |key| made.metadata.get::<u32>(key).unwrap();
        assert_eq!(number("llama.block_count"), Some(2));
        assert_eq!(number("llama.rope.dimension_count"), Some(16));
        assert_eq!(number("llama.attention.key_length"), None);
        assert_eq!(made.metadata.get::<f32>("llama.rope.freq_base").unwrap(), Some(500.0));
        let shape = |name| made.tensor(name).unwrap().shape.clone();
        assert_eq!(shape("token_embd.weight"), [96, 64]);
        assert_eq!(shape("blk.1.attn_k.weight"), [32, 64]);
        assert_eq!(shape("blk.1.ffn_down.weight"), [64, 128]);
        let norm = made.tensor("output_norm.weight").unwrap();
        assert_eq!(&file[norm.offset as usize..][..norm.bytes as usize], 1f32.to_le_bytes().repeat(64));
    }
}
