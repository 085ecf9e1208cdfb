// Biases of scores by distance.
//!include lib/masking.wgsl

//!if SLOPES
// What each position between a query and a key takes from their score.
fn slope_of(head: u32) -> f32 {
    let at = f32(head);
    return exp2(p.slope_ratio * select(at - p.slope_heads + 0.5, at + 1.0, at < p.slope_heads));
}

//!end
