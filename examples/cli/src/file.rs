//! Model files on disk.

use anyhow::{Context, Result, bail};
use model::gguf::{ByteSource, ReadFuture, SourceError};
use std::cell::RefCell;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

/// A file that is read by byte ranges.
#[derive(Debug)]
pub struct FileSource {
    file: RefCell<File>,
    len: u64,
}

impl FileSource {
    /// Opens a file.
    ///
    /// *Errors*: it is absent, no regular file, or may not be read.
    pub fn open(path: &Path) -> Result<FileSource> {
        let shown = path.display();
        let hint =
            || format!("cannot open the model {shown:?}; give the path of a GGUF file, or gab for the built-in model");
        let file = File::open(path).with_context(hint)?;
        let metadata = file.metadata().with_context(hint)?;
        if !metadata.is_file() {
            bail!(
                "the model {shown:?} is no regular file; give the path of a GGUF file, or gab for the built-in model"
            );
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
        let read = || {
            let mut file = self.file.borrow_mut();
            file.seek(SeekFrom::Start(offset))?;
            file.read_exact(buf)
        };
        let result = { read }();
        let result = result.map_err(|error: std::io::Error| SourceError {
            offset,
            len,
            reason: format!("{error}; check that the file is whole and was not changed meanwhile"),
        });
        Box::pin(std::future::ready(result))
    }
}
