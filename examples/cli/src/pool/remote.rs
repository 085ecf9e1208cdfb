//! Files of models that workers fetch chunks of, and keep.

use crate::models::agent;
use crate::saved;
use anygpu::{ByteSource, ReadFuture, SourceError};
use anygpu_pool_proto::{Assign, Manifest, Reason, Wire, limits};
use anygpu_pool_worker::{Models, OpenFuture, Opened, Refused};
use sha2::{Digest, Sha256};
use std::io::Read;
use std::path::PathBuf;
use std::time::Instant;
use ureq::Agent;

/// Fetches by HTTP.
pub struct Remote {
    agent: Agent,
    /// Where chunks are kept, by their digests.
    kept: Option<PathBuf>,
}

impl Remote {
    /// With a folder of chunks that are kept for the next time.
    pub fn new(kept: Option<PathBuf>) -> Remote {
        Remote { agent: agent(), kept }
    }

    fn open(&self, assign: &Assign) -> Result<Opened, Refused> {
        let manifest = manifest(&self.agent, &assign.address).map_err(|why| Refused::new(Reason::Fetch, why))?;
        let (agent, address, kept) = (self.agent.clone(), assign.address.clone(), self.kept.clone());
        Ok((Box::new(Chunks { agent, address, kept, manifest: manifest.clone() }), manifest))
    }
}

impl Models for Remote {
    fn open<'a>(&'a self, assign: &'a Assign) -> OpenFuture<'a> {
        Box::pin(async { Remote::open(self, assign) })
    }
}

/// The manifest of the model at an address.
pub fn manifest(agent: &Agent, address: &str) -> Result<Manifest, String> {
    let bytes = get(agent, &format!("{address}.manifest"), None, limits::MESSAGE_BYTES as u64)?;
    Manifest::from_wire(&bytes).map_err(|error| error.to_string())
}

/// The rate of a download, by that of the file's first chunk.
///
/// *Units*: bytes a second.
pub fn bandwidth(agent: &Agent, address: &str) -> Result<u64, String> {
    let manifest = manifest(agent, address)?;
    let bytes = u64::from(manifest.chunk).min(manifest.bytes);
    let begun = Instant::now();
    get(agent, address, Some((0, bytes)), bytes)?;
    Ok((bytes as f64 / begun.elapsed().as_secs_f64().max(1e-6)) as u64)
}

/// Bytes at an address, or so many from a position on.
pub fn get(agent: &Agent, address: &str, range: Option<(u64, u64)>, most: u64) -> Result<Vec<u8>, String> {
    let mut request = agent.get(address);
    if let Some((offset, len)) = range {
        request = request.header("range", format!("bytes={offset}-{}", offset + len - 1));
    }
    let cannot = |why: &dyn std::fmt::Display| format!("cannot fetch {address}: {why}; check it and the network");
    let mut response = request.call().map_err(|error| cannot(&error))?;
    if !response.status().is_success() {
        return Err(cannot(&response.status()));
    }
    let mut bytes = Vec::new();
    let mut reader = response.body_mut().as_reader().take(most + 1);
    reader.read_to_end(&mut bytes).map_err(|error| cannot(&error))?;
    match range {
        Some((_, len)) if bytes.len() as u64 != len => Err(cannot(&"it gives other bytes than were asked for")),
        None if bytes.len() as u64 > most => Err(cannot(&format!("it has more than {most} bytes"))),
        _ => Ok(bytes),
    }
}

/// A file that is read by whole chunks: who reads it checks them.
struct Chunks {
    agent: Agent,
    address: String,
    kept: Option<PathBuf>,
    manifest: Manifest,
}

impl Chunks {
    /// Where a range is kept, if it is a chunk.
    fn place(&self, offset: u64, len: usize) -> Option<(PathBuf, &[u8])> {
        let index = offset / u64::from(self.manifest.chunk);
        let digest = self.manifest.digest(usize::try_from(index).ok()?)?;
        let whole = offset.is_multiple_of(self.manifest.chunk.into()) && len == self.manifest.chunk as usize;
        let name: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        Some((self.kept.as_ref().filter(|_| whole)?.join(name), digest))
    }

    fn read(&self, offset: u64, buf: &mut [u8]) -> Result<(), String> {
        let place = self.place(offset, buf.len());
        if let Some((path, digest)) = &place
            && let Ok(bytes) = std::fs::read(path)
            && bytes.len() == buf.len()
            && Sha256::digest(&bytes).as_slice() == *digest
        {
            buf.copy_from_slice(&bytes);
            return Ok(());
        }
        let len = buf.len() as u64;
        buf.copy_from_slice(&get(&self.agent, &self.address, Some((offset, len)), len)?);
        if let Some((path, _)) = place {
            // It works without.
            let _ = saved::replace(&path, buf);
        }
        Ok(())
    }
}

impl ByteSource for Chunks {
    fn len(&self) -> u64 {
        self.manifest.bytes
    }

    fn read_at<'a>(&'a self, offset: u64, buf: &'a mut [u8]) -> ReadFuture<'a> {
        let len = buf.len() as u64;
        let read = self.read(offset, buf).map_err(|reason| SourceError { offset, len, reason });
        Box::pin(async { read })
    }
}
