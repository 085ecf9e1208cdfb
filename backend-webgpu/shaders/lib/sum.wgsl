// The row of x as the RMS norm of a row added to another.
var<private> sum_scale: f32;

fn sum_begin(lane: u32) {
    var squares = 0.0;
    for (var i = lane; 4u * i < p.k; i += WG) {
        squares += dot(x[i], x[i]);
    }
    sum_scale = 1.0 / sqrt(workgroup_sum(lane, squares) / f32(p.k) + p.sum_eps);
}

fn sum4(i: u32) -> vec4<f32> {
    return x[i] * sum_scale * sum_gamma[i] + summand[i];
}
