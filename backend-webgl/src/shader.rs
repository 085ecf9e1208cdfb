//! Fragment shaders: a header, the draw's parameters and operands, and a kernel as the [assembler](backend_api::shader)
//! makes it of the files. Deterministic: the text is the key of the program cache.

use crate::Layout;
use crate::dense::Fold;
use crate::kernel::Draw;
use backend_api::elementary::Language;
use backend_api::format::{GROUP, Part};
use backend_api::shader::{Assembler, File, Instance};
use backend_api::{Codec, Format, shader_file};

/// The vertex shader of all programs.
pub(crate) const VERTEX: &str = shader_file!("../shaders/vertex.glsl");
/// Fragment shader that paints pictures for watchers; it is not a kernel.
const PICTURE: &str = shader_file!("../shaders/picture.glsl");

macro_rules! sources {
    ($($name:literal),+ $(,)?) => {
        /// All fragment sources by file name.
        pub(crate) const SOURCES: &[File] = &[$((concat!($name, ".glsl"), shader_file!(concat!("../shaders/", $name, ".glsl")))),+];
    };
}

sources! {
    "append", "argmax", "argmax_chunks", "attention", "attention_scores", "block", "elementwise", "codec/f16", "codec/levels", "coded",
    "columns", "copy", "decode", "dense", "elements", "embed", "epilogue", "experts", "experts_sum", "finite", "following", "format/digits", "format/entries",
    "format/floats", "format/grid", "format/levels", "format/linear", "format/scales", "format/trits", "frame", "gated_delta_net", "get_rows",
    "group", "group_lanes", "halves", "head_factors", "head_stats", "kv_append", "linear", "linear_block", "linear_join", "linear_sum",
    "masking", "matmul", "matmul_id", "norm", "norm_head_rows", "norm_heads", "norm_rows", "norm_stats", "penalize", "pick", "place", "query", "raw", "rope",
    "rope_at", "route", "sample", "short_conv", "softmax", "softmax_rows", "softmax_stats", "ssm_scan", "top_k", "top_k_merge",
    "top_k_rank", "top_k_sort", "weighted_sum", "weights",
    "conv2d", "im2col", "resize", "solve_triangular",
    "argsort", "argsort_merge", "argsort_rank", "cumsum", "sort_key", "sum", "sum_chunks",
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
precision highp usampler2D;
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
    uint step_sequence;
};
";

/// The suffixes of packed operands, whose decoders have them as prefixes.
pub(crate) const OPERANDS: [char; 2] = ['a', 'b'];

/// The decoder of a packed operand of a format.
pub(crate) fn decoder(operand: char, format: Format) -> Instance {
    let file = |part| match part {
        Part::Floats => "format/floats.glsl",
        Part::Scales => "format/scales.glsl",
        Part::Linear => "format/linear.glsl",
        Part::Levels => "format/levels.glsl",
        Part::Entries => "format/entries.glsl",
        Part::Grid => "format/grid.glsl",
        Part::Digits => "format/digits.glsl",
        Part::Trits => "format/trits.glsl",
    };
    let mut decoder = format.spec().decoder(file, [0, 1, 2, 3].map(|plane| format!("plane{plane}_{operand}")));
    decoder.files.insert(0, "weights.glsl");
    decoder.words.push(("WEIGHTS", format!("weights_{operand}")));
    decoder
}

/// Makes the reader or writer of a state that textures hold as words. A writer encodes the result of `quad_of`.
pub(crate) fn codec(kind: &str, layout: Layout, state: &(&str, Codec, usize)) -> Result<Instance, String> {
    let (name, codec, cols) = state;
    let spec = codec.spec();
    let (words, scales) = layout.words(*codec, *cols).ok_or_else(|| format!("{name} is not held as words"))?;
    let mut instance = Instance {
        files: vec![if spec.levels.is_some() { "codec/levels.glsl" } else { "codec/f16.glsl" }],
        flags: if kind == "writer" { vec!["WRITER"] } else { vec![] },
        words: vec![
            ("STATE", (*name).to_owned()),
            ("QUAD", "quad_of".to_owned()),
            ("ROW", (words / 4).to_string()),
            ("SCALES", (scales / 4).to_string()),
            ("BLOCKS_OF_ROW", (cols / spec.block_len).to_string()),
        ],
        ..Instance::default()
    };
    if let Some(levels) = spec.levels {
        let (flags, words) = levels.shader();
        instance.flags.extend(flags);
        instance.words.extend(words);
    }
    Ok(instance)
}

/// The flags of textures.
fn flags_of(layout: Layout, fold: &Fold) -> impl Iterator<Item = &'static str> {
    let packed = (layout.lanes() == 4).then_some("PACKED");
    let bits = (layout == Layout::Bits).then_some("BITS");
    let long_lines = (fold.line() >= GROUP).then_some("LONG_LINES");
    [packed, bits, long_lines].into_iter().flatten()
}

/// Says how textures fold.
fn folds(shader: &mut Assembler<'_>, name: &str, fold: &Fold) {
    shader.line(&format!("#define {name}LINE_SHIFT {}", fold.line_shift));
    shader.line(&format!("#define {name}LINE {}", fold.line()));
    shader.line(&format!("#define {name}PAGE_SHIFT {}", fold.page_shift));
    shader.line(&format!("#define {name}PAGE {}", fold.page()));
}

/// The fragment shader that paints a picture of a texture.
///
/// *Errors*: as [`assemble`].
pub(crate) fn picture(layout: Layout, fold: &Fold) -> Result<String, String> {
    let flags: Vec<&str> = flags_of(layout, fold).collect();
    let none = |kind: &str, operand: &str| Err(format!("operand {operand} has no {kind}"));
    let mut shader = Assembler::new(SOURCES, &flags, &none);
    HEADER.lines().for_each(|line| shader.line(line));
    folds(&mut shader, "", fold);
    shader.line(&format!("uniform {}sampler2D t0;", if layout == Layout::Bits { "u" } else { "" }));
    shader.include("dense.glsl")?;
    PICTURE.lines().for_each(|line| shader.line(line));
    Ok(shader.finish(&[]))
}

/// The flags of a draw's conditions.
pub(crate) fn flags(draw: &Draw, layout: Layout, fold: &Fold) -> Vec<&'static str> {
    let empty = draw.defines.iter().filter(|(_, value)| value.is_empty()).map(|(name, _)| *name);
    empty.chain(flags_of(layout, fold)).collect()
}

/// The fragment shader of a draw.
///
/// *Errors*: a directive that is malformed or names nothing; tests assemble every variant.
pub(crate) fn assemble(draw: &Draw, layout: Layout, [fold, weight_fold]: [&Fold; 2]) -> Result<String, String> {
    let flags = flags(draw, layout, fold);
    let instances = |kind: &str, operand: &str| {
        if let ("reader" | "writer", Some(state)) = (kind, draw.states.iter().find(|(name, ..)| *name == operand)) {
            return codec(kind, layout, state);
        }
        if kind == "function" {
            let define = draw.defines.iter().find(|(name, _)| *name == operand);
            return Instance::function(define.map_or(operand, |(_, name)| name), Language::Glsl);
        }
        let mut operands = OPERANDS.into_iter().zip(&draw.weights);
        match operands.find(|(name, _)| kind == "decoder" && operand.chars().eq([*name])) {
            Some((name, (_, format))) => Ok(decoder(name, *format)),
            None => Err(format!("operand {operand} has no {kind}")),
        }
    };
    let mut shader = Assembler::new(SOURCES, &flags, &instances);
    HEADER.lines().for_each(|line| shader.line(line));
    folds(&mut shader, "", fold);
    folds(&mut shader, "WEIGHT_", weight_fold);
    for (name, value) in draw.defines.iter().filter(|(_, value)| !value.is_empty()) {
        shader.line(&format!("#define {name} {value}"));
    }
    shader.line("layout(std140) uniform Params {");
    for (name, word) in &draw.params {
        shader.line(&format!("    {} {name};", word.glsl()));
    }
    shader.line("};");
    STEP.lines().for_each(|line| shader.line(line));
    for (unit, (name, _)) in draw.dense.iter().enumerate() {
        let words = layout == Layout::Bits || draw.states.iter().any(|(state, ..)| state == name);
        shader.line(&format!("uniform {}sampler2D t{unit};", if words { "u" } else { "" }));
        shader.line(&format!("#define {name} t{unit}"));
    }
    for (i, codebook) in draw.codebooks().iter().enumerate() {
        let (name, texels) = (codebook.shader_name(), codebook.texels());
        shader.line(&format!("layout(std140) uniform Codebook{i} {{\n    uvec4 {name}[{texels}];\n}};"));
    }
    shader.include(&format!("{}.glsl", draw.shader))?;
    let words: Vec<(&str, &str)> = draw.words.iter().map(|(name, text)| (*name, text.as_str())).collect();
    Ok(shader.finish(&words))
}
