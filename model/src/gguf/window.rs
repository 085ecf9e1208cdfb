//! Sliding window over the header, so that only a part of it is in memory.

use super::error::GgufError;
use super::source::ByteSource;

/// Size of the first fetch in bytes. It doubles with each fetch, up to [`MAX_CHUNK`].
const FIRST_CHUNK: usize = 64 << 10;
const MAX_CHUNK: usize = 1 << 20;

/// Most bytes of a header (everything except the tensor data): eight times the largest known vocabulary.
pub(super) const MAX_HEADER: u64 = 256 << 20;

/// Reader of little-endian fields.
pub(super) struct Window<'s> {
    source: &'s dyn ByteSource,
    /// Size of the file.
    len: u64,
    /// Position of `buf` in the file.
    base: u64,
    buf: Vec<u8>,
    /// Next byte, relative to `base`.
    at: usize,
    chunk: usize,
}

macro_rules! fields {
    ($($name:ident: $type:ty),+) => {
        $(pub async fn $name(&mut self, what: &dyn Fn() -> String) -> Result<$type, GgufError> {
            let mut bytes = [0; size_of::<$type>()];
            bytes.copy_from_slice(self.take(size_of::<$type>(), what).await?);
            Ok(<$type>::from_le_bytes(bytes))
        })+
    };
}

impl<'s> Window<'s> {
    pub fn new(source: &'s dyn ByteSource) -> Window<'s> {
        Window { source, len: source.len(), base: 0, buf: Vec::new(), at: 0, chunk: FIRST_CHUNK }
    }

    /// Returns the position in the file.
    pub fn position(&self) -> u64 {
        self.base + self.at as u64
    }

    /// Refuses a `count` of items, of at least `each` bytes, that cannot fit the rest of the file or header.
    pub fn check(&self, count: u64, each: u64, what: &dyn Fn() -> String) -> Result<(), GgufError> {
        let need = count.checked_mul(each).and_then(|n| n.checked_add(self.position()));
        match need {
            Some(need) if need <= self.len.min(MAX_HEADER) => Ok(()),
            Some(need) if need <= MAX_HEADER => Err(GgufError::Truncated { len: self.len, what: what(), need }),
            _ => Err(GgufError::TooLarge {
                what: format!("the length of {}", what()),
                found: count,
                limit: MAX_HEADER.saturating_sub(self.position()) / each.max(1),
            }),
        }
    }

    /// Returns the next `n` bytes; `what` names them in errors.
    pub async fn take(&mut self, n: usize, what: &dyn Fn() -> String) -> Result<&[u8], GgufError> {
        if self.buf.len() - self.at < n {
            self.check(n as u64, 1, what)?;
            self.fill(n).await?;
        }
        let start = self.at;
        self.at += n;
        Ok(&self.buf[start..self.at])
    }

    /// Moves the window to the current position, and fills it with at least `n` bytes. The caller has checked that the
    /// file is long enough.
    async fn fill(&mut self, n: usize) -> Result<(), GgufError> {
        self.base += self.at as u64;
        self.buf.drain(..self.at);
        self.at = 0;
        let kept = self.buf.len();
        let left = self.len - self.base;
        let want = usize::try_from(left).unwrap_or(usize::MAX).min(n.max(self.chunk));
        self.chunk = (self.chunk * 2).min(MAX_CHUNK);
        self.buf.resize(want, 0);
        self.source.read_at(self.base + kept as u64, &mut self.buf[kept..]).await?;
        Ok(())
    }

    /// Passes `n` bytes to `sink` in chunks that are multiples of `each`, so that long arrays fit a short window.
    pub async fn pieces(
        &mut self,
        n: u64,
        each: usize,
        what: &dyn Fn() -> String,
        sink: &mut dyn FnMut(&[u8]),
    ) -> Result<(), GgufError> {
        let mut left = n;
        while left > 0 {
            let piece = left.min((FIRST_CHUNK / each * each) as u64);
            sink(self.take(piece as usize, what).await?);
            left -= piece;
        }
        Ok(())
    }

    /// Reads a string with its length, which may be at most `limit`.
    pub async fn string(&mut self, limit: u64, what: &dyn Fn() -> String) -> Result<&str, GgufError> {
        std::str::from_utf8(self.bytes(limit, what).await?).map_err(|_| GgufError::Utf8 { what: what() })
    }

    /// The bytes of a string after its length, which may be at most `limit`.
    pub async fn bytes(&mut self, limit: u64, what: &dyn Fn() -> String) -> Result<&[u8], GgufError> {
        let len = self.u64(what).await?;
        if len > limit {
            return Err(GgufError::TooLarge { what: format!("the length of {}", what()), found: len, limit });
        }
        self.check(len, 1, what)?;
        self.take(len as usize, what).await
    }

    fields!(u32: u32, u64: u64);
}
