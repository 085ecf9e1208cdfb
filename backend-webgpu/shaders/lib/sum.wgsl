// The row of x as the RMS norm of a row added to another.
var<private> sum_scale: f32;

fn sum_begin(lane: u32) {
    let first = row_first(p.k / 4u);
    var squares = 0.0;
    for (var i = lane; 4u * i < p.k; i += WG) {
        squares += dot(x[first + i], x[first + i]);
    }
    sum_scale = 1.0 / sqrt(workgroup_sum(lane, squares) / f32(p.k) + p.sum_eps);
}

fn sum4(i: u32) -> vec4<f32> {
    let at = row_first(p.k / 4u) + i;
    return x[at] * sum_scale * sum_gamma[i] + summand[at];
}
