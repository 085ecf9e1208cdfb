//! Makes planes of blocks. Loading a model is mostly this, so that the loops know how much they copy.

use super::sort::sort;
use super::{Codes, Content, PlaneSpec};

impl PlaneSpec {
    /// Makes the plane's bytes of consecutive blocks, `each` of every one.
    pub(super) fn fill(&self, blocks: &[u8], block_bytes: usize, each: usize, out: &mut [u8]) {
        let pairs = blocks.chunks_exact(block_bytes).zip(out.chunks_exact_mut(each));
        match self.from {
            Content::Bytes(at) | Content::Codes(Codes { at, run: 1, .. } | Codes { at, bits: 8, .. }) => {
                copy(blocks, block_bytes, at, each, out);
            }
            Content::Runs([(a, len), (b, rest)]) => pairs.for_each(|(block, out)| {
                let (first, last) = out.split_at_mut(len);
                first.copy_from_slice(&block[a..][..len]);
                last.copy_from_slice(&block[b..][..rest]);
            }),
            Content::Codes(Codes { bits, at, run }) => match (bits, run) {
                (1, _) => sort_all::<1, 32>(blocks, block_bytes, at, each, out),
                (2, _) => sort_all::<2, 32>(blocks, block_bytes, at, each, out),
                (_, 8) => sort_all::<4, 8>(blocks, block_bytes, at, each, out),
                (_, 16) => sort_all::<4, 16>(blocks, block_bytes, at, each, out),
                (_, 32) => sort_all::<4, 32>(blocks, block_bytes, at, each, out),
                (_, _) => sort_all::<4, 64>(blocks, block_bytes, at, each, out),
            },
        }
    }
}

/// Sorts `each` bytes of each block, from `at` on.
fn sort_all<const BITS: usize, const RUN: usize>(
    blocks: &[u8],
    block_bytes: usize,
    at: usize,
    each: usize,
    out: &mut [u8],
) {
    for (block, out) in blocks.chunks_exact(block_bytes).zip(out.chunks_exact_mut(each)) {
        let runs = block[at..at + each].as_chunks::<RUN>().0;
        for (from, out) in runs.iter().zip(out.as_chunks_mut::<RUN>().0) {
            sort::<BITS, RUN>(from, out);
        }
    }
}

/// Copies `each` bytes of each block, from `at` on.
fn copy(blocks: &[u8], block_bytes: usize, at: usize, each: usize, out: &mut [u8]) {
    match each {
        // Behind the last blocks there may be zeros.
        _ if each == block_bytes => out[..blocks.len()].copy_from_slice(blocks),
        1 => copy_all::<1>(blocks, block_bytes, at, out),
        2 => copy_all::<2>(blocks, block_bytes, at, out),
        4 => copy_all::<4>(blocks, block_bytes, at, out),
        8 => copy_all::<8>(blocks, block_bytes, at, out),
        12 => copy_all::<12>(blocks, block_bytes, at, out),
        16 => copy_all::<16>(blocks, block_bytes, at, out),
        32 => copy_all::<32>(blocks, block_bytes, at, out),
        _ => {
            for (block, out) in blocks.chunks_exact(block_bytes).zip(out.chunks_exact_mut(each)) {
                out.copy_from_slice(&block[at..][..each]);
            }
        }
    }
}

/// [`copy`] of a number of bytes that compilers make a few moves of instead of a call.
#[inline(always)]
fn copy_all<const EACH: usize>(blocks: &[u8], block_bytes: usize, at: usize, out: &mut [u8]) {
    for (block, out) in blocks.chunks_exact(block_bytes).zip(out.as_chunks_mut::<EACH>().0) {
        out.copy_from_slice(&block[at..at + EACH]);
    }
}

#[cfg(test)]
mod tests {
    use crate::format::{Format, Packing, ROW_ALIGN, TEXEL};

    fn image(format: Format, k: usize, bytes: &[u8]) -> Vec<u8> {
        let packing = Packing::new(format, ROW_ALIGN, k).unwrap();
        let mut image = vec![0xAA; packing.texels * TEXEL];
        packing
            .repack(0, bytes, &mut |texel, bytes| {
                image[texel as usize * TEXEL..][..bytes.len()].copy_from_slice(bytes);
                Ok(())
            })
            .unwrap();
        image
    }

    #[test]
    fn rows_that_end_within_a_pack_are_those_of_rows_filled_up_with_zeros() {
        for (format, spec) in Format::ALL.iter().map(|format| (*format, format.spec())) {
            let row = spec.block_bytes;
            let bytes: Vec<u8> = (1..=ROW_ALIGN * row).map(|i| (i * 37) as u8).collect();
            let mut filled = Vec::new();
            for row in bytes.chunks_exact(row) {
                filled.extend(row);
                filled.resize(filled.len().next_multiple_of(spec.pack_len / spec.block_len * spec.block_bytes), 0);
            }
            let (cut, whole) = (image(format, spec.block_len, &bytes), image(format, spec.pack_len, &filled));
            assert_eq!(cut, whole, "{}", spec.name);
        }
    }
}
