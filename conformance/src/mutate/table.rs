//! The mutations: each changes what a kernel computes, by as little as possible, and leaves it valid. The text must
//! survive assembly, which in WGSL renames the capitals, and the functions and `weights` of decoders.

/// A broken kernel.
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

/// Of the WebGPU backend.
pub const WEBGPU: &[Mutation] = &[
    of("append.wgsl", "append", "let target_row = step.position + row;", "let target_row = step.position + row + 1u;"),
    of("argmax.wgsl", "argmax", "candidate > value", "candidate < value"),
    of("attention.wgsl", "attention", "exp(before - highest)", "1.0"),
    of("binary.wgsl", "binary", "d1 * p.b_step1", "d0 * p.b_step1"),
    of("concat.wgsl", "concat", "at < p.a_run", "at <= p.a_run"),
    of("embed.wgsl", "embed", "+ b[e / 4u][e % 4u]", "- b[e / 4u][e % 4u]"),
    of("get_rows.wgsl", "get_rows", "values[e / 4u][e % 4u]", "values[e / 4u][e % 3u]"),
    of("glu.wgsl", "glu", "(gate[i]) * up[i]", "(gate[i]) + up[i]"),
    of("linear_tile.wgsl", "linear", "tile_w[(tx + 16u) * 9u + i]", "tile_w[(tx + 17u) * 9u + i]"),
    of("linear_vec.wgsl", "linear", "part[lane] += part[lane + s];", "part[lane] -= part[lane + s];"),
    of("norm.wgsl", "norm", "squares += value * value;", "squares += value;"),
    of("permute.wgsl", "permute", "d3 * p.step3", "d3 * p.step2"),
    of("qkv_append.wgsl", "qkv_append", "col - p.q_cols] = value;", "col - p.q_cols] = x[i];"),
    of("rope.wgsl", "rope", "step.position + i / p.cols", "i / p.cols"),
    of("sample.wgsl", "sample", "(word >> 22u)", "(word >> 21u)"),
    of("slice.wgsl", "slice", "p.start + i % p.cols", "i % p.cols"),
    of("softmax.wgsl", "softmax", "c >= range.x && c < range.y", "c < range.y"),
    of("top_k.wgsl", "top_k", "index == NONE || beats(value, index, candidate, c)", "true"),
    of("unary.wgsl", "unary", "(x[i]);", "(-x[i]);"),
    of("lib/best.wgsl", "argmax", "a == b && ai < bi", "a == b && ai > bi"),
    of("lib/decode.wgsl", "get_rows", "* 5.960464477539063e-8", "* 0.0"),
    of("lib/index.wgsl", "get_rows", "return step.position + i;", "return step.position + i + 1u;"),
    of("lib/masking.wgsl", "softmax", "min(filled, at + 1u)", "min(filled, at)"),
    of(
        "lib/reduce.wgsl",
        "norm",
        "reduce_scratch[lane] += reduce_scratch[lane + s]",
        "reduce_scratch[lane] -= reduce_scratch[lane + s]",
    ),
    of("lib/rotate.wgsl", "rope", "x[i] * c - x[i + distance] * s", "x[i] * c + x[i + distance] * s"),
    of("lib/step.wgsl", "append", "position: u32,\n    rows: u32,", "rows: u32,\n    position: u32,"),
    of("lib/unary.wgsl", "unary", "1.453152027", "1.443152027"),
    of("format/bf16.wgsl", "get_rows", "b << 16u", "a << 16u"),
    of("format/dense.wgsl", "matmul", "if (col + i < ", "if (col + i + 1u < "),
    of("format/f16.wgsl", "get_rows", "half_pair(b)", "half_pair(a)"),
    of("format/f32.wgsl", "get_rows", "t + 5u", "t + 4u"),
    of("format/packed.wgsl", "get_rows", " + group);", " + group + 1u);"),
    of("format/q4_0.wgsl", "get_rows", "nibbles(q.y) - 8.0", "nibbles(q.y) - 7.0"),
    of("format/q4_1.wgsl", "get_rows", "nibbles(q.y) + m", "nibbles(q.y) - m"),
    of("format/q4_k.wgsl", "get_rows", "(k0 >> 6u) << 4u", "(k0 >> 5u) << 4u"),
    of("format/q5_0.wgsl", "get_rows", "h >> 8u) - 16.0", "h >> 9u) - 16.0"),
    of("format/q5_1.wgsl", "get_rows", "h >> 8u) + m", "h >> 9u) + m"),
    of("format/q6_k.wgsl", "get_rows", "h.x >> 8u", "h.x >> 6u"),
    of("format/q8_0.wgsl", "get_rows", "signed_bytes(a.y)", "signed_bytes(a.x)"),
];

/// Of the WebGL2 backend.
pub const WEBGL: &[Mutation] = &[
    of("activation.glsl", "unary", "1.453152027", "1.443152027"),
    of("append.glsl", "append", "row - append_first(), col)", "row, col)"),
    of("argmax.glsl", "argmax", "best = at;", "best = i;"),
    of("argmax_chunks.glsl", "argmax", "best = col;", "best = col - 1;"),
    of("attention.glsl", "attention", "weight.y * values_of(key + 1,", "weight.y * values_of(key,"),
    of("attention_scores.glsl", "attention", "scale * products(", "products("),
    of("binary.glsl", "binary", "col * b3", "col * a3"),
    of("concat.glsl", "concat", "row, col - a_cols)", "row, col - a_cols + 1)"),
    of("decode.glsl", "get_rows", "vec4(magnitude) * 5.9604644775390625e-8", "vec4(0.0)"),
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
    of("group_lanes.glsl", "get_rows", "(at == 4 ? w4 : w5)", "(at == 5 ? w4 : w5)"),
    of("kv_append.glsl", "qkv_append", "k_start + col, row)", "k_start + col, row - append_first())"),
    of("linear.glsl", "linear", "dot(w4, x4) + dot(w5, x5)", "dot(w4, x4) - dot(w5, x5)"),
    of("linear_block.glsl", "linear", "operand(row + 2, c4)", "operand(row + 1, c4)"),
    of("linear_join.glsl", "linear", "int which = row & 3;", "int which = (row + 1) & 3;"),
    of("masking.glsl", "softmax", "min(end, at + 1)", "min(end, at)"),
    of("matmul.glsl", "matmul", "b_row + min(col + 2, out_cols - 1)", "b_row + min(col + 1, out_cols - 1)"),
    of("norm.glsl", "norm", "v += lanes(src_beta,", "v -= lanes(src_beta,"),
    of("norm_stats.glsl", "norm", "squares += d * d;", "squares += d;"),
    of("permute.glsl", "permute", "col * s3", "col * s2"),
    of("raw.glsl", "top_k", "vec4(raw(index),", "vec4(raw(index + 1),"),
    of("rope.glsl", "rope", "col, int(step_position) + row)", "col, row)"),
    of("rope_at.glsl", "rope", "x * c - y * s", "x * c + y * s"),
    of("sample.glsl", "sample", "(word >> 22)", "(word >> 21)"),
    of("slice.glsl", "slice", "col + start", "col"),
    of("softmax.glsl", "softmax", "cap(scale * x) + mask", "cap(scale * x)"),
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
    of("format/Q4_0.glsl", "get_rows", "nibbles(t.y) - 8.0", "nibbles(t.y) - 7.0"),
    of("format/Q4_1.glsl", "get_rows", "nibbles(t.y) + m", "nibbles(t.y) - m"),
    of("format/Q4_K.glsl", "get_rows", "field(s, sub - 4) >> 6", "field(s, sub - 4) >> 5"),
    of("format/Q5_0.glsl", "get_rows", "fifths(bits >> 8) - 16.0", "fifths(bits >> 9) - 16.0"),
    of("format/Q5_1.glsl", "get_rows", "fifths(bits >> 8)) + m", "fifths(bits >> 9)) + m"),
    of("format/Q6_K.glsl", "get_rows", "upper(p.x >> 8)", "upper(p.x >> 6)"),
    of("format/Q8_0.glsl", "get_rows", "signed_bytes(t.y)", "signed_bytes(t.x)"),
];
