// attention, pass 2: softmax of the scores and the weighted sum of the values.
#include "frame.glsl"
#include "activation.glsl"
#include "masking.glsl"

vec4 values_of(int key, int head_kv, int channel) {
    int cols = heads_kv * head_dim;
#ifdef ALIGNED
    return lanes(src_v, cols, key, head_kv * head_dim + channel);
#else
    return vec4(load1(src_v, cols, key, head_kv * head_dim + channel), 0.0, 0.0, 0.0);
#endif
}

vec4 weighted(int query, int head, int channel) {
    int start;
    int end;
    visible(query, queries, keys, start, end);
    if (start >= end) return vec4(0.0);
    int row = query * heads + head;
    int head_kv = head * heads_kv / heads;
    int last = (end + 3) >> 2;
    vec4 top = vec4(LOWEST);
    for (int c4 = start >> 2; c4 < last; c4++) {
        top = max(top, mix(vec4(LOWEST), load4(src_scores, keys, row, c4), inside(4 * c4, start, end)));
    }
    float largest = max(max(top.x, top.y), max(top.z, top.w));
    vec4 total = vec4(0.0);
    vec4 sum = vec4(0.0);
    for (int c4 = start >> 2; c4 < last; c4++) {
        int key = 4 * c4;
        bvec4 seen = inside(key, start, end);
        vec4 weight = exp(max(load4(src_scores, keys, row, c4) - largest, -100.0));
        weight = mix(vec4(0.0), weight, seen);
        total += weight;
        if (seen.x) sum += weight.x * values_of(key, head_kv, channel);
        if (seen.y) sum += weight.y * values_of(key + 1, head_kv, channel);
        if (seen.z) sum += weight.z * values_of(key + 2, head_kv, channel);
        if (seen.w) sum += weight.w * values_of(key + 3, head_kv, channel);
    }
    return sum / dot(total, vec4(1.0));
}

vec4 at_column(int row, int col) {
    int head = col / head_dim;
    return weighted(row, head, col - head * head_dim);
}

vec4 value(int row, int col) {
    vec4 v = at_column(row, col);
#if defined(PACKED) && !defined(ALIGNED)
    if (col + 1 < out_cols) v.y = at_column(row, col + 1).x;
    if (col + 2 < out_cols) v.z = at_column(row, col + 2).x;
    if (col + 3 < out_cols) v.w = at_column(row, col + 3).x;
#endif
    return v;
}
