// The row of x as attention left it: for each head the weighted sums of up to SPLITS parts of the keys, each with its
// highest score and its sum of weights.
//!include lib/splits.wgsl

var<workgroup> parts_row: array<vec4<f32>, HEADS * VALUES>;
var<workgroup> parts_share: array<vec2<f32>, HEADS * SPLITS>;

// Fills parts_row.
fn parts_join(lane: u32) {
    let count = split_count(visible(0u));
    for (var i = lane; i < HEADS * SPLITS; i += WG) {
        parts_share[i] = parts[HEADS * SPLITS * VALUES + i].xy;
    }
    workgroupBarrier();
    for (var head = lane; head < HEADS; head += WG) {
        var highest = parts_share[head * SPLITS].x;
        for (var s = 1u; s < count; s++) {
            highest = max(highest, parts_share[head * SPLITS + s].x);
        }
        var total = 0.0;
        for (var s = 0u; s < count; s++) {
            let share = parts_share[head * SPLITS + s];
            let weight = exp(share.x - highest);
            total += weight * share.y;
            parts_share[head * SPLITS + s].x = weight;
        }
        // The first part keeps the divisor of all.
        parts_share[head * SPLITS].y = select(0.0, 1.0 / total, total > 0.0);
    }
    workgroupBarrier();
    for (var i = lane; i < HEADS * VALUES; i += WG) {
        let head = i / VALUES;
        var sum = vec4<f32>(0.0);
        for (var s = 0u; s < count; s++) {
            sum += parts_share[head * SPLITS + s].x * parts[(head * SPLITS + s) * VALUES + i % VALUES];
        }
        parts_row[i] = sum * parts_share[head * SPLITS].y;
    }
    workgroupBarrier();
}
