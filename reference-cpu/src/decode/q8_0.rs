//! Q8_0: `d * q`.

#[inline(always)]
pub(super) fn block(b: &[u8; 34], out: &mut [f32; 32]) {
    let d = super::half(b[0], b[1]);
    for (out, q) in out.iter_mut().zip(&b[2..]) {
        *out = d * f32::from(*q as i8);
    }
}

/// See [`Quants`](super::Quants).
pub(crate) struct Q8_0;

impl super::Quants for Q8_0 {
    type Block = [u8; 34];
    const GROUPS: usize = 1;
    const MIN: bool = false;

    #[inline(always)]
    fn quants(b: &[u8; 34], _: usize) -> super::Words {
        super::words(b, 2)
    }

    #[inline(always)]
    fn scales(blocks: &[[u8; 34]], out: &mut [[f32; 2]]) {
        super::halves(blocks.iter().map(|b| [b[0], b[1], 0, 0]), out);
    }
}
