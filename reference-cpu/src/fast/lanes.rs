//! The vector operations that dot products are made of, for each instruction set that has it.

use crate::decode::quants::Words;
use backend_api::format::GROUP;

/// 32 integers of 16 bits.
pub(crate) type Ints = [i16; GROUP];

/// 8 floats.
pub(crate) type Floats = [f32; 8];

/// Pairs of 16-bit integers, which are neighbours in 8 rows.
pub(crate) type IntPairs = [i32; 8];

/// An instruction set that multiplies pairs of 16-bit integers and adds them up.
pub(crate) trait Lanes: Copy {
    /// Partial sums, one a lane.
    type Sums: Copy;
    /// Sums of 8 rows in integers.
    type RowSums: Copy;
    /// Sums of products in integers, one a lane.
    type Dots: Copy;
    /// Sums of two rows of weights.
    type Pair: Copy;
    /// Whether there are registers for the sums of 4 rows of x with 16 rows of weights, or only with 8.
    const WIDE: bool;

    /// No sums yet.
    fn zero(self) -> Self::Sums;

    /// Signed bytes as integers.
    fn widen(self, bytes: Words) -> Ints;

    /// What bytes below 16 stand for.
    fn lookup(self, bytes: Words, levels: &[i8; 16]) -> Words;

    /// Multiplies each half by a factor.
    fn scale(self, ints: Ints, factors: [i16; 2]) -> Ints;

    /// No sums yet.
    fn no_pair(self) -> Self::Pair;

    /// The products of each half, added up in 32 bits.
    fn dots(self, x: &Ints, w: &Ints) -> [Self::Dots; 2];

    /// The sum of both.
    fn join(self, dots: [Self::Dots; 2]) -> Self::Dots;

    /// Adds `scales * dots` for both rows, twice, one after the other. Sums of integers are whole before they are scaled.
    fn add_pairs(self, sums: Self::Pair, scales: [[f32; 2]; 2], dots: [[Self::Dots; 2]; 2]) -> Self::Pair;

    /// The sums.
    fn pair(self, sums: Self::Pair) -> [f32; 2];

    /// Adds `a . b`.
    fn add_floats(self, sums: Self::Sums, a: &Floats, b: &Floats) -> Self::Sums;

    /// Adds `scale * a` to `out`.
    fn accumulate(self, out: &mut Floats, scale: f32, a: &Floats);

    /// The sum over all lanes.
    fn total(self, sums: Self::Sums) -> f32;

    /// No sums yet.
    fn no_rows(self) -> Self::RowSums;

    /// Adds the product of a pair with that of each row: both products of a pair to one sum.
    fn add_rows(self, sums: Self::RowSums, pair: i32, rows: &IntPairs) -> Self::RowSums;

    /// Adds `scale * scales * sums` to `out`, row by row.
    fn scale_rows(self, out: &mut Floats, sums: Self::RowSums, scale: f32, scales: &Floats);
}

/// What is compiled for every instruction set.
pub(crate) trait Work {
    /// Does it. Inlined into functions of the instruction set, as all that it calls must be.
    fn run(self, lanes: impl Lanes);
}

/// Runs work on the best instruction set at hand.
#[cfg(target_arch = "x86_64")]
#[inline(never)]
pub(crate) fn dispatch<W: Work>(work: W) {
    struct Call<W>(W, pulp::x86::V3);
    impl<W: Work> pulp::NullaryFnOnce for Call<W> {
        type Output = ();
        #[inline(always)]
        fn call(self) {
            self.0.run(avx2::Avx2(self.1));
        }
    }
    match pulp::x86::V3::try_new() {
        Some(v3) => v3.vectorize(Call(work, v3)),
        None => work.run(Portable),
    }
}

/// Runs work on the best instruction set at hand.
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
#[inline(never)]
pub(crate) fn dispatch(work: impl Work) {
    work.run(simd128::Simd128);
}

/// Runs work on the best instruction set at hand.
#[cfg(not(any(target_arch = "x86_64", all(target_arch = "wasm32", target_feature = "simd128"))))]
#[inline(never)]
pub(crate) fn dispatch(work: impl Work) {
    work.run(Portable);
}

/// Arrays, for compilers to make vectors of.
#[cfg_attr(all(target_arch = "wasm32", target_feature = "simd128"), allow(dead_code))]
#[derive(Clone, Copy)]
pub(crate) struct Portable;

impl Lanes for Portable {
    type Sums = [f32; 8];
    type RowSums = [i32; 8];
    type Dots = i32;
    type Pair = [f32; 2];
    const WIDE: bool = false;

    #[inline(always)]
    fn zero(self) -> [f32; 8] {
        [0.0; 8]
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
                *sum += scale * dot as f32;
            }
        }
        sums
    }

    #[inline(always)]
    fn pair(self, sums: [f32; 2]) -> [f32; 2] {
        sums
    }

    #[inline(always)]
    fn add_floats(self, mut sums: [f32; 8], a: &Floats, b: &Floats) -> [f32; 8] {
        for ((sum, a), b) in sums.iter_mut().zip(a).zip(b) {
            *sum += a * b;
        }
        sums
    }

    #[inline(always)]
    fn accumulate(self, out: &mut Floats, scale: f32, a: &Floats) {
        for (out, a) in out.iter_mut().zip(a) {
            *out += scale * a;
        }
    }

    #[inline(always)]
    fn total(self, s: [f32; 8]) -> f32 {
        ((s[0] + s[4]) + (s[1] + s[5])) + ((s[2] + s[6]) + (s[3] + s[7]))
    }

    #[inline(always)]
    fn no_rows(self) -> [i32; 8] {
        [0; 8]
    }

    #[inline(always)]
    fn add_rows(self, mut sums: [i32; 8], pair: i32, rows: &IntPairs) -> [i32; 8] {
        let halves = bytemuck::cast::<i32, [i16; 2]>;
        let [a, b] = halves(pair).map(i32::from);
        for (sum, row) in sums.iter_mut().zip(rows) {
            let [c, d] = halves(*row).map(i32::from);
            *sum += a * c + b * d;
        }
        sums
    }

    #[inline(always)]
    fn scale_rows(self, out: &mut Floats, sums: [i32; 8], scale: f32, scales: &Floats) {
        for ((out, sum), scales) in out.iter_mut().zip(sums).zip(scales) {
            *out += scale * scales * sum as f32;
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use super::{Floats, IntPairs, Ints, Lanes, Words};
    use bytemuck::cast;
    use std::arch::x86_64::{__m128, __m128i, __m256, __m256i};

    /// AVX2 and FMA, known to be there.
    #[derive(Clone, Copy)]
    pub(super) struct Avx2(pub pulp::x86::V3);

    impl Avx2 {
        /// Sums of the lanes of each half of two vectors: a, b, a, b, and again for the upper half.
        #[inline(always)]
        fn pairs(self, [a, b]: [__m256i; 2]) -> __m256i {
            let avx2 = self.0.avx2;
            avx2._mm256_add_epi32(avx2._mm256_unpacklo_epi32(a, b), avx2._mm256_unpackhi_epi32(a, b))
        }
    }

    impl Lanes for Avx2 {
        type Sums = __m256;
        type RowSums = __m256i;
        type Dots = __m256i;
        type Pair = __m128;
        const WIDE: bool = true;

        #[inline(always)]
        fn zero(self) -> __m256 {
            self.0.avx._mm256_setzero_ps()
        }

        #[inline(always)]
        fn widen(self, bytes: Words) -> Ints {
            let [a, b]: [__m128i; 2] = cast(bytes);
            let avx2 = self.0.avx2;
            cast([avx2._mm256_cvtepi8_epi16(a), avx2._mm256_cvtepi8_epi16(b)])
        }

        #[inline(always)]
        fn lookup(self, bytes: Words, levels: &[i8; 16]) -> Words {
            let table = self.0.avx2._mm256_broadcastsi128_si256(cast(*levels));
            cast(self.0.avx2._mm256_shuffle_epi8(table, cast(bytes)))
        }

        #[inline(always)]
        fn scale(self, ints: Ints, [f, g]: [i16; 2]) -> Ints {
            let ([a, b], avx, avx2): ([__m256i; 2], _, _) = (cast(ints), self.0.avx, self.0.avx2);
            let (f, g) = (avx._mm256_set1_epi16(f), avx._mm256_set1_epi16(g));
            cast([avx2._mm256_mullo_epi16(a, f), avx2._mm256_mullo_epi16(b, g)])
        }

        #[inline(always)]
        fn no_pair(self) -> __m128 {
            self.0.sse._mm_setzero_ps()
        }

        #[inline(always)]
        fn dots(self, x: &Ints, w: &Ints) -> [__m256i; 2] {
            let ([x0, x1], [w0, w1]): ([__m256i; 2], [__m256i; 2]) = (cast(*x), cast(*w));
            [self.0.avx2._mm256_madd_epi16(x0, w0), self.0.avx2._mm256_madd_epi16(x1, w1)]
        }

        #[inline(always)]
        fn join(self, [a, b]: [__m256i; 2]) -> __m256i {
            self.0.avx2._mm256_add_epi32(a, b)
        }

        #[inline(always)]
        fn add_pairs(self, sums: __m128, [first, second]: [[f32; 2]; 2], dots: [[__m256i; 2]; 2]) -> __m128 {
            let (sse, sse2, avx2, fma) = (self.0.sse, self.0.sse2, self.0.avx2, self.0.fma);
            let (p, q) = (self.pairs(dots[0]), self.pairs(dots[1]));
            let halves: [__m128i; 2] =
                cast(avx2._mm256_add_epi32(avx2._mm256_unpacklo_epi64(p, q), avx2._mm256_unpackhi_epi64(p, q)));
            let dots = sse2._mm_cvtepi32_ps(sse2._mm_add_epi32(halves[0], halves[1]));
            let scales = sse._mm_set_ps(second[1], second[0], first[1], first[0]);
            let sums = fma._mm_fmadd_ps(dots, scales, sums);
            fma._mm_fmadd_ps(sse._mm_movehl_ps(dots, dots), sse._mm_movehl_ps(scales, scales), sums)
        }

        #[inline(always)]
        fn pair(self, sums: __m128) -> [f32; 2] {
            let [a, b, ..]: [f32; 4] = cast(sums);
            [a, b]
        }

        #[inline(always)]
        fn add_floats(self, sums: __m256, a: &Floats, b: &Floats) -> __m256 {
            self.0.fma._mm256_fmadd_ps(cast(*a), cast(*b), sums)
        }

        #[inline(always)]
        fn accumulate(self, out: &mut Floats, scale: f32, a: &Floats) {
            *out = cast(self.add_floats(cast(*out), &[scale; 8], a));
        }

        #[inline(always)]
        fn total(self, sums: __m256) -> f32 {
            super::Portable.total(cast(sums))
        }

        #[inline(always)]
        fn no_rows(self) -> __m256i {
            self.0.avx._mm256_setzero_si256()
        }

        #[inline(always)]
        fn add_rows(self, sums: __m256i, pair: i32, rows: &IntPairs) -> __m256i {
            let (avx, avx2) = (self.0.avx, self.0.avx2);
            avx2._mm256_add_epi32(sums, avx2._mm256_madd_epi16(avx._mm256_set1_epi32(pair), cast(*rows)))
        }

        #[inline(always)]
        fn scale_rows(self, out: &mut Floats, sums: __m256i, scale: f32, scales: &Floats) {
            let avx = self.0.avx;
            let scales = avx._mm256_mul_ps(avx._mm256_set1_ps(scale), cast(*scales));
            *out = cast(self.0.fma._mm256_fmadd_ps(avx._mm256_cvtepi32_ps(sums), scales, cast(*out)));
        }
    }
}

#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
mod simd128 {
    use super::{Floats, IntPairs, Ints, Lanes, Words};
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

    /// WebAssembly's vectors of 128 bits.
    #[derive(Clone, Copy)]
    pub(super) struct Simd128;

    impl Lanes for Simd128 {
        type Sums = v128;
        type RowSums = [v128; 2];
        type Dots = v128;
        type Pair = v128;
        const WIDE: bool = false;

        #[inline(always)]
        fn zero(self) -> v128 {
            f32x4_splat(0.0)
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
        fn add_floats(self, sums: v128, a: &Floats, b: &Floats) -> v128 {
            let ([a0, a1], [b0, b1]): ([v128; 2], [v128; 2]) = (cast(*a), cast(*b));
            f32x4_add(sums, f32x4_add(f32x4_mul(a0, b0), f32x4_mul(a1, b1)))
        }

        #[inline(always)]
        fn accumulate(self, out: &mut Floats, scale: f32, a: &Floats) {
            let ([o0, o1], [a0, a1]): ([v128; 2], [v128; 2]) = (cast(*out), cast(*a));
            let scale = f32x4_splat(scale);
            *out = cast([f32x4_add(o0, f32x4_mul(scale, a0)), f32x4_add(o1, f32x4_mul(scale, a1))]);
        }

        #[inline(always)]
        fn total(self, sums: v128) -> f32 {
            let s: [f32; 4] = cast(sums);
            (s[0] + s[2]) + (s[1] + s[3])
        }

        #[inline(always)]
        fn no_rows(self) -> [v128; 2] {
            [i32x4_splat(0); 2]
        }

        #[inline(always)]
        fn add_rows(self, [s, t]: [v128; 2], pair: i32, rows: &IntPairs) -> [v128; 2] {
            let ([a, b], pair): ([v128; 2], _) = (cast(*rows), i32x4_splat(pair));
            [i32x4_add(s, i32x4_dot_i16x8(pair, a)), i32x4_add(t, i32x4_dot_i16x8(pair, b))]
        }

        #[inline(always)]
        fn scale_rows(self, out: &mut Floats, sums: [v128; 2], scale: f32, scales: &Floats) {
            let (out_parts, scale_parts): ([v128; 2], [v128; 2]) = (cast(*out), cast(*scales));
            let part = |i: usize| {
                let scales = f32x4_mul(f32x4_splat(scale), scale_parts[i]);
                f32x4_add(out_parts[i], f32x4_mul(f32x4_convert_i32x4(sums[i]), scales))
            };
            *out = cast([part(0), part(1)]);
        }
    }
}
