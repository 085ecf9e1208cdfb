// Puts columns of the projection to Q, K and V where they belong: Q into the result, K and V into their caches, whose rows
// that are not real or beyond their end are dropped. EACH neighbours go together: with HALVES two, for they share a word,
// with BLOCKS a block.
//!include lib/position.wgsl
//!if BLOCKS
//!writer k_cache
//!writer v_cache

fn put(row: u32, col: u32, value: VALUE) {
    if (col < p.q_cols) {
        for (var j = 0u; j < EACH; j++) {
            q[row * p.q_cols + col + j] = value[j];
        }
        return;
    }
    let position = position_of(row);
    if (row >= step.rows || position >= p.n_ctx) {
        return;
    }
    let at = before_sequence(row, p.n_ctx) + position;
    let block = (col - p.q_cols) / EACH;
    if (col < p.q_cols + p.kv_cols) {
        k_cache_write(at, block, value);
    } else {
        v_cache_write(at, block - p.kv_cols / EACH, value);
    }
}
//!else
//!if HALVES
fn cached(value: vec2<f32>) -> u32 {
    return pack2x16float(value);
}
//!else
fn cached(value: f32) -> f32 {
    return value;
}
//!end

fn put(row: u32, col: u32, value: VALUE) {
    if (col < p.q_cols) {
        q[(row * p.q_cols + col) / EACH] = value;
        return;
    }
    let position = position_of(row);
    if (row >= step.rows || position >= p.n_ctx) {
        return;
    }
    let at = (before_sequence(row, p.n_ctx) + position) * p.kv_cols + col - p.q_cols;
    if (col < p.q_cols + p.kv_cols) {
        k_cache[at / EACH] = cached(value);
    } else {
        v_cache[(at - p.kv_cols) / EACH] = cached(value);
    }
}
//!end
