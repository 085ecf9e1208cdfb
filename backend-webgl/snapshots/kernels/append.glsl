#version 300 es
precision highp float;
precision highp int;
precision highp sampler2D;
precision highp usampler2D;
precision highp usampler2DArray;
#define LINE_SHIFT 5
#define LINE 32
#define PAGE_SHIFT 11
#define PAGE 2048
#define WEIGHT_LINE_SHIFT 8
#define WEIGHT_LINE 256
#define WEIGHT_PAGE_SHIFT 11
#define WEIGHT_PAGE 2048
layout(std140) uniform Params {
    int out_rows;
    int out_cols;
    int append_unit;
    int append_max;
    int x_cols;
};
layout(std140) uniform Step {
    uint step_position;
    uint step_rows;
    uint step_top_k;
    float step_top_p;
    float step_temperature;
    uint step_seed_lo;
    uint step_seed_hi;
    uint step_sequence;
};
uniform sampler2D t0;
#define src_x t0
// append: rows of x.
// The frame of kernels that append rows to a state in a codec of blocks: `uvec4 coded(int row, int texel)` makes a
// texel of a row.
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

// What reads a sampler is a macro and no function: where functions take samplers and fragments go different ways,
// SwiftShader in Chromium 80 to 92 reads the texture of another call.

// The value of a texture that holds one value a texel in either layout.
#define raw_at(source, index) texelFetch(source, fold(index), 0).x

// load1 is one column of a row, load4 four from 4 * c4 on; lanes are the columns that the fragment at column `col`
// makes.
#define LANES 1
#define load1(source, cols, row, col) texelFetch(source, fold((row) * (cols) + (col)), 0).x
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

// Which of 4 columns from `col` on lie in start..end.
bvec4 inside(int col, int start, int end) {
    ivec4 at = ivec4(col) + ivec4(0, 1, 2, 3);
    return bvec4(ivec4(greaterThanEqual(at, ivec4(start))) * ivec4(lessThan(at, ivec4(end))));
}

vec4 keep(vec4 v, int col, int end) {
    return mix(vec4(0.0), v, inside(col, 0, end));
}

layout(location = 0) out uvec4 result;

int append_first() {
    return int(step_position);
}

uvec4 coded(int row, int texel);

void main() {
    int texel = fragment();
    int row_texels = out_cols >> 2;
    int row = texel / row_texels;
    int count = min(int(step_rows), append_max);
    int first = append_first();
    if (row < first || row >= first + count || row >= out_rows) discard;
    result = coded(row, texel - row * row_texels);
}

vec4 quad_of(int row, int c4) {
    return load4(src_x, x_cols, row - append_first(), c4);
}

// States in bytes: blocks of 32 with a scale. A row of 3 texels has the bytes of all its blocks, then their scales
// from rows_texel 2 on.
// A scale as a half would hold it.
float rows_half_of(float scale) {
    if (scale < 6.1035156e-5) return floor(scale * 16777216.0 + 0.5) / 16777216.0;
    uint bits = floatBitsToUint(scale);
    return uintBitsToFloat((bits + 0xfffu + ((bits >> 13u) & 1u)) & 0xffffe000u);
}

// The bits of the largest magnitude of a block: magnitudes are ordered as their bits are, and those of NaN and infinity
// come last.
uint rows_largest_of(int row, int block) {
    uvec4 most = uvec4(0u);
    int end = 8 * block + 8;
    for (int c4 = 8 * block; c4 < end; c4++) {
        most = max(most, floatBitsToUint(quad_of(row, c4)) & 0x7fffffffu);
    }
    return max(max(most.x, most.y), max(most.z, most.w));
}

// The bits of a block's scale. A block with a number that is not finite is NaN, so that nothing is hidden.
uint rows_scale_bits(int row, int block) {
    uint most = rows_largest_of(row, block);
    return most < 0x7f800000u ? floatBitsToUint(rows_half_of(uintBitsToFloat(most) / 127.0)) : 0x7fc00000u;
}

uint rows_word_of(vec4 levels) {
    uvec4 bytes = uvec4(ivec4(sign(levels) * floor(abs(levels) + 0.5))) & 0xffu;
    return bytes.x | bytes.y << 8u | bytes.z << 16u | bytes.w << 24u;
}

uvec4 rows_texel(int row, int at) {
    if (at >= 2) {
        int block = 4 * (at - 2);
        uvec4 scales = uvec4(0u);
        for (int i = 0; i < min(4, 1 - block); i++) {
            scales[i] = rows_scale_bits(row, block + i);
        }
        return scales;
    }
    float scale = uintBitsToFloat(rows_largest_of(row, at >> 1)) / 127.0;
    float inverse = scale > 0.0 ? 1.0 / scale : 0.0;
    return uvec4(
        rows_word_of(quad_of(row, 4 * at) * inverse),
        rows_word_of(quad_of(row, 4 * at + 1) * inverse),
        rows_word_of(quad_of(row, 4 * at + 2) * inverse),
        rows_word_of(quad_of(row, 4 * at + 3) * inverse)
    );
}


uvec4 coded(int row, int texel) {
    return rows_texel(row, texel);
}
// append q8_0 APPEND BLOCKS r32f
