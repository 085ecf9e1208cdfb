// attention, pass 1: the scores of every query head (rows) and visible key (columns).
#include "frame.glsl"
#include "activation.glsl"
#include "masking.glsl"

float product(int query, int head, int key) {
    int head_kv = head * heads_kv / heads;
#ifdef ALIGNED
    vec4 sum = vec4(0.0);
    int d4 = head_dim >> 2;
    for (int i = 0; i < d4; i++) {
        sum += load4(src_q, heads * head_dim, query, head * d4 + i) * load4(src_k, heads_kv * head_dim, key, head_kv * d4 + i);
    }
    return dot(sum, vec4(1.0));
#else
    float sum = 0.0;
    for (int i = 0; i < head_dim; i++) {
        sum += load1(src_q, heads * head_dim, query, head * head_dim + i)
            * load1(src_k, heads_kv * head_dim, key, head_kv * head_dim + i);
    }
    return sum;
#endif
}

vec4 value(int row, int col) {
    int query = row / heads;
    int head = row - query * heads;
    int start;
    int end;
    visible(query, queries, out_cols, start, end);
    if (col >= end || col + LANES <= start) return vec4(0.0);
    vec4 score = vec4(product(query, head, col), 0.0, 0.0, 0.0);
#ifdef PACKED
    if (col + 1 < end) score.y = product(query, head, col + 1);
    if (col + 2 < end) score.z = product(query, head, col + 2);
    if (col + 3 < end) score.w = product(query, head, col + 3);
#endif
    score = cap(scale * score);
#ifdef EXPLICIT
    score += lanes(src_mask, out_cols, query, col);
#endif
    return score;
}
