//! NEON, as every processor of 64 bits by Arm has it.

use super::arrays::Arrays;
use super::{Floats, IntPairs, Ints, Lanes, ROWS, RowFloats};
use crate::decode::quants::Words;
use bytemuck::cast;
use std::arch::aarch64::{float32x2_t, float32x4_t, int8x16_t, int16x8_t, int32x4_t, uint8x16_t};

/// NEON, known to be there.
#[derive(Clone, Copy)]
pub(super) struct Neon(pub pulp::aarch64::Neon);

impl Lanes for Neon {
    type Sums = [float32x4_t; 8];
    /// Two sums of each row, of the first and of the second products of its pairs.
    type RowSums = [[int32x4_t; 2]; ROWS / 4];
    type Dots = int32x4_t;
    type Pair = float32x2_t;
    const TILE_X: usize = 2;

    #[inline(always)]
    fn zero(self) -> [float32x4_t; 8] {
        [self.0.neon.vdupq_n_f32(0.0); 8]
    }

    #[inline(always)]
    fn widen(self, bytes: Words) -> Ints {
        let ([a, b], neon): ([int8x16_t; 2], _) = (cast(bytes), self.0.neon);
        let low = |bytes| neon.vmovl_s8(neon.vget_low_s8(bytes));
        cast([low(a), neon.vmovl_high_s8(a), low(b), neon.vmovl_high_s8(b)])
    }

    #[inline(always)]
    fn lookup(self, bytes: Words, levels: &[i8; 16]) -> Words {
        let ([a, b], table): ([uint8x16_t; 2], int8x16_t) = (cast(bytes), cast(*levels));
        cast([self.0.neon.vqtbl1q_s8(table, a), self.0.neon.vqtbl1q_s8(table, b)])
    }

    #[inline(always)]
    fn scale(self, ints: Ints, [f, g]: [i16; 2]) -> Ints {
        let ([a, b, c, d], neon): ([int16x8_t; 4], _) = (cast(ints), self.0.neon);
        cast([neon.vmulq_n_s16(a, f), neon.vmulq_n_s16(b, f), neon.vmulq_n_s16(c, g), neon.vmulq_n_s16(d, g)])
    }

    #[inline(always)]
    fn no_pair(self) -> float32x2_t {
        self.0.neon.vdup_n_f32(0.0)
    }

    #[inline(always)]
    fn dots(self, x: &Ints, w: &Ints) -> [int32x4_t; 2] {
        let (x, w, neon): ([int16x8_t; 4], [int16x8_t; 4], _) = (cast(*x), cast(*w), self.0.neon);
        let half = |i: usize| {
            let sums = neon.vmull_s16(neon.vget_low_s16(x[i]), neon.vget_low_s16(w[i]));
            let sums = neon.vmlal_high_s16(sums, x[i], w[i]);
            let sums = neon.vmlal_s16(sums, neon.vget_low_s16(x[i + 1]), neon.vget_low_s16(w[i + 1]));
            neon.vmlal_high_s16(sums, x[i + 1], w[i + 1])
        };
        [half(0), half(2)]
    }

    #[inline(always)]
    fn join(self, [a, b]: [int32x4_t; 2]) -> int32x4_t {
        self.0.neon.vaddq_s32(a, b)
    }

    #[inline(always)]
    fn add_pairs(self, sums: float32x2_t, scales: [[f32; 2]; 2], [p, q]: [[int32x4_t; 2]; 2]) -> float32x2_t {
        let neon = self.0.neon;
        let dots = neon.vpaddq_s32(neon.vpaddq_s32(p[0], p[1]), neon.vpaddq_s32(q[0], q[1]));
        let dots = neon.vcvtq_f32_s32(dots);
        let [first, second]: [float32x2_t; 2] = cast(scales);
        let sums = neon.vfma_f32(sums, neon.vget_low_f32(dots), first);
        neon.vfma_f32(sums, neon.vget_high_f32(dots), second)
    }

    #[inline(always)]
    fn pair(self, sums: float32x2_t) -> [f32; 2] {
        cast(sums)
    }

    #[inline(always)]
    fn add_floats(self, sums: [float32x4_t; 8], a: &[Floats; 4], b: &[Floats; 4]) -> [float32x4_t; 8] {
        let (a, b): ([float32x4_t; 8], [float32x4_t; 8]) = (cast(*a), cast(*b));
        std::array::from_fn(|i| self.0.neon.vfmaq_f32(sums[i], a[i], b[i]))
    }

    #[inline(always)]
    fn add_eight(self, mut sums: [float32x4_t; 8], a: &Floats, b: &Floats) -> [float32x4_t; 8] {
        let (a, b): ([float32x4_t; 2], [float32x4_t; 2]) = (cast(*a), cast(*b));
        for (sum, (a, b)) in sums.iter_mut().zip(a.into_iter().zip(b)) {
            *sum = self.0.neon.vfmaq_f32(*sum, a, b);
        }
        sums
    }

    #[inline(always)]
    fn accumulate(self, out: &mut Floats, scale: f32, a: &Floats) {
        let ([o0, o1], [a0, a1]): ([float32x4_t; 2], [float32x4_t; 2]) = (cast(*out), cast(*a));
        *out = cast([self.0.neon.vfmaq_n_f32(o0, a0, scale), self.0.neon.vfmaq_n_f32(o1, a1, scale)]);
    }

    #[inline(always)]
    fn total(self, sums: [float32x4_t; 8]) -> [f32; 4] {
        Arrays::<true>.total(cast(sums))
    }

    #[inline(always)]
    fn no_rows(self) -> [[int32x4_t; 2]; ROWS / 4] {
        [[self.0.neon.vdupq_n_s32(0); 2]; ROWS / 4]
    }

    #[inline(always)]
    fn add_rows(self, sums: [[int32x4_t; 2]; ROWS / 4], pair: i32, rows: &IntPairs) -> [[int32x4_t; 2]; ROWS / 4] {
        let (rows, neon): ([int16x8_t; ROWS / 4], _) = (cast(*rows), self.0.neon);
        let pair: int16x8_t = cast(neon.vdupq_n_s32(pair));
        std::array::from_fn(|i| {
            let [low, high] = sums[i];
            let low = neon.vmlal_s16(low, neon.vget_low_s16(rows[i]), neon.vget_low_s16(pair));
            [low, neon.vmlal_high_s16(high, rows[i], pair)]
        })
    }

    #[inline(always)]
    fn scale_rows(self, out: &mut RowFloats, sums: [[int32x4_t; 2]; ROWS / 4], scale: f32, scales: &RowFloats) {
        let (scales, old, neon): ([float32x4_t; ROWS / 4], [float32x4_t; ROWS / 4], _) =
            (cast(*scales), cast(*out), self.0.neon);
        let four = |i: usize| {
            let sums = neon.vcvtq_f32_s32(neon.vpaddq_s32(sums[i][0], sums[i][1]));
            neon.vfmaq_f32(old[i], sums, neon.vmulq_n_f32(scales[i], scale))
        };
        *out = cast::<[float32x4_t; ROWS / 4], _>(std::array::from_fn(four));
    }
}
