//! F32, F16, BF16: widened.

use half::{bf16, f16};

#[inline(always)]
pub(super) fn f32(bytes: &[u8], out: &mut [f32]) {
    for (bytes, out) in bytes.as_chunks::<4>().0.iter().zip(out) {
        *out = f32::from_le_bytes(*bytes);
    }
}

#[inline(always)]
pub(super) fn f16(bytes: &[u8], out: &mut [f32]) {
    for (bytes, out) in bytes.as_chunks::<2>().0.iter().zip(out) {
        *out = f16::from_le_bytes(*bytes).to_f32_const();
    }
}

#[inline(always)]
pub(super) fn bf16(bytes: &[u8], out: &mut [f32]) {
    for (bytes, out) in bytes.as_chunks::<2>().0.iter().zip(out) {
        *out = bf16::from_le_bytes(*bytes).to_f32_const();
    }
}
