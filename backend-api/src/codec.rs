//! Codecs: how a state keeps its floats. A codec is a row of data; backends have a reader and a writer for each.

mod levels;

use crate::format::TEXEL;
use half::f16;

pub use levels::{BLOCK, Levels};

/// How a state keeps its rows of floats in less memory. Values are rounded where they are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Codec {
    /// IEEE halves. What is larger than 65,504 becomes infinite.
    F16,
    /// Bytes in blocks of 32 with a scale, as the weight format of this name.
    Q8_0,
    /// Five bits, with a scale and a smallest number for each 32.
    Q5_1,
    /// Five bits, with a scale for each 32.
    Q5_0,
    /// Four bits, with a scale and a smallest number for each 32.
    Q4_1,
    /// Four bits, with a scale for each 32.
    Q4_0,
}

/// Everything that the api knows of a codec.
#[derive(Debug)]
pub struct CodecSpec {
    /// The name on command lines and in reports.
    pub name: &'static str,
    /// Elements that are encoded together; rows are multiples of it.
    pub block_len: usize,
    /// Bytes of a block as [`Backend::write`](crate::Backend::write) takes and reads give it.
    pub block_bytes: usize,
    /// The largest NMSE of what was written against the reference: where a number lies half way between two levels, or a
    /// scale between two halves, drivers may round either way.
    pub tolerance: f64,
    /// How the numbers of a block become levels; none where they are halves, which GPUs hold as the host does.
    pub levels: Option<Levels>,
}

const fn levels(name: &'static str, bits: usize, min: bool) -> CodecSpec {
    let levels = Levels { bits, min };
    CodecSpec { name, block_len: BLOCK, block_bytes: levels.block_bytes(), tolerance: 1e-5, levels: Some(levels) }
}

static F16: CodecSpec = CodecSpec {
    name: "f16",
    // A texel of 16 bytes, so that rows begin at texels.
    block_len: 8,
    block_bytes: 16,
    tolerance: 1e-6,
    levels: None,
};
static Q8_0: CodecSpec = levels("q8_0", 8, false);
static Q5_1: CodecSpec = levels("q5_1", 5, true);
static Q5_0: CodecSpec = levels("q5_0", 5, false);
static Q4_1: CodecSpec = levels("q4_1", 4, true);
static Q4_0: CodecSpec = levels("q4_0", 4, false);

impl CodecSpec {
    /// Encodes a block.
    fn encode(&self, values: &[f32], bytes: &mut [u8]) {
        match self.levels {
            Some(levels) => levels.encode(values, bytes),
            None => {
                for (value, two) in values.iter().zip(bytes.chunks_exact_mut(2)) {
                    two.copy_from_slice(&f16::from_f32(*value).to_le_bytes());
                }
            }
        }
    }

    /// Decodes a block.
    fn decode(&self, bytes: &[u8], values: &mut [f32]) {
        match self.levels {
            Some(levels) => levels.decode(bytes, values),
            None => {
                for (value, two) in values.iter_mut().zip(bytes.chunks_exact(2)) {
                    *value = f16::from_le_bytes([two[0], two[1]]).to_f32();
                }
            }
        }
    }
}

impl Codec {
    /// All codecs.
    pub const ALL: &'static [Codec] = &[Codec::F16, Codec::Q8_0, Codec::Q5_1, Codec::Q5_0, Codec::Q4_1, Codec::Q4_0];

    /// The descriptor.
    pub fn spec(self) -> &'static CodecSpec {
        match self {
            Codec::F16 => &F16,
            Codec::Q8_0 => &Q8_0,
            Codec::Q5_1 => &Q5_1,
            Codec::Q5_0 => &Q5_0,
            Codec::Q4_1 => &Q4_1,
            Codec::Q4_0 => &Q4_0,
        }
    }

    /// The codec of a name.
    pub fn named(name: &str) -> Option<Codec> {
        Codec::ALL.iter().copied().find(|codec| codec.spec().name == name)
    }

    /// Bytes of a row of floats; `cols` is a multiple of the block length.
    pub fn row_bytes(self, cols: usize) -> usize {
        let spec = self.spec();
        cols / spec.block_len * spec.block_bytes
    }

    /// For rows of `cols` floats of a codec of [levels](CodecSpec::levels): 32-bit words of a row on a GPU, and which of
    /// them is the first scale. Each row begins at a texel of 16 bytes of its own, so that steps can append rows: it has
    /// the levels of all its blocks, then their scales, then their smallest numbers, each in whole texels. None where
    /// GPUs hold rows as the host does.
    pub fn device_words(self, cols: usize) -> Option<(usize, usize)> {
        let levels = self.spec().levels?;
        let (blocks, texel) = (cols / BLOCK, TEXEL / 4);
        let scales = (blocks * levels.words()).next_multiple_of(texel);
        Some((scales + levels.floats() * blocks.next_multiple_of(texel), scales))
    }

    /// Bytes of a row on a GPU.
    pub fn device_row_bytes(self, cols: usize) -> usize {
        self.device_words(cols).map_or(self.row_bytes(cols), |(words, _)| 4 * words)
    }

    /// Rows as GPUs hold them, from whole rows of the host.
    pub fn to_device(self, cols: usize, rows: &[u8]) -> Vec<u8> {
        let (Some(levels), Some((words, scales))) = (self.spec().levels, self.device_words(cols)) else {
            return rows.to_vec();
        };
        let (each, mins) = (levels.words(), scales + (cols / BLOCK).next_multiple_of(TEXEL / 4));
        let mut out = Vec::with_capacity(rows.len() / self.row_bytes(cols) * words * 4);
        for row in rows.chunks_exact(self.row_bytes(cols)) {
            let mut device = vec![0u32; words];
            for (at, block) in row.chunks_exact(levels.block_bytes()).enumerate() {
                let [scale, min] = levels.split(block, &mut device[at * each..][..each]);
                device[scales + at] = scale.to_bits();
                if levels.min {
                    device[mins + at] = min.to_bits();
                }
            }
            out.extend(device.into_iter().flat_map(u32::to_le_bytes));
        }
        out
    }

    /// Converts whole rows from the layout of GPUs to that of the host.
    pub fn to_host(self, cols: usize, rows: &[u8]) -> Vec<u8> {
        let (Some(levels), Some((words, scales))) = (self.spec().levels, self.device_words(cols)) else {
            return rows.to_vec();
        };
        let (each, mins) = (levels.words(), scales + (cols / BLOCK).next_multiple_of(TEXEL / 4));
        let mut out = vec![0; rows.len() / (4 * words) * self.row_bytes(cols)];
        for (row, host) in rows.chunks_exact(4 * words).zip(out.chunks_exact_mut(self.row_bytes(cols))) {
            let (chunks, _) = row.as_chunks::<4>();
            let device: Vec<u32> = chunks.iter().map(|word| u32::from_le_bytes(*word)).collect();
            for (at, block) in host.chunks_exact_mut(levels.block_bytes()).enumerate() {
                let min = if levels.min { f32::from_bits(device[mins + at]) } else { 0.0 };
                levels.join(&device[at * each..][..each], [f32::from_bits(device[scales + at]), min], block);
            }
        }
        out
    }

    /// Encodes floats; their number is a multiple of the block length.
    pub fn encode(self, values: &[f32]) -> Vec<u8> {
        let spec = self.spec();
        let mut bytes = vec![0; self.row_bytes(values.len())];
        let blocks = values.chunks_exact(spec.block_len).zip(bytes.chunks_exact_mut(spec.block_bytes));
        blocks.for_each(|(values, bytes)| spec.encode(values, bytes));
        bytes
    }

    /// Decodes whole blocks.
    pub fn decode(self, bytes: &[u8]) -> Vec<f32> {
        let spec = self.spec();
        let mut values = vec![0.0; bytes.len() / spec.block_bytes * spec.block_len];
        let blocks = bytes.chunks_exact(spec.block_bytes).zip(values.chunks_exact_mut(spec.block_len));
        blocks.for_each(|(bytes, values)| spec.decode(bytes, values));
        values
    }

    /// Rounds floats to what the codec can hold.
    pub fn round(self, values: &mut [f32]) {
        let spec = self.spec();
        let mut bytes = [0; 256];
        let bytes = &mut bytes[..spec.block_bytes];
        for block in values.chunks_exact_mut(spec.block_len) {
            spec.encode(block, bytes);
            spec.decode(bytes, block);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_decoded_is_encoded_again_as_it_was() {
        for codec in Codec::ALL {
            let values: Vec<f32> = (0..128).map(|i| (i as f32 - 50.0) * 0.37).collect();
            let bytes = codec.encode(&values);
            let mut rounded = values.clone();
            codec.round(&mut rounded);
            assert_eq!(codec.decode(&bytes), rounded, "{}", codec.spec().name);
            assert_eq!(codec.encode(&rounded), bytes, "{}", codec.spec().name);
            assert_eq!(Codec::named(codec.spec().name), Some(*codec));
            assert!(codec.spec().block_bytes <= 256);
            let device = codec.to_device(64, &bytes);
            assert_eq!(device.len(), bytes.len() / codec.row_bytes(64) * codec.device_row_bytes(64));
            assert!(codec.device_row_bytes(64).is_multiple_of(TEXEL));
            assert_eq!(codec.to_host(64, &device), bytes, "{}", codec.spec().name);
        }
    }
}
