//! A model cut into stages, each with a part of its weights, which hand activations to each other as bytes: what
//! machines do of which none holds all of it. Here they are in one process.
//!
//!     cargo run --release -p anygpu-examples --bin stages -- [MODEL.gguf] [STAGES] [BACKEND]

use std::path::Path;
use std::rc::Rc;
use std::time::Instant;

use anygpu::native::{NativeHost, block_on, open_files};
use anygpu::{
    Choice, Engine, EngineOptions, GenerateOptions, Recipe, Seam, SelectOptions, Stage, StageOutput, StageSession,
    StageStep,
};
use anyhow::{Context, Result, ensure};

/// Tokens of the story.
const TOKENS: usize = 60;

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let model = args.next().unwrap_or_else(|| "models/gab-q4_0.gguf".into());
    let count: usize = args.next().map_or(Ok(3), |count| count.parse())?;
    let backend = args.next().map_or(Ok(Choice::Cpu), |name| name.parse()).map_err(anyhow::Error::msg)?;

    let source = open_files(Path::new(&model))?;
    let gguf = block_on(anygpu::Gguf::read(&source))?;
    let blocks = Recipe::new(&gguf, None)?.n_blocks();
    ensure!((1..=blocks).contains(&count), "the model has {blocks} blocks; ask for 1 to {blocks} stages");
    let host = Rc::new(NativeHost::default());
    let load = |stage: Option<Stage>| {
        let select = SelectOptions { backend, ..Default::default() };
        let options = EngineOptions { select, stage, ..Default::default() };
        block_on(Engine::load(&source, &options, host.clone(), &mut |_| {}))
    };

    let whole = load(None)?;
    let prompt = whole.encode("Once upon a time")?;
    let options =
        GenerateOptions { max_tokens: Some(TOKENS), stop_tokens: Some(Vec::new()), ..whole.generate_options() };
    let alone = block_on(whole.generate(&mut whole.session()?, &prompt, &options, &mut |_| {}))?;

    let border = |at: usize| at * blocks / count;
    let stages = (0..count)
        .map(|at| load(Some(Stage { embed: at == 0, blocks: border(at)..border(at + 1), head: at + 1 == count })))
        .collect::<Result<Vec<_>, _>>()?;
    let mut chain = stages.iter().map(|engine| engine.stage_session(Seam::F16)).collect::<Result<Vec<_>, _>>()?;
    let (mut text, mut done, mut bytes, mut begun) = (prompt.clone(), 0, 0, Instant::now());
    while text.len() < prompt.len() + TOKENS {
        let next = lap(&mut chain, done, &text[done..], &mut bytes, whole.host())?;
        done = text.len();
        text.push(next);
        if done == prompt.len() {
            (begun, bytes) = (Instant::now(), 0);
        }
    }
    let ms = begun.elapsed().as_secs_f64() * 1e3 / (TOKENS - 1) as f64;
    println!("{}", whole.tokenizer()?.decode(&text, false));
    let same = if text[prompt.len()..] == alone.tokens { "the same text" } else { "another text, by its seams" };
    let (once, each) = (alone.decode_ms_per_token, bytes / (TOKENS - 1));
    println!("\n{count} stages: {ms:.2} ms and {each} bytes a token; one machine: {once:.2} ms, {same}");
    Ok(())
}

/// All stages take rows of tokens; the last one chooses what follows.
fn lap(
    chain: &mut [StageSession],
    position: usize,
    tokens: &[u32],
    bytes: &mut usize,
    host: &dyn anygpu::Host,
) -> Result<u32> {
    let last = chain.len() - 1;
    let mut hidden = Vec::new();
    for (at, session) in chain.iter_mut().enumerate() {
        let tokens = if session.needs_tokens() { tokens } else { &[] };
        let step = StageStep { position, tokens, hidden: &hidden, choose: at == last };
        match block_on(session.step(&step, host))? {
            StageOutput::Token { id, .. } => return Ok(id),
            StageOutput::Hidden(rows) => {
                *bytes += rows.len();
                hidden = rows;
            }
            StageOutput::Nothing => break,
        }
    }
    None.context("the last stage chose no token")
}
