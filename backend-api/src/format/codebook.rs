//! Codebooks: tables that the codes of grids are looked up in.

use super::TEXEL;

/// A table of entries of 16 bits: in a file, and on a device in a buffer of its own, which kernels of formats that need
/// it bind. An entry is the codes of a few neighbours, the first in the lowest bits.
#[derive(Debug, PartialEq, Eq)]
pub struct Codebook {
    /// Its name in shaders.
    pub name: &'static str,
    /// Its bytes, at most 16 KiB: what every device lets a shader have as uniforms.
    pub bytes: &'static [u8],
    /// Bits that a code takes in an entry: 2, so that an entry has eight, or 4, of which the highest is not used.
    pub bits: usize,
    /// Values of the codes, followed by the values of the codes whose sign bit, which is the bit above, is set.
    pub levels: [i8; 16],
}

impl Codebook {
    /// Returns the name of the array of texels that shaders read the codebook from.
    pub fn shader_name(&self) -> String {
        format!("codebook_{}", self.name)
    }

    /// Its length in texels of 16 bytes.
    pub const fn texels(&self) -> usize {
        self.bytes.len() / TEXEL
    }

    /// Entry `i`.
    #[inline(always)]
    pub fn entry(&self, i: usize) -> u16 {
        u16::from_le_bytes(self.bytes.as_chunks().0[i])
    }

    /// The bit of a level's place that stands for the sign.
    pub const fn sign(&self) -> usize {
        if self.bits == 2 { 2 } else { 3 }
    }

    /// The first eight levels as two words, the first level in the highest byte of the first word.
    pub fn words(&self) -> [u32; 2] {
        let (words, _) = self.levels.as_chunks::<4>();
        [0, 1].map(|i: usize| u32::from_be_bytes(words[i].map(|level| level as u8)))
    }
}

/// A codebook whose entries are eight codes of 2 bits: three levels and their negatives.
const fn thirds(name: &'static str, bytes: &'static [u8]) -> Codebook {
    let levels = [8, 25, 43, 0, -8, -25, -43, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    Codebook { name, bytes, bits: 2, levels }
}

/// A codebook whose entries are four codes of 3 bits: eight levels and their negatives.
const fn eighths(name: &'static str, bytes: &'static [u8], eight: [i8; 8]) -> Codebook {
    let mut levels = [0; 16];
    let mut i = 0;
    while i < eight.len() {
        levels[i] = eight[i];
        levels[i + eight.len()] = -eight[i];
        i += 1;
    }
    Codebook { name, bytes, bits: 4, levels }
}

pub(super) static IQ2_XXS: Codebook = thirds("iq2_xxs", include_bytes!("codebooks/iq2_xxs.bin"));
pub(super) static IQ2_XS: Codebook = thirds("iq2_xs", include_bytes!("codebooks/iq2_xs.bin"));
pub(super) static IQ2_S: Codebook = thirds("iq2_s", include_bytes!("codebooks/iq2_s.bin"));
pub(super) static IQ3_XXS: Codebook =
    eighths("iq3_xxs", include_bytes!("codebooks/iq3_xxs.bin"), [4, 12, 20, 28, 36, 44, 52, 62]);
pub(super) static IQ3_S: Codebook =
    eighths("iq3_s", include_bytes!("codebooks/iq3_s.bin"), [1, 3, 5, 7, 9, 11, 13, 15]);

/// Eighths of -1, 0 and 1, to which an eighth is added, or taken off with the other sign.
pub(super) static IQ1_S: Codebook = Codebook {
    name: "iq1_s",
    bytes: include_bytes!("codebooks/iq1_s.bin"),
    bits: 2,
    levels: [-7, 1, 9, 0, -9, -1, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0],
};
