//! Snapshots of a session: its tokens and states as bytes, so that a conversation can continue in another process, on
//! another backend or machine.
//!
//! A file is a log of records. Each record extends the ones before it: it has the tokens from its position on, the rows
//! of the KV cache for the positions that it adds, and recurrent states as a whole. A long text is thus saved
//! incrementally.
//!
//! | bytes | contents of a record |
//! |---|---|
//! | 4 | `AGS1` |
//! | 4 | length of the header |
//! | 8 | length of the data after the header, without the digest |
//! | | the header, JSON: [`Header`] |
//! | | the new tokens, 4 bytes each |
//! | | for each state its new rows, in the format of [`Backend::read`](backend_api::Backend::read) |
//! | 32 | SHA-256 of all bytes before |
//!
//! Numbers are little-endian. An incomplete last record is ignored; the records before it are valid.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::request::{Sampling, SavedRequest};

const MAGIC: &[u8; 4] = b"AGS1";
/// Bytes of a record before its header.
const PREFIX: usize = 16;
const SEAL: usize = 32;
/// Most bytes of a header. No model has a longer one.
const MAX_HEADER: usize = 1 << 20;

/// Error of reading or loading a snapshot. Each message is one line and names the cause and the remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotError {
    /// The bytes are not a snapshot, or are damaged.
    #[error("this is not a saved session, or a damaged one: {0}; save it again")]
    Damaged(String),
    /// The snapshot does not match the model or its options.
    #[error("the session was saved {saved}, but this is {here}; {remedy}")]
    Other {
        /// Value that it was saved with.
        saved: String,
        /// Value that it is loaded into.
        here: String,
        /// Advice to the user.
        remedy: &'static str,
    },
    /// A record that does not follow the ones before it.
    #[error("this part of a session begins at position {from}, but what is there ends at {end}; save it as a whole")]
    Gap {
        /// Position at which the record begins.
        from: usize,
        /// Position at which the snapshot ends.
        end: usize,
    },
}

/// Header of a record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// [Identity](crate::Identity) of the model, in hexadecimal digits.
    pub model: String,
    /// The architecture.
    pub architecture: String,
    /// Blocks whose states are saved: the first one, and the one after the last.
    pub blocks: [usize; 2],
    /// Dtype of the KV cache.
    pub kv_cache: String,
    /// Sampling parameters of the last generation.
    pub sampling: Option<Sampling>,
    /// Request of the last generation, which may not have ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<SavedRequest>,
    /// Position at which the record begins: rows and tokens before it are in earlier records.
    pub from: usize,
    /// Number of positions whose states are saved.
    pub position: usize,
    /// Number of tokens. The last ones may not have states yet.
    pub tokens: usize,
    /// States, in the order of their bytes.
    pub states: Vec<Rows>,
}

/// Rows of a state in a record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rows {
    /// Name of the state.
    pub name: String,
    /// Whether the rows are appended to earlier ones (KV cache), or replace them (recurrent state).
    pub appended: bool,
    /// Number of rows.
    pub rows: usize,
    /// Bytes of a row.
    pub row_bytes: usize,
}

impl Rows {
    fn bytes(&self) -> Option<usize> {
        self.rows.checked_mul(self.row_bytes)
    }
}

/// A text with its states, or the part added since an earlier snapshot.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    pub(crate) header: Header,
    pub(crate) tokens: Vec<u32>,
    pub(crate) states: Vec<Vec<u8>>,
}

impl Snapshot {
    /// Returns the header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Returns the tokens from position [`Header::from`] on, including those without states.
    pub fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    /// Sets the sampling parameters with which the text continues.
    pub fn set_sampling(&mut self, sampling: Sampling) {
        self.header.sampling = Some(sampling);
    }

    /// Sets the request of the generation that the text ends with, to resume it.
    pub fn set_request(&mut self, request: SavedRequest) {
        self.header.request = Some(request);
    }

    /// Replaces the tokens and the request. The states must be those of a beginning of the new text.
    pub(crate) fn set_text(&mut self, tokens: &[u32], sampling: Option<Sampling>, request: Option<SavedRequest>) {
        self.tokens = tokens[self.header.from..].to_vec();
        self.header = Header { tokens: tokens.len(), sampling, request, ..self.header.clone() };
    }

    /// Returns the host memory of tokens and states, in bytes.
    pub fn bytes(&self) -> usize {
        4 * self.tokens.len() + self.states.iter().map(Vec::len).sum::<usize>()
    }

    /// Appends a later snapshot of the same text.
    ///
    /// *Errors*: it is of another model, or leaves a gap.
    pub fn extend(&mut self, later: Snapshot) -> Result<(), SnapshotError> {
        let (old, new) = (&self.header, &later.header);
        if (&old.model, old.blocks, &old.kv_cache) != (&new.model, new.blocks, &new.kv_cache) {
            return Err(SnapshotError::Damaged("its parts are of different models".into()));
        }
        let from = new.from;
        if from < old.from || from > old.position {
            return Err(SnapshotError::Gap { from, end: old.position });
        }
        let alike = |a: &Rows, b: &Rows| (&a.name, a.appended, a.row_bytes) == (&b.name, b.appended, b.row_bytes);
        let same = old.states.iter().zip(&new.states).all(|(a, b)| alike(a, b));
        if !same || old.states.len() != new.states.len() {
            return Err(SnapshotError::Damaged("its parts have different states".into()));
        }
        let kept = from - old.from;
        self.tokens.truncate(kept);
        self.tokens.extend(later.tokens);
        let mut rows = later.header.states;
        for ((mine, bytes), rows) in self.states.iter_mut().zip(later.states).zip(&mut rows) {
            mine.truncate(if rows.appended { kept * rows.row_bytes } else { 0 });
            // Memory is not over-allocated, since many texts are kept in parallel.
            mine.reserve_exact(bytes.len());
            mine.extend(bytes);
            rows.rows += if rows.appended { kept } else { 0 };
        }
        self.header = Header { from: self.header.from, states: rows, ..later.header };
        Ok(())
    }

    /// Serialises the snapshot as one record.
    pub fn to_bytes(&self) -> Vec<u8> {
        // Names and numbers can always be serialised.
        let header = serde_json::to_vec(&self.header).unwrap_or_default();
        let body = self.bytes();
        let mut out = Vec::with_capacity(PREFIX + header.len() + body + SEAL);
        out.extend(MAGIC);
        out.extend((header.len() as u32).to_le_bytes());
        out.extend((body as u64).to_le_bytes());
        out.extend(header);
        out.extend(self.tokens.iter().flat_map(|token| token.to_le_bytes()));
        self.states.iter().for_each(|bytes| out.extend(bytes));
        out.extend(Sha256::digest(&out));
        out
    }

    /// Joins the records of a log to one snapshot.
    ///
    /// *Errors*: no record is complete, or one does not follow those before it.
    pub fn from_bytes(bytes: &[u8]) -> Result<Snapshot, SnapshotError> {
        let (mut whole, mut rest) = record(bytes)?;
        // An incomplete last record was being written when the process ended.
        while let Ok((later, behind)) = record(rest) {
            whole.extend(later)?;
            rest = behind;
        }
        Ok(whole)
    }
}

/// Reads the first record; returns it and the bytes after it.
fn record(bytes: &[u8]) -> Result<(Snapshot, &[u8]), SnapshotError> {
    let damaged = |what: &str| SnapshotError::Damaged(what.into());
    let short = || damaged("it ends too soon");
    let (prefix, rest) = bytes.split_at_checked(PREFIX).ok_or_else(short)?;
    let (magic, lengths) = prefix.split_at(MAGIC.len());
    if magic != MAGIC {
        return Err(damaged("it does not begin with AGS1"));
    }
    let number = |bytes: &[u8]| bytes.iter().rev().fold(0u64, |value, byte| value << 8 | u64::from(*byte));
    let (header_len, body_len) = (number(&lengths[..4]) as usize, number(&lengths[4..]));
    if header_len > MAX_HEADER {
        return Err(damaged("its header is too long"));
    }
    let body_len = usize::try_from(body_len).map_err(|_| short())?;
    let (header, rest) = rest.split_at_checked(header_len).ok_or_else(short)?;
    let (body, rest) = rest.split_at_checked(body_len).ok_or_else(short)?;
    let (seal, rest) = rest.split_at_checked(SEAL).ok_or_else(short)?;
    let sealed = &bytes[..PREFIX + header_len + body_len];
    if Sha256::digest(sealed).as_slice() != seal {
        return Err(damaged("its digest is another"));
    }
    let header: Header = serde_json::from_slice(header).map_err(|e| damaged(&format!("its header: {e}")))?;
    // These numbers are not trusted, so all arithmetic is checked.
    let added =
        header.tokens.checked_sub(header.from).filter(|_| (header.from..=header.tokens).contains(&header.position));
    let added = added.ok_or_else(|| damaged("its positions make no sense"))?;
    if header.request.as_ref().is_some_and(|request| !(1..=header.tokens).contains(&request.prompt)) {
        return Err(damaged("its prompt is longer than its text"));
    }
    let lengths = header.states.iter().map(Rows::bytes).collect::<Option<Vec<_>>>().ok_or_else(short)?;
    let total = lengths.iter().try_fold(added.checked_mul(4).ok_or_else(short)?, |sum, len| sum.checked_add(*len));
    let appended = header.states.iter().filter(|rows| rows.appended);
    if total != Some(body.len()) || !appended.clone().all(|rows| rows.rows == header.position - header.from) {
        return Err(damaged("its lengths do not add up"));
    }
    let (tokens, mut body) = body.split_at(4 * added);
    let tokens = tokens.chunks_exact(4).map(|token| number(token) as u32).collect();
    let states = lengths.into_iter().map(|len| {
        let (state, behind) = body.split_at(len);
        body = behind;
        state.to_vec()
    });
    let states = states.collect();
    Ok((Snapshot { header, tokens, states }, rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::sequence::Finish;

    fn snapshot(from: usize, position: usize, tokens: usize) -> Snapshot {
        let rows = |name: &str, appended, rows| Rows { name: name.into(), appended, rows, row_bytes: 3 };
        let states = vec![rows("k", true, position - from), rows("s", false, 2)];
        let bytes = states.iter().map(|s| (0..s.rows * 3).map(|i| (from * 3 + i) as u8).collect()).collect();
        let header = Header {
            model: "ab".into(),
            architecture: "llama".into(),
            blocks: [0, 2],
            kv_cache: "f32".into(),
            sampling: Some(Sampling::Random { temperature: 0.5, top_k: 3, top_p: 0.9, seed: u64::MAX }),
            request: Some(SavedRequest {
                adjust: crate::Adjust { min_p: 0.25, logit_bias: vec![(7, -1.5)], ..Default::default() },
                log_probs: Some(3),
                prompt: 4,
                max_tokens: Some(9),
                overflow: "shift".into(),
                keep: Some(2),
                stop: vec!["x".into()],
                stop_tokens: None,
                constraint: Some("{}".into()),
                finish: Some(Finish::Length),
            }),
            from,
            position,
            tokens,
            states,
        };
        Snapshot { header, tokens: (from as u32..tokens as u32).collect(), states: bytes }
    }

    #[test]
    fn records_are_read_as_they_were_written_and_add_up() {
        let parts = [snapshot(0, 5, 6), snapshot(5, 9, 9), snapshot(7, 12, 14)];
        let bytes: Vec<u8> = parts.iter().flat_map(Snapshot::to_bytes).collect();
        let whole = Snapshot::from_bytes(&bytes).unwrap();
        assert_eq!((whole.header.from, whole.header.position, whole.header.tokens), (0, 12, 14));
        assert_eq!(whole.tokens, (0..14).collect::<Vec<u32>>());
        assert_eq!(whole.states[0], (0..36).collect::<Vec<u8>>());
        assert_eq!(whole.states[1], parts[2].states[1]);
        assert_eq!(Snapshot::from_bytes(&whole.to_bytes()).unwrap(), whole);
    }

    #[test]
    fn a_log_that_was_cut_off_holds_what_came_before() {
        let (first, second) = (snapshot(0, 5, 6), snapshot(5, 9, 9));
        let bytes = [first.to_bytes(), second.to_bytes()].concat();
        let alone = first.to_bytes().len();
        for len in 0..bytes.len() {
            match Snapshot::from_bytes(&bytes[..len]) {
                Ok(read) => assert!(len >= alone && read == first, "{len}"),
                Err(error) => assert!(len < alone && !error.to_string().contains('\n'), "{len}: {error}"),
            }
        }
    }

    #[test]
    fn bytes_that_were_changed_are_refused() {
        let bytes = snapshot(0, 5, 6).to_bytes();
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 0x20;
            assert!(matches!(Snapshot::from_bytes(&changed), Err(SnapshotError::Damaged(_))), "{at}");
        }
    }

    #[test]
    fn numbers_that_make_no_sense_are_refused_though_they_are_sealed() {
        let changes: [fn(&mut Header); 9] = [
            |h| h.tokens = usize::MAX,
            |h| h.from = usize::MAX,
            |h| h.position = 7,
            |h| h.states[0].rows = usize::MAX,
            |h| h.states[0].row_bytes = usize::MAX,
            |h| h.states[1].rows = 0,
            |h| h.states.clear(),
            |h| h.request.iter_mut().for_each(|request| request.prompt = 7),
            |h| h.request.iter_mut().for_each(|request| request.prompt = 0),
        ];
        for (at, change) in changes.iter().enumerate() {
            let mut other = snapshot(0, 5, 6);
            change(&mut other.header);
            assert!(matches!(Snapshot::from_bytes(&other.to_bytes()), Err(SnapshotError::Damaged(_))), "change {at}");
        }
    }

    #[test]
    fn parts_that_do_not_follow_are_refused() {
        let mut first = snapshot(0, 5, 6);
        assert_eq!(first.extend(snapshot(6, 9, 9)), Err(SnapshotError::Gap { from: 6, end: 5 }));
        let mut other = snapshot(5, 9, 9);
        other.header.model = "cd".into();
        assert!(first.extend(other).is_err());
        assert_eq!(first, snapshot(0, 5, 6));
    }
}
