// Grids: a group is four runs of eight neighbours, whose codes are an entry of a codebook, with FOURS two entries. A
// code and its sign stand for a level; LEVEL0 and LEVEL1 are the first eight levels, a signed byte each, the first one
// in the highest byte.

// What a group has: its indices in x and y; the word that has its signs, if one has, in z; the bits of indices above
// the lower 8 in w. The plane has a block's indices and then its words of signs, if those lie apart.
fn fields(group: u32) -> vec4<u32> {
    let block = WORDS + SPAN * (group >> 3u);
    let own = group & 7u;
//!if NARROW
    let indices = vec2<u32>(weights[block + (own >> 2u)][own & 3u], 0u);
//!else
    let texel = weights[block + (own >> 1u)];
    let indices = select(texel.xy, texel.zw, (own & 1u) == 1u);
//!end
    var f = vec4<u32>(indices, indices.y, 0u);
//!if SIGNS_APART
    f.z = weights[block + SIGNS + (own >> 2u)][own & 3u];
//!end
//!if EXTENDED
    f.w = bytes_from(HIGH, HIGH_BYTES * group);
//!end
    return f;
}

// What begins with a byte of a plane.
fn bytes_from(plane: u32, at: u32) -> u32 {
    return weights[plane + (at >> 4u)][(at >> 2u) & 3u] >> (8u * (at & 3u));
}

// What the levels of both halves of a group are multiplied by.
fn scales(group: u32, f: vec4<u32>) -> vec2<f32> {
//!if STEPS_BELOW_FACTOR
    // Eight groups have four words of 16 bits: in each, 4 bits of the factor above the steps of four halves.
    let texel = weights[SCALES + (group >> 4u)];
    let words = select(texel.xy, texel.zw, (group & 8u) != 0u);
    let nibbles = (words >> vec2<u32>(12u)) & vec2<u32>(0xf000fu);
    let pairs = (nibbles | (nibbles >> vec2<u32>(12u))) & vec2<u32>(255u);
    let d = half_value(pairs.x | (pairs.y << 8u));
    let own = bytes_from(SCALES, group & 0xfffffffeu) >> (6u * (group & 1u));
    let s = (vec2<u32>(own) >> vec2<u32>(0u, 3u)) & vec2<u32>(7u);
//!else
    let d = half_of(weights[FACTORS + (group >> 6u)], (group >> 3u) & 7u);
//!end
//!if STEP_ABOVE_SIGNS
    let s = vec2<u32>(f.z >> 28u);
//!end
//!if STEP_OF_HALF
    let s = (vec2<u32>(bytes_from(SCALES, group)) >> vec2<u32>(0u, 4u)) & vec2<u32>(15u);
//!end
//!if STEP_ABOVE_INDICES
    let s = vec2<u32>((f.w >> 12u) & 7u);
//!end
//!if STEP_OF_GROUP
    let s = vec2<u32>((bytes_from(SCALES, group >> 1u) >> (4u * (group & 1u))) & 15u);
//!end
    return d * UNIT * (0.5 + vec2<f32>(s));
}

// The index of entry i.
fn index_of(f: vec4<u32>, i: u32) -> u32 {
//!if NINES
    return (f[i >> 1u] >> (16u * (i & 1u))) & 511u;
//!else
    var index = (f[i >> 2u] >> (8u * (i & 3u))) & 255u;
//!if EXTENDED
    index |= ((f.w >> (HIGH_PITCH * i)) & HIGH_MASK) << 8u;
//!end
    return index;
//!end
}

// The entry of an index: codes, the first in the lowest bits.
fn entry(index: u32) -> u32 {
    return CODEBOOK[index >> 3u][(index >> 1u) & 3u] >> (16u * (index & 1u));
}

// The signs of run i, a bit each.
fn signs(f: vec4<u32>, i: u32) -> u32 {
//!if EIGHTS
    return f.z >> (8u * i);
//!end
//!if ALIKE
    return 255u * ((f.w >> (SIGN_BIT + SIGN_PITCH * i)) & 1u);
//!end
//!if SEVENS
//!if NINES
    let seven = (f[i >> 1u] >> (16u * (i & 1u) + 9u)) & 127u;
//!else
    let seven = (f.z >> (7u * i)) & 127u;
//!end
    // The eighth makes the number of bits that are set even.
    return seven | ((countOneBits(seven) & 1u) << 7u);
//!end
}

// The levels of four codes with their signs.
fn four(codes: u32, bits: u32) -> vec4<f32> {
    let negative = (vec4<u32>(bits) & vec4<u32>(1u, 2u, 4u, 8u)) != vec4<u32>(0u);
//!if FOURS
    let code = vec4<u32>(codes) >> vec4<u32>(0u, 4u, 8u, 12u);
    let table = select(vec4<u32>(LEVEL0), vec4<u32>(LEVEL1), (code & vec4<u32>(4u)) != vec4<u32>(0u));
//!else
    let code = vec4<u32>(codes) >> vec4<u32>(0u, 2u, 4u, 6u);
    let table = select(vec4<u32>(LEVEL0), vec4<u32>(LEVEL1), negative);
//!end
    let level = vec4<f32>(bitcast<vec4<i32>>(table << (8u * (code & vec4<u32>(3u)))) >> vec4<u32>(24u));
//!if FOURS
    return select(level, -level, negative);
//!else
    return level;
//!end
}

// The levels of run i.
fn eight(f: vec4<u32>, i: u32) -> array<vec4<f32>, 2> {
    let bits = signs(f, i);
//!if FOURS
    let first = entry(index_of(f, 2u * i));
    let last = entry(index_of(f, 2u * i + 1u));
//!else
    let first = entry(index_of(f, i));
    let last = first >> 8u;
//!end
    return array<vec4<f32>, 2>(four(first, bits), four(last, bits >> 4u));
}
