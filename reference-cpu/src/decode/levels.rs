//! Tables of 16 levels: `scale * level`.

use super::scales;
use backend_api::format::Levels;

#[inline(always)]
pub(super) fn block(levels: &Levels, b: &[u8], out: &mut [f32]) {
    for (half, out) in out.chunks_exact_mut(16).enumerate() {
        let [scale, _] = scales::of(&levels.scales, b, half);
        for (i, out) in out.iter_mut().enumerate() {
            let code = levels.codes.get(b, 16 * half + i);
            *out = scale * f32::from(levels.levels[usize::from(code)]);
        }
    }
}
