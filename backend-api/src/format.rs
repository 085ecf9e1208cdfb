//! Weight formats: how a matrix lies in a GGUF file, and how it is repacked for GPUs.
//!
//! A format is a row of its [`Family`]: a descriptor ([`FormatSpec`]) that says what its blocks hold and where. Decoders
//! are written once for a family. Every backend decodes weights in *groups* of [`GROUP`] consecutive elements of a row, so
//! matmul, get-rows and attention kernels know no format.
//!
//! Files store blocks whose sizes (18, 34, 210 bytes ...) suit no GPU. At load, blocks are split into *planes*
//! (quants apart from scales), nibbles put into element order, and planes laid one after the other into a single
//! image of 16-byte *texels*: the same bytes are a WebGPU `array<vec4<u32>>` and a WebGL2 `RGBA32UI` texture.
//! [`Packing`] says where each plane begins.

use crate::error::Error;

mod codebook;
mod codes;
mod fill;
mod floats;
mod grids;
mod levels;
mod linear;
mod packing;
mod shader;
mod sort;
mod trits;

pub use codebook::Codebook;
pub use codes::{Codes, Scales};
pub use floats::Floats;
pub use grids::{Factor, Grid, High, Indices, Signs, Steps};
pub use levels::Levels;
pub use linear::Linear;
pub use packing::{Packing, WriteTexels};
pub use shader::Part;
pub use trits::Trits;

/// Elements that shader decoders yield at a time.
pub const GROUP: usize = 32;

/// Rows are written in multiples of this many (but for the last ones of a matrix), so that every plane is
/// written in whole texels.
pub const ROW_ALIGN: usize = 8;

/// Bytes of one texel: a `vec4<u32>`, an `RGBA32UI` texel.
pub const TEXEL: usize = 16;

/// At most this many planes, so that plane offsets fit one `vec4<u32>`.
pub const MAX_PLANES: usize = 4;

/// One plane of a repacked matrix.
#[derive(Debug, Clone, Copy)]
pub struct PlaneSpec {
    /// The word that stands for the plane's first texel in shaders.
    pub name: &'static str,
    /// Bytes that one pack takes in this plane: an even number. 0 stands for no plane.
    pub bytes: usize,
    /// Content of the plane.
    pub from: Content,
}

/// Content of a plane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// Bytes of each block as they are, from this one on.
    Bytes(usize),
    /// Two runs of each block's bytes as they are, each from a byte on and of a length.
    Runs([(usize, usize); 2]),
    /// A part of each element's code, put into the order of elements.
    Codes(Codes),
}

impl PlaneSpec {
    const NONE: PlaneSpec = PlaneSpec::copied("", 0, 0);

    const fn copied(name: &'static str, at: usize, bytes: usize) -> PlaneSpec {
        PlaneSpec { name, bytes, from: Content::Bytes(at) }
    }

    const fn joined(name: &'static str, runs: [(usize, usize); 2]) -> PlaneSpec {
        PlaneSpec { name, bytes: runs[0].1 + runs[1].1, from: Content::Runs(runs) }
    }

    const fn codes(name: &'static str, codes: Codes, len: usize) -> PlaneSpec {
        let is_sorted = matches!((codes.bits, codes.run), (8, _) | (_, 1) | (1 | 2, 32) | (4, 8 | 16 | 32 | 64));
        assert!(is_sorted, "`PlaneSpec::fill` sorts no such runs; add them there and here");
        PlaneSpec { name, bytes: len * codes.bits / 8, from: Content::Codes(codes) }
    }

    /// The planes of scales, and of what they are multiplied by, where a pack is one block.
    const fn scales(scales: &Scales) -> [PlaneSpec; 2] {
        match *scales {
            Scales::One { d } => [PlaneSpec::copied("SCALES", d, 2), PlaneSpec::NONE],
            Scales::Two { d } => [PlaneSpec::copied("SCALES", d, 4), PlaneSpec::NONE],
            Scales::Sixes { at } => [PlaneSpec::copied("SCALES", at, 16), PlaneSpec::NONE],
            Scales::Bytes { at, d } => [PlaneSpec::copied("SCALES", at, 16), PlaneSpec::copied("FACTORS", d, 2)],
            Scales::Nibbles { at, d } => [PlaneSpec::copied("SCALES", at, 16), PlaneSpec::copied("FACTORS", d, 4)],
            Scales::SixBits16 { at, d } => [PlaneSpec::copied("SCALES", at, 12), PlaneSpec::copied("FACTORS", d, 2)],
            Scales::SixBits32 { at } => [PlaneSpec::copied("SCALES", at, 8), PlaneSpec::NONE],
            Scales::Exponent { at } => [PlaneSpec::copied("SCALES", at, 1), PlaneSpec::NONE],
            Scales::Minifloats { at } => [PlaneSpec::copied("SCALES", at, 4), PlaneSpec::NONE],
        }
    }

    /// Returns this plane for packs of so many blocks.
    const fn times(self, blocks: usize) -> PlaneSpec {
        PlaneSpec { bytes: self.bytes * blocks, ..self }
    }
}

/// As many planes as a format may have, none at the end; in the list they may be anywhere.
const fn planes(list: &[PlaneSpec]) -> [PlaneSpec; MAX_PLANES] {
    let mut planes = [PlaneSpec::NONE; MAX_PLANES];
    let (mut i, mut used) = (0, 0);
    while i < list.len() {
        if list[i].bytes > 0 {
            planes[used] = list[i];
            used += 1;
        }
        i += 1;
    }
    planes
}

/// How a format's elements are made from what its blocks hold. A family has one decoder in each language, which is told
/// apart for its formats by the values here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// Floats.
    Floats(Floats),
    /// Codes times a scale.
    Linear(Linear),
    /// Levels that codes stand for, times a scale.
    Levels(Levels),
    /// Levels that the codes of a codebook's entries and signs stand for, times a scale.
    Grid(Grid),
    /// Numbers of three values, five in a byte, times a scale.
    Trits(Trits),
}

/// Everything that the api knows of a weight format: a row of its family.
#[derive(Debug)]
pub struct FormatSpec {
    /// The name used in files and reports.
    pub name: &'static str,
    /// The tensor type id in GGUF.
    pub ggml_id: u32,
    /// Elements of one block in the file.
    pub block_len: usize,
    /// Bytes of one block in the file.
    pub block_bytes: usize,
    /// Elements that are repacked together: a multiple of [`GROUP`] and of `block_len`.
    pub pack_len: usize,
    planes: [PlaneSpec; MAX_PLANES],
    /// Family that its blocks belong to.
    pub family: Family,
}

impl FormatSpec {
    /// The planes of a repacked matrix.
    pub fn planes(&self) -> &[PlaneSpec] {
        let used = self.planes.iter().take_while(|plane| plane.bytes > 0).count();
        &self.planes[..used]
    }

    /// Whether an element takes less than 16 bits.
    pub const fn is_quantised(&self) -> bool {
        !matches!(self.family, Family::Floats(_))
    }

    /// Whether all elements of a group are known to have one scale, and one minimum.
    pub const fn has_whole_scales(&self) -> bool {
        match &self.family {
            Family::Linear(linear) => linear.scales.whole(),
            Family::Levels(levels) => levels.scales.whole(),
            Family::Trits(trits) => trits.scales().whole(),
            Family::Grid(_) | Family::Floats(_) => false,
        }
    }

    /// The codebook of grids.
    pub const fn codebook(&self) -> Option<&'static Codebook> {
        match self.family {
            Family::Grid(grid) => Some(grid.codebook),
            _ => None,
        }
    }

    /// Byte offsets, within a block, of its f16 fields.
    fn halves(&self) -> impl Iterator<Item = usize> {
        let halves = match &self.family {
            Family::Floats(Floats::F16) => [Some(0), None],
            Family::Floats(_) => [None; 2],
            Family::Linear(linear) => linear.scales.halves(),
            Family::Levels(levels) => levels.scales.halves(),
            Family::Grid(grid) => [grid.d.half(), None],
            Family::Trits(trits) => trits.scales().halves(),
        };
        halves.into_iter().flatten()
    }

    /// Adds a random block whose values are finite and of order 1, subnormal f16 fields among them: test data.
    pub fn random_block(&self, next: &mut dyn FnMut() -> u64, out: &mut Vec<u8>) {
        if let Family::Floats(Floats::F32 | Floats::BF16) = self.family {
            let value = (next() >> 40) as f32 / 8_388_608.0 - 1.0;
            return out.extend(&value.to_le_bytes()[4 - self.block_bytes..]);
        }
        let start = out.len();
        out.extend((0..self.block_bytes).map(|_| next() as u8));
        if let Family::Levels(Levels { scales: Scales::Exponent { at }, .. }) = self.family {
            // From 2^-8 to 1.
            out[start + at] = 120 + (next() % 9) as u8;
        }
        let half = |next: &mut dyn FnMut() -> u64| {
            // A random sign and fraction; the exponent is that of a small number, now and then a subnormal one.
            let largest = if self.block_len == 1 { 14 } else { 9 };
            let exponent = if next().is_multiple_of(16) { 0 } else { largest - (next() % 5) as u16 };
            (next() as u16 & 0x83FF) | exponent << 10
        };
        for at in self.halves() {
            out[start + at..start + at + 2].copy_from_slice(&half(next).to_le_bytes());
        }
        if let Family::Grid(Grid { d: Factor::Nibbles { at }, .. }) = self.family {
            let half = half(next);
            for i in 0..4 {
                let byte = &mut out[start + at + 2 * i + 1];
                *byte = *byte & 15 | ((half >> (4 * i) & 15) << 4) as u8;
            }
        }
    }
}

/// A format as a type, for code that is compiled for each: see [`Format::visit`].
pub trait Row {
    /// Its descriptor.
    const SPEC: &'static FormatSpec;
}

/// Code that is compiled once for each format.
pub trait Visit {
    /// Result of a visit.
    type Out;

    /// Does it for a format.
    fn visit<R: Row>(self) -> Self::Out;
}

macro_rules! formats {
    ($($(#[$doc:meta])* $variant:ident = $family:ident),+ $(,)?) => {
        /// A weight format.
        ///
        /// *Source*: ggml's `ggml-common.h` and `ggml-quants.c`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[allow(non_camel_case_types)]
        pub enum Format { $($(#[$doc])* $variant),+ }

        impl Format {
            /// All formats, in the order of declaration.
            pub const ALL: &'static [Format] = &[$(Format::$variant),+];

            /// The descriptor.
            pub const fn spec(self) -> &'static FormatSpec {
                match self { $(Format::$variant => &$family::$variant),+ }
            }

            /// Does something that is compiled for each format, so that the compiler knows the descriptor.
            #[inline(always)]
            pub fn visit<V: Visit>(self, visit: V) -> V::Out {
                match self { $(Format::$variant => visit.visit::<rows::$variant>()),+ }
            }
        }

        /// Formats as types.
        #[allow(non_camel_case_types)]
        mod rows {
            $(pub struct $variant;

            impl super::Row for $variant {
                const SPEC: &'static super::FormatSpec = &super::$family::$variant;
            })+
        }
    };
}

formats! {
    /// IEEE binary32.
    F32 = floats,
    /// IEEE binary16.
    F16 = floats,
    /// The upper half of a binary32.
    BF16 = floats,
    /// 4 bits, one scale per 32.
    Q4_0 = linear,
    /// 4 bits, scale and minimum per 32.
    Q4_1 = linear,
    /// 5 bits, one scale per 32.
    Q5_0 = linear,
    /// 5 bits, scale and minimum per 32.
    Q5_1 = linear,
    /// 8 bits, one scale per 32.
    Q8_0 = linear,
    /// 4 bits, 6-bit scales and minima per 32 in blocks of 256.
    Q4_K = linear,
    /// 5 bits, 6-bit scales and minima per 32 in blocks of 256.
    Q5_K = linear,
    /// 6 bits, 8-bit scales per 16 in blocks of 256.
    Q6_K = linear,
    /// 4 bits, levels of a normal distribution, one scale per 32.
    IQ4_NL = levels,
    /// 2 bits: a codebook of 256 entries, scales of 4 bits per 32 in blocks of 256.
    IQ2_XXS = grids,
    /// 2 bits, scales and minima of 4 bits per 16 in blocks of 256.
    Q2_K = linear,
    /// 3 bits, 6-bit scales per 16 in blocks of 256.
    Q3_K = linear,
    /// 4 bits, levels of a normal distribution, 6-bit scales per 32 in blocks of 256.
    IQ4_XS = levels,
    /// Floats of 4 bits, a power of two per 32.
    MXFP4 = levels,
    /// Floats of 4 bits, a float of 8 bits without a sign per 16.
    NVFP4 = levels,
    /// Three values in 2 bits, one scale per 256.
    TQ2_0 = linear,
    /// Three values, five of them in a byte, one scale per 256.
    TQ1_0 = trits,
    /// Two values in a bit, one scale per 128.
    Q1_0 = linear,
    /// Four values in 2 bits, one scale per 64.
    Q2_0 = linear,
    /// 2 bits: a codebook of 512 entries, scales of 4 bits per 16 in blocks of 256.
    IQ2_XS = grids,
    /// 2 bits: a codebook of 1024 entries, all signs, scales of 4 bits per 16 in blocks of 256.
    IQ2_S = grids,
    /// 3 bits: a codebook of 256 entries, scales of 4 bits per 32 in blocks of 256.
    IQ3_XXS = grids,
    /// 3 bits: a codebook of 512 entries, all signs, scales of 4 bits per 32 in blocks of 256.
    IQ3_S = grids,
    /// 1 bit: a codebook of 2048 entries that are shifted either way, scales of 3 bits per 32 in blocks of 256.
    IQ1_S = grids,
    /// 1 bit: the codebook of IQ1_S, scales of 3 bits per 16 in blocks of 256.
    IQ1_M = grids,
}

impl Format {
    /// The format of a GGUF tensor type id.
    pub fn from_ggml(id: u32) -> Option<Format> {
        Self::ALL.iter().copied().find(|f| f.spec().ggml_id == id)
    }

    /// The name used in files and reports.
    pub const fn name(self) -> &'static str {
        self.spec().name
    }

    /// Bytes of a row of `k` elements in the file.
    ///
    /// *Errors*: `k` is not a multiple of the block length, or the size overflows.
    pub fn row_bytes(self, k: usize) -> Result<usize, Error> {
        let spec = self.spec();
        if !k.is_multiple_of(spec.block_len) {
            return Err(Error::Invalid(format!(
                "a {} row of {k} elements is not a multiple of the block length {}",
                spec.name, spec.block_len
            )));
        }
        (k / spec.block_len)
            .checked_mul(spec.block_bytes)
            .ok_or_else(|| Error::Invalid(format!("a {} row of {k} elements overflows the address space", spec.name)))
    }
}

/// The codebooks that formats need, each once.
pub fn codebooks(formats: impl IntoIterator<Item = Format>) -> Vec<&'static Codebook> {
    let mut found: Vec<&'static Codebook> = Vec::new();
    for codebook in formats.into_iter().filter_map(|format| format.spec().codebook()) {
        if !found.iter().any(|known| known.name == codebook.name) {
            found.push(codebook);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_no_larger_than_files() {
        for format in Format::ALL {
            let spec = format.spec();
            assert!(spec.pack_len.is_multiple_of(GROUP) && spec.pack_len.is_multiple_of(spec.block_len));
            let packed: usize = spec.planes().iter().map(|p| p.bytes).sum();
            assert_eq!(packed, spec.pack_len / spec.block_len * spec.block_bytes, "{}", spec.name);
            for plane in spec.planes() {
                let bytes = plane.bytes;
                assert!(bytes % 2 == 0, "{}", spec.name);
            }
            assert_eq!(Format::from_ggml(spec.ggml_id), Some(*format));
        }
    }

    #[test]
    fn planes_hold_codes_in_the_order_of_elements() {
        for spec in Format::ALL.iter().map(|format| format.spec()) {
            let pack: Vec<u8> =
                (0..spec.block_bytes * spec.pack_len / spec.block_len).map(|i| (i * 37) as u8).collect();
            for plane in spec.planes() {
                let Content::Codes(codes) = plane.from else { continue };
                let mut bytes = vec![0; plane.bytes];
                plane.fill(&pack, spec.block_bytes, plane.bytes * spec.block_len / spec.pack_len, &mut bytes);
                let sorted = Codes { at: 0, run: 1, ..codes };
                for e in 0..spec.pack_len {
                    let block = &pack[e / spec.block_len * spec.block_bytes..][..spec.block_bytes];
                    let wanted = codes.get(block, e % spec.block_len);
                    assert_eq!(sorted.get(&bytes, e), wanted, "{} {}, element {e}", spec.name, plane.name);
                }
            }
        }
    }

    #[test]
    fn repack_in_parts_equals_repack_at_once() {
        for format in Format::ALL {
            let packing = Packing::new(*format, 19, 512).unwrap();
            let row = format.row_bytes(512).unwrap();
            let bytes: Vec<u8> = (0..19 * row).map(|i| (i * 31 % 251) as u8).collect();
            let image = |parts: &[(usize, usize)]| {
                let mut image = vec![0u8; packing.texels * TEXEL];
                for &(first, end) in parts {
                    packing
                        .repack(first, &bytes[first * row..end * row], &mut |texel, bytes| {
                            image[texel as usize * TEXEL..][..bytes.len()].copy_from_slice(bytes);
                            Ok(())
                        })
                        .unwrap();
                }
                image
            };
            assert_eq!(image(&[(0, 19)]), image(&[(8, 16), (0, 8), (16, 19)]), "{}", format.name());
        }
    }

    #[test]
    fn odd_writes_are_refused() {
        let packing = Packing::new(Format::Q4_0, 16, 32).unwrap();
        let mut sink = |_: u32, _: &[u8]| Ok(());
        assert!(packing.repack(3, &[0; 18 * 8], &mut sink).is_err());
        assert!(packing.repack(0, &[0; 18 * 3], &mut sink).is_err());
        assert!(packing.repack(0, &[0; 17], &mut sink).is_err());
        assert!(packing.repack(8, &[0; 18 * 16], &mut sink).is_err());
        assert!(Packing::new(Format::Q4_0, 1, 33).is_err());
        assert!(Packing::new(Format::F32, usize::MAX / 8, 1024).is_err());
    }
}
