//! Random numbers for mutations; the same seed gives the same numbers.

/// Generator: SplitMix64 (Steele, Lea and Flood 2014).
pub(super) struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number below `limit`, or 0.
    pub fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }

    /// Returns a number that is likely to break readers.
    pub fn number(&mut self, len: usize) -> u64 {
        let edges = [0, 1, len as u64, u64::MAX, i64::MAX as u64, u32::MAX.into(), 1 << 31, 1 << 20];
        let edge = edges[self.below(edges.len())];
        edge.wrapping_add(self.below(3) as u64).wrapping_sub(1)
    }

    /// Returns one of the values.
    pub fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }
}
