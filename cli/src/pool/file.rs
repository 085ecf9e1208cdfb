//! The file that workers fetch ranges of, and its digests.

use crate::args::ModelArgs;
use anygpu::native::block_on;
use anygpu_pool_proto::{Manifest, Wire};
use anyhow::{Context, Result, bail};
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use indicatif::{ProgressBar, ProgressStyle};
use sha2::{Digest, Sha256};
use std::ops::Range;
use tokio::sync::mpsc;

/// Bytes of a chunk, at least and at most: the larger the file, the larger they are, so that digests stay few.
const CHUNK: Range<u64> = 1 << 20..16 << 20;
/// Chunks of a file, as far as their size allows.
const CHUNKS: u64 = 1 << 14;
/// Bytes that are read and sent at a time.
const PIECE: u64 = 1 << 20;
/// Pieces that wait to be sent.
const AHEAD: usize = 2;

/// A model's file and what it is checked with.
pub struct Served {
    model: ModelArgs,
    /// Its length.
    pub bytes: u64,
    /// The encoded manifest.
    pub manifest: Vec<u8>,
    /// The digest of the model: that of the manifest.
    pub digest: Vec<u8>,
}

impl Served {
    /// Reads a file to its end for its digests.
    ///
    /// *Errors*: it cannot be read; it is one of several.
    pub fn new(model: &ModelArgs) -> Result<Served> {
        let source = model.open()?;
        if source.files().len() > 1 {
            bail!("a pool serves models of one file; join the files of this one with llama-gguf-split --merge");
        }
        let bytes = source.len();
        let chunk = (bytes / CHUNKS).next_power_of_two().clamp(CHUNK.start, CHUNK.end);
        let bar = ProgressBar::new(bytes).with_message(format!("reading {}", model.name()));
        bar.set_style(ProgressStyle::with_template("{msg} {bar:40} {bytes}/{total_bytes}")?);
        let mut digests = Vec::new();
        let mut buffer = vec![0; chunk as usize];
        for offset in (0..bytes).step_by(chunk as usize) {
            let piece = &mut buffer[..chunk.min(bytes - offset) as usize];
            block_on(source.read_at(offset, piece)).context("cannot read the model")?;
            digests.extend(Sha256::digest(&piece));
            bar.inc(piece.len() as u64);
        }
        bar.finish_and_clear();
        let manifest = Manifest { bytes, chunk: chunk as u32, digests }.to_wire()?;
        let digest = Sha256::digest(&manifest).to_vec();
        Ok(Served { model: model.clone(), bytes, manifest, digest })
    }

    /// Sends the file, or what the request wants of it.
    pub fn send(&self, headers: &HeaderMap) -> Response {
        let asked = headers.get(header::RANGE).and_then(|range| range.to_str().ok());
        let Some(range) = asked.map_or(Some(0..self.bytes), |asked| range(asked, self.bytes)) else {
            let size = format!("bytes */{}", self.bytes);
            return (StatusCode::RANGE_NOT_SATISFIABLE, [(header::CONTENT_RANGE, size)]).into_response();
        };
        let status = if asked.is_some() { StatusCode::PARTIAL_CONTENT } else { StatusCode::OK };
        let mut response = Body::from_stream(self.pieces(range.clone())).into_response();
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
        headers.insert(header::CONTENT_LENGTH, (range.end - range.start).into());
        let shown = format!("bytes {}-{}/{}", range.start, range.end.saturating_sub(1), self.bytes);
        if let (Some(_), Ok(shown)) = (asked, HeaderValue::from_str(&shown)) {
            headers.insert(header::CONTENT_RANGE, shown);
        }
        response
    }

    /// Bytes of the file, read on a thread that may wait for a disk.
    fn pieces(&self, range: Range<u64>) -> impl futures_util::Stream<Item = Result<Bytes>> + Send + 'static {
        let (send, receive) = mpsc::channel(AHEAD);
        let model = self.model.clone();
        tokio::task::spawn_blocking(move || {
            let read = || -> Result<()> {
                let source = model.open()?;
                for at in range.clone().step_by(PIECE as usize) {
                    let mut piece = vec![0; PIECE.min(range.end - at) as usize];
                    block_on(source.read_at(at, &mut piece))?;
                    if send.blocking_send(Ok(Bytes::from(piece))).is_err() {
                        break;
                    }
                }
                Ok(())
            };
            if let Err(error) = read() {
                // Whoever has left does not mind.
                let _ = send.blocking_send(Err(error));
            }
        });
        stream::unfold(receive, async |mut receive| Some((receive.recv().await?, receive)))
    }
}

/// The bytes that a header asks for: one range, as workers and browsers ask.
fn range(header: &str, bytes: u64) -> Option<Range<u64>> {
    let (first, last) = header.strip_prefix("bytes=")?.split_once('-')?;
    let range = match (first.parse::<u64>().ok(), last.parse::<u64>().ok()) {
        (Some(first), Some(last)) if first <= last => first..last.saturating_add(1).min(bytes),
        (Some(first), None) if last.is_empty() => first..bytes,
        (None, Some(count)) if first.is_empty() => bytes.saturating_sub(count)..bytes,
        _ => return None,
    };
    (range.start < range.end).then_some(range)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_those_of_the_header() {
        assert_eq!(range("bytes=0-9", 100), Some(0..10));
        assert_eq!(range("bytes=90-", 100), Some(90..100));
        assert_eq!(range("bytes=90-1000", 100), Some(90..100));
        assert_eq!(range("bytes=-7", 100), Some(93..100));
        for bad in ["bytes=9-3", "bytes=100-", "bytes=-", "bytes=a-b", "rows=1-2", "bytes=0-1,3-4"] {
            assert_eq!(range(bad, 100), None, "{bad}");
        }
    }
}
