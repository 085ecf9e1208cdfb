// attention, pass 1: the scores of every query head (rows) and visible key (columns).
#include "frame.glsl"
#include "activation.glsl"
#include "masking.glsl"

vec4 products(int query, int head, int key, int last) {
    int q_cols = heads * head_dim;
    int k_cols = heads_kv * head_dim;
    int head_kv = head * heads_kv / heads;
    vec4 sum = vec4(0.0);
#ifdef ALIGNED
    int d4 = head_dim >> 2;
    int q_at = head * d4;
    int k_at = head_kv * d4;
    for (int i = 0; i < d4; i++) {
        vec4 q = load4(src_q, q_cols, query, q_at + i);
        sum.x += dot(q, load4(src_k, k_cols, key, k_at + i));
#ifdef PACKED
        sum.y += dot(q, load4(src_k, k_cols, min(key + 1, last), k_at + i));
        sum.z += dot(q, load4(src_k, k_cols, min(key + 2, last), k_at + i));
        sum.w += dot(q, load4(src_k, k_cols, min(key + 3, last), k_at + i));
#endif
    }
#else
    for (int i = 0; i < head_dim; i++) {
        float q = load1(src_q, q_cols, query, head * head_dim + i);
        int col = head_kv * head_dim + i;
        sum.x += q * load1(src_k, k_cols, key, col);
#ifdef PACKED
        sum.y += q * load1(src_k, k_cols, min(key + 1, last), col);
        sum.z += q * load1(src_k, k_cols, min(key + 2, last), col);
        sum.w += q * load1(src_k, k_cols, min(key + 3, last), col);
#endif
    }
#endif
    return sum;
}

vec4 value(int row, int col) {
    int query = row / heads;
    int head = row - query * heads;
    int start;
    int end;
    visible(query, queries, out_cols, start, end);
    if (col >= end || col + LANES <= start) return vec4(0.0);
    vec4 score = cap(scale * products(query, head, col, end - 1));
#ifdef EXPLICIT
    score += lanes(src_mask, out_cols, query, col);
#endif
    return score;
}
