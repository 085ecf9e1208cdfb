//! Linear maps in integers: rows of x are rounded to 16 bits, quantised weights are small integers as they are.
//!
//! A group of 32 elements of x becomes integers of at most 32,767 and one scale, so an element is off by at most
//! 1/65,534 of the largest of its group. That is an NMSE below 1e-8 of x for any group, and of 4e-10 for normally
//! distributed ones: small values lose precision beside large ones, but not beside what these add to the sum. It is far
//! below any operator's tolerance, so this is no variant of lower precision, unlike activations in 8 bits.

use super::lanes::{Instructions, Ints, Lanes, Work};
use super::pairs::{Pairs, Part};
use crate::decode::quants;
use backend_api::Format;
use backend_api::format::{GROUP, Row, Visit};
use std::marker::PhantomData;

/// Rows of x whose sums with a pair of rows of weights stay in registers.
pub(super) const TILE_X: usize = 4;

/// Rows of x in integers.
#[derive(Clone, Copy)]
struct Rounded<'a> {
    q: &'a [Ints],
    /// Scale of each group, and the scaled sums of its halves.
    scales: &'a [[f32; 3]],
    groups: usize,
}

impl<'a> Rounded<'a> {
    /// Rounds rows of `k` elements, whole groups.
    fn new(instructions: Instructions, x: &[f32], k: usize, memory: &'a mut [f32]) -> Rounded<'a> {
        let (q, scales) = split(memory);
        instructions.run(Round { x, q, scales });
        Rounded { q, scales, groups: k / GROUP }
    }

    #[inline(always)]
    fn row(&self, i: usize) -> XRow<'a> {
        let at = i * self.groups;
        XRow { q: &self.q[at..][..self.groups], scales: &self.scales[at..][..self.groups] }
    }
}

/// Memory of [`size_of_groups`] as what it is for.
#[inline(always)]
pub(super) fn split(memory: &mut [f32]) -> (&mut [Ints], &mut [[f32; 3]]) {
    let (q, rest) = memory.split_at_mut(memory.len() / 19 * 16);
    (bytemuck::cast_slice_mut(q), bytemuck::cast_slice_mut(rest))
}

/// Rounds groups.
pub(super) struct Round<'a> {
    pub x: &'a [f32],
    pub q: &'a mut [Ints],
    pub scales: &'a mut [[f32; 3]],
}

impl Work for Round<'_> {
    const WIDE: bool = false;

    #[inline(always)]
    fn run(self, _: impl Lanes) {
        for ((x, q), scales) in self.x.as_chunks::<GROUP>().0.iter().zip(self.q).zip(self.scales) {
            *scales = round(x, q);
        }
    }
}

/// Rounds a group; gives its scale and the scaled sums of its halves.
#[inline(always)]
fn round(x: &[f32; GROUP], q: &mut Ints) -> [f32; 3] {
    /// Added to a number below 2^22, it leaves the nearest integer in the lowest bits.
    const SHIFT: f32 = 12_582_912.0;
    // Compared as integers, so that NaN is the largest and spoils the group, as it must. From 1e-30 on, so that the
    // inverse is finite.
    let largest = x.iter().fold(1e-30f32.to_bits(), |largest, x| largest.max(x.to_bits() & 0x7FFF_FFFF));
    let largest = f32::from_bits(largest);
    let inverse = 32_767.0 / largest;
    for (q, x) in q.iter_mut().zip(x) {
        *q = (x * inverse + SHIFT).to_bits() as i16;
    }
    let scale = largest / 32_767.0;
    let sum = |half: &[i16]| scale * half.iter().map(|q| i32::from(*q)).sum::<i32>() as f32;
    let (low, high) = q.split_at(GROUP / 2);
    [scale, sum(low), sum(high)]
}

#[derive(Clone, Copy)]
struct XRow<'a> {
    q: &'a [Ints],
    scales: &'a [[f32; 3]],
}

/// The integers of a row of weights.
pub(super) trait WRow {
    fn group(&self, lanes: impl Lanes, index: usize) -> Ints;
}

/// File blocks, taken apart where they are used.
pub(super) struct Blocks<'a, R>(pub &'a [u8], pub PhantomData<R>);

impl<R: Row> WRow for &Blocks<'_, R> {
    #[inline(always)]
    fn group(&self, lanes: impl Lanes, index: usize) -> Ints {
        let (block, index) = (index / quants::groups::<R>(), index % quants::groups::<R>());
        let block = &self.0[block * R::SPEC.block_bytes..][..R::SPEC.block_bytes];
        let q = quants::group::<R>(block, index);
        let q = lanes.widen(quants::levels::<R>().map_or(q, |levels| lanes.lookup(q, levels)));
        quants::factors::<R>(block, index).map_or(q, |factors| lanes.scale(q, factors))
    }
}

/// Groups that were taken apart before.
impl WRow for &[Ints] {
    #[inline(always)]
    fn group(&self, _: impl Lanes, index: usize) -> Ints {
        self[index]
    }
}

/// The dot products of some rows of x with a pair of rows of weights, whose scales and minima are given.
#[inline(always)]
fn tile<R: Row, L: Lanes, W: WRow, const M: usize>(
    lanes: L,
    x: [XRow<'_>; M],
    w: [W; 2],
    scales: [&[[f32; 3]]; 2],
) -> [[f32; 2]; M] {
    let mut sums = [lanes.no_pair(); M];
    let mut out = [[0f32; 2]; M];
    let groups = scales[0].len();
    for g in (0..groups).step_by(2) {
        // Where there is no second group the first stands for it, and counts for nothing.
        let next = (g + 1).min(groups - 1);
        let (a, b) = (w[0].group(lanes, g), w[1].group(lanes, g));
        let (c, d) = (w[0].group(lanes, next), w[1].group(lanes, next));
        for ((x, sums), out) in x.iter().zip(&mut sums).zip(&mut out) {
            let (q, scale) = (&x.q[g], x.scales[g][0]);
            let (a, b) = (lanes.dots(q, &a), lanes.dots(q, &b));
            let first = [scales[0][g][0] * scale, scales[1][g][0] * scale];
            let (q, scale) = (&x.q[next], if next > g { x.scales[next][0] } else { 0.0 });
            let (c, d) = (lanes.dots(q, &c), lanes.dots(q, &d));
            let second = [scales[0][next][0] * scale, scales[1][next][0] * scale];
            if quants::has_factors::<R>() {
                // The sums of a half are as large as sums may be.
                *sums = lanes.add_pairs(*sums, [first; 2], [[a[0], b[0]], [a[1], b[1]]]);
                *sums = lanes.add_pairs(*sums, [second; 2], [[c[0], d[0]], [c[1], d[1]]]);
            } else {
                let dots = [[lanes.join(a), lanes.join(b)], [lanes.join(c), lanes.join(d)]];
                *sums = lanes.add_pairs(*sums, [first, second], dots);
            }
            if quants::minima::<R>() {
                for ((x, a), b) in x.scales[g..=next].iter().zip(&scales[0][g..=next]).zip(&scales[1][g..=next]) {
                    let [_, low, high] = x;
                    let of = |[_, first, last]: &[f32; 3]| first * low + last * high;
                    *out = [out[0] + of(a), out[1] + of(b)];
                }
            }
        }
    }
    for (out, sums) in out.iter_mut().zip(sums) {
        let [a, b] = lanes.pair(sums);
        *out = [out[0] + a, out[1] + b];
    }
    out
}

/// The f32 values of memory that groups of `len` elements altogether take: integers, and three values of each group.
pub(super) const fn size_of_groups(len: usize) -> usize {
    len / 2 + len / GROUP * 3
}

/// The f32 values of memory that [`dots`] needs for `m` rows of x of `k` elements: for these, for two rows of weights, and
/// for their sums.
pub(super) fn scratch(m: usize, k: usize) -> usize {
    size_of_groups(m * k) + 2 * size_of_groups(k) + 2 * m
}

/// The dot products of rows of x, of `k` elements, with the rows of weights of a part. `w` are the blocks of all rows of
/// weights, whose elements are [integers](quants::are_integers). `memory` has [`scratch`] values.
pub(super) fn dots<P: Pairs>(
    instructions: Instructions,
    (x, k): (&[f32], usize),
    (format, w): (Format, &[u8]),
    pairs: &P,
    mut part: Part<'_>,
    memory: &mut [f32],
) {
    let (rounded, memory) = memory.split_at_mut(size_of_groups(x.len()));
    let x = Rounded::new(instructions, x, k, rounded);
    let (a, memory) = memory.split_at_mut(size_of_groups(k));
    let (b, memory) = memory.split_at_mut(size_of_groups(k));
    let sums = bytemuck::cast_slice_mut(&mut memory[..2 * part.rows()]);
    for p in part.pairs::<P>() {
        format.visit(Dots { instructions, x, k, w, rows: pairs.rows(p), memory: [split(a), split(b)], sums });
        for (i, sums) in sums.iter().enumerate() {
            part.put(pairs, i, p, *sums);
        }
    }
}

/// The dot products of rows of x with a pair of rows of weights. What becomes of them is not known here, so that it is
/// compiled once for each format.
struct Dots<'a> {
    instructions: Instructions,
    x: Rounded<'a>,
    k: usize,
    /// The blocks of all rows of weights.
    w: &'a [u8],
    rows: [usize; 2],
    /// For the groups of both rows.
    memory: [(&'a mut [Ints], &'a mut [[f32; 3]]); 2],
    /// Sums of each row of x.
    sums: &'a mut [[f32; 2]],
}

impl Dots<'_> {
    #[inline(always)]
    fn all<R: Row>(self, lanes: impl Lanes) {
        let Dots { x, k, w, rows, mut memory, sums, .. } = self;
        let row_bytes = k / R::SPEC.block_len * R::SPEC.block_bytes;
        let w = rows.map(|j| Blocks::<R>(&w[j * row_bytes..][..row_bytes], PhantomData));
        let tiled = sums.len() - sums.len() % TILE_X;
        for (w, (q, scales)) in w.iter().zip(&mut memory) {
            quants::scales::<R>(w.0, scales);
            if tiled > 0 {
                for (g, q) in q.iter_mut().enumerate() {
                    *q = w.group(lanes, g);
                }
            }
        }
        let [(a, a_scales), (b, b_scales)] = &memory;
        for (i, sums) in sums.chunks_exact_mut(TILE_X).enumerate() {
            let x = std::array::from_fn(|r| x.row(i * TILE_X + r));
            let found = tile::<R, _, _, TILE_X>(lanes, x, [&**a, b], [a_scales, b_scales]);
            sums.copy_from_slice(&found);
        }
        for (i, sums) in sums.iter_mut().enumerate().skip(tiled) {
            let [a, b] = &w;
            [*sums] = tile::<R, _, _, 1>(lanes, [x.row(i)], [a, b], [a_scales, b_scales]);
        }
    }
}

impl Visit for Dots<'_> {
    type Out = ();

    #[inline(always)]
    fn visit<R: Row>(self) {
        if quants::are_integers(R::SPEC) {
            self.instructions.run(Typed(self, PhantomData::<R>));
        }
    }
}

/// Products with the format of the weights.
pub(super) struct Typed<R, D>(pub D, pub PhantomData<R>);

impl<R: Row> Work for Typed<R, Dots<'_>> {
    const WIDE: bool = false;

    #[inline(always)]
    fn run(self, lanes: impl Lanes) {
        self.0.all::<R>(lanes);
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::fast::lanes::tests::same_bits;
    use backend_api::case::Fill;
    use backend_api::{DType, Kind, Shape, Tensor};

    fn fill(dims: &[usize], dtype: DType, fill: &Fill, seed: u64) -> Vec<u8> {
        let shape = Shape::new(dims).unwrap();
        fill.bytes(&Tensor { name: String::new(), shape, dtype, kind: Kind::Input }, seed)
    }

    /// Takes everything as it is.
    pub struct All;

    impl Pairs for All {
        const RESULTS: usize = 2;

        fn rows(&self, pair: usize) -> [usize; 2] {
            [2 * pair, 2 * pair + 1]
        }

        fn results(&self, _: usize, pair: usize, sums: [f32; 2], mut put: impl FnMut(usize, f32)) {
            put(2 * pair, sums[0]);
            put(2 * pair + 1, sums[1]);
        }
    }

    pub fn dots(on: Instructions, format: Format, x: &[f32], w: &[u8], n: usize, k: usize) -> Vec<f32> {
        let m = x.len() / k;
        let (mut out, mut memory) = (vec![0.0; m * n], vec![0.0; scratch(m, k)]);
        let part = Part { row: 0, pair: 0, cols: n, out: &mut out };
        super::dots(on, (x, k), (format, w), &All, part, &mut memory);
        out
    }

    /// Rows of x, and blocks of rows of weights.
    pub fn operands(format: Format, m: usize, n: usize, k: usize) -> (Vec<f32>, Vec<u8>) {
        let w = fill(&[n, k], DType::Packed(format), &Fill::Blocks, 7);
        let x = fill(&[m, k], DType::F32, &Fill::Uniform(-1.0, 1.0), 8);
        (x.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect(), w)
    }

    /// Holds products of rows of x and rows of weights, by instruction set and format, to those of decoded rows, for all of
    /// either.
    pub fn check(m: usize, n: usize, k: usize, products: impl Fn(Instructions, Format, &[f32], &[u8]) -> Vec<f32>) {
        let formats = Format::ALL.iter().copied().filter(|f| quants::are_integers(f.spec()));
        for (format, on) in formats.flat_map(|format| Instructions::here().into_iter().map(move |on| (format, on))) {
            let (x, w) = operands(format, m, n, k);
            let found = products(on, format, &x, &w);
            let (mut error, mut energy) = (0.0, 0.0);
            for (j, w) in w.chunks_exact(w.len() / n).enumerate() {
                let mut row = vec![0.0; k];
                crate::decode::row(format, w, &mut row);
                for (i, x) in x.chunks_exact(k).enumerate() {
                    let exact: f64 = x.iter().zip(&row).map(|(x, w)| f64::from(*x) * f64::from(*w)).sum();
                    error += (f64::from(found[i * n + j]) - exact).powi(2);
                    energy += exact * exact;
                }
            }
            let what = format!("{} on {}", format.name(), on.name());
            assert!(error <= 5e-9 * energy, "{what}: NMSE {:.1e}", error / energy);
            // A row by itself, and among others.
            let alone: Vec<f32> = x.chunks_exact(k).flat_map(|x| products(on, format, x, &w)).collect();
            assert_eq!(found, alone, "{what}");
        }
    }

    #[test]
    fn dots_are_those_of_decoded_rows() {
        check(6, 16, 512, |on, format, x, w| dots(on, format, x, w, 16, 512));
    }

    #[test]
    fn instruction_sets_give_the_same_bits() {
        for format in Format::ALL.iter().copied().filter(|f| quants::are_integers(f.spec())) {
            let (x, w) = operands(format, 6, 16, 512);
            same_bits(|on| dots(on, format, &x, &w, 16, 512), format.name());
        }
    }

    #[test]
    fn odd_groups() {
        let mut q = [0; GROUP];
        assert_eq!(round(&[0.0; GROUP], &mut q)[1..], [0.0; 2]);
        assert_eq!(q, [0; GROUP]);
        assert_eq!(round(&[-2.0; GROUP], &mut q), [2.0 / 32_767.0, -32.0, -32.0]);
        assert_eq!(q, [-32_767; GROUP]);
        let mut x = [1.0; GROUP];
        x[9] = f32::NAN;
        assert!(round(&x, &mut q)[0].is_nan());
        x[9] = f32::NEG_INFINITY;
        assert!(!round(&x, &mut q)[0].is_finite());
    }
}
