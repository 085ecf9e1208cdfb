//! The WGSL of kernels: a head that is generated (the parameter block `p`, the step's parameters `step`, the bindings),
//! and the kernel as the [assembler](backend_api::shader) makes it of the files in `shaders/`. Decoders have two kinds:
//! `decoder TABLE` to floats, and `integers TABLE` to integers and scales.

use crate::kernel::{Decoder, Kernel};
use backend_api::elementary::Language;
use backend_api::format::{Part, TEXEL};
use backend_api::shader::{Assembler, File, Instance};
use backend_api::{Codec, Format};
use std::fmt::Write;

macro_rules! files {
    ($($name:literal),+ $(,)?) => {
        /// All files by name.
        pub const FILES: &[File] =
            &[$((concat!($name, ".wgsl"), backend_api::shader_file!(concat!("../shaders/", $name, ".wgsl")))),+];
    };
}

files! {
    "append", "argmax", "attention", "attention_join", "attention_split", "attention_tile", "elementwise", "embed", "experts_plan", "experts_sum", "experts_tile", "gated_delta_net",
    "get_rows", "linear_block", "linear_bytes", "linear_large", "linear_qkv", "linear_tile", "linear_vec", "linear_wide", "matmul_id", "norm", "penalize", "pick", "qkv_append", "qkv_heads",
    "rope", "route", "rows_bytes", "rows_ready", "sample", "short_conv", "softmax", "ssm_scan", "top_k", "weighted_sum",
    "conv2d", "im2col", "resize", "solve_triangular",
    "lib/best", "lib/bytes", "lib/decode", "lib/dot16", "lib/dots", "lib/drawn", "lib/epilogue", "lib/experts", "lib/few", "lib/finite", "lib/group", "lib/index", "lib/join", "lib/keys", "lib/lanes", "lib/masking",
    "lib/parts", "lib/place", "lib/position", "lib/products", "lib/put", "lib/ready", "lib/reduce", "lib/rotate", "lib/row", "lib/rows", "lib/rows32", "lib/slopes", "lib/splits", "lib/step", "lib/sum", "lib/tile_float",
    "lib/together", "lib/walk",
    "codec/levels", "format/dense", "format/entries", "format/floats", "format/grid", "format/levels", "format/linear", "format/packed", "format/quads", "format/digits", "format/scales", "format/trits", "format/whole",
    "integer/grid", "integer/levels", "integer/linear", "integer/trits",
    "argsort", "argsort_merge", "cumsum", "sum", "lib/sort_key",
}

/// The files that kernels are assembled from: name and text.
pub fn shader_files() -> impl Iterator<Item = (&'static str, &'static str)> {
    FILES.iter().copied()
}

/// The flag of kernels that use subgroups.
pub const SUBGROUPS: &str = "SUBGROUPS";
/// First line of WGSL with subgroups. Outside of browsers naga compiles it, which has the functions but does not know
/// the directive yet.
pub const ENABLE_SUBGROUPS: &str = if cfg!(target_arch = "wasm32") { "enable subgroups;\n" } else { "" };

/// The WGSL of a kernel.
///
/// *Errors*: a directive that is malformed or names nothing; tests assemble every variant.
pub fn assemble(kernel: &Kernel) -> Result<String, String> {
    let instances = |kind: &str, table: &str| {
        if let ("reader" | "writer", Some(state)) = (kind, kernel.states.iter().find(|(name, ..)| *name == table)) {
            return codec(kind, state);
        }
        if kind == "function" {
            let word = kernel.words.iter().find(|(word, _)| *word == table);
            return Instance::function(word.map_or(table, |(_, name)| name), Language::Wgsl);
        }
        let decoder = kernel.decoders.iter().find(|(name, _)| *name == table);
        decoder
            .and_then(|(_, decoder)| instance(kind, table, *decoder))
            .ok_or_else(|| format!("table {table} has no {kind}"))
    };
    let mut shader = Assembler::new(FILES, &kernel.flags, &instances).rows(kernel.rows);
    if kernel.flags.contains(&SUBGROUPS) {
        ENABLE_SUBGROUPS.lines().for_each(|line| shader.line(line));
    }
    shader.include("lib/step.wgsl")?;
    shader.line(&head(kernel));
    shader.include(&format!("{}.wgsl", kernel.file))?;
    let words: Vec<(&str, &str)> = kernel.words.iter().map(|(name, text)| (*name, text.as_str())).collect();
    Ok(shader.finish(&words))
}

/// Returns a key that tells a kernel's WGSL from that of others, in a small part of the time that making it takes.
pub fn variant(kernel: &Kernel) -> String {
    let mut variant = head(kernel);
    variant.push_str(&kernel.title());
    for (name, text) in &kernel.words {
        variant.extend([" ", name, " ", text]);
    }
    for (name, codec, cols) in &kernel.states {
        // Writing to a string cannot fail.
        let _ = write!(variant, " {name} {} {cols}", codec.spec().name);
    }
    let _ = write!(variant, " {}", kernel.rows);
    variant
}

/// The parameter block and the bindings.
fn head(kernel: &Kernel) -> String {
    let mut head = String::from("struct Params {\n");
    // Writing to a string cannot fail.
    for (name, value) in &kernel.params {
        let _ = writeln!(head, "    {name}: {},", value.ty());
    }
    head.push_str("}\n@group(0) @binding(0) var<uniform> p: Params;\n");
    head.push_str("@group(0) @binding(1) var<uniform> step: Step;\n");
    for (i, binding) in (2..).zip(&kernel.bindings) {
        let access = if binding.operand.is_written() { "read_write" } else { "read" };
        let _ = writeln!(head, "@group(0) @binding({i}) var<storage, {access}> {}: {};", binding.name, binding.ty);
    }
    for (i, codebook) in (2 + kernel.bindings.len()..).zip(kernel.codebooks()) {
        let (name, texels) = (codebook.shader_name(), codebook.texels());
        let _ = writeln!(head, "@group(0) @binding({i}) var<uniform> {name}: array<vec4<u32>, {texels}>;");
    }
    head
}

/// Returns the code that replaces a `decoder` or `integers` of a table.
pub fn instance(kind: &str, table: &str, decoder: Decoder) -> Option<Instance> {
    let dense = |file| Some(Instance { files: vec![file], ..Default::default() });
    let mut instance = match (kind, decoder) {
        ("decoder", Decoder::Dense) => dense("format/dense.wgsl"),
        ("decoder", Decoder::Quads) => dense("format/quads.wgsl"),
        ("decoder", Decoder::Whole) => dense("format/whole.wgsl"),
        ("decoder", Decoder::Packed(format)) => {
            let mut packed = packed(table, format, |part| match part {
                Part::Floats => "format/floats.wgsl",
                Part::Scales => "format/scales.wgsl",
                Part::Linear => "format/linear.wgsl",
                Part::Levels => "format/levels.wgsl",
                Part::Entries => "format/entries.wgsl",
                Part::Grid => "format/grid.wgsl",
                Part::Digits => "format/digits.wgsl",
                Part::Trits => "format/trits.wgsl",
            });
            packed.files.push("format/packed.wgsl");
            Some(packed)
        }
        ("integers", Decoder::Packed(format)) if format.spec().is_quantised() => {
            Some(packed(table, format, |part| match part {
                Part::Floats => "",
                Part::Scales => "format/scales.wgsl",
                Part::Linear => "integer/linear.wgsl",
                Part::Levels => "integer/levels.wgsl",
                Part::Entries => "format/entries.wgsl",
                Part::Grid => "integer/grid.wgsl",
                Part::Digits => "format/digits.wgsl",
                Part::Trits => "integer/trits.wgsl",
            }))
        }
        _ => None,
    }?;
    instance.words.extend([
        ("weights", table.to_owned()),
        ("GROUPS", format!("p.{table}_groups")),
        ("COLS", format!("p.{table}_cols")),
    ]);
    Some(instance)
}

/// Makes the reader or writer of a state in a codec of levels, with the columns of its rows.
pub fn codec(kind: &str, (name, codec, cols): &(&str, Codec, usize)) -> Result<Instance, String> {
    let (Some(levels), Some((words, scales))) = (codec.spec().levels, codec.device_words(*cols)) else {
        return Err(format!("{name} has no levels"));
    };
    let (mut flags, numbers) = levels.shader();
    flags.extend((kind == "writer").then_some("WRITER"));
    let mins = scales + (cols / codec.spec().block_len).next_multiple_of(TEXEL / 4);
    let mut instance =
        Instance { files: vec!["codec/levels.wgsl"], flags, words: numbers.into(), ..Default::default() };
    let places = [("ROW", words), ("SCALES", scales), ("MINS", mins)];
    instance.words.push(("STATE", (*name).to_owned()));
    instance.words.extend(places.map(|(word, at)| (word, format!("{at}u"))));
    Ok(instance)
}

/// The decoder of a format, with a file for each part.
fn packed(table: &str, format: Format, file: fn(Part) -> &'static str) -> Instance {
    format.spec().decoder(file, [0, 1, 2, 3].map(|plane| format!("p.{table}_plane{plane}")))
}
