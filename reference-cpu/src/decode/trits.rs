//! Trits: `scale * (q - 1)`.

use super::half;
use backend_api::format::Trits;

#[inline(always)]
pub(super) fn block(trits: &Trits, b: &[u8], out: &mut [f32]) {
    let scale = half(b, trits.d);
    for (quad, out) in out.chunks_exact_mut(4).enumerate() {
        for (out, code) in out.iter_mut().zip(codes(trits, b, quad)) {
            *out = (f32::from(code) - 1.0) * scale;
        }
    }
}

/// The codes of four neighbours, of which the first is element 4 `quad`.
#[inline(always)]
pub(super) fn codes(trits: &Trits, b: &[u8], quad: usize) -> [u8; 4] {
    let (word, n) = Trits::place(quad);
    let bytes = &b[trits.at + 4 * word..][..4];
    [0, 1, 2, 3].map(|i| Trits::code(bytes[i], n))
}
