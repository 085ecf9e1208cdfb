//! WebAssembly's vectors of 128 bits.

use super::{Floats, IntPairs, Ints, Lanes, ROWS, RowFloats};
use crate::decode::quants::Words;
use bytemuck::cast;
use std::arch::wasm32::{
    f32x4, f32x4_add, f32x4_convert_i32x4, f32x4_mul, f32x4_splat, i8x16_swizzle, i16x8_extend_high_i8x16,
    i16x8_extend_low_i8x16, i16x8_mul, i16x8_splat, i32x4_add, i32x4_dot_i16x8, i32x4_shuffle, i32x4_splat, v128,
};

#[inline(always)]
fn wide(bytes: v128) -> [v128; 2] {
    [i16x8_extend_low_i8x16(bytes), i16x8_extend_high_i8x16(bytes)]
}

/// Sums of two lanes of each vector: a, b, a, b.
#[inline(always)]
fn pairs([a, b]: [v128; 2]) -> v128 {
    i32x4_add(i32x4_shuffle::<0, 4, 1, 5>(a, b), i32x4_shuffle::<2, 6, 3, 7>(a, b))
}

/// Adds the products of two vectors each.
#[inline(always)]
fn add(sums: v128, a: &Floats, b: &Floats) -> v128 {
    let ([a0, a1], [b0, b1]): ([v128; 2], [v128; 2]) = (cast(*a), cast(*b));
    f32x4_add(sums, f32x4_add(f32x4_mul(a0, b0), f32x4_mul(a1, b1)))
}

/// WebAssembly's vectors of 128 bits.
#[derive(Clone, Copy)]
pub(super) struct Simd128;

impl Lanes for Simd128 {
    type Sums = [v128; 4];
    type RowSums = [v128; ROWS / 4];
    type Dots = v128;
    type Pair = v128;
    const TILE_X: usize = 2;

    #[inline(always)]
    fn zero(self) -> [v128; 4] {
        [f32x4_splat(0.0); 4]
    }

    #[inline(always)]
    fn widen(self, bytes: Words) -> Ints {
        let [a, b]: [v128; 2] = cast(bytes);
        let ([a0, a1], [b0, b1]) = (wide(a), wide(b));
        cast([a0, a1, b0, b1])
    }

    #[inline(always)]
    fn lookup(self, bytes: Words, levels: &[i8; 16]) -> Words {
        let ([a, b], table): ([v128; 2], v128) = (cast(bytes), cast(*levels));
        cast([i8x16_swizzle(table, a), i8x16_swizzle(table, b)])
    }

    #[inline(always)]
    fn scale(self, ints: Ints, [f, g]: [i16; 2]) -> Ints {
        let ([a, b, c, d], f, g): ([v128; 4], _, _) = (cast(ints), i16x8_splat(f), i16x8_splat(g));
        cast([i16x8_mul(a, f), i16x8_mul(b, f), i16x8_mul(c, g), i16x8_mul(d, g)])
    }

    #[inline(always)]
    fn no_pair(self) -> v128 {
        f32x4_splat(0.0)
    }

    #[inline(always)]
    fn dots(self, x: &Ints, w: &Ints) -> [v128; 2] {
        let (x, w): ([v128; 4], [v128; 4]) = (cast(*x), cast(*w));
        let half = |i: usize| i32x4_add(i32x4_dot_i16x8(x[i], w[i]), i32x4_dot_i16x8(x[i + 1], w[i + 1]));
        [half(0), half(2)]
    }

    #[inline(always)]
    fn join(self, [a, b]: [v128; 2]) -> v128 {
        i32x4_add(a, b)
    }

    #[inline(always)]
    fn add_pairs(self, sums: v128, [first, second]: [[f32; 2]; 2], dots: [[v128; 2]; 2]) -> v128 {
        let (p, q) = (pairs(dots[0]), pairs(dots[1]));
        let dots = i32x4_add(i32x4_shuffle::<0, 1, 4, 5>(p, q), i32x4_shuffle::<2, 3, 6, 7>(p, q));
        let products = f32x4_mul(f32x4_convert_i32x4(dots), f32x4(first[0], first[1], second[0], second[1]));
        let sums = f32x4_add(sums, products);
        f32x4_add(sums, i32x4_shuffle::<2, 3, 2, 3>(products, products))
    }

    #[inline(always)]
    fn pair(self, sums: v128) -> [f32; 2] {
        let [a, b, ..]: [f32; 4] = cast(sums);
        [a, b]
    }

    #[inline(always)]
    fn add_floats(self, sums: [v128; 4], a: &[Floats; 4], b: &[Floats; 4]) -> [v128; 4] {
        std::array::from_fn(|i| add(sums[i], &a[i], &b[i]))
    }

    #[inline(always)]
    fn add_eight(self, mut sums: [v128; 4], a: &Floats, b: &Floats) -> [v128; 4] {
        sums[0] = add(sums[0], a, b);
        sums
    }

    #[inline(always)]
    fn accumulate(self, out: &mut Floats, scale: f32, a: &Floats) {
        let ([o0, o1], [a0, a1]): ([v128; 2], [v128; 2]) = (cast(*out), cast(*a));
        let scale = f32x4_splat(scale);
        *out = cast([f32x4_add(o0, f32x4_mul(scale, a0)), f32x4_add(o1, f32x4_mul(scale, a1))]);
    }

    #[inline(always)]
    fn total(self, sums: [v128; 4]) -> [f32; 4] {
        sums.map(|sums| {
            let s: [f32; 4] = cast(sums);
            (s[0] + s[2]) + (s[1] + s[3])
        })
    }

    #[inline(always)]
    fn no_rows(self) -> [v128; ROWS / 4] {
        [i32x4_splat(0); ROWS / 4]
    }

    #[inline(always)]
    fn add_rows(self, sums: [v128; ROWS / 4], pair: i32, rows: &IntPairs) -> [v128; ROWS / 4] {
        let (rows, pair): ([v128; ROWS / 4], _) = (cast(*rows), i32x4_splat(pair));
        std::array::from_fn(|i| i32x4_add(sums[i], i32x4_dot_i16x8(pair, rows[i])))
    }

    #[inline(always)]
    fn scale_rows(self, out: &mut RowFloats, sums: [v128; ROWS / 4], scale: f32, scales: &RowFloats) {
        let (old, scales): ([v128; ROWS / 4], [v128; ROWS / 4]) = (cast(*out), cast(*scales));
        let four = |i: usize| {
            let scales = f32x4_mul(f32x4_splat(scale), scales[i]);
            f32x4_add(old[i], f32x4_mul(f32x4_convert_i32x4(sums[i]), scales))
        };
        *out = cast::<[v128; ROWS / 4], _>(std::array::from_fn(four));
    }
}
