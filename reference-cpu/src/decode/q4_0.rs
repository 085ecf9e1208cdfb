//! Q4_0: `d * (q - 8)`.

#[inline(always)]
pub(super) fn block(b: &[u8; 18], out: &mut [f32; 32]) {
    let d = super::half(b[0], b[1]);
    let (low, high) = out.split_at_mut(16);
    for i in 0..16 {
        low[i] = d * f32::from(i16::from(b[2 + i] & 15) - 8);
        high[i] = d * f32::from(i16::from(b[2 + i] >> 4) - 8);
    }
}
