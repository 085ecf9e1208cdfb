// How one query's keys are cut into parts that workgroups score apart.
//!include lib/masking.wgsl

const LOWEST: f32 = -3.4028234e38;

// Keys of a part: as many as SPLITS parts need, and no fewer than a workgroup scores at a time.
fn split_keys(range: vec2<u32>) -> u32 {
    return max(SPLIT_KEYS, (range.y - range.x + SPLITS - 1u) / SPLITS);
}

// Parts that have keys; at least one, which then is empty.
fn split_count(range: vec2<u32>) -> u32 {
    let keys = split_keys(range);
    return max((range.y - range.x + keys - 1u) / keys, 1u);
}
