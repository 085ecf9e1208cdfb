// Numbers as integers of the same order: NaN comes last, and the zeros are equal.
fn sort_key(x: f32) -> u32 {
    let bits = bitcast<u32>(x);
    let size = bits & 0x7fffffffu;
    let below = size != 0u && bits != size;
    let key = select(size | 0x80000000u, ~bits, below);
    return select(key, 0xffffffffu, size > 0x7f800000u) ^ p.flip;
}
