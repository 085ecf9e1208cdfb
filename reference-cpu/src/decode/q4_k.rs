//! Q4_K: `(d * sc) * q - (dmin * m)`, eight sub-blocks of 32 with 6-bit scales and minima.

#[inline(always)]
pub(super) fn block(b: &[u8; 144], out: &mut [f32; 256]) {
    let (d, dmin) = (super::half(b[0], b[1]), super::half(b[2], b[3]));
    let k = &b[4..16];
    for j in 0..8 {
        let (sc, m) = scale_and_min(k, j);
        let (scale, min) = (d * f32::from(sc), dmin * f32::from(m));
        let (qs, shift) = (&b[16 + j / 2 * 32..][..32], j % 2 * 4);
        for (out, q) in out[32 * j..][..32].iter_mut().zip(qs) {
            *out = scale * f32::from(q >> shift & 15) - min;
        }
    }
}

/// The 6-bit scale and minimum of sub-block `j`.
#[inline(always)]
fn scale_and_min(k: &[u8], j: usize) -> (u8, u8) {
    if j < 4 {
        (k[j] & 63, k[j + 4] & 63)
    } else {
        ((k[j + 4] & 15) | (k[j - 4] >> 6) << 4, (k[j + 4] >> 4) | (k[j] >> 6) << 4)
    }
}

/// See [`Quants`](super::Quants).
#[allow(non_camel_case_types)]
pub(crate) struct Q4_K;

impl super::Quants for Q4_K {
    type Block = [u8; 144];
    const GROUPS: usize = 8;
    const MIN: bool = true;

    #[inline(always)]
    fn quants(b: &[u8; 144], j: usize) -> super::Words {
        super::words(b, 16 + j / 2 * 32).map(|q| q >> (j % 2 * 4) & (15 * super::ONES))
    }

    #[inline(always)]
    fn scales(blocks: &[[u8; 144]], out: &mut [[f32; 2]]) {
        for (b, out) in blocks.iter().zip(out.as_chunks_mut::<8>().0) {
            let (d, dmin) = (super::half(b[0], b[1]), super::half(b[2], b[3]));
            for (j, out) in out.iter_mut().enumerate() {
                let (sc, m) = scale_and_min(&b[4..16], j);
                *out = [d * f32::from(sc), -(dmin * f32::from(m))];
            }
        }
    }
}
