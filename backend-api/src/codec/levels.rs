//! Blocks of 32 numbers as levels with a scale: the weight formats that llama.cpp keeps caches in.
//!
//! *Source*: ggml's `quantize_row_q8_0_ref`, `quantize_row_q4_0_ref` and the others of these names.

use half::f16;

/// Numbers of a block.
pub const BLOCK: usize = 32;

/// How the numbers of a block become levels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Levels {
    /// Bits of a level: 8, 5 or 4.
    pub bits: usize,
    /// Whether level 0 is the block's smallest number; else the middle level is zero.
    pub min: bool,
}

/// A block: its levels, unsigned, and what they are to be multiplied with and added to.
struct Block {
    levels: [u8; BLOCK],
    scale: f32,
    min: f32,
}

impl Levels {
    /// The level of zero, where the levels are around it.
    pub fn middle(self) -> u8 {
        if self.min { 0 } else { 1 << (self.bits - 1) }
    }

    /// The largest level.
    pub fn top(self) -> u8 {
        ((1u16 << self.bits) - 1) as u8
    }

    /// Floats of a block: its scale, and perhaps its smallest number.
    pub fn floats(self) -> usize {
        1 + usize::from(self.min)
    }

    /// Bytes of a block for the host: the floats as halves, the fifth bits, and bytes or pairs of nibbles.
    pub const fn block_bytes(self) -> usize {
        let floats = if self.min { 4 } else { 2 };
        floats + BLOCK * self.bits / 8
    }

    /// 32-bit words of the levels of a block on a GPU: in the order of the numbers, and of five bits the fifth ones in
    /// a word of their own.
    pub fn words(self) -> usize {
        BLOCK * self.bits / 32
    }

    /// The flags and words of the shader file `codec/levels`.
    pub fn shader(self) -> (Vec<&'static str>, [(&'static str, String); 3]) {
        let flags = [("BYTES", self.bits == 8), ("FIFTHS", self.bits == 5), ("MIN", self.min)];
        let words = [("WORDS", self.words()), ("TOP", self.top().into()), ("MIDDLE", self.middle().into())];
        let set = flags.into_iter().filter(|(_, set)| *set).map(|(flag, _)| flag);
        (set.collect(), words.map(|(word, value)| (word, value.to_string())))
    }

    fn of(self, values: &[f32]) -> Block {
        let finite = values.iter().all(|value| value.is_finite());
        let (scale, min) = match (self.bits, self.min) {
            (8, false) => (values.iter().fold(0f32, |most, value| most.max(value.abs())) / 127.0, 0.0),
            (_, false) => {
                let farthest = values.iter().fold(0f32, |most, v| if v.abs() > most.abs() { *v } else { most });
                (farthest / -f32::from(self.middle()), 0.0)
            }
            (_, true) => {
                let min = values.iter().copied().fold(f32::INFINITY, f32::min);
                let max = values.iter().copied().fold(f32::NEG_INFINITY, f32::max);
                ((max - min) / f32::from(self.top()), min)
            }
        };
        let inverse = if scale == 0.0 { 0.0 } else { 1.0 / scale };
        let mut levels = [self.middle(); BLOCK];
        for (level, value) in levels.iter_mut().zip(values) {
            *level = if self.bits == 8 {
                ((value * inverse).round() as i8 as u8) ^ 0x80
            } else {
                ((value - min) * inverse + (f32::from(self.middle()) + 0.5)).min(f32::from(self.top())) as u8
            };
        }
        // A block with a number that is not finite has no scale: all of it is NaN, so that nothing is hidden.
        Block { levels, scale: if finite { scale } else { f32::NAN }, min: if finite { min } else { f32::NAN } }
    }

    fn pack(self, block: &Block, bytes: &mut [u8]) {
        let (floats, mut rest) = bytes.split_at_mut(2 * self.floats());
        for (two, float) in floats.chunks_exact_mut(2).zip([block.scale, block.min]) {
            two.copy_from_slice(&f16::from_f32(float).to_le_bytes());
        }
        if self.bits == 8 {
            rest.iter_mut().zip(block.levels).for_each(|(byte, level)| *byte = level ^ 0x80);
            return;
        }
        if self.bits == 5 {
            let (fifths, nibbles) = rest.split_at_mut(4);
            let bits = (0..BLOCK).fold(0, |bits, i| bits | u32::from(block.levels[i] >> 4) << i);
            fifths.copy_from_slice(&bits.to_le_bytes());
            rest = nibbles;
        }
        for (i, byte) in rest.iter_mut().enumerate() {
            *byte = (block.levels[i] & 15) | (block.levels[i + 16] & 15) << 4;
        }
    }

    fn unpack(self, bytes: &[u8]) -> Block {
        let (floats, mut rest) = bytes.split_at(2 * self.floats());
        let float = |i: usize| floats.chunks_exact(2).nth(i).map_or(0.0, |b| f16::from_le_bytes([b[0], b[1]]).to_f32());
        let mut levels = [0; BLOCK];
        if self.bits == 8 {
            levels.iter_mut().zip(rest).for_each(|(level, byte)| *level = byte ^ 0x80);
        } else {
            let mut fifths = 0;
            if self.bits == 5 {
                fifths = u32::from_le_bytes([rest[0], rest[1], rest[2], rest[3]]);
                rest = &rest[4..];
            }
            for (i, level) in levels.iter_mut().enumerate() {
                *level = (rest[i % 16] >> (i / 16 * 4) & 15) | (((fifths >> i & 1) as u8) << 4);
            }
        }
        Block { levels, scale: float(0), min: float(1) }
    }

    /// Encodes a block of floats for the host.
    pub fn encode(self, values: &[f32], bytes: &mut [u8]) {
        self.pack(&self.of(values), bytes);
    }

    /// Decodes a block of the host.
    pub fn decode(self, bytes: &[u8], values: &mut [f32]) {
        let Block { levels, scale, min } = self.unpack(bytes);
        let middle = i32::from(self.middle());
        for (value, level) in values.iter_mut().zip(levels) {
            *value = scale * (i32::from(level) - middle) as f32 + min;
        }
    }

    /// Takes a block of the host apart, for a GPU: its words and its floats.
    pub fn split(self, bytes: &[u8], words: &mut [u32]) -> [f32; 2] {
        let Block { levels, scale, min } = self.unpack(bytes);
        words.fill(0);
        for (i, level) in levels.into_iter().enumerate() {
            let level = u32::from(level);
            if self.bits == 8 {
                words[i / 4] |= (level ^ 0x80) << (8 * (i % 4));
            } else {
                words[i / 8] |= (level & 15) << (4 * (i % 8));
                if self.bits == 5 {
                    words[4] |= (level >> 4) << i;
                }
            }
        }
        [scale, min]
    }

    /// Puts a block of the host together from what a GPU holds.
    pub fn join(self, words: &[u32], [scale, min]: [f32; 2], bytes: &mut [u8]) {
        let mut levels = [0; BLOCK];
        for (i, level) in levels.iter_mut().enumerate() {
            *level = if self.bits == 8 {
                (words[i / 4] >> (8 * (i % 4))) as u8 ^ 0x80
            } else {
                let fifth = if self.bits == 5 { words[4] >> i & 1 } else { 0 };
                ((words[i / 8] >> (4 * (i % 8)) & 15) | fifth << 4) as u8
            };
        }
        self.pack(&Block { levels, scale, min }, bytes);
    }
}
