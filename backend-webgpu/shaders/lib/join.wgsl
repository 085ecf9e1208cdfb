// What attention left, joined: for each query and head the weighted sums of up to SPLITS parts of the keys, each with its
// highest score and its sum of weights.
//!include lib/splits.wgsl

// Vector i of four of the rows, of so many parts. All an invocation needs is loaded at once, so that it waits for memory
// once.
fn joined(i: u32, count: u32) -> vec4<f32> {
    let head = (i / VALUES) * SPLITS;
//!if SINKS
    let without_parts = vec2<f32>(sinks[i / VALUES % HEADS], 1.0);
//!else
    let without_parts = vec2<f32>(LOWEST, 0.0);
//!end
    var highest = without_parts.x;
    var total = without_parts.y;
    var sum = vec4<f32>(0.0);
    for (var first = 0u; first < count; first += JOIN) {
        var share = array<vec2<f32>, JOIN>();
        var value = array<vec4<f32>, JOIN>();
        for (var j = 0u; j < JOIN; j++) {
            // Beyond the last part it counts again, with no weight.
            let s = head + min(first + j, count - 1u);
            share[j] = parts[QUERIES * HEADS * SPLITS * VALUES + s].xy;
            value[j] = parts[s * VALUES + i % VALUES];
        }
        let before = highest;
        for (var j = 0u; j < JOIN; j++) {
            highest = max(highest, share[j].x);
        }
        let shrink = exp(before - highest);
        total *= shrink;
        sum *= shrink;
        for (var j = 0u; j < JOIN; j++) {
            let weight = select(0.0, exp(share[j].x - highest), first + j < count);
            total += weight * share[j].y;
            sum += weight * value[j];
        }
    }
    // Only without keys it is 0: NaN stays what it is.
    return select(sum / total, vec4<f32>(0.0), total == 0.0);
}
