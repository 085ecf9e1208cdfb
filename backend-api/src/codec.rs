//! Codecs: how a state keeps its floats. A codec is a row of data; backends have a reader and a writer for each.

use crate::format::TEXEL;
use half::f16;

/// How a state keeps its rows of floats in less memory. Values are rounded where they are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Codec {
    /// IEEE halves. What is larger than 65,504 becomes infinite.
    F16,
    /// Bytes in blocks of 32 with a scale, as the weight format of this name.
    Q8_0,
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
    /// The largest NMSE of what was written against the reference: drivers may round either way.
    pub tolerance: f64,
    /// Encodes a block.
    pub encode: fn(&[f32], &mut [u8]),
    /// Decodes a block.
    pub decode: fn(&[u8], &mut [f32]),
    /// How GPUs hold a row.
    pub device: DeviceRow,
}

/// How GPUs hold a row of a state, so that steps can append rows: each begins at a texel of 16 bytes of its own.
#[derive(Debug, Clone, Copy)]
pub enum DeviceRow {
    /// As the host has it.
    AsIs,
    /// The quants of all its blocks as 32-bit words, then the scales of its blocks as 32-bit floats.
    Blocks {
        /// Words of quants of a block.
        words: usize,
        /// The name of the shader file that reads and writes it, without its extension.
        file: &'static str,
        /// Takes a block of the host apart: its words and its scale.
        split: fn(&[u8], &mut [u32]) -> f32,
        /// Puts a block of the host together.
        join: fn(&[u32], f32, &mut [u8]),
    },
}

static F16: CodecSpec = CodecSpec {
    name: "f16",
    // A texel of 16 bytes, so that rows begin at texels.
    block_len: 8,
    block_bytes: 16,
    tolerance: 1e-6,
    encode: |values, bytes| {
        for (value, two) in values.iter().zip(bytes.chunks_exact_mut(2)) {
            two.copy_from_slice(&f16::from_f32(*value).to_le_bytes());
        }
    },
    decode: |bytes, values| {
        for (value, two) in values.iter_mut().zip(bytes.chunks_exact(2)) {
            *value = f16::from_le_bytes([two[0], two[1]]).to_f32();
        }
    },
    device: DeviceRow::AsIs,
};

/// *Source*: ggml's `quantize_row_q8_0_ref`.
static Q8_0: CodecSpec = CodecSpec {
    name: "q8_0",
    block_len: 32,
    block_bytes: 34,
    // Where a number lies half way between two steps, or the scale between two halves, drivers may round either way.
    tolerance: 1e-5,
    encode: |values, bytes| {
        // A block with a number that is not finite has no scale: all of it is NaN, so that nothing is hidden.
        let finite = values.iter().all(|value| value.is_finite());
        let most = values.iter().fold(0f32, |most, value| most.max(value.abs()));
        let scale = if finite { most / 127.0 } else { f32::NAN };
        let inverse = if scale > 0.0 { 1.0 / scale } else { 0.0 };
        bytes[..2].copy_from_slice(&f16::from_f32(scale).to_le_bytes());
        for (value, byte) in values.iter().zip(&mut bytes[2..]) {
            *byte = (value * inverse).round() as i8 as u8;
        }
    },
    decode: |bytes, values| {
        let scale = f16::from_le_bytes([bytes[0], bytes[1]]).to_f32();
        for (value, byte) in values.iter_mut().zip(&bytes[2..]) {
            *value = scale * f32::from(*byte as i8);
        }
    },
    device: DeviceRow::Blocks {
        words: 8,
        file: "codec/q8_0",
        split: |block, words| {
            let (bytes, _) = block[2..].as_chunks::<4>();
            words.iter_mut().zip(bytes).for_each(|(word, four)| *word = u32::from_le_bytes(*four));
            f16::from_le_bytes([block[0], block[1]]).to_f32()
        },
        join: |words, scale, block| {
            block[..2].copy_from_slice(&f16::from_f32(scale).to_le_bytes());
            block[2..]
                .chunks_exact_mut(4)
                .zip(words)
                .for_each(|(four, word)| four.copy_from_slice(&word.to_le_bytes()));
        },
    },
};

impl Codec {
    /// All codecs.
    pub const ALL: &'static [Codec] = &[Codec::F16, Codec::Q8_0];

    /// The descriptor.
    pub fn spec(self) -> &'static CodecSpec {
        match self {
            Codec::F16 => &F16,
            Codec::Q8_0 => &Q8_0,
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

    /// For rows of `cols` floats of a codec of [blocks](DeviceRow::Blocks): 32-bit words of a row on a GPU, and which of
    /// them is the first scale. None where GPUs hold rows as the host does.
    pub fn device_words(self, cols: usize) -> Option<(usize, usize)> {
        let spec = self.spec();
        let DeviceRow::Blocks { words, .. } = spec.device else { return None };
        let (blocks, texel) = (cols / spec.block_len, TEXEL / 4);
        let scales = (blocks * words).next_multiple_of(texel);
        Some((scales + blocks.next_multiple_of(texel), scales))
    }

    /// Bytes of a row on a GPU.
    pub fn device_row_bytes(self, cols: usize) -> usize {
        self.device_words(cols).map_or(self.row_bytes(cols), |(words, _)| 4 * words)
    }

    /// Rows as GPUs hold them, from whole rows of the host.
    pub fn to_device(self, cols: usize, rows: &[u8]) -> Vec<u8> {
        let spec = self.spec();
        let (DeviceRow::Blocks { words: each, split, .. }, Some((words, scales))) =
            (spec.device, self.device_words(cols))
        else {
            return rows.to_vec();
        };
        let mut out = Vec::with_capacity(rows.len() / self.row_bytes(cols) * words * 4);
        for row in rows.chunks_exact(self.row_bytes(cols)) {
            let mut device = vec![0u32; words];
            for (at, block) in row.chunks_exact(spec.block_bytes).enumerate() {
                device[scales + at] = split(block, &mut device[at * each..][..each]).to_bits();
            }
            out.extend(device.into_iter().flat_map(u32::to_le_bytes));
        }
        out
    }

    /// Whole rows of the host, from rows as GPUs hold them.
    pub fn to_host(self, cols: usize, rows: &[u8]) -> Vec<u8> {
        let spec = self.spec();
        let (DeviceRow::Blocks { words: each, join, .. }, Some((words, scales))) =
            (spec.device, self.device_words(cols))
        else {
            return rows.to_vec();
        };
        let mut out = vec![0; rows.len() / (4 * words) * self.row_bytes(cols)];
        for (row, host) in rows.chunks_exact(4 * words).zip(out.chunks_exact_mut(self.row_bytes(cols))) {
            let (chunks, _) = row.as_chunks::<4>();
            let device: Vec<u32> = chunks.iter().map(|word| u32::from_le_bytes(*word)).collect();
            for (at, block) in host.chunks_exact_mut(spec.block_bytes).enumerate() {
                join(&device[at * each..][..each], f32::from_bits(device[scales + at]), block);
            }
        }
        out
    }

    /// Encodes floats; their number is a multiple of the block length.
    pub fn encode(self, values: &[f32]) -> Vec<u8> {
        let spec = self.spec();
        let mut bytes = vec![0; self.row_bytes(values.len())];
        let blocks = values.chunks_exact(spec.block_len).zip(bytes.chunks_exact_mut(spec.block_bytes));
        blocks.for_each(|(values, bytes)| (spec.encode)(values, bytes));
        bytes
    }

    /// Decodes whole blocks.
    pub fn decode(self, bytes: &[u8]) -> Vec<f32> {
        let spec = self.spec();
        let mut values = vec![0.0; bytes.len() / spec.block_bytes * spec.block_len];
        let blocks = bytes.chunks_exact(spec.block_bytes).zip(values.chunks_exact_mut(spec.block_len));
        blocks.for_each(|(bytes, values)| (spec.decode)(bytes, values));
        values
    }

    /// Rounds floats to what the codec can hold.
    pub fn round(self, values: &mut [f32]) {
        let spec = self.spec();
        let mut bytes = [0; 256];
        let bytes = &mut bytes[..spec.block_bytes];
        for block in values.chunks_exact_mut(spec.block_len) {
            (spec.encode)(block, bytes);
            (spec.decode)(bytes, block);
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
