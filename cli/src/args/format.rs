//! What an answer is to be.

use anygpu_constrain::{Format, schema};
use anyhow::{Context, Result, bail};
use clap::Args;
use std::fs::File;
use std::io::Read;

/// What an answer is to be.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Format")]
#[group(multiple = false)]
pub struct FormatArgs {
    /// Answer with JSON that follows this JSON schema, or the one in this file
    #[arg(long, value_name = "JSON|FILE")]
    pub json_schema: Option<String>,
    /// Answer with any JSON object
    #[arg(long)]
    pub json_object: bool,
    /// Answer with text that this regular expression matches from end to end
    #[arg(long, value_name = "REGEX", allow_hyphen_values = true)]
    pub regex: Option<String>,
}

impl FormatArgs {
    /// What was asked for, if anything was.
    ///
    /// *Errors*: a file that cannot be read, or is no JSON.
    pub fn format(&self) -> Result<Option<Format>> {
        let FormatArgs { json_schema, json_object, regex } = self;
        match (json_schema, regex) {
            (Some(text), _) if text.trim_start().starts_with('{') => Ok(Some(Format::schema(text)?)),
            (Some(file), _) => Ok(Some(Format::schema(&read(file)?).with_context(|| file.clone())?)),
            (_, Some(regex)) => Ok(Some(Format::Regex(regex.clone()))),
            _ => Ok(json_object.then_some(Format::Object)),
        }
    }
}

/// A file that has a schema, and no more than one may have.
fn read(file: &str) -> Result<String> {
    let why = || format!("cannot read the schema in {file}; give the path of a file, or JSON that begins with {{");
    let mut text = String::new();
    let most = schema::MAX_BYTES as u64 * 4;
    File::open(file).with_context(why)?.take(most + 1).read_to_string(&mut text).with_context(why)?;
    if text.len() as u64 > most {
        bail!("{file} has more than {most} bytes, which is no schema that is taken on; use a simpler one");
    }
    Ok(text)
}
