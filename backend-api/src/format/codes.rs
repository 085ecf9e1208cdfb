//! Where the parts of a block's codes and scales lie.

/// A part of each element's code, `bits` of it (1, 2, 4 or 8), packed into bytes from `at` on.
///
/// Elements come in runs: the first `run` elements take the lowest bits of `run` bytes, the next run the bits above them,
/// and so on until these bytes are full. So with a run of 1 neighbours share a byte; with 16 and 4 bits the low nibbles of
/// 16 bytes are elements 0 to 15, and the high ones 16 to 31.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Codes {
    /// Bits of an element.
    pub bits: usize,
    /// The first byte in the block.
    pub at: usize,
    /// Elements of a run.
    pub run: usize,
}

impl Codes {
    /// The part of element `e`.
    #[inline(always)]
    pub const fn get(&self, block: &[u8], e: usize) -> u8 {
        let (byte, shift) = self.place(e);
        (block[byte] >> shift) & self.mask()
    }

    /// The byte in the block where element `e` lies, and how far it is shifted there.
    #[inline(always)]
    pub const fn place(&self, e: usize) -> (usize, usize) {
        let each = 8 / self.bits;
        (self.at + e / (self.run * each) * self.run + e % self.run, e / self.run % each * self.bits)
    }

    /// The lowest `bits` bits.
    #[inline(always)]
    pub const fn mask(&self) -> u8 {
        (0xFF >> (8 - self.bits)) as u8
    }
}

/// How the blocks of linear codes and of levels are scaled. *Units*: byte offsets in the block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scales {
    /// A scale for the whole block: f16.
    One {
        /// The scale.
        d: usize,
    },
    /// A scale and a minimum for each block of 32: two f16.
    Two {
        /// The scale; the minimum follows it.
        d: usize,
    },
    /// Scales and minima of 6 bits for eight times 32 elements: two f16, which they are multiplied by, the second one to
    /// be taken off; then 12 bytes with the 6 bits.
    ///
    /// Sub-blocks 0 to 3 have theirs in the lower bits of bytes 0 to 3 and 4 to 7. Those of 4 to 7 have their lower halves
    /// in bytes 8 to 11, and two bits each above those of the others.
    Sixes {
        /// The first f16.
        at: usize,
    },
    /// Scales of a signed byte for sixteen times 16 elements, and an f16 that they are multiplied by.
    Bytes {
        /// The 16 bytes.
        at: usize,
        /// The f16.
        d: usize,
    },
    /// Scales and minima of 4 bits for sixteen times 16 elements, in the lower and the upper half of a byte, and two f16
    /// that they are multiplied by, the second one to be taken off.
    Nibbles {
        /// The 16 bytes.
        at: usize,
        /// The first f16.
        d: usize,
    },
    /// Scales of 6 bits, less 32, for sixteen times 16 elements, and an f16 that they are multiplied by.
    ///
    /// The lower 4 bits are in bytes 0 to 7, of sub-blocks 8 to 15 in the upper halves. The others are in bytes 8 to 11:
    /// of sub-block i in byte 8 + i % 4, pairs of bits one above the other.
    SixBits16 {
        /// The 12 bytes.
        at: usize,
        /// The f16.
        d: usize,
    },
    /// An f16, and scales of 6 bits, less 32, for eight times 32 elements, that it is multiplied by: their upper two bits
    /// follow it in two bytes, and the lower four in another four.
    SixBits32 {
        /// The f16.
        at: usize,
    },
    /// A power of two for each block of 32: its exponent, more by 128.
    Exponent {
        /// The byte.
        at: usize,
    },
    /// Scales for four times 16 elements: half a float with 4 bits of exponent and 3 of fraction each.
    Minifloats {
        /// The four bytes.
        at: usize,
    },
}

impl Scales {
    /// Whether there are minima.
    pub const fn minima(&self) -> bool {
        matches!(self, Scales::Two { .. } | Scales::Sixes { .. } | Scales::Nibbles { .. })
    }

    /// Whether both halves of 32 elements have one scale, and one minimum.
    pub const fn whole(&self) -> bool {
        !matches!(
            self,
            Scales::Bytes { .. } | Scales::Nibbles { .. } | Scales::SixBits16 { .. } | Scales::Minifloats { .. }
        )
    }

    /// Where f16 fields lie.
    pub(super) const fn halves(&self) -> [Option<usize>; 2] {
        match *self {
            Scales::One { d } | Scales::Bytes { d, .. } | Scales::SixBits16 { d, .. } | Scales::SixBits32 { at: d } => {
                [Some(d), None]
            }
            Scales::Two { d } | Scales::Nibbles { d, .. } => [Some(d), Some(d + 2)],
            Scales::Exponent { .. } | Scales::Minifloats { .. } => [None; 2],
            Scales::Sixes { at } => [Some(at), Some(at + 2)],
        }
    }

    /// The flag of shaders.
    pub(super) const fn flag(&self) -> &'static str {
        match self {
            Scales::One { .. } => "ONE",
            Scales::Two { .. } => "TWO",
            Scales::Sixes { .. } => "SIXES",
            Scales::Bytes { .. } => "BYTES",
            Scales::Nibbles { .. } => "NIBBLES",
            Scales::SixBits16 { .. } => "SIX_BITS_16",
            Scales::SixBits32 { .. } => "SIX_BITS_32",
            Scales::Exponent { .. } => "EXPONENT",
            Scales::Minifloats { .. } => "MINIFLOATS",
        }
    }
}
