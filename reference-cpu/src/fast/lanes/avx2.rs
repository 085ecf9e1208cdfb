//! AVX2 and FMA.

use super::arrays::Arrays;
use super::{Floats, IntPairs, Ints, Lanes, ROWS, RowFloats};
use crate::decode::quants::Words;
use backend_api::format::GROUP;
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

    /// Columns of four rows, of each half four.
    #[inline(always)]
    fn columns_of_four(self, [a, b, c, d]: [__m256i; 4]) -> [__m256i; 4] {
        let avx2 = self.0.avx2;
        let (ab, cd) = (avx2._mm256_unpacklo_epi32(a, b), avx2._mm256_unpacklo_epi32(c, d));
        let (ab_high, cd_high) = (avx2._mm256_unpackhi_epi32(a, b), avx2._mm256_unpackhi_epi32(c, d));
        [
            avx2._mm256_unpacklo_epi64(ab, cd),
            avx2._mm256_unpackhi_epi64(ab, cd),
            avx2._mm256_unpacklo_epi64(ab_high, cd_high),
            avx2._mm256_unpackhi_epi64(ab_high, cd_high),
        ]
    }

    /// Columns of eight rows.
    // Without closures, in which instructions are not inlined.
    #[inline(always)]
    fn columns(self, [a, b, c, d, e, f, g, h]: [__m256i; 8]) -> [__m256i; 8] {
        let avx2 = self.0.avx2;
        let [a, b, c, d] = self.columns_of_four([a, b, c, d]);
        let [e, f, g, h] = self.columns_of_four([e, f, g, h]);
        [
            avx2._mm256_permute2x128_si256::<0x20>(a, e),
            avx2._mm256_permute2x128_si256::<0x20>(b, f),
            avx2._mm256_permute2x128_si256::<0x20>(c, g),
            avx2._mm256_permute2x128_si256::<0x20>(d, h),
            avx2._mm256_permute2x128_si256::<0x31>(a, e),
            avx2._mm256_permute2x128_si256::<0x31>(b, f),
            avx2._mm256_permute2x128_si256::<0x31>(c, g),
            avx2._mm256_permute2x128_si256::<0x31>(d, h),
        ]
    }
}

impl Lanes for Avx2 {
    type Sums = [__m256; 4];
    type RowSums = [__m256i; 2];
    type Dots = __m256i;
    type Pair = __m128;
    const TILE_X: usize = 4;

    #[inline(always)]
    fn zero(self) -> [__m256; 4] {
        [self.0.avx._mm256_setzero_ps(); 4]
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
    fn add_floats(self, sums: [__m256; 4], a: &[Floats; 4], b: &[Floats; 4]) -> [__m256; 4] {
        std::array::from_fn(|i| self.0.fma._mm256_fmadd_ps(cast(a[i]), cast(b[i]), sums[i]))
    }

    #[inline(always)]
    fn add_eight(self, mut sums: [__m256; 4], a: &Floats, b: &Floats) -> [__m256; 4] {
        sums[0] = self.0.fma._mm256_fmadd_ps(cast(*a), cast(*b), sums[0]);
        sums
    }

    #[inline(always)]
    fn accumulate(self, out: &mut Floats, scale: f32, a: &Floats) {
        *out = cast(self.0.fma._mm256_fmadd_ps(self.0.avx._mm256_set1_ps(scale), cast(*a), cast(*out)));
    }

    #[inline(always)]
    fn total(self, sums: [__m256; 4]) -> [f32; 4] {
        Arrays::<true>.total(cast(sums))
    }

    #[inline(always)]
    fn no_rows(self) -> [__m256i; 2] {
        [self.0.avx._mm256_setzero_si256(); 2]
    }

    #[inline(always)]
    fn beside(self, rows: &[Ints; ROWS]) -> [IntPairs; GROUP / 2] {
        let mut out = [[0; ROWS]; GROUP / 2];
        for (half, out) in out.as_chunks_mut::<8>().0.iter_mut().enumerate() {
            let mut of: [[__m256i; 8]; 2] = [[self.0.avx._mm256_setzero_si256(); 8]; 2];
            for (of, row) in of.as_flattened_mut().iter_mut().zip(rows) {
                *of = cast::<_, [__m256i; 2]>(*row)[half];
            }
            let [first, last] = of;
            let (first, last) = (self.columns(first), self.columns(last));
            for ((out, first), last) in out.iter_mut().zip(first).zip(last) {
                *out = cast([first, last]);
            }
        }
        out
    }

    #[inline(always)]
    fn add_rows(self, [a, b]: [__m256i; 2], pair: i32, rows: &IntPairs) -> [__m256i; 2] {
        let (avx2, pair) = (self.0.avx2, self.0.avx._mm256_set1_epi32(pair));
        let [c, d]: [__m256i; 2] = cast(*rows);
        [
            avx2._mm256_add_epi32(a, avx2._mm256_madd_epi16(pair, c)),
            avx2._mm256_add_epi32(b, avx2._mm256_madd_epi16(pair, d)),
        ]
    }

    #[inline(always)]
    fn scale_rows(self, out: &mut RowFloats, sums: [__m256i; 2], scale: f32, scales: &RowFloats) {
        let (avx, scale) = (self.0.avx, self.0.avx._mm256_set1_ps(scale));
        let (scales, old): ([__m256; 2], [__m256; 2]) = (cast(*scales), cast(*out));
        let eight = |i: usize| {
            let scales = avx._mm256_mul_ps(scale, scales[i]);
            self.0.fma._mm256_fmadd_ps(avx._mm256_cvtepi32_ps(sums[i]), scales, old[i])
        };
        *out = cast([eight(0), eight(1)]);
    }
}
