//! Q6_K: `(d * scale) * (q - 32)`, sixteen sub-blocks of 16 with 8-bit scales.

#[inline(always)]
pub(super) fn block(b: &[u8; 210], out: &mut [f32; 256]) {
    let d = super::half(b[208], b[209]);
    for n in 0..2 {
        for k in 0..4 {
            let (low, high) = (&b[64 * n + 32 * (k & 1)..][..32], &b[128 + 32 * n..][..32]);
            let first = 128 * n + 32 * k;
            for l in 0..32 {
                let q = (low[l] >> (4 * (k / 2)) & 15) | (high[l] >> (2 * k) & 3) << 4;
                let scale = d * f32::from(b[192 + (first + l) / 16] as i8);
                out[first + l] = scale * f32::from(i16::from(q) - 32);
            }
        }
    }
}

/// See [`Quants`](super::Quants).
#[allow(non_camel_case_types)]
pub(crate) struct Q6_K;

impl super::Quants for Q6_K {
    type Block = [u8; 210];
    const GROUPS: usize = 8;
    const MIN: bool = false;

    #[inline(always)]
    fn quants(b: &[u8; 210], index: usize) -> super::Words {
        let (n, k) = (index / 4, index % 4);
        let (mut q, high) = (super::words(b, 64 * n + 32 * (k & 1)), super::words(b, 128 + 32 * n));
        for (q, high) in q.iter_mut().zip(high) {
            let bits = *q >> (4 * (k / 2)) & (15 * super::ONES) | (high >> (2 * k) & (3 * super::ONES)) << 4;
            *q = super::minus(bits, 32);
        }
        q
    }

    #[inline(always)]
    fn scales(blocks: &[[u8; 210]], out: &mut [[f32; 2]]) {
        for (b, out) in blocks.iter().zip(out.as_chunks_mut::<8>().0) {
            *out = [[super::half(b[208], b[209]), 0.0]; 8];
        }
    }

    #[inline(always)]
    fn factors(b: &[u8; 210], index: usize) -> Option<[i16; 2]> {
        Some([0, 1].map(|half| i16::from(b[192 + 2 * index + half] as i8)))
    }
}
