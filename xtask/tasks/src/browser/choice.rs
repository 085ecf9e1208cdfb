//! The browser that is asked for: one of this machine, or an old one.

use super::old;
use super::versions::{VERSIONS, Version};
use anyhow::{Result, anyhow};
use clap::ValueEnum;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use xtask::browsers::Kind;

/// A browser, and its version if it is an old one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choice {
    /// Which browser.
    pub kind: Kind,
    /// The old version that is asked for; otherwise it is what is installed.
    pub version: Option<&'static Version>,
}

impl Choice {
    /// Names a program that is missing, and how to install it.
    pub fn lacks(self) -> Option<String> {
        match self.version {
            Some(_) => xtask::browsers::lacks_for_old(),
            None => self.kind.find().err(),
        }
    }

    /// Its program. An old one is fetched if it is not there.
    ///
    /// *Errors*: it is not to be had.
    pub fn program(self) -> Result<PathBuf> {
        match self.version {
            Some(version) => old::fetch(version),
            None => self.kind.find().map_err(|remedy| anyhow!(remedy)),
        }
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.name())?;
        self.version.map_or(Ok(()), |version| write!(f, "@{}", version.number))
    }
}

impl FromStr for Choice {
    type Err = String;

    fn from_str(text: &str) -> Result<Choice, String> {
        let (name, number) = text.split_once('@').map_or((text, None), |(name, number)| (name, Some(number)));
        let kind = Kind::from_str(name, false).map_err(|_| {
            let known: Vec<_> = Kind::value_variants().iter().map(|kind| kind.name()).collect();
            format!("there is no browser {name}; there are {}", known.join(", "))
        })?;
        let Some(number) = number else { return Ok(Choice { kind, version: None }) };
        let version = VERSIONS.iter().find(|version| kind == Kind::Chromium && version.number.to_string() == number);
        if version.is_none() {
            let known: Vec<_> = VERSIONS.iter().map(|version| format!("chromium@{}", version.number)).collect();
            return Err(format!("there is no old browser {text}; there are {}", known.join(", ")));
        }
        Ok(Choice { kind, version })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_that_is_not_known_names_those_that_are() {
        assert_eq!("chromium".parse(), Ok(Choice { kind: Kind::Chromium, version: None }));
        assert_eq!("chromium@92".parse::<Choice>().unwrap().to_string(), "chromium@92");
        for wrong in ["chromium@1", "firefox@92", "chromium@"] {
            let error = wrong.parse::<Choice>().unwrap_err();
            assert!(error.contains(wrong) && error.contains("chromium@80"), "{error}");
        }
        assert!("netscape".parse::<Choice>().unwrap_err().contains("webkit"));
    }
}
