//! Writer of small files, valid or not, for tests and fuzzing.

/// File under construction.
#[derive(Default)]
pub(crate) struct Writer {
    /// Keys with their types and values.
    pub(crate) pairs: Vec<Vec<u8>>,
    /// Names of tensors with their dimensions, formats and offsets.
    pub(crate) infos: Vec<Vec<u8>>,
    pub(crate) data: Vec<u8>,
}

pub(crate) fn string(s: &[u8]) -> Vec<u8> {
    [&(s.len() as u64).to_le_bytes()[..], s].concat()
}

impl Writer {
    pub(crate) fn pair(mut self, key: &str, kind: u32, value: &[u8]) -> Self {
        self.pairs.push([&string(key.as_bytes())[..], &kind.to_le_bytes(), value].concat());
        self
    }

    pub(crate) fn array(self, key: &str, kind: u32, count: u64, elements: &[u8]) -> Self {
        self.pair(key, 9, &[&kind.to_le_bytes()[..], &count.to_le_bytes(), elements].concat())
    }

    pub(crate) fn tensor(mut self, name: &str, dims: &[u64], kind: u32, offset: u64) -> Self {
        let dims_bytes: Vec<u8> = dims.iter().flat_map(|d| d.to_le_bytes()).collect();
        self.infos.push(
            [
                &string(name.as_bytes())[..],
                &(dims.len() as u32).to_le_bytes(),
                &dims_bytes,
                &kind.to_le_bytes(),
                &offset.to_le_bytes(),
            ]
            .concat(),
        );
        self
    }

    pub(crate) fn data(mut self, bytes: usize) -> Self {
        self.data = vec![0; bytes];
        self
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let counts = [self.infos.len() as u64, self.pairs.len() as u64];
        self.with_counts(3, counts)
    }

    pub(crate) fn with_counts(&self, version: u32, counts: [u64; 2]) -> Vec<u8> {
        let mut out = b"GGUF".to_vec();
        out.extend(version.to_le_bytes());
        out.extend(counts.iter().flat_map(|c| c.to_le_bytes()));
        out.extend(self.pairs.concat());
        out.extend(self.infos.concat());
        if !self.data.is_empty() {
            out.resize(out.len().next_multiple_of(32), 0);
            out.extend(&self.data);
        }
        out
    }
}
