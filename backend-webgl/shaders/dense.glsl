// Dense tensors: rows of values, folded into lines of LINE texels, which fill pages of PAGE lines side by side. With
// PACKED a texel holds 4 neighbours of a row and rows are padded to whole texels with zeros; otherwise one value.

ivec2 fold(int texel) {
    int line = texel >> LINE_SHIFT;
    return ivec2(((line >> PAGE_SHIFT) << LINE_SHIFT) + (texel & (LINE - 1)), line & (PAGE - 1));
}

int fragment() {
    ivec2 at = ivec2(gl_FragCoord.xy);
    int line = ((at.x >> LINE_SHIFT) << PAGE_SHIFT) + at.y;
    return (line << LINE_SHIFT) + (at.x & (LINE - 1));
}

float pick(vec4 v, int lane) {
    return v[lane];
}

// With BITS textures hold the bits of floats as integers, which every device can draw to.
//!if BITS
#define TEXEL uvec4
#define fetch(source, at) uintBitsToFloat(texelFetch(source, at, 0))
#define texel_of(value) floatBitsToUint(value)
//!else
#define TEXEL vec4
#define fetch(source, at) texelFetch(source, at, 0)
#define texel_of(value) (value)
//!end

// What reads a sampler is a macro and no function: where functions take samplers and fragments go different ways,
// SwiftShader in Chromium 80 to 92 reads the texture of another call.

// The value of a texture that holds one value a texel in either layout.
#define raw_at(source, index) fetch(source, fold(index)).x

// load1 is one column of a row, load4 four from 4 * c4 on; lanes are the columns that the fragment at column `col`
// makes.
//!if PACKED
#define LANES 4
#define load4(source, cols, row, c4) fetch(source, fold((row) * (((cols) + 3) >> 2) + (c4)))
#define load1(source, cols, row, col) pick(load4(source, cols, row, (col) >> 2), (col) & 3)
#define lanes(source, cols, row, col) load4(source, cols, row, (col) >> 2)
//!else
#define LANES 1
#define load1(source, cols, row, col) fetch(source, fold((row) * (cols) + (col))).x
#define load_up_to(source, cols, row, col) load1(source, cols, row, min(col, (cols) - 1))
#define load4(source, cols, row, c4) \
    keep( \
        vec4( \
            load1(source, cols, row, 4 * (c4)), \
            load_up_to(source, cols, row, 4 * (c4) + 1), \
            load_up_to(source, cols, row, 4 * (c4) + 2), \
            load_up_to(source, cols, row, 4 * (c4) + 3) \
        ), \
        4 * (c4), \
        cols \
    )
#define lanes(source, cols, row, col) vec4(load1(source, cols, row, col), 0.0, 0.0, 0.0)
//!end

// Which of 4 columns from `col` on lie in start..end.
bvec4 inside(int col, int start, int end) {
    ivec4 at = ivec4(col) + ivec4(0, 1, 2, 3);
    return bvec4(ivec4(greaterThanEqual(at, ivec4(start))) * ivec4(lessThan(at, ivec4(end))));
}

vec4 keep(vec4 v, int col, int end) {
    return mix(vec4(0.0), v, inside(col, 0, end));
}
