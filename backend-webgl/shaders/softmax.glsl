// softmax of each row over its visible columns.
#include "frame.glsl"
#include "activation.glsl"
#include "masking.glsl"

vec4 scored(vec4 x, vec4 mask) {
    return cap(scale * x) + mask;
}

vec4 group(int row, int query, int c4) {
#ifdef EXPLICIT
    return scored(load4(src_x, out_cols, row, c4), load4(src_mask, out_cols, query, c4));
#else
    return scored(load4(src_x, out_cols, row, c4), vec4(0.0));
#endif
}

vec4 value(int row, int col) {
    int query = row % queries;
    int start;
    int end;
    visible(query, queries, out_cols, start, end);
    if (start >= end) return vec4(0.0);
    int last = (end + 3) >> 2;
    vec4 top = vec4(LOWEST);
    for (int c4 = start >> 2; c4 < last; c4++) {
        top = max(top, mix(vec4(LOWEST), group(row, query, c4), inside(4 * c4, start, end)));
    }
    float largest = max(max(top.x, top.y), max(top.z, top.w));
    vec4 sum = vec4(0.0);
    for (int c4 = start >> 2; c4 < last; c4++) {
        vec4 seen = mix(vec4(LOWEST), group(row, query, c4), inside(4 * c4, start, end));
        sum += exp(max(seen - largest, -100.0)) * vec4(inside(4 * c4, start, end));
    }
    vec4 mine = group(row, query, col >> 2);
#ifndef PACKED
    mine.x = pick(mine, col & 3);
#endif
    vec4 weight = exp(max(mine - largest, -100.0)) / dot(sum, vec4(1.0));
    return mix(vec4(0.0), weight, inside(col, start, end));
}
