//! Arrays, for compilers to make vectors of.

use super::{Floats, IntPairs, Ints, Lanes, ROWS, RowFloats};
use crate::decode::quants::Words;
use backend_api::format::GROUP;

/// For machines with none of the instruction sets. `FUSED` arrays are for tests: they round a product and a sum at once, as
/// most instruction sets do, so that these can be held to their bits.
#[derive(Clone, Copy)]
pub(super) struct Arrays<const FUSED: bool>;

impl<const FUSED: bool> Arrays<FUSED> {
    /// Adds a product.
    #[inline(always)]
    fn add(self, sum: &mut f32, a: f32, b: f32) {
        *sum = if FUSED { a.mul_add(b, *sum) } else { *sum + a * b };
    }
}

impl<const FUSED: bool> Lanes for Arrays<FUSED> {
    type Sums = [Floats; 4];
    type RowSums = [i32; ROWS];
    type Dots = i32;
    type Pair = [f32; 2];
    const TILE_X: usize = 2;

    #[inline(always)]
    fn zero(self) -> [Floats; 4] {
        [[0.0; 8]; 4]
    }

    #[inline(always)]
    fn widen(self, bytes: Words) -> Ints {
        bytemuck::cast::<Words, [i8; GROUP]>(bytes).map(i16::from)
    }

    #[inline(always)]
    fn lookup(self, bytes: Words, levels: &[i8; 16]) -> Words {
        bytemuck::cast(bytemuck::cast::<Words, [u8; GROUP]>(bytes).map(|q| levels[usize::from(q & 15)]))
    }

    #[inline(always)]
    fn scale(self, mut ints: Ints, factors: [i16; 2]) -> Ints {
        for (ints, factor) in ints.chunks_exact_mut(GROUP / 2).zip(factors) {
            ints.iter_mut().for_each(|q| *q *= factor);
        }
        ints
    }

    #[inline(always)]
    fn no_pair(self) -> [f32; 2] {
        [0.0; 2]
    }

    #[inline(always)]
    fn dots(self, x: &Ints, w: &Ints) -> [i32; 2] {
        let product = |i: usize| i32::from(x[i]) * i32::from(w[i]);
        [(0..GROUP / 2).map(product).sum(), (GROUP / 2..GROUP).map(product).sum()]
    }

    #[inline(always)]
    fn join(self, dots: [i32; 2]) -> i32 {
        dots[0] + dots[1]
    }

    #[inline(always)]
    fn add_pairs(self, mut sums: [f32; 2], scales: [[f32; 2]; 2], dots: [[i32; 2]; 2]) -> [f32; 2] {
        for (scales, dots) in scales.iter().zip(dots) {
            for ((sum, scale), dot) in sums.iter_mut().zip(scales).zip(dots) {
                self.add(sum, *scale, dot as f32);
            }
        }
        sums
    }

    #[inline(always)]
    fn pair(self, sums: [f32; 2]) -> [f32; 2] {
        sums
    }

    #[inline(always)]
    fn add_floats(self, mut sums: [Floats; 4], a: &[Floats; 4], b: &[Floats; 4]) -> [Floats; 4] {
        for ((sum, a), b) in sums.as_flattened_mut().iter_mut().zip(a.as_flattened()).zip(b.as_flattened()) {
            self.add(sum, *a, *b);
        }
        sums
    }

    #[inline(always)]
    fn add_eight(self, mut sums: [Floats; 4], a: &Floats, b: &Floats) -> [Floats; 4] {
        for ((sum, a), b) in sums[0].iter_mut().zip(a).zip(b) {
            self.add(sum, *a, *b);
        }
        sums
    }

    #[inline(always)]
    fn accumulate(self, out: &mut Floats, scale: f32, a: &Floats) {
        for (out, a) in out.iter_mut().zip(a) {
            self.add(out, scale, *a);
        }
    }

    #[inline(always)]
    fn total(self, sums: [Floats; 4]) -> [f32; 4] {
        sums.map(|s| ((s[0] + s[4]) + (s[1] + s[5])) + ((s[2] + s[6]) + (s[3] + s[7])))
    }

    #[inline(always)]
    fn no_rows(self) -> [i32; ROWS] {
        [0; ROWS]
    }

    #[inline(always)]
    fn add_rows(self, mut sums: [i32; ROWS], pair: i32, rows: &IntPairs) -> [i32; ROWS] {
        let halves = bytemuck::cast::<i32, [i16; 2]>;
        let [a, b] = halves(pair).map(i32::from);
        for (sum, row) in sums.iter_mut().zip(rows) {
            let [c, d] = halves(*row).map(i32::from);
            *sum += a * c + b * d;
        }
        sums
    }

    #[inline(always)]
    fn scale_rows(self, out: &mut RowFloats, sums: [i32; ROWS], scale: f32, scales: &RowFloats) {
        for ((out, sum), scales) in out.iter_mut().zip(sums).zip(scales) {
            self.add(out, scale * scales, sum as f32);
        }
    }
}
