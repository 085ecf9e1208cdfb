//! The vector operations that dot products are made of, for each instruction set that has it.

use crate::decode::quants::Words;
use backend_api::Error;
use backend_api::format::GROUP;

#[cfg(not(all(target_arch = "wasm32", target_feature = "simd128")))]
mod arrays;
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "aarch64")]
mod neon;
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
mod simd128;

/// 32 integers of 16 bits.
pub(crate) type Ints = [i16; GROUP];

/// 8 floats.
pub(crate) type Floats = [f32; 8];

/// Rows of weights that lie beside each other.
pub(crate) const ROWS: usize = 16;

/// Pairs of 16-bit integers, which are neighbours in their rows: of each row one.
pub(crate) type IntPairs = [i32; ROWS];

/// A float of each row.
pub(crate) type RowFloats = [f32; ROWS];

/// An instruction set that multiplies pairs of 16-bit integers and adds them up.
pub(crate) trait Lanes: Copy {
    /// Partial sums of four times 8 floats, one a lane.
    type Sums: Copy;
    /// Sums of all rows in integers.
    type RowSums: Copy;
    /// Sums of products in integers, one a lane.
    type Dots: Copy;
    /// Sums of two rows of weights.
    type Pair: Copy;
    /// Rows of x for whose [`Self::RowSums`] there are registers: 2, 4 or 8.
    const TILE_X: usize;

    /// No sums yet.
    fn zero(self) -> Self::Sums;

    /// Signed bytes as integers.
    fn widen(self, bytes: Words) -> Ints;

    /// Looks up the levels of bytes below 16.
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

    /// Adds `a . b`, each 8 floats to a quarter of the sums.
    fn add_floats(self, sums: Self::Sums, a: &[Floats; 4], b: &[Floats; 4]) -> Self::Sums;

    /// Adds `a . b` to the first quarter.
    fn add_eight(self, sums: Self::Sums, a: &Floats, b: &Floats) -> Self::Sums;

    /// Adds `scale * a` to `out`.
    fn accumulate(self, out: &mut Floats, scale: f32, a: &Floats);

    /// The sum over all lanes of each quarter.
    fn total(self, sums: Self::Sums) -> [f32; 4];

    /// No sums yet.
    fn no_rows(self) -> Self::RowSums;

    /// Lays rows beside each other: pair by pair of neighbours, that of each row.
    #[inline(always)]
    fn beside(self, rows: &[Ints; ROWS]) -> [IntPairs; GROUP / 2] {
        let rows = rows.map(bytemuck::cast::<Ints, [i32; GROUP / 2]>);
        std::array::from_fn(|pair| std::array::from_fn(|row| rows[row][pair]))
    }

    /// Adds the product of a pair with that of each row: both products of a pair to one sum.
    fn add_rows(self, sums: Self::RowSums, pair: i32, rows: &IntPairs) -> Self::RowSums;

    /// Adds `scale * scales * sums` to `out`, row by row.
    fn scale_rows(self, out: &mut RowFloats, sums: Self::RowSums, scale: f32, scales: &RowFloats);
}

/// Code that is compiled for every instruction set.
pub(crate) trait Work {
    /// Whether it gains by vectors of 512 bits. What does not runs on the half of them instead.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
    const WIDE: bool;

    /// Does it. Inlined into functions of the instruction set, as all that it calls must be.
    fn run(self, lanes: impl Lanes);
}

/// An instruction set that the kernels are compiled for, and that this machine has.
#[derive(Debug, Clone, Copy)]
pub struct Instructions(Set);

/// Those that have to be looked for are proven to be there by a value of theirs.
#[derive(Debug, Clone, Copy)]
enum Set {
    #[cfg(target_arch = "x86_64")]
    Avx512(pulp::x86::V4),
    #[cfg(target_arch = "x86_64")]
    Avx2(pulp::x86::V3),
    #[cfg(target_arch = "aarch64")]
    Neon(pulp::aarch64::Neon),
    #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
    Simd128,
    #[cfg(not(all(target_arch = "wasm32", target_feature = "simd128")))]
    Portable,
    /// Plain code that rounds a product and a sum at once, as some instruction sets do: their results are compared
    /// with it.
    #[cfg(test)]
    Fused,
}

impl Instructions {
    /// Those of this machine, the best first. The last is always there: that of the build in WebAssembly, otherwise none in
    /// particular.
    pub fn here() -> Vec<Instructions> {
        let sets = [
            #[cfg(target_arch = "x86_64")]
            pulp::x86::V4::try_new().map(Set::Avx512),
            #[cfg(target_arch = "x86_64")]
            pulp::x86::V3::try_new().map(Set::Avx2),
            #[cfg(target_arch = "aarch64")]
            pulp::aarch64::Neon::try_new().map(Set::Neon),
            Some(Self::last().0),
        ];
        sets.into_iter().flatten().map(Instructions).collect()
    }

    /// The best of this machine.
    pub fn best() -> Instructions {
        Self::here().first().copied().unwrap_or(Self::last())
    }

    /// Those of a [name](Self::name).
    ///
    /// *Errors*: this machine does not have them, or nobody has.
    pub fn named(name: &str) -> Result<Instructions, Error> {
        let here = Self::here();
        here.iter().find(|on| on.name() == name).copied().ok_or_else(|| Error::Absent {
            backend: "cpu",
            reason: format!(
                "{name} is not among the instruction sets of this machine and build, which are {}",
                here.iter().map(|on| on.name()).collect::<Vec<_>>().join(", ")
            ),
        })
    }

    /// Returns the instruction set that is always there.
    fn last() -> Instructions {
        #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
        return Instructions(Set::Simd128);
        #[cfg(not(all(target_arch = "wasm32", target_feature = "simd128")))]
        Instructions(Set::Portable)
    }

    /// `avx512`, `avx2`, `neon`, `simd128` or `portable`.
    pub fn name(self) -> &'static str {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            Set::Avx512(_) => "avx512",
            #[cfg(target_arch = "x86_64")]
            Set::Avx2(_) => "avx2",
            #[cfg(target_arch = "aarch64")]
            Set::Neon(_) => "neon",
            #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
            Set::Simd128 => "simd128",
            #[cfg(not(all(target_arch = "wasm32", target_feature = "simd128")))]
            Set::Portable => "portable",
            #[cfg(test)]
            Set::Fused => "fused",
        }
    }

    /// Arrays with products that are not rounded before they are added.
    #[cfg(test)]
    pub(super) fn fused() -> Instructions {
        Instructions(Set::Fused)
    }

    /// Runs work on them.
    #[inline(never)]
    pub(crate) fn run<W: Work>(self, work: W) {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            Set::Avx512(v4) if W::WIDE => v4.vectorize(Call(work, avx512::Avx512(v4))),
            #[cfg(target_arch = "x86_64")]
            Set::Avx512(v4) => (*v4).vectorize(Call(work, avx2::Avx2(*v4))),
            #[cfg(target_arch = "x86_64")]
            Set::Avx2(v3) => v3.vectorize(Call(work, avx2::Avx2(v3))),
            // It is part of the target that this is compiled for.
            #[cfg(target_arch = "aarch64")]
            Set::Neon(neon) => work.run(neon::Neon(neon)),
            #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
            Set::Simd128 => work.run(simd128::Simd128),
            #[cfg(not(all(target_arch = "wasm32", target_feature = "simd128")))]
            Set::Portable => work.run(arrays::Arrays::<false>),
            #[cfg(test)]
            Set::Fused => work.run(arrays::Arrays::<true>),
        }
    }
}

impl PartialEq for Instructions {
    fn eq(&self, other: &Instructions) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Instructions {}

/// Work, to be called as a function of an instruction set.
#[cfg(target_arch = "x86_64")]
struct Call<W, L>(W, L);

#[cfg(target_arch = "x86_64")]
impl<W: Work, L: Lanes> pulp::NullaryFnOnce for Call<W, L> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        self.0.run(self.1);
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::fast::math::{accumulate, dot};

    /// Holds what all instruction sets of this machine compute that round a product and a sum at once to the same bits:
    /// those of arrays, so that they are the same on any machine.
    pub fn same_bits(compute: impl Fn(Instructions) -> Vec<f32>, what: &str) {
        let bits = |on| compute(on).iter().map(|v| v.to_bits()).collect::<Vec<_>>();
        let expected = bits(Instructions::fused());
        let mut sets: Vec<_> = Instructions::here();
        // What is always there rounds both.
        sets.pop();
        for on in &sets {
            assert!(bits(*on) == expected, "{what} on {}", on.name());
        }
        let names: Vec<_> = sets.iter().map(|on| on.name()).collect();
        println!("{what}: the same bits on {}", if names.is_empty() { "no others".into() } else { names.join(", ") });
    }

    #[test]
    fn instruction_sets_give_the_same_bits() {
        struct Dot<'a>(&'a [f32], &'a [f32], &'a mut Vec<f32>);
        impl Work for Dot<'_> {
            const WIDE: bool = true;

            #[inline(always)]
            fn run(self, lanes: impl Lanes) {
                self.2.push(dot(lanes, self.0, self.1));
                accumulate(lanes, self.2, 0.7, self.1);
            }
        }
        // Whole runs of 32, of 8, and what is left.
        for len in [32, 64, 88, 75, 7] {
            let [a, b] = [3, 5].map(|seed| (0..len).map(|i| ((i * i * seed) as f32).sin()).collect::<Vec<_>>());
            let compute = |on: Instructions| {
                let mut out = a.clone();
                on.run(Dot(&a, &b, &mut out));
                out
            };
            same_bits(compute, &format!("{len} floats"));
        }
    }
}
