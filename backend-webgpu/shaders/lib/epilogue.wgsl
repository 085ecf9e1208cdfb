// What follows a result in row d2 and column d3: RESULT after LINES.
//!include lib/place.wgsl

fn epilogue(value: f32, d2: u32, d3: u32) -> f32 {
    let i = d2 * p.epilogue_cols + d3;
LINES
    return RESULT;
}
