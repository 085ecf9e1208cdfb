//! Puts packed codes into the order of elements, eight bytes at a time.
//!
//! In eight bytes that share their elements' parts, a bit has an address of six bits: which byte, which part of the byte,
//! which bit of the part. Sorting brings the part to the top, and exchanging two bits of the address is three operations
//! on the word. So there are no loops over elements, and what compilers make of it is fast without vector instructions,
//! which old browsers lack.

/// Where the bits lie that exchanging the bits `high` and `low` of their addresses moves up.
const fn moved(high: u32, low: u32) -> u64 {
    let (mut mask, mut at) = (0, 0);
    while at < 64 {
        if at >> high & 1 == 0 && at >> low & 1 == 1 {
            mask |= 1 << at;
        }
        at += 1;
    }
    mask
}

/// Exchanges two bits of the addresses of all bits.
#[inline(always)]
fn exchange<const HIGH: u32, const LOW: u32>(x: u64) -> u64 {
    let (mask, shift) = const { (moved(HIGH, LOW), (1 << HIGH) - (1 << LOW)) };
    let differ = ((x >> shift) ^ x) & mask;
    x ^ differ ^ (differ << shift)
}

/// Eight bytes with a part of `BITS` bits for each of `64 / BITS` elements: first the lowest parts of all bytes, then those
/// above them, and so on.
#[inline(always)]
fn parts<const BITS: usize>(x: u64) -> u64 {
    match BITS {
        1 => exchange::<3, 0>(exchange::<4, 1>(exchange::<5, 2>(x))),
        2 => exchange::<2, 1>(exchange::<3, 2>(exchange::<4, 1>(exchange::<5, 2>(x)))),
        _ => exchange::<5, 4>(exchange::<4, 3>(exchange::<3, 2>(x))),
    }
}

/// Sorts runs of `run` bytes, a multiple of eight, whose parts have `BITS` bits: 1, 2 or 4.
#[inline(always)]
pub(super) fn sort<const BITS: usize>(from: &[u8], run: usize, out: &mut [u8]) {
    let part_bytes = run * BITS / 8;
    let mut start = 0;
    while start < from.len() {
        let (from, out) = (&from[start..start + run], &mut out[start..start + run]);
        for (i, eight) in from.as_chunks::<8>().0.iter().enumerate() {
            let sorted = parts::<BITS>(u64::from_le_bytes(*eight)).to_le_bytes();
            // Each part goes behind those of the eight bytes before.
            for (part, bytes) in sorted.as_chunks::<BITS>().0.iter().enumerate() {
                out[part * part_bytes + i * BITS..][..BITS].copy_from_slice(bytes);
            }
        }
        start += run;
    }
}
