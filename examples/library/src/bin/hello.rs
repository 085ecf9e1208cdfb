//! A story by the little model of the repository, on the fastest device that computes correctly.
//!
//!     cargo run --release -p anygpu-examples --bin hello -- [MODEL.gguf] [PROMPT]

use std::io::Write;

use anygpu::native::block_on;
use anygpu::{Engine, GenerateOptions, Generated};
use anyhow::Result;
use futures_util::StreamExt;

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let model = args.next().unwrap_or_else(|| "models/gab-q4_0.gguf".into());
    let prompt = args.next().unwrap_or_else(|| "Once upon a time".into());

    block_on(tell(&model, &prompt))
}

async fn tell(model: &str, prompt: &str) -> Result<()> {
    let engine = Engine::builder().open(model).await?;
    let mut session = engine.session()?;
    let tokens = engine.encode(prompt)?;
    let options = GenerateOptions { max_tokens: Some(60), ..engine.generate_options() };
    print!("{prompt}");
    let mut story = engine.stream(&mut session, &tokens, &options);
    while let Some(told) = story.next().await {
        match told? {
            Generated::Piece { text, .. } => {
                print!("{text}");
                std::io::stdout().flush()?;
            }
            Generated::Overflowed(_) => {}
            Generated::Ended(story) => {
                let info = engine.backend().info();
                println!("\n\n{} tokens on {}, {}", story.tokens.len(), info.name, info.adapter);
            }
        }
    }
    Ok(())
}
