//! Q5_1: `d * q + m`; the fifth bit of element e is bit e of a word.

#[inline(always)]
pub(super) fn block(b: &[u8; 24], out: &mut [f32; 32]) {
    let (d, m) = (super::half(b[0], b[1]), super::half(b[2], b[3]));
    let high = u32::from_le_bytes([b[4], b[5], b[6], b[7]]);
    let fifth = |e: usize| ((high >> e & 1) << 4) as i16;
    let (first, second) = out.split_at_mut(16);
    for i in 0..16 {
        let q = (i16::from(b[8 + i] & 15) | fifth(i), i16::from(b[8 + i] >> 4) | fifth(i + 16));
        first[i] = d * f32::from(q.0) + m;
        second[i] = d * f32::from(q.1) + m;
    }
}

/// See [`Quants`](super::Quants).
pub(crate) struct Q5_1;

impl super::Quants for Q5_1 {
    type Block = [u8; 24];
    const GROUPS: usize = 1;
    const MIN: bool = true;

    #[inline(always)]
    fn quants(b: &[u8; 24], _: usize) -> super::Words {
        super::with_fifth_bits(super::nibbles(b, 8), [b[4], b[5], b[6], b[7]])
    }

    #[inline(always)]
    fn scales(blocks: &[[u8; 24]], out: &mut [[f32; 2]]) {
        super::halves(blocks.iter().map(|b| [b[0], b[1], b[2], b[3]]), out);
    }
}
