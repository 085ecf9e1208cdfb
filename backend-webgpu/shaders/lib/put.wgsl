// Puts columns of the projection to Q, K and V where they belong: Q into the result, K and V into their caches, whose rows
// that are not real or beyond their end are dropped. With HALVES two neighbours go together, for they share a word.
//!if HALVES
const EACH: u32 = 2u;

fn cached(value: vec2<f32>) -> u32 {
    return pack2x16float(value);
}
//!else
const EACH: u32 = 1u;

fn cached(value: f32) -> f32 {
    return value;
}
//!end

fn put(row: u32, col: u32, value: VALUE) {
    if (col < p.q_cols) {
        q[(row * p.q_cols + col) / EACH] = value;
        return;
    }
    let position = step.position + row;
    if (row >= step.rows || position >= p.n_ctx) {
        return;
    }
    let at = position * p.kv_cols + col - p.q_cols;
    if (col < p.q_cols + p.kv_cols) {
        k_cache[at / EACH] = cached(value);
    } else {
        v_cache[(at - p.kv_cols) / EACH] = cached(value);
    }
}
