//! How near texts are to each other, by an embedding model.
//!
//!     cargo run --release -p anygpu-examples --bin embed -- MODEL.gguf

use anygpu::native::block_on;
use anygpu::{Engine, EngineOptions};
use anyhow::{Context, Result};

const TEXTS: [&str; 3] = ["The cat sat on the mat.", "A kitten lies on a rug.", "Taxes are due in May."];

fn main() -> Result<()> {
    let model = std::env::args().nth(1).context("name a GGUF file of an embedding model")?;
    let engine = block_on(Engine::open(&model, &EngineOptions::default()))?;
    let mut embedder = engine.embedder()?;
    let mut vectors = Vec::new();
    for text in TEXTS {
        let tokens = engine.encode(text)?;
        vectors.push(block_on(engine.embed(&mut embedder, &tokens))?.normalized().values);
    }
    for (text, vector) in TEXTS.iter().zip(&vectors).skip(1) {
        let likeness: f32 = vector.iter().zip(&vectors[0]).map(|(a, b)| a * b).sum();
        println!("{likeness:.3}  {text}");
    }
    Ok(())
}
