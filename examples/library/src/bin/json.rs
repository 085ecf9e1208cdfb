//! An answer that follows a JSON schema, whatever the model would rather say.
//!
//!     cargo run --release -p anygpu-examples --bin json -- [MODEL.gguf]

use anygpu::native::block_on;
use anygpu::{Engine, EngineOptions, GenerateOptions, Sampling};
use anygpu_constrain::{Format, Vocabulary};
use anyhow::Result;
use serde_json::{Value, json};

fn main() -> Result<()> {
    let model = std::env::args().nth(1).unwrap_or_else(|| "models/gab-q4_0.gguf".into());
    let schema = json!({
        "type": "object",
        "properties": {
            "name": { "type": "string", "maxLength": 12 },
            "age": { "type": "integer", "minimum": 0, "maximum": 120 },
            "kind": { "enum": ["cat", "dog"] }
        },
        "required": ["name", "age", "kind"],
        "additionalProperties": false
    });

    let engine = block_on(Engine::open(&model, &EngineOptions::default()))?;
    let grammar = Vocabulary::new(engine.tokenizer()?)?.grammar(&Format::Schema(schema))?;
    let options = GenerateOptions {
        max_tokens: Some(200),
        sampling: Sampling::Random { temperature: 0.8, top_k: 40, top_p: 0.95, seed: 1 },
        constraint: Some(grammar.constraint()),
        ..engine.generate_options()
    };
    let prompt = engine.encode("My pet: ")?;
    let ended = block_on(engine.generate(&mut engine.session()?, &prompt, &options, &mut |_| {}))?;
    let pet: Value = serde_json::from_str(&ended.text)?;
    println!("{pet}");
    Ok(())
}
