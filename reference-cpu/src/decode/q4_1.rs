//! Q4_1: `d * q + m`.

#[inline(always)]
pub(super) fn block(b: &[u8; 20], out: &mut [f32; 32]) {
    let (d, m) = (super::half(b[0], b[1]), super::half(b[2], b[3]));
    let (low, high) = out.split_at_mut(16);
    for i in 0..16 {
        low[i] = d * f32::from(b[4 + i] & 15) + m;
        high[i] = d * f32::from(b[4 + i] >> 4) + m;
    }
}

/// See [`Quants`](super::Quants).
pub(crate) struct Q4_1;

impl super::Quants for Q4_1 {
    type Block = [u8; 20];
    const GROUPS: usize = 1;
    const MIN: bool = true;

    #[inline(always)]
    fn quants(b: &[u8; 20], _: usize) -> super::Words {
        super::nibbles(b, 4)
    }

    #[inline(always)]
    fn scales(blocks: &[[u8; 20]], out: &mut [[f32; 2]]) {
        super::halves(blocks.iter().map(|b| [b[0], b[1], b[2], b[3]]), out);
    }
}
