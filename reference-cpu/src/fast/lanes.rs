//! The vector operations that dot products are made of, for each instruction set that has it.

use crate::decode::quants::Words;
use backend_api::format::GROUP;

/// 32 integers of 16 bits.
pub(crate) type Ints = [i16; GROUP];

/// 8 floats.
pub(crate) type Floats = [f32; 8];

/// An instruction set that multiplies pairs of 16-bit integers and adds them up.
pub(crate) trait Lanes: Copy {
    /// Partial sums, one a lane.
    type Sums: Copy;

    /// No sums yet.
    fn zero(self) -> Self::Sums;

    /// Signed bytes as integers.
    fn widen(self, bytes: Words) -> Ints;

    /// What bytes below 16 stand for.
    fn lookup(self, bytes: Words, levels: &[i8; 16]) -> Words;

    /// Multiplies each half by a factor.
    fn scale(self, ints: Ints, factors: [i16; 2]) -> Ints;

    /// Adds `scale * (a . b)`. Products are added up in 32 bits before they are scaled.
    fn add(self, sums: Self::Sums, scale: f32, a: &Ints, b: &Ints) -> Self::Sums;

    /// Adds `a . b`.
    fn add_floats(self, sums: Self::Sums, a: &Floats, b: &Floats) -> Self::Sums;

    /// Adds `scale * a` to `out`.
    fn accumulate(self, out: &mut Floats, scale: f32, a: &Floats);

    /// The sum over all lanes.
    fn total(self, sums: Self::Sums) -> f32;
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
    fn add(self, mut sums: [f32; 8], scale: f32, a: &Ints, b: &Ints) -> [f32; 8] {
        for (lane, sum) in sums.iter_mut().enumerate() {
            let product = |i: usize| i32::from(a[i]) * i32::from(b[i]);
            let dot = product(lane) + product(lane + 8) + product(lane + 16) + product(lane + 24);
            *sum += dot as f32 * scale;
        }
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
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use super::{Floats, Ints, Lanes, Words};
    use bytemuck::cast;
    use std::arch::x86_64::{__m128i, __m256, __m256i};

    /// AVX2 and FMA, known to be there.
    #[derive(Clone, Copy)]
    pub(super) struct Avx2(pub pulp::x86::V3);

    impl Lanes for Avx2 {
        type Sums = __m256;

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
        fn add(self, sums: __m256, scale: f32, a: &Ints, b: &Ints) -> __m256 {
            let (avx, avx2) = (self.0.avx, self.0.avx2);
            let ([a0, a1], [b0, b1]): ([__m256i; 2], [__m256i; 2]) = (cast(*a), cast(*b));
            let dot = avx2._mm256_add_epi32(avx2._mm256_madd_epi16(a0, b0), avx2._mm256_madd_epi16(a1, b1));
            self.0.fma._mm256_fmadd_ps(avx._mm256_cvtepi32_ps(dot), avx._mm256_set1_ps(scale), sums)
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
    }
}

#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
mod simd128 {
    use super::{Floats, Ints, Lanes, Words};
    use bytemuck::cast;
    use std::arch::wasm32::{
        f32x4_add, f32x4_convert_i32x4, f32x4_mul, f32x4_splat, i8x16_swizzle, i16x8_extend_high_i8x16,
        i16x8_extend_low_i8x16, i16x8_mul, i16x8_splat, i32x4_add, i32x4_dot_i16x8, v128,
    };

    #[inline(always)]
    fn wide(bytes: v128) -> [v128; 2] {
        [i16x8_extend_low_i8x16(bytes), i16x8_extend_high_i8x16(bytes)]
    }

    /// WebAssembly's vectors of 128 bits.
    #[derive(Clone, Copy)]
    pub(super) struct Simd128;

    impl Lanes for Simd128 {
        type Sums = v128;

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
        fn add(self, sums: v128, scale: f32, a: &Ints, b: &Ints) -> v128 {
            let (a, b): ([v128; 4], [v128; 4]) = (cast(*a), cast(*b));
            let first = i32x4_add(i32x4_dot_i16x8(a[0], b[0]), i32x4_dot_i16x8(a[1], b[1]));
            let second = i32x4_add(i32x4_dot_i16x8(a[2], b[2]), i32x4_dot_i16x8(a[3], b[3]));
            let dot = f32x4_convert_i32x4(i32x4_add(first, second));
            f32x4_add(sums, f32x4_mul(dot, f32x4_splat(scale)))
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
    }
}
