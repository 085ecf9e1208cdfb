//! Q5_0: `d * (q - 16)`; the fifth bit of element e is bit e of a word.

#[inline(always)]
pub(super) fn block(b: &[u8; 22], out: &mut [f32; 32]) {
    let d = super::half(b[0], b[1]);
    let high = u32::from_le_bytes([b[2], b[3], b[4], b[5]]);
    let fifth = |e: usize| ((high >> e & 1) << 4) as i16;
    let (first, second) = out.split_at_mut(16);
    for i in 0..16 {
        let q = (i16::from(b[6 + i] & 15) | fifth(i), i16::from(b[6 + i] >> 4) | fifth(i + 16));
        first[i] = d * f32::from(q.0 - 16);
        second[i] = d * f32::from(q.1 - 16);
    }
}

/// See [`Quants`](super::Quants).
pub(crate) struct Q5_0;

impl super::Quants for Q5_0 {
    type Block = [u8; 22];
    const GROUPS: usize = 1;
    const MIN: bool = false;

    #[inline(always)]
    fn quants(b: &[u8; 22], _: usize) -> super::Words {
        super::with_fifth_bits(super::nibbles(b, 6), [b[2], b[3], b[4], b[5]]).map(|q| super::minus(q, 16))
    }

    #[inline(always)]
    fn scales(blocks: &[[u8; 22]], out: &mut [[f32; 2]]) {
        super::halves(blocks.iter().map(|b| [b[0], b[1], 0, 0]), out);
    }
}
