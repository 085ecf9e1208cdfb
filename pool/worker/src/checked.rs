//! A file whose every byte is held to a digest before anything looks at it.

use std::cell::{Cell, RefCell};

use anygpu::{ByteSource, ReadFuture, SourceError};
use anygpu_pool_proto::{Manifest, Reason, Wire};
use sha2::{Digest, Sha256};

use crate::Refused;

/// Bytes of a chunk, at most: one is in memory at a time.
const MAX_CHUNK: u32 = 16 << 20;

/// Reads whole chunks, and gives bytes of those alone that are what the manifest says.
pub(crate) struct Checked {
    source: Box<dyn ByteSource>,
    manifest: Manifest,
    /// The last chunk that was read: most reads go on in it.
    last: RefCell<Option<(u64, Vec<u8>)>>,
    /// Whether a chunk was another.
    forged: Cell<bool>,
}

impl Checked {
    /// A file with its manifest, if that is the one of a model.
    ///
    /// *Errors*: the manifest is of another model or another file, or its chunks are too large.
    pub fn new(source: Box<dyn ByteSource>, manifest: Manifest, model: &[u8]) -> Result<Checked, Refused> {
        if Sha256::digest(manifest.to_wire()?).as_slice() != model {
            return Err(Refused::new(Reason::Digest, "the manifest is not the model's; fetch it from elsewhere"));
        }
        if manifest.bytes != source.len() {
            let why = format!("the file has {} bytes, and its manifest says {}", source.len(), manifest.bytes);
            return Err(Refused::new(Reason::Digest, why));
        }
        if manifest.chunk > MAX_CHUNK {
            let why = format!("chunks of {} bytes are more than {MAX_CHUNK}; make another manifest", manifest.chunk);
            return Err(Refused::new(Reason::Malformed, why));
        }
        Ok(Checked { source, manifest, last: RefCell::default(), forged: Cell::new(false) })
    }

    /// Whether a read failed because of what the bytes were.
    pub fn is_forged(&self) -> bool {
        self.forged.get()
    }

    async fn read(&self, offset: u64, buf: &mut [u8]) -> Result<(), SourceError> {
        let len = buf.len() as u64;
        let failed = |reason: String| SourceError { offset, len, reason };
        if offset.checked_add(len).is_none_or(|end| end > self.manifest.bytes) {
            return Err(failed(format!("the file ends at byte {}; load the whole file again", self.manifest.bytes)));
        }
        let chunk = u64::from(self.manifest.chunk);
        let mut done = 0;
        while done < buf.len() {
            let at = offset + done as u64;
            let index = at / chunk;
            let last = self.last.take().filter(|(last, _)| *last == index);
            let bytes = match last {
                Some((_, bytes)) => bytes,
                None => self.chunk(index).await?,
            };
            let within = (at % chunk) as usize;
            let count = (bytes.len() - within).min(buf.len() - done);
            buf[done..done + count].copy_from_slice(&bytes[within..within + count]);
            done += count;
            self.last.replace(Some((index, bytes)));
        }
        Ok(())
    }

    async fn chunk(&self, index: u64) -> Result<Vec<u8>, SourceError> {
        let (offset, most) = (index * u64::from(self.manifest.chunk), u64::from(self.manifest.chunk));
        let len = most.min(self.manifest.bytes - offset);
        let mut bytes = vec![0; len as usize];
        self.source.read_at(offset, &mut bytes).await?;
        if self.manifest.digest(index as usize) == Some(Sha256::digest(&bytes).as_slice()) {
            return Ok(bytes);
        }
        self.forged.set(true);
        Err(SourceError { offset, len, reason: "its digest is another; fetch the file from elsewhere".into() })
    }
}

impl ByteSource for Checked {
    fn len(&self) -> u64 {
        self.manifest.bytes
    }

    fn files(&self) -> Vec<u64> {
        self.source.files()
    }

    fn read_at<'a>(&'a self, offset: u64, buf: &'a mut [u8]) -> ReadFuture<'a> {
        Box::pin(self.read(offset, buf))
    }
}
