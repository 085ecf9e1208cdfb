//! A story by the little model of the repository, on the fastest device that computes correctly.
//!
//!     cargo run --release -p anygpu-examples --bin hello -- [MODEL.gguf] [PROMPT]

use std::io::Write;

use anygpu::native::block_on;
use anygpu::{Engine, EngineOptions, GenerateOptions, Piece};
use anyhow::Result;

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let model = args.next().unwrap_or_else(|| "models/gab-q4_0.gguf".into());
    let prompt = args.next().unwrap_or_else(|| "Once upon a time".into());

    let engine = block_on(Engine::open(&model, &EngineOptions::default()))?;
    let mut session = engine.session()?;
    let options = GenerateOptions { max_tokens: Some(60), ..engine.generate_options() };
    print!("{prompt}");
    let mut show = |piece: Piece<'_>| {
        print!("{}", piece.text);
        let _ = std::io::stdout().flush();
    };
    let story = block_on(engine.generate(&mut session, &engine.encode(&prompt)?, &options, &mut show))?;
    let info = engine.backend().info();
    println!("\n\n{} tokens on {}, {}", story.tokens.len(), info.name, info.adapter);
    Ok(())
}
