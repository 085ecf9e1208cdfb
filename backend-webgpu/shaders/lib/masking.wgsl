// The cap of scores, and which of them count.
//!include lib/position.wgsl
//!function unary_tanh

// A mask hides the keys whose scores it brings down to this.
const HIDDEN: f32 = -3.0e38;

// Caps a score; `p.softcap` = 0 means no cap.
fn capped(score: f32) -> f32 {
    if (p.softcap > 0.0) {
        return p.softcap * unary_tanh(score / p.softcap);
    }
    return score;
}

// The place of query row i of p.m among the p.n keys.
fn place_of(i: u32) -> u32 {
    return select(max(p.n + i, p.m) - p.m, position_of(i), p.cached != 0u);
}

// The half-open range of the p.n keys that query row i of p.m may see.
fn visible(i: u32) -> vec2<u32> {
    var filled = p.n;
    let at = place_of(i);
    if (p.cached != 0u) {
//!if SEQUENCES
        filled = min(at + 1u, p.n);
//!else
        filled = min(step.position + step.rows, p.n);
//!end
    }
    var start = 0u;
    var end = filled;
    if (p.causal != 0u) {
        end = min(filled, at + 1u);
        if (p.window != 0u) {
            start = max(at + 1u, p.window) - p.window;
        }
    } else if (p.window != 0u) {
        end = min(filled, at + p.window / 2u + 1u);
        start = max(at, p.window / 2u) - p.window / 2u;
    }
    return vec2<u32>(min(start, end), end);
}
