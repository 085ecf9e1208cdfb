//! Estimates of a worker's speed before a stage was measured.

/// Weights of the matrix that selection times.
const TIMED_WEIGHTS: f64 = 1024.0 * 1024.0;
/// Bytes of a weight of it: 18 for 32.
const TIMED_BYTES: f64 = 18.0 / 32.0;

/// Time of a row through a block of so many bytes, on a device that takes so long for the matrix that selection times:
/// decoding is bound by how fast weights are read. Without a time it takes a device that needs a millisecond.
///
/// *Units*: milliseconds; microseconds.
pub fn guess(matvec_ms: Option<f64>, block_bytes: f64) -> u32 {
    let micros = 1e3 * matvec_ms.unwrap_or(1.0) * block_bytes / (TIMED_WEIGHTS * TIMED_BYTES);
    (micros as u32).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_takes_as_long_as_its_bytes_and_the_device_say() {
        let matrix = TIMED_WEIGHTS * TIMED_BYTES;
        assert_eq!(guess(Some(0.5), 4.0 * matrix), 2000);
        assert_eq!(guess(Some(0.05), 4.0 * matrix), 200, "a device ten times as fast");
        assert_eq!(guess(None, 4.0 * matrix), 4000);
        assert_eq!(guess(Some(0.0), 4.0 * matrix), 1, "coarse clocks see no time pass");
    }
}
