//! For the conformance suite: backends that are made worse, and, without a device, the kernels that there can be and those
//! that its cases make.

use crate::dense::Fold;
use crate::gl::Gl;
use crate::kernel::Draw;
use crate::lower::{MATCHERS, lower};
use crate::shader::{self, OPERANDS, SOURCES, decoder, flags};
use crate::{Layout, Options, Tuning, WebGl, within};
use backend_api::shader::{Emitted, Instance, Known, expand, kernels as kernels_of};
use backend_api::testing::ShaderPatch;
use backend_api::{Codec, Cover, Error, Format, Graph, cases, cover};

/// Changes that a test may make to the backend.
#[derive(Debug, Clone, Copy, Default)]
pub struct Hooks {
    /// Draw to no more textures at once than this, as if the device had this limit; every device has 4.
    pub max_targets: Option<u32>,
    /// Use no extension, as if the device had none.
    pub bare: bool,
    /// Breaks the kernels, for mutation checks.
    pub patch: Option<ShaderPatch>,
}

/// Opens a context as [`WebGl::open`] does.
///
/// *Errors*: likewise.
pub fn open(options: Options, hooks: Hooks) -> Result<WebGl, Error> {
    WebGl::of(Gl::open(!hooks.bare)?, options, hooks)
}

/// Limit of Mesa's software device for the size of textures and of targets.
const TEXTURE_SIZE: u32 = 16_384;
const TARGETS: u32 = 8;

/// Flags of files that nearly all kernels include, and those kernels that may be given them.
const ONLY: &[(&str, &[&str])] = &[
    ("APPEND", &["append", "argmax", "kv_append", "linear"]),
    ("APPEND_EACH", &["append"]),
    ("APPEND_NEXT", &["append", "argmax"]),
    ("PART", &["gated_delta_net", "ssm_scan"]),
    (
        "TWO",
        &["gated_delta_net", "kv_append", "linear", "norm_head_rows", "norm_rows", "route", "softmax_rows", "top_k"],
    ),
    ("THREE", &["linear"]),
];
/// Variants of kernels that the backend never makes, besides those that follow from their files.
const NEVER: &[(&str, &[&str])] = &[
    ("append", &["!APPEND"]),
    ("experts_sum", &["GLU", "NORM", "IN_TURN"]),
    ("head_factors", &["LAYER", "L2"]),
    ("kv_append", &["!TWO"]),
    ("linear", &["L2"]),
    ("norm_head_rows", &["!TWO"]),
    ("norm_rows", &["!TWO"]),
    ("route", &["!TWO"]),
    ("softmax_rows", &["!TWO"]),
    ("top_k", &["!TWO"]),
];

/// All kernels, as their files have them.
///
/// *Errors*: a file includes one that does not exist.
pub fn kernels() -> Result<Vec<Known>, String> {
    let mut kernels = kernels_of(SOURCES, "void main()")?;
    for known in &mut kernels {
        for kind in &known.kinds {
            if *kind == "decoder" {
                let decoders = Format::ALL.iter().map(|format| (name(kind, format.name()), decoder('a', *format)));
                known.decoders.extend(decoders);
            }
            known.decoders.extend(codecs(kind));
        }
        let others = ONLY.iter().filter(|(flag, only)| known.flags.contains(flag) && !only.contains(&known.kernel));
        let never = NEVER.iter().filter(|(kernel, _)| *kernel == known.kernel).flat_map(|(_, variants)| *variants);
        known.never = others.map(|(flag, _)| flag).chain(never).map(|variant| (*variant).to_owned()).collect();
    }
    Ok(kernels)
}

/// The kernels that the suite runs on a software device, opened with these options and at most so many targets.
///
/// *Errors*: a case that is refused, a shader that is malformed.
pub fn emitted(options: &Options, max_targets: Option<u32>) -> Result<Vec<Emitted>, String> {
    let size = options.max_texture_size.unwrap_or(u32::MAX).min(TEXTURE_SIZE);
    let targets = max_targets.unwrap_or(u32::MAX).min(TARGETS);
    let tuning = options.tuning.unwrap_or_else(|| Tuning::software(""));
    let tuning = within(tuning, targets, options.layout != Layout::Bits);
    let (layout, fold) = (options.layout, Fold::dense(size, &tuning));
    let mut emitted = Vec::new();
    for (at, case) in cases::all().iter().enumerate() {
        let supports = |graph: &Graph, cover: &Cover| lower(graph, cover, layout, &tuning).map(drop);
        let covers =
            cover(&case.graph, MATCHERS, &supports).map_err(|e| format!("{} [{}]: {e}", case.op, case.name))?;
        for cover in covers {
            let kernel = lower(&case.graph, &cover, layout, &tuning).map_err(|e| e.to_string())?;
            for draw in kernel.draws {
                emitted.push(of_case(&draw, flags(&draw, layout, &fold), at)?);
            }
        }
    }
    Ok(emitted)
}

fn of_case(draw: &Draw, flags: Vec<&'static str>, case: usize) -> Result<Emitted, String> {
    let (_, asked) = expand(SOURCES, &format!("{}.glsl", draw.shader), &flags)?;
    let of_table = |table: &str| {
        let mut operands = OPERANDS.iter().zip(&draw.weights);
        operands.find(|(operand, _)| table.chars().eq([**operand])).map(|(_, (_, format))| format.name())
    };
    let of_state =
        |table: &str| draw.states.iter().find(|(name, ..)| *name == table).map(|(_, codec, _)| codec.spec().name);
    let decoders = asked
        .iter()
        .filter_map(|(kind, table)| Some(name(kind, of_table(table).or_else(|| of_state(table))?)))
        .collect();
    Ok(Emitted { kernel: draw.shader, flags: flags.into_iter().collect(), decoders, case })
}

/// Returns the name of a decoder.
fn name(kind: &str, of: &str) -> String {
    format!("{kind} {of}")
}

/// Makes the readers or writers of states, if that is the kind, for each codec of blocks.
fn codecs(kind: &str) -> Vec<(String, Instance)> {
    let of = |codec: &Codec| {
        let instance = shader::codec(kind, Layout::Bits, &("state", *codec, codec.spec().block_len)).ok()?;
        Some((name(kind, codec.spec().name), instance))
    };
    if matches!(kind, "reader" | "writer") { Codec::ALL.iter().filter_map(of).collect() } else { Vec::new() }
}
