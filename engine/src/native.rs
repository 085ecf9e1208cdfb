//! What native programs need besides: files, a clock, and waiting at the outermost edge.

use std::cell::RefCell;
use std::fs::File;
use std::future::Future;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::rc::Rc;

pub use backend_api::run::NativeHost;
use model::gguf::ReadFuture;
use model::{ByteSource, SourceError};

use crate::engine::{Engine, EngineOptions};
use crate::error::EngineError;

/// Waits for a future. For the outermost edge of native programs only.
pub fn block_on<F: Future>(future: F) -> F::Output {
    pollster::block_on(future)
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
    /// *Errors*: it is absent, not a regular file, or may not be read.
    pub fn open(path: &Path) -> io::Result<FileSource> {
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
        }
        Ok(FileSource { file: RefCell::new(file), len: metadata.len() })
    }
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

impl Engine {
    /// Loads a model from a file on disk: [`Engine::load`] with a [`FileSource`] and a [`NativeHost`].
    ///
    /// *Errors*: the file cannot be opened; as [`Engine::load`].
    pub async fn open(path: impl AsRef<Path>, options: &EngineOptions) -> Result<Engine, EngineError> {
        let path = path.as_ref();
        let source = FileSource::open(path)
            .map_err(|error| EngineError::File { path: path.display().to_string(), reason: error.to_string() })?;
        Engine::load(&source, options, Rc::new(NativeHost::default()), &mut |_| {}).await
    }
}
