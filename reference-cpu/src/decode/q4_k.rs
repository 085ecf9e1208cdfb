//! Q4_K: `(d * sc) * q - (dmin * m)`, eight sub-blocks of 32 with 6-bit scales and minima.

#[inline(always)]
pub(super) fn block(b: &[u8; 144], out: &mut [f32; 256]) {
    let (d, dmin) = (super::half(b[0], b[1]), super::half(b[2], b[3]));
    let k = &b[4..16];
    for j in 0..8 {
        let (sc, m) = if j < 4 {
            (k[j] & 63, k[j + 4] & 63)
        } else {
            ((k[j + 4] & 15) | (k[j - 4] >> 6) << 4, (k[j + 4] >> 4) | (k[j] >> 6) << 4)
        };
        let (scale, min) = (d * f32::from(sc), dmin * f32::from(m));
        let (qs, shift) = (&b[16 + j / 2 * 32..][..32], j % 2 * 4);
        for (out, q) in out[32 * j..][..32].iter_mut().zip(qs) {
            *out = scale * f32::from(q >> shift & 15) - min;
        }
    }
}
