//! Floats, widened.

use backend_api::format::Floats;
use half::{bf16, f16};

#[inline(always)]
pub(super) fn row(floats: Floats, bytes: &[u8], out: &mut [f32]) {
    match floats {
        Floats::F32 => each(bytes, out, f32::from_le_bytes),
        Floats::F16 => each(bytes, out, |value| f16::from_le_bytes(value).to_f32_const()),
        Floats::BF16 => each(bytes, out, |value| bf16::from_le_bytes(value).to_f32_const()),
    }
}

#[inline(always)]
fn each<const B: usize>(bytes: &[u8], out: &mut [f32], widen: impl Fn([u8; B]) -> f32) {
    for (bytes, out) in bytes.as_chunks().0.iter().zip(out) {
        *out = widen(*bytes);
    }
}
