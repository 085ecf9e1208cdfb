//! Assembles fragment shaders: a header, the draw's parameters, and a kernel with what it includes. Deterministic:
//! the text is the key of the program cache.

use crate::Layout;
use crate::dense::Fold;
use crate::kernel::Draw;
use backend_api::Format;
use std::fmt::Write;

/// The vertex shader of all programs.
pub(crate) const VERTEX: &str = include_str!("../shaders/vertex.glsl");

macro_rules! sources {
    ($($name:literal),+ $(,)?) => {
        /// All fragment sources by file name.
        pub(crate) const SOURCES: &[(&str, &str)] = &[$((concat!($name, ".glsl"), include_str!(concat!("../shaders/", $name, ".glsl")))),+];
    };
}

sources! {
    "activation", "append", "argmax", "argmax_chunks", "attention", "attention_scores", "binary", "block", "concat", "decode",
    "dense", "elements", "embed", "epilogue", "format/BF16", "format/F16", "format/F32", "format/Q4_0", "format/Q4_1",
    "format/Q4_K", "format/Q5_0", "format/Q5_1", "format/Q6_K", "format/Q8_0", "frame", "get_rows", "glu", "group",
    "group_lanes", "kv_append", "linear", "linear_block", "linear_join", "masking", "matmul", "norm", "norm_rows", "norm_stats",
    "permute", "query", "raw", "rope", "rope_at", "sample", "slice", "softmax", "softmax_rows", "softmax_stats", "top_k", "top_k_merge", "top_k_rank",
    "top_k_sort", "unary", "weights",
}

/// The files that shaders are assembled from: name and text.
pub fn shader_files() -> impl Iterator<Item = (&'static str, &'static str)> {
    SOURCES.iter().copied().chain([("vertex.glsl", VERTEX)])
}

/// Every type a kernel uses needs its precision: defaults are low or absent.
const HEADER: &str = "#version 300 es
precision highp float;
precision highp int;
precision highp sampler2D;
precision highp usampler2DArray;
";

const STEP: &str = "layout(std140) uniform Step {
    uint step_position;
    uint step_rows;
    uint step_top_k;
    float step_top_p;
    float step_temperature;
    uint step_seed_lo;
    uint step_seed_hi;
    uint step_reserved;
};
";

/// Names in `weights.glsl` and the format files that are made distinct for each packed operand.
const WEIGHT_NAMES: [&str; 9] =
    ["decode32", "levels32", "weight_texel", "weight_word", "weight_half", "four", "field", "sixths", "signed_byte"];

/// The suffixes of packed operands.
pub(crate) const OPERANDS: [char; 2] = ['a', 'b'];

fn source(name: &str) -> &'static str {
    SOURCES.iter().find(|(file, _)| *file == name).map_or("", |(_, text)| text)
}

/// Puts a file in place of each `#include "name"`, each file once.
fn include(out: &mut String, name: &'static str, seen: &mut Vec<&'static str>) {
    if seen.contains(&name) {
        return;
    }
    seen.push(name);
    for line in source(name).lines() {
        let included = line.strip_prefix("#include \"").and_then(|rest| rest.strip_suffix('"'));
        match included.and_then(|wanted| SOURCES.iter().find(|(file, _)| *file == wanted)) {
            Some((file, _)) => include(out, file, seen),
            None => {
                out.push_str(line);
                out.push('\n');
            }
        }
    }
}

fn weights(out: &mut String, operand: char, format: Format) {
    let mut define = |name: &str, to: String| {
        let _ = writeln!(out, "#define {name} {to}");
    };
    for name in WEIGHT_NAMES {
        define(name, format!("{name}_{operand}"));
    }
    define("WEIGHTS", format!("weights_{operand}"));
    for plane in 0..backend_api::format::MAX_PLANES {
        define(&format!("PLANE{plane}"), format!("plane{plane}_{operand}"));
    }
    out.push_str(source("weights.glsl"));
    out.push_str(source(&format!("format/{}.glsl", format.name())));
    for name in WEIGHT_NAMES {
        let _ = writeln!(out, "#undef {name}");
    }
    out.push_str("#undef WEIGHTS\n");
    for plane in 0..backend_api::format::MAX_PLANES {
        let _ = writeln!(out, "#undef PLANE{plane}");
    }
}

/// The fragment shader of a draw.
pub(crate) fn assemble(draw: &Draw, layout: Layout, [fold, weight_fold]: [&Fold; 2]) -> String {
    let mut out = String::from(HEADER);
    let mut line = |text: String| {
        out.push_str(&text);
        out.push('\n');
    };
    for (name, fold) in [("", fold), ("WEIGHT_", weight_fold)] {
        line(format!("#define {name}LINE_SHIFT {}", fold.line_shift));
        line(format!("#define {name}LINE {}", fold.line()));
        line(format!("#define {name}PAGE_SHIFT {}", fold.page_shift));
        line(format!("#define {name}PAGE {}", fold.page()));
    }
    if layout == Layout::Packed {
        line("#define PACKED".into());
    }
    for (name, value) in &draw.defines {
        line(format!("#define {name} {value}").trim_end().into());
    }
    line("layout(std140) uniform Params {".into());
    for (name, word) in &draw.params {
        line(format!("    {} {name};", word.glsl()));
    }
    line("};".into());
    line(STEP.into());
    for (unit, (name, _)) in draw.dense.iter().enumerate() {
        line(format!("uniform sampler2D t{unit};"));
        line(format!("#define {name} t{unit}"));
    }
    if !draw.weights.is_empty() {
        out.push_str(source("decode.glsl"));
        for (operand, (_, format)) in OPERANDS.into_iter().zip(&draw.weights) {
            let _ = writeln!(out, "uniform usampler2DArray weights_{operand};");
            weights(&mut out, operand, *format);
        }
    }
    if let Some((file, _)) = SOURCES.iter().find(|(file, _)| file.strip_suffix(".glsl") == Some(draw.shader)) {
        include(&mut out, file, &mut Vec::new());
    }
    out
}
