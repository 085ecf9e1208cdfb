//! Decoders: file bytes of a row to f32. One file a format; the order of operations is that of the format's definition,
//! so values agree bit for bit with ggml's.

use backend_api::Format;

mod floats;
mod q4_0;
mod q4_1;
mod q4_k;
mod q5_0;
mod q5_1;
mod q6_k;
mod q8_0;

/// Decodes a row.
///
/// *Shapes*: `bytes` are whole blocks, `out` their elements; what has no counterpart is left alone.
#[inline(always)]
pub fn row(format: Format, bytes: &[u8], out: &mut [f32]) {
    match format {
        Format::F32 => floats::f32(bytes, out),
        Format::F16 => floats::f16(bytes, out),
        Format::BF16 => floats::bf16(bytes, out),
        Format::Q4_0 => blocks(bytes, out, q4_0::block),
        Format::Q4_1 => blocks(bytes, out, q4_1::block),
        Format::Q5_0 => blocks(bytes, out, q5_0::block),
        Format::Q5_1 => blocks(bytes, out, q5_1::block),
        Format::Q8_0 => blocks(bytes, out, q8_0::block),
        Format::Q4_K => blocks(bytes, out, q4_k::block),
        Format::Q6_K => blocks(bytes, out, q6_k::block),
    }
}

/// Decodes block after block of B bytes and N elements.
#[inline(always)]
fn blocks<const B: usize, const N: usize>(bytes: &[u8], out: &mut [f32], block: impl Fn(&[u8; B], &mut [f32; N])) {
    let (bytes, _) = bytes.as_chunks::<B>();
    let (out, _) = out.as_chunks_mut::<N>();
    for (bytes, out) in bytes.iter().zip(out) {
        block(bytes, out);
    }
}

/// The f16 in two bytes, widened.
#[inline(always)]
fn half(lo: u8, hi: u8) -> f32 {
    half::f16::from_le_bytes([lo, hi]).to_f32_const()
}
