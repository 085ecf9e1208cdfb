//! Q8_0: `d * q`.

#[inline(always)]
pub(super) fn block(b: &[u8; 34], out: &mut [f32; 32]) {
    let d = super::half(b[0], b[1]);
    for (out, q) in out.iter_mut().zip(&b[2..]) {
        *out = d * f32::from(*q as i8);
    }
}
