//! A conversation of two turns as streams, with the engine on a thread of its own: what an async program does, under any
//! runtime. The second turn goes on with what the first has computed.
//!
//!     cargo run --release -p anygpu-examples --bin chat -- MODEL.gguf

use anygpu::handle::{Generate, Handle, Limits, Prompt, Told};
use anygpu::native::block_on;
use anygpu::{EngineOptions, Message};
use anyhow::{Context, Result, anyhow};
use futures_util::StreamExt;
use std::io::{Write, stdout};

async fn answer(handle: &Handle, messages: &[Message]) -> Result<String> {
    let request = Generate::new(Prompt::Chat(messages.to_vec())).with(|options| options.max_tokens = Some(60));
    let mut answer = handle.generate(request)?;
    let mut text = String::new();
    while let Some(told) = answer.next().await {
        match told? {
            Told::Piece { text: more, .. } => {
                print!("{more}");
                stdout().flush()?;
                text.push_str(&more);
            }
            Told::Ended(outcome) => {
                println!("\n({} of {} computed before)", outcome.cached_tokens, outcome.prompt_tokens);
            }
            _ => {}
        }
    }
    Ok(text)
}

async fn talk(model: &str) -> Result<()> {
    let (handle, thread) = Handle::open(model, EngineOptions::default, Limits::default()).await?;
    let mut messages = Vec::new();
    for question in ["What is the capital of France?", "And of Italy?"] {
        messages.push(Message::new("user", question));
        println!("> {question}");
        let text = answer(&handle, &messages).await?;
        messages.push(Message::new("assistant", text));
    }
    // The engine's thread ends with its last handle, and a process should not end before it: drivers are let go there.
    drop(handle);
    thread.join().map_err(|_| anyhow!("the engine's thread panicked"))
}

fn main() -> Result<()> {
    let model = std::env::args().nth(1).context("name a GGUF file of a model that can chat")?;
    block_on(talk(&model))
}
