//! Weight formats: how a matrix lies in a GGUF file, and how it is repacked for GPUs.
//!
//! A format is one descriptor ([`FormatSpec`]) in a file of its own. Every backend decodes weights in *groups* of
//! [`GROUP`] consecutive elements of a row, so matmul, get-rows and attention kernels know no format.
//!
//! Files store blocks whose sizes (18, 34, 210 bytes ...) suit no GPU. At load, blocks are split into *planes*
//! (quants apart from scales), nibbles put into element order, and planes laid one after the other into a single
//! image of 16-byte *texels*: the same bytes are a WebGPU `array<vec4<u32>>` and a WebGL2 `RGBA32UI` texture.
//! [`Packing`] says where each plane begins.

use crate::error::Error;

mod bf16;
mod f16;
mod f32;
mod q4_0;
mod q4_1;
mod q4_k;
mod q5_0;
mod q5_1;
mod q6_k;
mod q8_0;

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
#[derive(Debug)]
pub struct PlaneSpec {
    /// What the plane holds, for dumps and documentation.
    pub name: &'static str,
    /// Bytes that one pack takes in this plane: even, and a power of two or a multiple of 16.
    pub bytes: usize,
}

/// Everything that the api knows of a weight format.
#[derive(Debug)]
pub struct FormatSpec {
    /// The name used in files, reports and shader file names.
    pub name: &'static str,
    /// The tensor type id in GGUF.
    pub ggml_id: u32,
    /// Elements of one block in the file.
    pub block_len: usize,
    /// Bytes of one block in the file.
    pub block_bytes: usize,
    /// Elements that are repacked together: a multiple of [`GROUP`] and of `block_len`.
    pub pack_len: usize,
    /// The planes of the repacked matrix, at most [`MAX_PLANES`].
    pub planes: &'static [PlaneSpec],
    /// Splits the file bytes of one pack over the planes.
    pub repack: fn(pack: &[u8], planes: &mut [&mut [u8]]),
    /// Byte offsets, within a block, of its f16 fields: test data must keep them finite.
    pub halves: &'static [usize],
}

macro_rules! formats {
    ($($(#[$doc:meta])* $variant:ident = $module:ident),+ $(,)?) => {
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
                match self { $(Format::$variant => &$module::SPEC),+ }
            }
        }
    };
}

formats! {
    /// IEEE binary32.
    F32 = f32,
    /// IEEE binary16.
    F16 = f16,
    /// The upper half of a binary32.
    BF16 = bf16,
    /// 4 bits, one scale per 32.
    Q4_0 = q4_0,
    /// 4 bits, scale and minimum per 32.
    Q4_1 = q4_1,
    /// 5 bits, one scale per 32.
    Q5_0 = q5_0,
    /// 5 bits, scale and minimum per 32.
    Q5_1 = q5_1,
    /// 8 bits, one scale per 32.
    Q8_0 = q8_0,
    /// 4 bits, 6-bit scales and minima per 32 in blocks of 256.
    Q4_K = q4_k,
    /// 6 bits, 8-bit scales per 16 in blocks of 256.
    Q6_K = q6_k,
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
    /// *Errors*: `k` is no multiple of the block length, or the size overflows.
    pub fn row_bytes(self, k: usize) -> Result<usize, Error> {
        let spec = self.spec();
        if !k.is_multiple_of(spec.block_len) {
            return Err(Error::Invalid(format!(
                "a {} row of {k} elements is no whole number of blocks of {}",
                spec.name, spec.block_len
            )));
        }
        (k / spec.block_len)
            .checked_mul(spec.block_bytes)
            .ok_or_else(|| Error::Invalid(format!("a {} row of {k} elements overflows the address space", spec.name)))
    }
}

/// How `rows` x `k` elements of a format lie in an image of texels.
///
/// *Units*: offsets and sizes in texels of 16 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packing {
    /// The format.
    pub format: Format,
    /// Rows of the matrix.
    pub rows: usize,
    /// Elements of a row.
    pub k: usize,
    /// Groups of [`GROUP`] elements a row, whole packs.
    pub groups: usize,
    /// First texel of each plane; unused planes are 0.
    pub planes: [u32; MAX_PLANES],
    /// Texels of the image.
    pub texels: usize,
}

/// Takes whole texels of an image: (first texel, bytes).
pub type WriteTexels<'a> = dyn FnMut(u32, &[u8]) -> Result<(), Error> + 'a;

impl Packing {
    /// Lays out a matrix.
    ///
    /// *Errors*: a row is no whole number of blocks, or the image needs 2^32 texels or more.
    pub fn new(format: Format, rows: usize, k: usize) -> Result<Packing, Error> {
        let spec = format.spec();
        format.row_bytes(k)?;
        let packs = k.div_ceil(spec.pack_len);
        let mut planes = [0u32; MAX_PLANES];
        let mut texels = 0usize;
        for (start, plane) in planes.iter_mut().zip(spec.planes) {
            let size =
                packs.checked_mul(plane.bytes).and_then(|row| row.checked_mul(rows)).map(|bytes| bytes.div_ceil(TEXEL));
            let end = size.and_then(|s| s.checked_add(texels)).filter(|e| u32::try_from(*e).is_ok());
            let Some(end) = end else {
                return Err(Error::Invalid(format!("a {} matrix of {rows} x {k} is too large to address", spec.name)));
            };
            *start = texels as u32;
            texels = end;
        }
        Ok(Packing { format, rows, k, groups: packs * (spec.pack_len / GROUP), planes, texels })
    }

    /// Splits `rows` rows of file bytes, beginning with row `first`, over the planes and hands each plane's bytes
    /// to `write(texel, bytes)`. Bytes are whole texels; the last ones of a plane are filled up with zeros.
    ///
    /// *Errors*: `first` is no multiple of [`ROW_ALIGN`], the bytes are no whole number of rows, or the rows end
    /// neither at such a multiple nor at the end of the matrix; and what `write` returns.
    pub fn repack(&self, first: usize, bytes: &[u8], write: &mut WriteTexels<'_>) -> Result<(), Error> {
        let spec = self.format.spec();
        let row_bytes = self.format.row_bytes(self.k)?;
        let rows = bytes.len().checked_div(row_bytes).unwrap_or(0);
        let end = first.saturating_add(rows);
        let aligned = first.is_multiple_of(ROW_ALIGN) && (end.is_multiple_of(ROW_ALIGN) || end == self.rows);
        if rows * row_bytes != bytes.len() || !aligned || end > self.rows {
            return Err(Error::Invalid(format!(
                "cannot write {} bytes at row {first} of a {} matrix of {} rows: whole rows of {row_bytes} bytes in \
                 multiples of {ROW_ALIGN} rows are needed",
                bytes.len(),
                spec.name,
                self.rows
            )));
        }
        let packs = self.k.div_ceil(spec.pack_len);
        let pack_bytes = spec.pack_len / spec.block_len * spec.block_bytes;
        let mut out: Vec<Vec<u8>> =
            spec.planes.iter().map(|p| vec![0u8; (rows * packs * p.bytes).next_multiple_of(TEXEL)]).collect();
        let mut last = vec![0u8; pack_bytes];
        for row in 0..rows {
            let src = &bytes[row * row_bytes..][..row_bytes];
            for pack in 0..packs {
                let from = pack * pack_bytes;
                let whole = &src[from..row_bytes.min(from + pack_bytes)];
                let whole = if whole.len() == pack_bytes {
                    whole
                } else {
                    last.fill(0);
                    last[..whole.len()].copy_from_slice(whole);
                    &last
                };
                let at = row * packs + pack;
                let mut views: [&mut [u8]; MAX_PLANES] = Default::default();
                for ((view, plane), bytes) in views.iter_mut().zip(spec.planes).zip(out.iter_mut()) {
                    *view = &mut bytes[at * plane.bytes..][..plane.bytes];
                }
                (spec.repack)(whole, &mut views[..spec.planes.len()]);
            }
        }
        for ((start, plane), bytes) in self.planes.iter().zip(spec.planes).zip(&out) {
            let texel = *start as usize + first * packs * plane.bytes / TEXEL;
            write(texel as u32, bytes)?;
        }
        Ok(())
    }
}

/// Puts the nibbles of 16 bytes whose low halves are elements 0..16 and high halves 16..32 into element order.
pub(crate) fn sort_nibbles32(qs: &[u8], out: &mut [u8]) {
    for (i, byte) in out[..16].iter_mut().enumerate() {
        let at = |e: usize| if e < 16 { qs[e] & 15 } else { qs[e - 16] >> 4 };
        *byte = at(2 * i) | at(2 * i + 1) << 4;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_no_larger_than_files() {
        for format in Format::ALL {
            let spec = format.spec();
            assert!(spec.pack_len.is_multiple_of(GROUP) && spec.pack_len.is_multiple_of(spec.block_len));
            let packed: usize = spec.planes.iter().map(|p| p.bytes).sum();
            assert_eq!(packed, spec.pack_len / spec.block_len * spec.block_bytes, "{}", spec.name);
            assert!(spec.planes.len() <= MAX_PLANES);
            assert_eq!(Format::from_ggml(spec.ggml_id), Some(*format));
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
