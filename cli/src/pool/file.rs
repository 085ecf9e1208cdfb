//! The model file that workers download in ranges, and its digests.

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

/// Least and most bytes of a chunk. Larger files have larger chunks, so that there are not too many digests.
const CHUNK: Range<u64> = 1 << 20..16 << 20;
/// Number of chunks of a file, if their size allows it.
const CHUNKS: u64 = 1 << 14;
/// Bytes that are read and sent at a time.
const PIECE: u64 = 1 << 20;
/// Most pieces that wait to be sent.
const AHEAD: usize = 2;

/// A model's file, and the digests that its chunks are checked with.
pub struct Served {
    model: ModelArgs,
    /// Length of the file.
    pub bytes: u64,
    /// The encoded manifest, which has the digests of all chunks.
    pub manifest: Vec<u8>,
    /// Digest of the manifest, which identifies the model.
    pub digest: Vec<u8>,
}

impl Served {
    /// Reads the whole file and computes its digests.
    ///
    /// *Errors*: the file cannot be read, or is a part of a split model.
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

    /// Sends the file, or the range that the request asks for.
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

    /// Streams a range of the file. A thread that may block reads it.
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
                // The client may have disconnected.
                let _ = send.blocking_send(Err(error));
            }
        });
        stream::unfold(receive, async |mut receive| Some((receive.recv().await?, receive)))
    }
}

/// Parses a `Range` header. Only a single range is supported, which is what workers and browsers send.
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
