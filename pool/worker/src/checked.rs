//! A file whose every byte is held to a digest before anything looks at it.

use std::cell::{Cell, RefCell};
use std::pin::Pin;

use anygpu::{ByteSource, ReadFuture, SourceError};
use anygpu_pool_proto::{Manifest, Reason, Wire};
use sha2::{Digest, Sha256};

use crate::Refused;
use crate::loaded::Opened;

/// Bytes of a chunk, at most: one is in memory at a time.
const MAX_CHUNK: u32 = 16 << 20;

/// A chunk that is looked up.
pub type GotFuture<'a> = Pin<Box<dyn Future<Output = Option<Vec<u8>>> + 'a>>;

/// A chunk that is being kept.
pub type PutFuture<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// Chunks of files that are kept for the next time, by their digests in hexadecimal digits. What is got is checked like what
/// is fetched, and what cannot be kept is fetched again.
pub trait Chunks {
    /// A chunk, if it is here.
    fn get<'a>(&'a self, name: &'a str) -> GotFuture<'a>;

    /// Keeps a chunk, in the place of one of the same name.
    fn put<'a>(&'a self, name: &'a str, bytes: &'a [u8]) -> PutFuture<'a>;
}

/// Reads whole chunks, and gives bytes of those alone that are what the manifest says.
pub(crate) struct Checked {
    source: Box<dyn ByteSource>,
    manifest: Manifest,
    kept: Option<Box<dyn Chunks>>,
    /// The last chunk that was read: most reads go on in it.
    last: RefCell<Option<(u64, Vec<u8>)>>,
    /// Whether a chunk was another.
    forged: Cell<bool>,
}

impl Checked {
    /// A file, if its manifest is the one of a model.
    ///
    /// *Errors*: the manifest is of another model or another file, or its chunks are too large.
    pub fn new(Opened { source, manifest, kept }: Opened, model: &[u8]) -> Result<Checked, Refused> {
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
        Ok(Checked { source, manifest, kept, last: RefCell::default(), forged: Cell::new(false) })
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
        let digest = self.manifest.digest(index as usize).unwrap_or_default();
        let name: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        let is_right = |bytes: &Vec<u8>| bytes.len() as u64 == len && Sha256::digest(bytes).as_slice() == digest;
        let kept = match &self.kept {
            Some(kept) => kept.get(&name).await,
            None => None,
        };
        if let Some(bytes) = kept.filter(is_right) {
            return Ok(bytes);
        }
        let mut bytes = vec![0; len as usize];
        self.source.read_at(offset, &mut bytes).await?;
        if is_right(&bytes) {
            if let Some(kept) = &self.kept {
                kept.put(&name, &bytes).await;
            }
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

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::rc::Rc;

    use anygpu::native::block_on;

    use super::*;

    const CHUNK: usize = 64 << 10;

    /// Chunks that are kept, and how often the file itself was read.
    #[derive(Clone, Default)]
    struct Disk(Rc<RefCell<HashMap<String, Vec<u8>>>>, Rc<Cell<u32>>);

    impl Chunks for Disk {
        fn get<'a>(&'a self, name: &'a str) -> GotFuture<'a> {
            Box::pin(async move { self.0.borrow().get(name).cloned() })
        }

        fn put<'a>(&'a self, name: &'a str, bytes: &'a [u8]) -> PutFuture<'a> {
            Box::pin(async move { drop(self.0.borrow_mut().insert(name.into(), bytes.to_vec())) })
        }
    }

    struct File(Vec<u8>, Disk);

    impl ByteSource for File {
        fn len(&self) -> u64 {
            self.0.len() as u64
        }

        fn read_at<'a>(&'a self, offset: u64, buf: &'a mut [u8]) -> ReadFuture<'a> {
            self.1.1.set(self.1.1.get() + 1);
            buf.copy_from_slice(&self.0[offset as usize..][..buf.len()]);
            Box::pin(async { Ok(()) })
        }
    }

    /// Reads all of a file that a server gives, where `bytes` are meant.
    fn reads(bytes: &[u8], given: Vec<u8>, disk: &Disk) -> Result<Vec<u8>, SourceError> {
        let digests = bytes.chunks(CHUNK).flat_map(Sha256::digest).collect();
        let manifest = Manifest { bytes: bytes.len() as u64, chunk: CHUNK as u32, digests };
        let model = Sha256::digest(manifest.to_wire().unwrap());
        let (source, kept) = (Box::new(File(given, disk.clone())), Some(Box::new(disk.clone()) as Box<dyn Chunks>));
        let checked = Checked::new(Opened { source, manifest, kept }, &model).unwrap();
        let mut all = vec![0; bytes.len()];
        block_on(checked.read_at(0, &mut all)).map(|()| all)
    }

    #[test]
    fn chunks_are_fetched_once_and_again_where_they_are_damaged() {
        let bytes: Vec<u8> = (0..3 * CHUNK + 7).map(|at| ((at as u32).wrapping_mul(0x9e37_79b1) >> 24) as u8).collect();
        let disk = Disk::default();
        assert_eq!(reads(&bytes, bytes.clone(), &disk).unwrap(), bytes);
        assert_eq!((disk.0.borrow().len(), disk.1.take()), (4, 4));
        assert_eq!(reads(&bytes, bytes.clone(), &disk).unwrap(), bytes);
        assert_eq!(disk.1.take(), 0, "all of it was kept");
        disk.0.borrow_mut().values_mut().next().unwrap()[5] ^= 1;
        disk.0.borrow_mut().values_mut().last().unwrap().pop();
        assert_eq!(reads(&bytes, bytes.clone(), &disk).unwrap(), bytes);
        assert_eq!(disk.1.take(), 2, "what was damaged came anew");
        assert_eq!(reads(&bytes, bytes.clone(), &disk).unwrap(), bytes);
        assert_eq!(disk.1.take(), 0, "and is kept as it came");
    }

    #[test]
    fn what_is_forged_is_not_kept() {
        let (bytes, disk) = ([[1; CHUNK], [2; CHUNK]].concat(), Disk::default());
        let forged = [[1; CHUNK], [3; CHUNK]].concat();
        assert!(reads(&bytes, forged, &disk).is_err());
        assert_eq!(disk.0.borrow().values().collect::<Vec<_>>(), [&vec![1; CHUNK]]);
    }
}
