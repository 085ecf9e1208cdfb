//! `logits`: prints the model's logits after a prompt, for comparisons with other programs.

use crate::args::{DeviceArgs, DraftArgs, LogitsArgs};
use crate::load::Loaded;
use crate::{npy, output};
use anyhow::{Context, Result};
use serde::Serialize;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

#[derive(Debug, Serialize)]
struct Report<'a> {
    backend: &'a str,
    adapter: &'a str,
    model: &'a str,
    prompt_tokens: &'a [u32],
    top: &'a [(u32, f32)],
}

/// Runs `logits`.
pub fn run(args: &LogitsArgs, device: &DeviceArgs) -> Result<()> {
    let text = args.input.text()?;
    let loaded = Loaded::going_on(&args.load, &DraftArgs::default(), device, &args.session)?;
    let prompt = match &args.input.tokens {
        Some(tokens) => loaded.after(tokens.clone()),
        None => loaded.prompt(&text)?,
    };
    let logits = loaded.logits(&prompt, args.npy.is_some())?;
    if let Some(path) = &args.session.save_session {
        loaded.save(path, &prompt, None)?;
    }
    let n_vocab = loaded.n_vocab();
    if let Some(path) = &args.npy {
        save(path, n_vocab, &logits)
            .with_context(|| format!("cannot write {path:?}; choose another file for --npy"))?;
    }
    let last = &logits[logits.len().saturating_sub(n_vocab)..];
    let top = best(last, args.top);
    if args.json {
        let info = loaded.info();
        let (backend, adapter) = (info.name, &*info.adapter);
        output::json(&Report { backend, adapter, model: &loaded.name, prompt_tokens: &prompt, top: &top })?;
    } else {
        for (id, logit) in &top {
            output::text(&format!(
                "{id:>8} {logit:>12.6}  {}\n",
                loaded.piece(*id).map(|text| format!("{text:?}")).unwrap_or_default()
            ))?;
        }
    }
    Ok(())
}

/// Returns the `n` largest values with their indices, in descending order. Equal values keep their order.
fn best(values: &[f32], n: usize) -> Vec<(u32, f32)> {
    let mut all: Vec<(u32, f32)> = (0u32..).zip(values.iter().copied()).collect();
    all.sort_by(|a, b| b.1.total_cmp(&a.1));
    all.truncate(n);
    all
}

fn save(path: &Path, n_vocab: usize, logits: &[f32]) -> std::io::Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    npy::write(&mut file, logits.len() / n_vocab.max(1), n_vocab, logits)?;
    file.flush()
}
