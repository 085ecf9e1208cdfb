//! Puts packed codes into the order of elements, sixteen bytes at a time.
//!
//! In eight bytes that share their elements' parts, a bit has an address of six bits: which byte, which part of the byte,
//! which bit of the part. Sorting brings the part to the top, and exchanging two bits of the address is three operations
//! on the word. So there are no loops over elements, and what compilers make of it is fast without vector instructions,
//! which old browsers lack. Where WebAssembly has them, two words are sorted at once: compilers do not find that out.

/// Words of eight bytes, one or several, which are treated alike.
trait Words: Copy {
    /// Exchanges the bits `HIGH` and `LOW` of the addresses of all bits.
    fn exchange<const HIGH: u32, const LOW: u32>(self) -> Self;
}

/// Where the bits lie that exchanging the bits `high` and `low` of their addresses moves up, and how far they move.
const fn moved(high: u32, low: u32) -> (u64, u32) {
    let (mut mask, mut at) = (0, 0);
    while at < 64 {
        if at >> high & 1 == 0 && at >> low & 1 == 1 {
            mask |= 1 << at;
        }
        at += 1;
    }
    (mask, (1 << high) - (1 << low))
}

impl Words for u64 {
    #[inline(always)]
    fn exchange<const HIGH: u32, const LOW: u32>(self) -> u64 {
        let (mask, shift) = const { moved(HIGH, LOW) };
        let differ = ((self >> shift) ^ self) & mask;
        self ^ differ ^ (differ << shift)
    }
}

/// Words with a part of `BITS` bits for each of their elements: first the lowest parts of all bytes, then those above
/// them, and so on.
#[inline(always)]
fn parts<const BITS: usize, W: Words>(x: W) -> W {
    match BITS {
        1 => x.exchange::<5, 2>().exchange::<4, 1>().exchange::<3, 0>(),
        2 => x.exchange::<5, 2>().exchange::<4, 1>().exchange::<3, 2>().exchange::<2, 1>(),
        _ => x.exchange::<3, 2>().exchange::<4, 3>().exchange::<5, 4>(),
    }
}

#[inline(always)]
fn eight<const BITS: usize>(bytes: [u8; 8]) -> [u8; 8] {
    parts::<BITS, _>(u64::from_le_bytes(bytes)).to_le_bytes()
}

/// As [`eight`]: the lowest parts of all sixteen bytes come first.
#[cfg(not(all(target_arch = "wasm32", target_feature = "simd128")))]
#[inline(always)]
fn sixteen<const BITS: usize>(bytes: &[u8; 16]) -> [u8; 16] {
    let halves: [[u8; 8]; 2] = bytemuck::cast(*bytes);
    let halves = halves.map(eight::<BITS>);
    std::array::from_fn(|at| halves[at / BITS % 2][at / BITS / 2 * BITS + at % BITS])
}

#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
use simd128::sixteen;

#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
mod simd128 {
    use super::{Words, moved, parts};
    use std::arch::wasm32::{
        u8x16_shuffle, u16x8_shuffle, u32x4_shuffle, u64x2_shl, u64x2_shr, u64x2_splat, v128, v128_and, v128_xor,
    };

    impl Words for v128 {
        #[inline(always)]
        fn exchange<const HIGH: u32, const LOW: u32>(self) -> v128 {
            let (mask, shift) = const { moved(HIGH, LOW) };
            let differ = v128_and(v128_xor(u64x2_shr(self, shift), self), u64x2_splat(mask));
            v128_xor(v128_xor(self, differ), u64x2_shl(differ, shift))
        }
    }

    #[inline(always)]
    pub(super) fn sixteen<const BITS: usize>(bytes: &[u8; 16]) -> [u8; 16] {
        let x = parts::<BITS, v128>(bytemuck::cast(*bytes));
        bytemuck::cast(match BITS {
            1 => u8x16_shuffle::<0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15>(x, x),
            2 => u16x8_shuffle::<0, 4, 1, 5, 2, 6, 3, 7>(x, x),
            _ => u32x4_shuffle::<0, 2, 1, 3>(x, x),
        })
    }
}

/// Sorts a run of bytes, a multiple of eight, whose parts have `BITS` bits: 1, 2 or 4. Each part of what is sorted goes
/// behind those of the bytes before.
#[inline(always)]
pub(super) fn sort<const BITS: usize, const RUN: usize>(from: &[u8; RUN], out: &mut [u8; RUN]) {
    let part_bytes = RUN * BITS / 8;
    let (pairs, rest) = from.as_chunks::<16>();
    for (i, bytes) in pairs.iter().enumerate() {
        let sorted = sixteen::<BITS>(bytes);
        for part in 0..8 / BITS {
            let (to, from) = (part * part_bytes + i * 2 * BITS, part * 2 * BITS);
            out[to..to + 2 * BITS].copy_from_slice(&sorted[from..from + 2 * BITS]);
        }
    }
    if let Some(bytes) = rest.first_chunk() {
        let sorted = eight::<BITS>(*bytes);
        for part in 0..8 / BITS {
            let (to, from) = (part * part_bytes + pairs.len() * 2 * BITS, part * BITS);
            out[to..to + BITS].copy_from_slice(&sorted[from..from + BITS]);
        }
    }
}
