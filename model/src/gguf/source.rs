//! Where the bytes of a file come from.

use std::future::Future;
use std::pin::Pin;

/// The future of one read. Not `Send`: in a browser it holds JavaScript objects.
pub type ReadFuture<'a> = Pin<Box<dyn Future<Output = Result<(), SourceError>> + 'a>>;

/// A file that is read by byte ranges: memory, a disk file, an HTTP resource, a browser `Blob`. Or several files of a
/// split model, one behind the other.
pub trait ByteSource {
    /// Size of the file, or of all files together.
    ///
    /// *Units*: bytes.
    fn len(&self) -> u64;

    /// The size of each file, in the order in which they lie behind each other; no read crosses from one to the next.
    ///
    /// *Units*: bytes.
    fn files(&self) -> Vec<u64> {
        vec![self.len()]
    }

    /// Whether the file has no bytes at all.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Fills `buf` with the bytes from `offset` on.
    ///
    /// *Errors*: the range reaches past the end of its file, or the medium failed.
    fn read_at<'a>(&'a self, offset: u64, buf: &'a mut [u8]) -> ReadFuture<'a>;
}

/// A read that did not succeed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot read {len} bytes at byte {offset}: {reason}")]
pub struct SourceError {
    /// First byte asked for.
    pub offset: u64,
    /// Bytes asked for.
    pub len: u64,
    /// The fault and its remedy, in words.
    pub reason: String,
}

/// A file that lies in memory as a whole, such as an embedded model.
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

/// The files of a split model in any order, or the one file of any other.
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

/// One of the files of a source, by itself.
pub(super) struct Section<'s> {
    pub source: &'s dyn ByteSource,
    /// Where the file begins.
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
