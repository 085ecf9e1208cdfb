//! The mutations: each changes what a kernel computes, by as little as possible, and leaves it valid. The text must
//! survive assembly, which in WGSL renames the capitals, and the functions and `weights` of decoders.

/// A broken kernel.
#[derive(PartialEq)]
pub struct Mutation {
    /// The shader file that is broken.
    pub file: &'static str,
    /// The operator whose cases must notice.
    pub op: &'static str,
    /// A text of that file only.
    pub find: &'static str,
    /// What stands in its place.
    pub replace: &'static str,
}

const fn of(file: &'static str, op: &'static str, find: &'static str, replace: &'static str) -> Mutation {
    Mutation { file, op, find, replace }
}

/// Of the WebGPU backend without optional features.
pub const WEBGPU: &[Mutation] = &[
    of("append.wgsl", "append", "let target_row = step.position + row;", "let target_row = step.position + row + 1u;"),
    of("argmax.wgsl", "argmax", "candidate > value", "candidate < value"),
    of("argmax.wgsl", "argmax", "loaded[i][e] > value", "loaded[i][e] < value"),
    of("attention.wgsl", "attention", "= partial[lane] * scale;", "= partial[lane];"),
    of("attention_split.wgsl", "attention_linear", "(highest, total, 0.0, 0.0)", "(highest, 1.0, 0.0, 0.0)"),
    of("binary.wgsl", "binary", "d1 * p.b_step1", "d0 * p.b_step1"),
    of("concat.wgsl", "concat", "at < p.a_run", "at <= p.a_run"),
    of("embed.wgsl", "embed", "+ b[e / 4u][e % 4u]", "- b[e / 4u][e % 4u]"),
    of("get_rows.wgsl", "get_rows", "values[e / 4u][e % 4u]", "values[e / 4u][e % 3u]"),
    of("glu.wgsl", "glu", "(gate[i]) * up[i]", "(gate[i]) + up[i]"),
    of("linear_tile.wgsl", "linear", "let tx = lane % 16u;", "let tx = lane % 15u;"),
    of("lib/group.wgsl", "linear", "dot(a[7], b[7])", "dot(a[7], b[6])"),
    of("lib/products.wgsl", "matmul", "outer * p.b0 / p.out0", "outer * p.b0"),
    of("linear_qkv.wgsl", "linear_qkv", "value.x * c - value.y * s", "value.x * c + value.y * s"),
    of("linear_qkv.wgsl", "linear_qkv", "vec2<f32>(value.x, next.x)", "vec2<f32>(value.x, next.y)"),
    of("linear_vec.wgsl", "linear", "(product.x) * product.y", "(product.x) + product.y"),
    of("norm.wgsl", "norm", "squares += value * value;", "squares += value;"),
    of("permute.wgsl", "permute", "d3 * p.step3", "d3 * p.step2"),
    of("permute.wgsl", "permute", "(x[at / 2u])[at % 2u]", "(x[at / 2u])[0]"),
    of(
        "qkv_append.wgsl",
        "qkv_append",
        "if (col < p.q_cols + p.kv_cols) {\n        return rotated(",
        "if (col < p.q_cols) {\n        return rotated(",
    ),
    of("qkv_append.wgsl", "qkv_append", "turned(row, col + 1u)", "turned(row, col)"),
    of("rope.wgsl", "rope", "step.position + i / p.cols", "i / p.cols"),
    of("sample.wgsl", "sample", "(word >> 22u)", "(word >> 21u)"),
    of("slice.wgsl", "slice", "p.start + i % p.cols", "i % p.cols"),
    of("softmax.wgsl", "softmax", "c >= range.x && c < range.y", "c < range.y"),
    of("top_k.wgsl", "top_k", "index == NONE || beats(value, index, candidate, c)", "true"),
    of("unary.wgsl", "unary", "(x[i]);\n}", "(-x[i]);\n}"),
    of("lib/best.wgsl", "argmax", "a == b && ai < bi", "a == b && ai > bi"),
    of("lib/tile_float.wgsl", "linear", "tile_w[w + 144u]", "tile_w[w + 145u]"),
    of("lib/decode.wgsl", "get_rows", "* 5.960464477539063e-8", "* 0.0"),
    of("lib/index.wgsl", "get_rows", "return step.position + i;", "return step.position + i + 1u;"),
    of("lib/lanes.wgsl", "linear", "sum += lanes_own[lane + i];", "sum -= lanes_own[lane + i];"),
    of("lib/masking.wgsl", "softmax", "min(filled, at + 1u)", "min(filled, at)"),
    of("lib/reduce.wgsl", "norm", "sum += reduce_all[lane * SPAN + i];", "sum -= reduce_all[lane * SPAN + i];"),
    of("lib/keys.wgsl", "attention", "unpack2x16float(words.y)", "unpack2x16float(words.x)"),
    of("lib/put.wgsl", "qkv_append", "(at - p.kv_cols) / EACH", "(at - p.kv_cols) / EACH + 1u"),
    of("lib/parts.wgsl", "attention_linear", "total += weight * share[j].y;", "total += share[j].y;"),
    of("lib/row.wgsl", "linear", "f32(p.k) + p.eps", "f32(p.k + 1u) + p.eps"),
    of("lib/splits.wgsl", "attention_linear", "+ keys - 1u) / keys", "+ keys - 1u) / (keys + 1u)"),
    of("lib/rotate.wgsl", "rope", "x[i] * c - x[i + distance] * s", "x[i] * c + x[i + distance] * s"),
    of("lib/step.wgsl", "append", "position: u32,\n    rows: u32,", "rows: u32,\n    position: u32,"),
    of("lib/unary.wgsl", "unary", "1.453152027", "1.443152027"),
    of("format/bf16.wgsl", "get_rows", "b << 16u", "a << 16u"),
    of("format/dense.wgsl", "matmul", "if (col + i < ", "if (col + i + 1u < "),
    of("format/f16.wgsl", "get_rows", "half_pair(b)", "half_pair(a)"),
    of("format/f32.wgsl", "get_rows", "[t + 5u]", "[t + 4u]"),
    of("format/packed.wgsl", "get_rows", " + group);", " + group + 1u);"),
    of("format/q4_0.wgsl", "get_rows", "nibbles(q.y) - 8.0", "nibbles(q.y) - 7.0"),
    of("format/q4_1.wgsl", "get_rows", "nibbles(q.y) + m", "nibbles(q.y) - m"),
    of("lib/decode.wgsl", "get_rows", "(k0 >> 6u) << 4u", "(k0 >> 5u) << 4u"),
    of("format/q4_k.wgsl", "get_rows", "d * nibbles(q.y) - m", "d * nibbles(q.y) + m"),
    of("format/q5_0.wgsl", "get_rows", "h >> 8u) - 16.0", "h >> 9u) - 16.0"),
    of("format/q5_1.wgsl", "get_rows", "h >> 8u) + m", "h >> 9u) + m"),
    of("format/q6_k.wgsl", "get_rows", "h.x >> 8u", "h.x >> 6u"),
    of("format/whole.wgsl", "matmul", "[i + 5u]", "[i + 4u]"),
    of("format/quads.wgsl", "matmul", "quad(row, i + 5u)", "quad(row, i + 4u)"),
    of("format/q8_0.wgsl", "get_rows", "signed_bytes(a.y)", "signed_bytes(a.x)"),
];

/// Of the WebGPU backend where it has subgroups.
pub const SUBGROUPS: &[Mutation] = &[
    of("lib/best.wgsl", "argmax", "beats(other, other_at, best, at)", "beats(best, at, other, other_at)"),
    of("lib/lanes.wgsl", "linear", "sum += subgroupShuffleXor(sum, apart)", "sum -= subgroupShuffleXor(sum, apart)"),
    of(
        "lib/reduce.wgsl",
        "norm",
        "sum += subgroupShuffleXor(sum, distance)",
        "sum -= subgroupShuffleXor(sum, distance)",
    ),
    of("lib/reduce.wgsl", "softmax", "max(most, subgroupShuffleXor", "min(most, subgroupShuffleXor"),
];

/// Of the WebGPU backend as it is shaped for a CPU.
pub const SOFTWARE: &[Mutation] = &[
    of("linear_block.wgsl", "linear", "x32(rows.y, g)", "x32(rows.x, g)"),
    of("lib/row.wgsl", "linear", "staged[i] = normed4(i, begun)", "staged[i] = normed4(i + 1u, begun)"),
    of("lib/products.wgsl", "linear", "(row >= p.m)", "(row + 1u >= p.m)"),
];

/// Of the WebGPU backend where products are in bytes.
pub const INT8: &[Mutation] = &[
    of("lib/tile_int8.wgsl", "linear", "scale.y * offsets", "offsets"),
    of("lib/tile_int8.wgsl", "linear", "let inverse = select(127.0 / top", "let inverse = select(120.0 / top"),
    of("lib/bytes.wgsl", "linear", "0x00204081u", "0x00204080u"),
    of("lib/bytes.wgsl", "linear", "four << vec2<u32>(6u)", "four << vec2<u32>(8u)"),
    of("integer/q4_0.wgsl", "linear", "-8.0 * d", "-7.0 * d"),
    of("integer/q4_1.wgsl", "linear", "dm.xx, dm.yy", "dm.xx, -dm.yy"),
    of("integer/q4_k.wgsl", "linear", "vec2<f32>(-dm.y)", "vec2<f32>(dm.y)"),
    of("integer/q5_0.wgsl", "linear", "-16.0 * d", "-15.0 * d"),
    of("integer/q5_1.wgsl", "linear", "vec2<f32>(dm.x), vec2<f32>(dm.y)", "vec2<f32>(dm.x), vec2<f32>(-dm.y)"),
    of("integer/q6_k.wgsl", "linear", "-32.0 * d", "-31.0 * d"),
    of("integer/q8_0.wgsl", "linear", "vec2<f32>(d), vec2<f32>(0.0)", "vec2<f32>(d), vec2<f32>(1.0)"),
];

/// Of the WebGL2 backend.
pub const WEBGL: &[Mutation] = &[
    of("activation.glsl", "unary", "1.453152027", "1.443152027"),
    of("append.glsl", "append", "row - append_first(), col)", "row, col)"),
    of("argmax.glsl", "argmax", "best = int(pick(at, lane));", "best = i;"),
    of("argmax_chunks.glsl", "argmax", "best = col + i;", "best = col;"),
    of("attention.glsl", "attention", "values_of(min(key + 1, last)", "values_of(min(key, last)"),
    of("attention_scores.glsl", "attention", "scale * products(", "products("),
    of("binary.glsl", "binary", "col * b3", "col * a3"),
    of("concat.glsl", "concat", "row, col - a_cols)", "row, col - a_cols + 1)"),
    of("decode.glsl", "get_rows", "- 6.103515625e-5", "- 0.0"),
    of("dense.glsl", "slice", "return v[lane];", "return v[3 - lane];"),
    of("elements.glsl", "slice", "v.z = element(row, col + 2)", "v.z = element(row, col + 1)"),
    of("embed.glsl", "embed", "return token + group_lanes(", "return token - group_lanes("),
    of("epilogue.glsl", "linear", "sum *= up;", "sum += up;"),
    of(
        "frame.glsl",
        "append",
        "return int(step_position) * append_unit;",
        "return (int(step_position) + 1) * append_unit;",
    ),
    of("get_rows.glsl", "get_rows", "clamp(id, 0, table_rows - 1)", "clamp(id + 1, 0, table_rows - 1)"),
    of("glu.glsl", "glu", "* lanes(src_up,", "+ lanes(src_up,"),
    of("group.glsl", "linear", "(row * cols + 32 * group)", "(row * cols + 32)"),
    of("group_lanes.glsl", "get_rows", "(at == 4 ? w4 : w5)", "(at == 5 ? w4 : w5)"),
    of("kv_append.glsl", "qkv_append", "k_start + col, row)", "k_start + col, row - append_first())"),
    of("linear.glsl", "linear", "(q4 * x4 + q5 * x5)", "(q4 * x4 - q5 * x5)"),
    of("linear_block.glsl", "linear", "min(block + i * blocks, x_rows - 1)", "min(block + i, x_rows - 1)"),
    of("block.glsl", "linear", "(strip * blocks + block) * block_line", "(strip * blocks) * block_line"),
    of(
        "linear_join.glsl",
        "linear",
        "if (which == 1) return texelFetch(src_row1",
        "if (which == 2) return texelFetch(src_row1",
    ),
    of("masking.glsl", "softmax", "min(end, at + 1)", "min(end, at)"),
    of("matmul.glsl", "matmul", "b_row + min(col + 2, out_cols - 1)", "b_row + min(col + 1, out_cols - 1)"),
    of("norm.glsl", "norm", "v += lanes(src_beta,", "v -= lanes(src_beta,"),
    of("norm_rows.glsl", "norm", "(src_x, cols, row, eps", "(src_x, cols, row / 2, eps"),
    of("norm_stats.glsl", "norm", "d4 * d4 + d5 * d5", "d4 * d4 + d4 * d5"),
    of("permute.glsl", "permute", "col * s3", "col * s2"),
    of("query.glsl", "self_attention", "vec4(-x.y, x.x, -x.w, x.z)", "vec4(-x.y, x.x, x.w, x.z)"),
    of("raw.glsl", "top_k", "vec4(raw(index),", "vec4(raw(index + 1),"),
    of("rope.glsl", "rope", "col, int(step_position) + row)", "col, row)"),
    of("rope_at.glsl", "rope", "x * c - y * s", "x * c + y * s"),
    of("sample.glsl", "sample", "(word >> 22)", "(word >> 21)"),
    of("slice.glsl", "slice", "col + start", "col"),
    of("softmax.glsl", "softmax", "* factor, inside", ", inside"),
    of("softmax_rows.glsl", "softmax", "row_softmax(cols, row,", "row_softmax(cols, row / 2,"),
    of("softmax_stats.glsl", "softmax", "score += load4(src_mask,", "score -= load4(src_mask,"),
    of(
        "top_k.glsl",
        "top_k",
        "return raw_at(src_lists, row * list + col)",
        "return raw_at(src_lists, row * list + col + 1)",
    ),
    of("top_k_merge.glsl", "top_k", ">= load1(src_x, cols, row, b)", "< load1(src_x, cols, row, b)"),
    of("top_k_rank.glsl", "top_k", "x == mine && at < col", "x == mine && at > col"),
    of("top_k_sort.glsl", "top_k", "return float(at);", "return float(from);"),
    of("unary.glsl", "unary", "ACT(lanes(src_x,", "ACT(-lanes(src_x,"),
    of("vertex.glsl", "unary", "gl_VertexID == 1 ? 3.0", "gl_VertexID == 1 ? 0.0"),
    of("weights.glsl", "get_rows", "(i >> 2)), i & 3)", "(i >> 2)), (i + 1) & 3)"),
    of("format/BF16.glsl", "get_rows", "words.y << 16,", "words.x << 16,"),
    of("format/F16.glsl", "get_rows", "words.y & 0xffffu, words.y", "words.x & 0xffffu, words.y"),
    of("format/F32.glsl", "get_rows", "weight_texel(at + 5)", "weight_texel(at + 4)"),
    of("format/Q4_0.glsl", "get_rows", "vec4(16.0, -24.0, 16.0, -24.0)", "vec4(16.0, -24.0, 16.0, -22.0)"),
    of("format/Q4_1.glsl", "get_rows", "(PLANE1, group));", "(PLANE1, group)).yx;"),
    of("format/Q4_K.glsl", "get_rows", "field(s, sub - 4) >> 6", "field(s, sub - 4) >> 5"),
    of("format/Q5_0.glsl", "get_rows", "vec4(32.0, -48.0, 32.0, -48.0)", "vec4(32.0, -48.0, 32.0, -47.0)"),
    of("format/Q5_1.glsl", "get_rows", "(PLANE2, group));", "(PLANE2, group)).yx;"),
    of("format/Q6_K.glsl", "get_rows", "sixths(t.x >> 16, p.x >> 8)", "sixths(t.x >> 16, p.x >> 6)"),
    of("format/Q8_0.glsl", "get_rows", "signed_bytes(t.y)", "signed_bytes(t.x)"),
];
