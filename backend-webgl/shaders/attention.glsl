// attention, pass 2: softmax of the scores and the weighted sum of the values.
//!include frame.glsl
//!include masking.glsl

//!if BLOCKS
//!include halves.glsl
//!reader src_v

//!end
vec4 values_of(int key, int head_kv, int channel) {
    int cols = heads_kv * head_dim;
//!if BLOCKS
    int col = head_kv * head_dim + channel;
//!if PACKED && ALIGNED
    return src_v_quad(key, col >> 2);
//!else
    return vec4(pick(src_v_quad(key, col >> 2), col & 3), 0.0, 0.0, 0.0);
//!end
//!else
//!if ALIGNED
    return lanes(src_v, cols, key, head_kv * head_dim + channel);
//!else
    return vec4(load1(src_v, cols, key, head_kv * head_dim + channel), 0.0, 0.0, 0.0);
//!end
//!end
}

float largest;
vec4 total = vec4(0.0);
vec4 sum = vec4(0.0);

// Adds the values of four keys, of which those that are not seen have weight 0 and may hold anything.
void add(vec4 weight, bvec4 seen, int key, int last, int head_kv, int channel) {
    sum += weight.x * mix(vec4(0.0), values_of(min(key, last), head_kv, channel), bvec4(seen.x));
    sum += weight.y * mix(vec4(0.0), values_of(min(key + 1, last), head_kv, channel), bvec4(seen.y));
    sum += weight.z * mix(vec4(0.0), values_of(min(key + 2, last), head_kv, channel), bvec4(seen.z));
    sum += weight.w * mix(vec4(0.0), values_of(min(key + 3, last), head_kv, channel), bvec4(seen.w));
}

// The weights of scores, relative to the largest so far.
vec4 weights_of(vec4 scores, bvec4 seen) {
    return mix(vec4(0.0), exp(max(scores - largest, -100.0)), seen);
}

vec4 weighted(int query, int head, int channel) {
    int start;
    int end;
    visible(query, queries, keys, start, end);
    if (start >= end) return vec4(0.0);
    int row = query * heads + head;
    int head_kv = head * heads_kv / heads;
    int last = (end - 1) >> 2;
    sum = vec4(0.0);
//!if SINKS
    largest = load1(src_sinks, heads, 0, head);
    total = vec4(1.0, 0.0, 0.0, 0.0);
//!else
    largest = LOWEST;
    total = vec4(0.0);
//!end
//!if EXPLICIT
    bool found = false;
//!end
    // Eight keys at a time: many loads are under way, and what was summed is seldom scaled anew.
    for (int c4 = start >> 2; c4 <= last; c4 += 2) {
        int key = 4 * c4;
        bvec4 seen = inside(key, start, end);
        bvec4 seen2 = inside(key + 4, start, end);
        vec4 a = mix(vec4(LOWEST), load4(src_scores, keys, row, c4), seen);
        vec4 b = mix(vec4(LOWEST), load4(src_scores, keys, row, min(c4 + 1, last)), seen2);
//!if EXPLICIT
        seen = shown(a);
        seen2 = shown(b);
        found = found || any(seen) || any(seen2);
//!end
        vec4 four = max(a, b);
        float before = largest;
        largest = max(before, max(max(four.x, four.y), max(four.z, four.w)));
        float scale_down = exp(max(before - largest, -100.0));
        sum *= scale_down;
        total *= scale_down;
        a = weights_of(a, seen);
        b = weights_of(b, seen2);
        total += a + b;
        add(a, seen, key, end - 1, head_kv, channel);
        add(b, seen2, key + 4, end - 1, head_kv, channel);
    }
    // Not a look at the sum of weights: scores that are NaN may leave nothing of it.
//!if EXPLICIT
    if (!found) return vec4(0.0);
//!end
    return sum / dot(total, vec4(1.0));
}

vec4 at_column(int row, int col) {
    int head = col / head_dim;
    return weighted(row, head, col - head * head_dim);
}

vec4 value(int row, int col) {
    vec4 v = at_column(row, col);
//!if PACKED && !ALIGNED
    if (col + 1 < out_cols) v.y = at_column(row, col + 1).x;
    if (col + 2 < out_cols) v.z = at_column(row, col + 2).x;
    if (col + 3 < out_cols) v.w = at_column(row, col + 3).x;
//!end
    return v;
}
