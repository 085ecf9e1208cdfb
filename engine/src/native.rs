//! Services for native programs: files, a clock, and blocking on futures.

use std::cell::RefCell;
use std::fs::File;
use std::future::Future;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

pub use backend_api::run::NativeHost;
use model::gguf::ReadFuture;
pub use model::gguf::split_names;
use model::{ByteSource, Files, SourceError};

/// Blocks on a future. Only for the outermost edge of native programs.
pub fn block_on<F: Future>(future: F) -> F::Output {
    pollster::block_on(future)
}

/// Returns the time of day, for chat templates.
///
/// *Units*: seconds since 1970-01-01, in the user's time zone.
pub(crate) fn seconds() -> i64 {
    let now = jiff::ZonedDateTime::now();
    now.timestamp().as_second() + i64::from(now.offset().seconds())
}

/// Returns the place that a selection's cached results are valid for: this build of the program, on this system.
pub(crate) fn place() -> String {
    let file = std::env::current_exe().and_then(std::fs::metadata);
    let built = file.and_then(|file| Ok((file.len(), file.modified()?)));
    format!("{} {} {built:?}", std::env::consts::OS, std::env::consts::ARCH)
}

/// A file on disk that is read by byte ranges.
#[derive(Debug)]
pub struct FileSource {
    file: RefCell<File>,
    len: u64,
}

impl FileSource {
    /// Opens a file.
    ///
    /// *Errors*: the file is absent, not a regular file, or not readable.
    pub fn open(path: &Path) -> io::Result<FileSource> {
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
        }
        Ok(FileSource { file: RefCell::new(file), len: metadata.len() })
    }
}

/// Opens the files of a model. If the name is that of one file of a split model, such as `m-00001-of-00005.gguf`, all
/// of its files are opened, which must be in the same folder.
///
/// *Errors*: as [`FileSource::open`], for the first file that fails. If that is not `path` itself, the error names it.
pub fn open_files(path: &Path) -> io::Result<Files<FileSource>> {
    let named = FileSource::open(path)?;
    let Some(names) = path.file_name().and_then(|name| split_names(name.to_str()?)) else {
        return Ok(Files(vec![named]));
    };
    let open = |name: &String| {
        FileSource::open(&path.with_file_name(name)).map_err(|error| {
            let remedy = "put all files of the split model into one folder";
            io::Error::new(error.kind(), format!("{name:?}, which belongs to it, cannot be opened ({error}); {remedy}"))
        })
    };
    Ok(Files(names.iter().map(open).collect::<Result<_, _>>()?))
}

impl ByteSource for FileSource {
    fn len(&self) -> u64 {
        self.len
    }

    fn read_at<'a>(&'a self, offset: u64, buf: &'a mut [u8]) -> ReadFuture<'a> {
        let len = buf.len() as u64;
        let mut file = self.file.borrow_mut();
        let result = file.seek(SeekFrom::Start(offset)).and_then(|_| file.read_exact(buf));
        let result = result.map_err(|error| SourceError {
            offset,
            len,
            reason: format!("{error}; check that the file is whole and was not changed meanwhile"),
        });
        Box::pin(std::future::ready(result))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A process of its own has the zone.
    #[test]
    fn the_time_of_day_is_that_of_the_users_zone() {
        const ZONE: &str = "TEST-5:30";
        let utc = || i64::try_from(std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs()).unwrap();
        if std::env::var("TZ").is_ok_and(|zone| zone == ZONE) {
            let before = utc();
            let local = seconds() - (5 * 60 + 30) * 60;
            assert!((before..=utc()).contains(&local), "{before} {local}");
            return;
        }
        let own = std::env::current_exe().unwrap();
        let test = "native::tests::the_time_of_day_is_that_of_the_users_zone";
        let output = std::process::Command::new(own).args(["--exact", test]).env("TZ", ZONE).output().unwrap();
        let shown = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && shown.contains("1 passed"), "{shown}");
    }
}
