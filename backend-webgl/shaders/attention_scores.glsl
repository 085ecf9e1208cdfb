// attention, pass 1: the scores of every query head (rows) and visible key (columns).
//!include frame.glsl
//!include masking.glsl
//!if ALIGNED
//!include query.glsl
//!end

//!if BLOCKS
//!include halves.glsl
//!reader src_k
#define key1(cols, row, col) pick(src_k_quad(row, (col) >> 2), (col) & 3)
//!else
#define key1(cols, row, col) load1(src_k, cols, row, col)
//!end

//!if ALIGNED
//!if !BLOCKS && PACKED && HEAD_IN_LINE && LONG_LINES
// Where the head of each of four keys begins: a head lies in one line of the texture, so it is looked up once.
ivec2 at0, at1, at2, at3;

void find_keys(int k_cols, ivec4 keys, int at) {
    ivec4 texels = keys * (k_cols >> 2) + at;
    at0 = fold(texels.x);
    at1 = fold(texels.y);
    at2 = fold(texels.z);
    at3 = fold(texels.w);
}

// The products of four channels of a query with those of four keys.
vec4 part(vec4 q, int i) {
    return vec4(
        dot(q, fetch(src_k, at0 + ivec2(i, 0))),
        dot(q, fetch(src_k, at1 + ivec2(i, 0))),
        dot(q, fetch(src_k, at2 + ivec2(i, 0))),
        dot(q, fetch(src_k, at3 + ivec2(i, 0)))
    );
}
//!else
int key_cols;
ivec4 key_rows;
int key_at;

void find_keys(int k_cols, ivec4 keys, int at) {
    key_cols = k_cols;
    key_rows = keys;
    key_at = at;
}

vec4 part(vec4 q, int i) {
//!if BLOCKS
    return vec4(
        dot(q, src_k_quad(key_rows.x, key_at + i)),
        dot(q, src_k_quad(key_rows.y, key_at + i)),
        dot(q, src_k_quad(key_rows.z, key_at + i)),
        dot(q, src_k_quad(key_rows.w, key_at + i))
    );
//!else
//!if PACKED
    return vec4(
        dot(q, load4(src_k, key_cols, key_rows.x, key_at + i)),
        dot(q, load4(src_k, key_cols, key_rows.y, key_at + i)),
        dot(q, load4(src_k, key_cols, key_rows.z, key_at + i)),
        dot(q, load4(src_k, key_cols, key_rows.w, key_at + i))
    );
//!else
    return vec4(dot(q, load4(src_k, key_cols, key_rows.x, key_at + i)), 0.0, 0.0, 0.0);
//!end
//!end
}
//!end
//!end

vec4 products(int query, int head, int key, int last) {
    int k_cols = heads_kv * head_dim;
    int head_kv = head * heads_kv / heads;
    ivec4 keys = min(key + ivec4(0, 1, 2, 3), last);
//!if ALIGNED
    int d4 = head_dim >> 2;
    find_keys(k_cols, keys, head_kv * d4);
    vec4 sum = vec4(0.0);
    vec4 sum2 = vec4(0.0);
    // Two at a time, so that more loads are under way: aligned heads are pairs of texels.
    for (int i = 0; i < d4; i += 2) {
        sum += part(query4(query, head, i), i);
        sum2 += part(query4(query, head, i + 1), i + 1);
    }
    return sum + sum2;
//!else
    vec4 sum = vec4(0.0);
    for (int i = 0; i < head_dim; i++) {
        float q = load1(src_q, q_cols, query, head * head_dim + i);
        int col = head_kv * head_dim + i;
        sum.x += q * key1(k_cols, keys.x, col);
//!if PACKED
        sum.y += q * key1(k_cols, keys.y, col);
        sum.z += q * key1(k_cols, keys.z, col);
        sum.w += q * key1(k_cols, keys.w, col);
//!end
    }
    return sum;
//!end
}

//!if SLOPES
// What each position between a query and a key takes from their score.
float slope_of(int head) {
    float at = float(head);
    return exp2(slope_ratio * (at < slope_heads ? at + 1.0 : at - slope_heads + 0.5));
}

//!end
vec4 value(int row, int col) {
    int query = row / heads;
    int head = row - query * heads;
    int start;
    int end;
    visible(query, queries, out_cols, start, end);
    if (col >= end || col + LANES <= start) return vec4(0.0);
    vec4 score = cap(scale * products(query, head, col, end - 1));
//!if SLOPES
    score -= slope_of(head) * abs(float(place_of(query, queries, out_cols) - col) - vec4(0.0, 1.0, 2.0, 3.0));
//!end
//!if EXPLICIT
    score = max(score + lanes(src_mask, out_cols, head * mask_rows + query, col), vec4(LOWEST));
//!end
    return score;
}
