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

/// See [`Quants`](super::Quants).
pub(crate) struct Q4_0;

impl super::Quants for Q4_0 {
    type Block = [u8; 18];
    const GROUPS: usize = 1;
    const MIN: bool = false;

    #[inline(always)]
    fn quants(b: &[u8; 18], _: usize) -> super::Words {
        super::nibbles(b, 2).map(|q| super::minus(q, 8))
    }

    #[inline(always)]
    fn scales(blocks: &[[u8; 18]], out: &mut [[f32; 2]]) {
        super::halves(blocks.iter().map(|b| [b[0], b[1], 0, 0]), out);
    }
}
