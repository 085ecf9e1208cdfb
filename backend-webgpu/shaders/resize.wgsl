// Images of another size: CUBIC, ANTIALIAS and LINEAR make elements of several, otherwise they are copied. Places are
// fractions of whole numbers, and so the same on every device.

// Where output i of a dimension lies, one element ahead: whole elements, and the way to the next.
fn place(i: u32, step: u32, first: u32) -> u32 {
    return i * step + first;
}

fn element(row: u32, col: u32) -> f32 {
    return x[row * p.x3 + col];
}

//!if CUBIC
// The weights of the four around, the second of which lies `t` before.
fn weights(t: f32) -> vec4<f32> {
    let d = vec4<f32>(1.0 + t, t, 1.0 - t, 2.0 - t);
    let near = (1.25 * d - 2.25) * d * d + 1.0;
    let far = ((3.75 - 0.75 * d) * d - 6.0) * d + 3.0;
    return vec4<f32>(far.x, near.y, near.z, far.w);
}

// The four around, of which those beyond an edge are the one at the edge.
fn around(whole: u32, len: u32) -> vec4<u32> {
    return vec4<u32>(max(whole, 2u) - 2u, max(whole, 1u) - 1u, min(whole, len - 1u), min(whole + 1u, len - 1u));
}

fn of_row(row: u32, cols: vec4<u32>, by: vec4<f32>) -> f32 {
    return dot(vec4<f32>(element(row, cols.x), element(row, cols.y), element(row, cols.z), element(row, cols.w)), by);
}
//!end

@compute @workgroup_size(WG)
fn main(
    @builtin(workgroup_id) group_id: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let wid = group_id + step.origin;
    let i = (wid.y * groups.x + wid.x) * WG + lane;
    if (i >= p.len) {
        return;
    }
    let inner = place(i / (p.dim3 * p.dim2) % p.dim1, p.step1, p.first1) / p.unit1 - 1u;
    let outer = place(i / (p.dim3 * p.dim2 * p.dim1), p.step0, p.first0) / p.unit0 - 1u;
    let plane = (outer * p.x1 + inner) * p.x2;
    let down = place(i / p.dim3 % p.dim2, p.step2, p.first2);
    let across = place(i % p.dim3, p.step3, p.first3);
//!if CUBIC
    let rows = plane + around(down / p.unit2, p.x2);
    let cols = around(across / p.unit3, p.x3);
    let by = weights(f32(across % p.unit3) / f32(p.unit3));
    let upper = vec2<f32>(of_row(rows.x, cols, by), of_row(rows.y, cols, by));
    let lower = vec2<f32>(of_row(rows.z, cols, by), of_row(rows.w, cols, by));
    out[i] = dot(vec4<f32>(upper, lower), weights(f32(down % p.unit2) / f32(p.unit2)));
//!else
//!if ANTIALIAS
    var sum = 0.0;
    var all = 0.0;
    let last_row = min((down + p.reach2 - 1u) / p.unit2, p.x2);
    let last_col = min((across + p.reach3 - 1u) / p.unit3, p.x3);
    for (var row = (max(down, p.reach2) - p.reach2) / p.unit2; row < last_row; row++) {
        let by_row = 1.0 - abs(f32(i32((row + 1u) * p.unit2) - i32(down))) / f32(p.reach2);
        for (var col = (max(across, p.reach3) - p.reach3) / p.unit3; col < last_col; col++) {
            let by = by_row * (1.0 - abs(f32(i32((col + 1u) * p.unit3) - i32(across))) / f32(p.reach3));
            sum += by * element(plane + row, col);
            all += by;
        }
    }
    out[i] = sum / all;
//!else
    let row = plane + max(down / p.unit2, 1u) - 1u;
    let col = max(across / p.unit3, 1u) - 1u;
//!if LINEAR
    let next_row = plane + min(down / p.unit2, p.x2 - 1u);
    let next_col = min(across / p.unit3, p.x3 - 1u);
    let t = f32(across % p.unit3) / f32(p.unit3);
    let upper = mix(element(row, col), element(row, next_col), t);
    let lower = mix(element(next_row, col), element(next_row, next_col), t);
    out[i] = mix(upper, lower, f32(down % p.unit2) / f32(p.unit2));
//!else
    out[i] = element(row, col);
//!end
//!end
//!end
}
