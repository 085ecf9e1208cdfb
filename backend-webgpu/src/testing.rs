//! For the conformance suite: a backend with broken kernels, and, without a device, the kernels that there can be and those
//! that its cases make.

use crate::kernel::{Decoder, Kernel};
use crate::lower::{MATCHERS, lower_cover};
use crate::shader::{self, FILES, instance};
use crate::storage::Limits;
use crate::{Options, Tuning, WebGpu};
use backend_api::shader::{Emitted, Instance, Known, expand, kernels as kernels_of};
use backend_api::testing::ShaderPatch;
use backend_api::{Codec, Cover, Error, Format, Graph, cases, cover};

/// Opens a device as [`WebGpu::open`] does; all its kernels are patched.
///
/// *Errors*: likewise.
pub async fn open_patched(options: Options, patch: ShaderPatch) -> Result<WebGpu, Error> {
    WebGpu::of(options, Some(patch)).await
}

/// Bytes of a binding: what core WebGPU allows.
const BINDING: u64 = 128 << 20;
/// Invocations of a subgroup, as Mesa's software device has them.
const SUBGROUP: usize = 8;

/// Flags of graphs that no case can be, as it has one step's parameters: those of several sequences, for which texts and states
/// of whole models are compared to the last bit.
const OF_MODELS: &[&str] = &["SEQUENCES"];

/// Variants that the backend never makes of a kernel, though files that it shares with others know them; `*` stands
/// for all names.
const NEVER: &[(&str, &[&str])] = &[
    // Forms take packed weights alone.
    ("embed", &["decoder dense", "decoder quads", "decoder whole"]),
    // Blocks are encoded from whole heads, not from the pairs of this kernel.
    (
        "linear_qkv",
        &["decoder dense", "decoder quads", "decoder whole", "PARTS", "SUMMED", "SINKS", "BLOCKS", "writer *"],
    ),
    // Its heads are whole vectors of four.
    ("attention_tile", &["!VEC4"]),
    // Rows of quantised weights, so those of x as well, are whole groups.
    ("rows_bytes", &["!VEC4", "!WHOLE"]),
    ("rows_ready", &["PARTS", "SINKS", "STAGED", "SHUFFLED", "!SEVERAL"]),
    ("experts_tile", &["decoder dense", "decoder quads", "decoder whole"]),
    ("matmul_id", &["decoder dense", "decoder quads", "decoder whole", "PARTS", "SUMMED", "!SEVERAL", "SINKS"]),
    (
        "experts_sum",
        &[
            "decoder dense",
            "decoder quads",
            "decoder whole",
            "PARTS",
            "SUMMED",
            "!SEVERAL",
            "SINKS",
            "NORM",
            "LAYER",
            "IN_TURN",
        ],
    ),
    // What norms heads has a kernel of its own.
    ("qkv_append", &["NORM"]),
    ("qkv_heads", &["!NORM"]),
    ("rope", &["NORM"]),
];

/// All kernels, as their files have them.
///
/// *Errors*: a file includes one that does not exist.
pub fn kernels() -> Result<Vec<Known>, String> {
    let mut kernels = kernels_of(FILES, "fn main(")?;
    let dense = [Decoder::Dense, Decoder::Quads, Decoder::Whole];
    let decoders = || dense.into_iter().chain(Format::ALL.iter().map(|format| Decoder::Packed(*format)));
    for known in &mut kernels {
        known.flags.retain(|flag| !OF_MODELS.contains(flag));
        for kind in &known.kinds {
            let instances = decoders().filter_map(|decoder| Some((decoder, instance(kind, "w", decoder)?)));
            known.decoders.extend(instances.map(|(decoder, instance)| (name(kind, decoder), instance)));
            known.decoders.extend(codecs(kind));
        }
        let never = NEVER.iter().filter(|(kernel, _)| *kernel == known.kernel).flat_map(|(_, variants)| *variants);
        let decoders = &known.decoders;
        known.never = never
            .flat_map(|variant| match variant.strip_suffix('*') {
                Some(kind) => decoders.keys().filter(|decoder| decoder.starts_with(kind)).cloned().collect(),
                None => vec![(*variant).to_owned()],
            })
            .collect();
    }
    Ok(kernels)
}

/// The kernels that the suite runs on a software device, opened with these options.
///
/// *Errors*: a case that is refused, a shader that is malformed.
pub fn emitted(options: &Options) -> Result<Vec<Emitted>, String> {
    let limits = Limits {
        weights: options.max_binding.map_or(BINDING, |most| most.min(BINDING)),
        binding: BINDING,
        subgroup: if options.optional_features { SUBGROUP } else { 1 },
        products: options.products,
    };
    let tuning = options.tuning.unwrap_or_else(Tuning::software);
    let mut emitted = Vec::new();
    for (at, case) in cases::all().iter().enumerate() {
        let supports = |graph: &Graph, cover: &Cover| lower_cover(graph, cover, limits, tuning).map(drop);
        let covers =
            cover(&case.graph, MATCHERS, &supports).map_err(|e| format!("{} [{}]: {e}", case.op, case.name))?;
        for cover in covers {
            let kernels = lower_cover(&case.graph, &cover, limits, tuning).map_err(|e| e.to_string())?;
            for kernel in kernels {
                emitted.push(of_case(&kernel, at)?);
            }
        }
    }
    Ok(emitted)
}

fn of_case(kernel: &Kernel, case: usize) -> Result<Emitted, String> {
    let (_, asked) = expand(FILES, &format!("{}.wgsl", kernel.file), &kernel.flags)?;
    let of_table = |table: &str| kernel.decoders.iter().find(|(name, _)| *name == table);
    let state = |kind: &str, table: &str| {
        let found = kernel.states.iter().find(|(name, ..)| *name == table);
        found.map(|(_, codec, _)| format!("{kind} {}", codec.spec().name))
    };
    let of = |kind: &str, table: &str| of_table(table).map(|(_, of)| name(kind, *of)).or_else(|| state(kind, table));
    let decoders = asked.iter().filter_map(|(kind, table)| of(kind, table)).collect();
    Ok(Emitted { kernel: kernel.file, flags: kernel.flags.iter().copied().collect(), decoders, case })
}

/// Makes the readers or writers of states, if that is the kind, for each codec of levels.
fn codecs(kind: &str) -> Vec<(String, Instance)> {
    let of = |codec: &Codec| {
        let instance = shader::codec(kind, &("state", *codec, codec.spec().block_len)).ok()?;
        Some((format!("{kind} {}", codec.spec().name), instance))
    };
    if matches!(kind, "reader" | "writer") { Codec::ALL.iter().filter_map(of).collect() } else { Vec::new() }
}

/// Returns the name of a decoder.
fn name(kind: &str, decoder: Decoder) -> String {
    format!("{kind} {}", decoder.name())
}
