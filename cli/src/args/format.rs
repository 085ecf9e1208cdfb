//! The format that answers must have.

use anygpu_constrain::{Format, schema};
use anyhow::{Context, Result, bail};
use clap::Args;
use std::fs::File;
use std::io::Read;

/// The format that answers must have.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Format")]
#[group(multiple = false)]
pub struct FormatArgs {
    /// Answer with JSON that follows this JSON schema, given as text or as a file
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
    /// Returns the requested format, if there is one.
    ///
    /// *Errors*: a file that cannot be read or is not JSON.
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

/// Reads a file with a schema. It reads no more bytes than a schema may have.
fn read(file: &str) -> Result<String> {
    let why = || format!("cannot read the schema in {file}; give the path of a file, or JSON that begins with {{");
    let mut text = String::new();
    let most = schema::MAX_BYTES as u64 * 4;
    File::open(file).with_context(why)?.take(most + 1).read_to_string(&mut text).with_context(why)?;
    if text.len() as u64 > most {
        bail!("{file} has more than {most} bytes, too many for a schema; use a simpler one");
    }
    Ok(text)
}
