// resize: CUBIC, ANTIALIAS and LINEAR make elements of several, otherwise they are copied. Where output i of a
// dimension lies, one element ahead, is a fraction of whole numbers, and so the same on every device.
//!include elements.glsl

//!if CUBIC
// The weights of the four around, the second of which lies `t` before.
vec4 weights(float t) {
    vec4 d = vec4(1.0 + t, t, 1.0 - t, 2.0 - t);
    vec4 near = (1.25 * d - 2.25) * d * d + 1.0;
    vec4 far = ((3.75 - 0.75 * d) * d - 6.0) * d + 3.0;
    return vec4(far.x, near.y, near.z, far.w);
}

// The four around, of which those beyond an edge are the one at the edge.
ivec4 around(int whole, int len) {
    return clamp(ivec4(whole) + ivec4(-2, -1, 0, 1), 0, len - 1);
}

float of_row(int row, ivec4 cols, vec4 by) {
    vec4 v = vec4(load1(src_x, x3, row, cols.x), 0.0, 0.0, 0.0);
    v.y = load1(src_x, x3, row, cols.y);
    v.z = load1(src_x, x3, row, cols.z);
    v.w = load1(src_x, x3, row, cols.w);
    return dot(v, by);
}
//!end

float element(int row, int col) {
    int outer = (row / (dim1 * dim2) * step0 + first0) / unit0 - 1;
    int inner = (row / dim2 % dim1 * step1 + first1) / unit1 - 1;
    int plane = (outer * x1 + inner) * x2;
    int down = row % dim2 * step2 + first2;
    int across = col * step3 + first3;
//!if CUBIC
    ivec4 rows = plane + around(down / unit2, x2);
    ivec4 cols = around(across / unit3, x3);
    vec4 by = weights(float(across % unit3) / float(unit3));
    vec4 each = vec4(of_row(rows.x, cols, by), 0.0, 0.0, 0.0);
    each.y = of_row(rows.y, cols, by);
    each.z = of_row(rows.z, cols, by);
    each.w = of_row(rows.w, cols, by);
    return dot(each, weights(float(down % unit2) / float(unit2)));
//!else
//!if ANTIALIAS
    float sum = 0.0;
    float all = 0.0;
    int last_row = min((down + reach2 - 1) / unit2, x2);
    int last_col = min((across + reach3 - 1) / unit3, x3);
    for (int r = max(down - reach2, 0) / unit2; r < last_row; r++) {
        float by_row = 1.0 - abs(float((r + 1) * unit2 - down)) / float(reach2);
        for (int c = max(across - reach3, 0) / unit3; c < last_col; c++) {
            float by = by_row * (1.0 - abs(float((c + 1) * unit3 - across)) / float(reach3));
            sum += by * load1(src_x, x3, plane + r, c);
            all += by;
        }
    }
    return sum / all;
//!else
    int above = plane + max(down / unit2 - 1, 0);
    int left = max(across / unit3 - 1, 0);
//!if LINEAR
    int below = plane + min(down / unit2, x2 - 1);
    int right = min(across / unit3, x3 - 1);
    float t = float(across % unit3) / float(unit3);
    float upper = mix(load1(src_x, x3, above, left), load1(src_x, x3, above, right), t);
    float lower = mix(load1(src_x, x3, below, left), load1(src_x, x3, below, right), t);
    return mix(upper, lower, float(down % unit2) / float(unit2));
//!else
    return load1(src_x, x3, above, left);
//!end
//!end
//!end
}
