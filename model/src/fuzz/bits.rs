//! Mutation of bytes.

use super::random::Random;

/// Returns a mutated copy; the same seed gives the same mutations.
pub(super) fn mutate(bytes: &[u8], seed: u64) -> Vec<u8> {
    let mut random = Random(seed);
    let mut out = bytes.to_vec();
    for _ in 0..1 + random.below(3) {
        let at = random.below(out.len());
        let run = random.below(24).min(out.len() - at);
        match random.below(16) {
            0 => out.truncate(at),
            1 => drop(out.drain(at..at + run)),
            2 => {
                let copy = out[at..at + run].to_vec();
                let to = random.below(out.len());
                out.splice(to..to, copy);
            }
            3..6 => {
                let value = random.number(out.len()).to_le_bytes();
                let width = [1, 2, 4, 8][random.below(4)].min(out.len() - at);
                out[at..at + width].copy_from_slice(&value[..width]);
            }
            6..11 => {
                if let Some(byte) = out.get_mut(at) {
                    *byte ^= 1 << random.below(8);
                }
            }
            _ => {
                if let Some(byte) = out.get_mut(at) {
                    *byte = random.next() as u8;
                }
            }
        }
    }
    out
}
