//! Facts that outlive a coordinator, in a file.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anygpu_pool::Facts;

use crate::PoolError;

/// Time between two writes.
const EVERY: Duration = Duration::from_millis(100);
/// Bytes of a file of facts, at most.
const MAX_FACTS: u64 = 256 << 20;
/// Epochs that may have been given since the last write, at most.
const UNWRITTEN: u64 = 1 << 20;

/// A number that nobody foresees.
///
/// *Errors*: the system has none.
pub fn random() -> Result<u64, PoolError> {
    Ok(getrandom::u64()?)
}

/// Reads the facts of an earlier coordinator; none if there was none.
///
/// *Errors*: the file cannot be read, or is another.
pub fn load(path: &Path) -> Result<Facts, PoolError> {
    let failed = |reason: String| PoolError::Facts { path: path.display().to_string(), reason };
    match std::fs::metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Facts::default()),
        Ok(found) if found.len() > MAX_FACTS => return Err(failed(format!("it has {} bytes", found.len()))),
        _ => {}
    }
    let bytes = std::fs::read(path).map_err(|error| failed(error.to_string()))?;
    let facts: Facts = serde_json::from_slice(&bytes).map_err(|error| failed(error.to_string()))?;
    Ok(Facts { epoch: facts.epoch + UNWRITTEN, ..facts })
}

/// Writes facts, not too often.
pub(crate) struct Keeper {
    path: Option<PathBuf>,
    written: Option<Instant>,
}

impl Keeper {
    pub fn new(path: Option<PathBuf>) -> Keeper {
        Keeper { path, written: None }
    }

    /// When [`Self::keep`] would write.
    pub fn due(&self) -> Option<Instant> {
        self.path.as_ref()?;
        Some(self.written.map_or_else(Instant::now, |written| written + EVERY))
    }

    /// Writes them, beside the file and then in its place.
    pub fn keep(&mut self, facts: &Facts) -> Result<(), PoolError> {
        let Some(path) = &self.path else { return Ok(()) };
        let beside = path.with_extension("new");
        let bytes = serde_json::to_vec(facts).map_err(|error| error.to_string());
        let write = |bytes: Vec<u8>| std::fs::write(&beside, bytes).and_then(|()| std::fs::rename(&beside, path));
        let written = bytes.and_then(|bytes| write(bytes).map_err(|error| error.to_string()));
        self.written = Some(Instant::now());
        written.map_err(|reason| PoolError::Facts { path: path.display().to_string(), reason })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_come_back_with_later_epochs() {
        let path = std::env::temp_dir().join(format!("anygpu-facts-{}.json", std::process::id()));
        assert_eq!(load(&path).unwrap(), Facts::default());
        let facts = Facts { epoch: 7, banned: vec![3], ..Facts::default() };
        Keeper::new(Some(path.clone())).keep(&facts).unwrap();
        let again = load(&path).unwrap();
        assert!(again.epoch > 7 && again.banned == [3]);
        std::fs::write(&path, "{").unwrap();
        assert!(load(&path).unwrap_err().to_string().contains("name another file"));
        std::fs::remove_file(&path).unwrap();
    }
}
