//! Sources of a file's bytes.

use std::future::Future;
use std::pin::Pin;

/// Future of a read. It is not `Send`: in a browser it holds JavaScript objects.
pub type ReadFuture<'a> = Pin<Box<dyn Future<Output = Result<(), SourceError>> + 'a>>;

/// Source of a file that is read by byte ranges: memory, a disk file, an HTTP resource, or a browser `Blob`. It may
/// also be the files of a split model, one after the other.
pub trait ByteSource {
    /// Returns the size of the file, or of all files together.
    ///
    /// *Units*: bytes.
    fn len(&self) -> u64;

    /// Returns the size of each file, in their order in the source. No read crosses from one file to the next.
    ///
    /// *Units*: bytes.
    fn files(&self) -> Vec<u64> {
        vec![self.len()]
    }

    /// Returns whether the source is empty.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Fills `buf` with the bytes from `offset` on.
    ///
    /// *Errors*: the range reaches past the end of its file, or the medium failed.
    fn read_at<'a>(&'a self, offset: u64, buf: &'a mut [u8]) -> ReadFuture<'a>;
}

/// Error of a read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot read {len} bytes at byte {offset}: {reason}")]
pub struct SourceError {
    /// First byte of the read.
    pub offset: u64,
    /// Bytes of the read.
    pub len: u64,
    /// Description of the fault and its remedy.
    pub reason: String,
}

/// A file in memory, such as an embedded model.
#[derive(Debug, Clone)]
pub struct BytesSource<T>(pub T);

impl<T: AsRef<[u8]>> ByteSource for BytesSource<T> {
    fn len(&self) -> u64 {
        self.0.as_ref().len() as u64
    }

    fn read_at<'a>(&'a self, offset: u64, buf: &'a mut [u8]) -> ReadFuture<'a> {
        let bytes = self.0.as_ref();
        let start = usize::try_from(offset).ok();
        let range = start.and_then(|s| bytes.get(s..s.checked_add(buf.len())?));
        let result = match range {
            Some(range) => {
                buf.copy_from_slice(range);
                Ok(())
            }
            None => Err(SourceError {
                offset,
                len: buf.len() as u64,
                reason: format!("the data ends at byte {}; load the whole file again", bytes.len()),
            }),
        };
        Box::pin(std::future::ready(result))
    }
}

/// Files of a split model in any order, or a single file.
#[derive(Debug)]
pub struct Files<S>(pub Vec<S>);

impl<S: ByteSource> ByteSource for Files<S> {
    fn len(&self) -> u64 {
        self.0.iter().fold(0, |sum, file| sum.saturating_add(file.len()))
    }

    fn files(&self) -> Vec<u64> {
        self.0.iter().map(S::len).collect()
    }

    fn read_at<'a>(&'a self, offset: u64, buf: &'a mut [u8]) -> ReadFuture<'a> {
        let mut local = offset;
        for file in &self.0 {
            match local.checked_sub(file.len()) {
                None => return file.read_at(local, buf),
                Some(rest) => local = rest,
            }
        }
        let (len, end) = (buf.len() as u64, self.len());
        let reason = format!("the files end at byte {end}; load whole files again");
        Box::pin(std::future::ready(Err(SourceError { offset, len, reason })))
    }
}

/// A single file of a source.
pub(super) struct Section<'s> {
    pub source: &'s dyn ByteSource,
    /// Beginning of the file in the source.
    pub start: u64,
    pub len: u64,
}

impl ByteSource for Section<'_> {
    fn len(&self) -> u64 {
        self.len
    }

    fn read_at<'a>(&'a self, offset: u64, buf: &'a mut [u8]) -> ReadFuture<'a> {
        self.source.read_at(self.start.saturating_add(offset), buf)
    }
}
