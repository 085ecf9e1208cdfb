//! Models that workers download in chunks, and keep.

use crate::models::agent;
use crate::saved;
use anygpu::{ByteSource, ReadFuture, SourceError};
use anygpu_pool_proto::{Assign, Manifest, Reason, Wire, limits};
use anygpu_pool_worker::{Chunks, GotFuture, Models, OpenFuture, Opened, PutFuture, Refused};
use std::io::Read;
use std::path::PathBuf;
use std::time::Instant;
use ureq::Agent;

/// Models that are downloaded over HTTP.
pub struct Remote {
    agent: Agent,
    /// Folder of the chunks, which are named by their digests.
    kept: Option<PathBuf>,
}

impl Remote {
    /// Creates the source of models. Chunks are kept in the folder `kept`, if there is one.
    pub fn new(kept: Option<PathBuf>) -> Remote {
        Remote { agent: agent(), kept }
    }

    fn open(&self, assign: &Assign) -> Result<Opened, Refused> {
        let manifest = manifest(&self.agent, &assign.address).map_err(|why| Refused::new(Reason::Fetch, why))?;
        let source = Ranges { agent: self.agent.clone(), address: assign.address.clone(), bytes: manifest.bytes };
        let kept = self.kept.clone().map(|folder| Box::new(Folder(folder)) as Box<dyn Chunks>);
        Ok(Opened { source: Box::new(source), manifest, kept })
    }
}

impl Models for Remote {
    fn open<'a>(&'a self, assign: &'a Assign) -> OpenFuture<'a> {
        Box::pin(async { Remote::open(self, assign) })
    }
}

/// Downloads the manifest of the model at an address.
pub fn manifest(agent: &Agent, address: &str) -> Result<Manifest, String> {
    let bytes = get(agent, &format!("{address}.manifest"), None, limits::MESSAGE_BYTES as u64)?;
    Manifest::from_wire(&bytes).map_err(|error| error.to_string())
}

/// Measures the download rate with the file's first chunk.
///
/// *Units*: bytes a second.
pub fn bandwidth(agent: &Agent, address: &str) -> Result<u64, String> {
    let manifest = manifest(agent, address)?;
    let bytes = u64::from(manifest.chunk).min(manifest.bytes);
    let begun = Instant::now();
    get(agent, address, Some((0, bytes)), bytes)?;
    Ok((bytes as f64 / begun.elapsed().as_secs_f64().max(1e-6)) as u64)
}

/// Downloads the bytes at an address, or `range`, which is an offset and a length.
pub fn get(agent: &Agent, address: &str, range: Option<(u64, u64)>, most: u64) -> Result<Vec<u8>, String> {
    let mut request = agent.get(address);
    if let Some((offset, len)) = range {
        request = request.header("range", format!("bytes={offset}-{}", (offset + len).saturating_sub(1)));
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

/// A remote file that is read in whole chunks. Its reader verifies them.
struct Ranges {
    agent: Agent,
    address: String,
    bytes: u64,
}

impl ByteSource for Ranges {
    fn len(&self) -> u64 {
        self.bytes
    }

    fn read_at<'a>(&'a self, offset: u64, buf: &'a mut [u8]) -> ReadFuture<'a> {
        let len = buf.len() as u64;
        let read = get(&self.agent, &self.address, Some((offset, len)), len);
        let read = read.map(|bytes| buf.copy_from_slice(&bytes)).map_err(|reason| SourceError { offset, len, reason });
        Box::pin(async { read })
    }
}

/// Folder with one file for each chunk.
struct Folder(PathBuf);

impl Chunks for Folder {
    fn get<'a>(&'a self, name: &'a str) -> GotFuture<'a> {
        Box::pin(async move { std::fs::read(self.0.join(name)).ok() })
    }

    fn put<'a>(&'a self, name: &'a str, bytes: &'a [u8]) -> PutFuture<'a> {
        // An error is ignored: the cache is optional.
        let _ = saved::replace(&self.0.join(name), bytes);
        Box::pin(async {})
    }
}
