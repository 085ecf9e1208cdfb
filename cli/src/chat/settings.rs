//! Settings of a conversation.

use crate::args::SamplingArgs;
use anygpu::Sampling;
use anyhow::{Context, Result, anyhow, bail};
use std::fmt::{Display, Formatter};
use std::str::FromStr;

/// The sampling options and the length of answers.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    temperature: f32,
    top_k: u32,
    top_p: f32,
    seed: u64,
    /// Most tokens of an answer.
    pub max_tokens: usize,
}

impl Settings {
    /// Creates the settings of the command line.
    pub fn new(args: &SamplingArgs, max_tokens: usize) -> Settings {
        match args.sampling() {
            Some(Sampling::Random { temperature, top_k, top_p, seed }) => {
                Settings { temperature, top_k, top_p, seed, max_tokens }
            }
            Some(Sampling::Greedy) | None => Settings { temperature: 0.0, top_k: 40, top_p: 0.95, seed: 0, max_tokens },
        }
    }

    /// Returns the sampling method of these settings.
    pub fn sampling(&self) -> Sampling {
        let &Settings { temperature, top_k, top_p, seed, .. } = self;
        if temperature == 0.0 { Sampling::Greedy } else { Sampling::Random { temperature, top_k, top_p, seed } }
    }

    /// Changes the seed, so that the next sampled answer differs.
    pub fn next_seed(&mut self) {
        self.seed = self.seed.wrapping_add(1);
    }

    /// Changes a setting: a name and a value. An empty text changes nothing.
    ///
    /// *Errors*: an unknown setting, or a value that it cannot have.
    pub fn change(&mut self, change: &str) -> Result<()> {
        // `/set parameter NAME VALUE` is the form of other chat programs.
        let change = change.strip_prefix("parameter ").unwrap_or(change).trim();
        if change.is_empty() {
            return Ok(());
        }
        let (name, value) = change.split_once([' ', '=']).with_context(|| {
            format!("give a value, as in /set temperature 0.8; {change:?} is not a name and a value")
        })?;
        let value = value.trim();
        match name.trim() {
            "temperature" => self.temperature = number(value, 0.0..=100.0, "from 0, the likeliest token, to 100")?,
            "top_k" => self.top_k = number(value, 1..=64, "from 1 to 64")?,
            "top_p" => self.top_p = number(value, 0.0..=1.0, "from 0 to 1")?,
            "seed" => self.seed = number(value, 0..=u64::MAX, "such as 7")?,
            "max_tokens" => self.max_tokens = number(value, 1..=usize::MAX, "of at least 1")?,
            name => bail!("there is no setting {name:?}; /set lists them"),
        }
        Ok(())
    }
}

/// Parses a number within a range.
fn number<T: FromStr + PartialOrd>(text: &str, range: std::ops::RangeInclusive<T>, which: &str) -> Result<T> {
    let number = text.parse::<T>().ok().filter(|number| range.contains(number));
    number.ok_or_else(|| anyhow!("{text:?} does not do; give a number {which}"))
}

impl Display for Settings {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let Settings { temperature, top_k, top_p, seed, max_tokens } = self;
        let note = if *temperature == 0.0 { "always the likeliest token" } else { "higher is more surprising" };
        writeln!(f, "temperature  {temperature} ({note})\ntop_k        {top_k}\ntop_p        {top_p}")?;
        writeln!(f, "seed         {seed}\nmax_tokens   {max_tokens}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args() -> SamplingArgs {
        SamplingArgs { greedy: false, temperature: None, top_k: None, top_p: None, seed: None }
    }

    #[test]
    fn settings_begin_as_the_command_line_has_them() {
        assert_eq!(Settings::new(&args(), 9).sampling(), Sampling::Greedy);
        assert_eq!(Settings::new(&SamplingArgs { greedy: true, ..args() }, 9).sampling(), Sampling::Greedy);
        let random = SamplingArgs { top_k: Some(3), ..args() };
        let settings = Settings::new(&random, 9);
        assert_eq!((Some(settings.sampling()), settings.max_tokens), (random.sampling(), 9));
    }

    #[test]
    fn settings_change_one_by_one() {
        let mut settings = Settings::new(&args(), 9);
        for change in ["temperature 0.5", "parameter top_k 7", "top_p=1", "seed   3", "max_tokens 5", ""] {
            settings.change(change).unwrap();
        }
        let expected = Settings { temperature: 0.5, top_k: 7, top_p: 1.0, seed: 3, max_tokens: 5 };
        assert_eq!(settings, expected);
        for (wrong, part) in [
            ("temperature", "give a value"),
            ("temperature -1", "from 0"),
            ("temperature NaN", "from 0"),
            ("top_k 65", "from 1 to 64"),
            ("max_tokens 0", "at least 1"),
            ("heat 1", "no setting \"heat\""),
        ] {
            assert!(settings.change(wrong).unwrap_err().to_string().contains(part), "{wrong}");
        }
        assert_eq!(settings, expected);
        settings.next_seed();
        assert!(settings.to_string().contains("seed         4\n"));
    }
}
