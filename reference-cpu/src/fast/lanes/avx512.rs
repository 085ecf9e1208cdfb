//! AVX-512: vectors of 512 bits, and 32 of them.
//!
//! Products of many rows of x gain by it, and those of floats, which bind themselves to loads. Products of few rows are
//! those of [AVX2](super::avx2): what they add up across lanes are the halves of a vector of 512 bits first.

use super::avx2::Avx2;
use super::{Floats, IntPairs, Ints, Lanes, RowFloats};
use crate::decode::quants::Words;
use bytemuck::cast;
use std::arch::x86_64::{__m128, __m256i, __m512, __m512i};

/// The parts of AVX-512 that all processors with more than its foundation have, known to be there.
#[derive(Clone, Copy)]
pub(super) struct Avx512(pub pulp::x86::V4);

impl Avx512 {
    #[inline(always)]
    fn avx2(self) -> Avx2 {
        Avx2(*self.0)
    }
}

impl Lanes for Avx512 {
    type Sums = [__m512; 2];
    type RowSums = __m512i;
    type Dots = __m256i;
    type Pair = __m128;
    const TILE_X: usize = 8;

    #[inline(always)]
    fn zero(self) -> [__m512; 2] {
        [self.0.avx512f._mm512_setzero_ps(); 2]
    }

    #[inline(always)]
    fn widen(self, bytes: Words) -> Ints {
        self.avx2().widen(bytes)
    }

    #[inline(always)]
    fn lookup(self, bytes: Words, levels: &[i8; 16]) -> Words {
        self.avx2().lookup(bytes, levels)
    }

    #[inline(always)]
    fn scale(self, ints: Ints, factors: [i16; 2]) -> Ints {
        self.avx2().scale(ints, factors)
    }

    #[inline(always)]
    fn no_pair(self) -> __m128 {
        self.avx2().no_pair()
    }

    #[inline(always)]
    fn dots(self, x: &Ints, w: &Ints) -> [__m256i; 2] {
        self.avx2().dots(x, w)
    }

    #[inline(always)]
    fn join(self, dots: [__m256i; 2]) -> __m256i {
        self.avx2().join(dots)
    }

    #[inline(always)]
    fn add_pairs(self, sums: __m128, scales: [[f32; 2]; 2], dots: [[__m256i; 2]; 2]) -> __m128 {
        self.avx2().add_pairs(sums, scales, dots)
    }

    #[inline(always)]
    fn pair(self, sums: __m128) -> [f32; 2] {
        self.avx2().pair(sums)
    }

    #[inline(always)]
    fn add_floats(self, sums: [__m512; 2], a: &[Floats; 4], b: &[Floats; 4]) -> [__m512; 2] {
        let ([a0, a1], [b0, b1]): ([__m512; 2], [__m512; 2]) = (cast(*a), cast(*b));
        let avx512f = self.0.avx512f;
        [avx512f._mm512_fmadd_ps(a0, b0, sums[0]), avx512f._mm512_fmadd_ps(a1, b1, sums[1])]
    }

    #[inline(always)]
    fn add_eight(self, [sums, rest]: [__m512; 2], a: &Floats, b: &Floats) -> [__m512; 2] {
        let avx512f = self.0.avx512f;
        let [a, b] = [a, b].map(|floats| avx512f._mm512_castps256_ps512(cast(*floats)));
        [avx512f._mm512_mask3_fmadd_ps(a, b, sums, 0x00FF), rest]
    }

    #[inline(always)]
    fn accumulate(self, out: &mut Floats, scale: f32, a: &Floats) {
        self.avx2().accumulate(out, scale, a);
    }

    #[inline(always)]
    fn total(self, sums: [__m512; 2]) -> [f32; 4] {
        self.avx2().total(cast(sums))
    }

    #[inline(always)]
    fn no_rows(self) -> __m512i {
        self.0.avx512f._mm512_setzero_si512()
    }

    #[inline(always)]
    fn add_rows(self, sums: __m512i, pair: i32, rows: &IntPairs) -> __m512i {
        let (avx512f, avx512bw) = (self.0.avx512f, self.0.avx512bw);
        avx512f._mm512_add_epi32(sums, avx512bw._mm512_madd_epi16(avx512f._mm512_set1_epi32(pair), cast(*rows)))
    }

    #[inline(always)]
    fn scale_rows(self, out: &mut RowFloats, sums: __m512i, scale: f32, scales: &RowFloats) {
        let avx512f = self.0.avx512f;
        let scales = avx512f._mm512_mul_ps(avx512f._mm512_set1_ps(scale), cast(*scales));
        *out = cast(avx512f._mm512_fmadd_ps(avx512f._mm512_cvtepi32_ps(sums), scales, cast(*out)));
    }
}
