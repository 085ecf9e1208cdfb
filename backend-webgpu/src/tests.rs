//! Tests without a device: every variant that the conformance cases need assembles and validates.

use crate::kernel::{Decoder, Kernel};
use crate::lower::lower_cover;
use crate::shader::{FILES, assemble, variant};
use crate::storage::{Limits, chunks};
use crate::tuning::Tuning;
use backend_api::format::ROW_ALIGN;
use backend_api::shader::write_if_asked;
use backend_api::{Cover, DType, Form, Format, Graph, Matcher, Products, Shape, Tuned, Unsupported, cases};
use std::collections::BTreeMap;

const LIMITS: Limits = Limits { weights: 128 << 20, binding: 128 << 20, subgroup: 1, products: Products::F32 };
/// Limits of devices without subgroups, with some that not all rows fit, and with such that they do; then of users who
/// prefer speed to exactness.
const DEVICES: [Limits; 4] = [
    LIMITS,
    Limits { subgroup: 8, ..LIMITS },
    Limits { subgroup: 32, ..LIMITS },
    Limits { products: Products::Int8, ..LIMITS },
];

/// The capability of core WebGPU beyond the least that naga knows: `unpack2x16float`.
const CORE: naga::valid::Capabilities = naga::valid::Capabilities::SHADER_FLOAT16_IN_FLOAT32;

/// Returns the capabilities of a device with these limits.
fn capabilities(limits: Limits) -> naga::valid::Capabilities {
    let subgroups = if limits.subgroup > 1 { naga::valid::Capabilities::SUBGROUP } else { Default::default() };
    CORE | subgroups
}

/// The kernels of all conformance cases that are supported with these limits, each case in its own form and in primitives,
/// and the reasons of the others.
fn all_kernels(limits: Limits, tuning: Tuning) -> (Vec<Kernel>, Vec<Unsupported>) {
    let (mut kernels, mut refused) = (Vec::new(), Vec::new());
    for case in cases::all() {
        for (form, matchers) in [(case.op, Form::MATCHERS), ("", &[])] {
            for cover in covers(&case.graph, matchers) {
                match lower_cover(&case.graph, &cover, limits, tuning) {
                    Ok(list) => kernels.extend(list),
                    Err(why) if matches!(cover.form, Form::Op(_)) => {
                        let odd = ["odd sizes", "wide", "explicit mask"].contains(&case.name.as_str());
                        assert!(odd || limits.weights != LIMITS.weights, "{}: {why}", case.name);
                        refused.push(why);
                    }
                    Err(why) => refused.push(Unsupported { op: form.into(), ..why }),
                }
            }
        }
    }
    (kernels, refused)
}

/// A graph in the largest forms that the matchers find.
fn covers(graph: &Graph, matchers: &[Matcher]) -> Vec<Cover> {
    backend_api::cover(graph, matchers, &|_, _| Ok(())).unwrap()
}

/// Every value that may be measured, the default ones too.
fn tunings() -> Vec<Tuning> {
    let all = Tuning::ALL.iter().flat_map(|tunable| tunable.values.iter().map(|value| (tunable.name, *value)));
    let one_apart = all.map(|(name, value)| Tuning::default().with(name, value).unwrap());
    one_apart.chain([Tuning::software()]).collect()
}

/// Invocations of a workgroup and bytes of its memory.
fn workgroup(module: &naga::Module) -> (u32, u32) {
    let of_workgroup = module.global_variables.iter().filter(|(_, v)| v.space == naga::AddressSpace::WorkGroup);
    let bytes = of_workgroup.map(|(_, v)| module.types[v.ty].inner.size(module.to_ctx())).sum();
    (module.entry_points[0].workgroup_size.iter().product(), bytes)
}

#[test]
fn a_tunable_lists_its_default() {
    for Tuned { name, value } in [Tuning::default(), Tuning::software()].iter().flat_map(Tuning::values) {
        let tunable = Tuning::ALL.iter().find(|tunable| tunable.name == name).unwrap();
        assert!(tunable.values.is_empty() || tunable.values.contains(&value), "{name} = {value} is not listed");
    }
}

/// Each device has the usual tuning, and each other tuning one of the devices, in turn: all combinations take two minutes.
#[test]
fn shaders_validate() {
    let usual = DEVICES.map(|limits| (limits, Tuning::default()));
    let others = tunings().into_iter().enumerate().map(|(at, tuning)| (DEVICES[at % DEVICES.len()], tuning));
    validate(usual.into_iter().chain(others));
}

#[test]
#[ignore = "two minutes; nightly"]
fn every_shader_validates() {
    validate(tunings().into_iter().flat_map(|tuning| DEVICES.map(|limits| (limits, tuning))));
}

/// Validates all texts that the suite's cases take with these devices and tunings.
fn validate(variants: impl Iterator<Item = (Limits, Tuning)>) {
    let mut seen = std::collections::HashSet::new();
    let mut named = std::collections::HashMap::new();
    for (limits, kernel) in variants.flat_map(|(l, t)| all_kernels(l, t).0.into_iter().map(move |kernel| (l, kernel))) {
        let source = assemble(&kernel).unwrap();
        let first: &mut String = named.entry(variant(&kernel)).or_insert_with(|| source.clone());
        assert_eq!(*first, source, "{}: one variant, two shaders", kernel.title());
        if !seen.insert(source.clone()) {
            continue;
        }
        let module = match naga::front::wgsl::parse_str(&source) {
            Ok(module) => module,
            Err(e) => panic!("{}:\n{}\n{source}", kernel.title(), e.emit_to_string(&source)),
        };
        let mut validator = naga::valid::Validator::new(naga::valid::ValidationFlags::all(), capabilities(limits));
        if let Err(e) = validator.validate(&module) {
            panic!("{}: {}\n{source}", kernel.title(), e.emit_to_string(&source));
        }
        let (invocations, bytes) = workgroup(&module);
        assert!(invocations <= 256, "{} has workgroups of {invocations} invocations", kernel.title());
        assert!(bytes <= 16 << 10, "{} takes {bytes} bytes of workgroup memory", kernel.title());
        let storages = kernel.bindings.len();
        assert!(storages <= 8, "{} binds {storages} storage buffers", kernel.title());
    }
    assert!(seen.len() > 100, "only {} variants", seen.len());
}

/// In a browser, what a loop declares without a value has that of the round before on some drivers, though WGSL has it be zero.
#[test]
fn what_a_loop_declares_has_a_value() {
    let mut declared = 0;
    for (name, text) in FILES {
        // Depths at which loops are open.
        let (mut depth, mut loops) = (0_usize, Vec::new());
        for (at, line) in text.lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default().trim();
            if code.starts_with("var ") && !loops.is_empty() {
                declared += 1;
                assert!(code.contains('='), "{name}, line {}: {code}", at + 1);
            }
            if ["for (", "while (", "loop "].iter().any(|begin| code.starts_with(begin)) {
                loops.push(depth);
            }
            depth = (depth + code.matches('{').count()).saturating_sub(code.matches('}').count());
            while loops.last().is_some_and(|open| depth <= *open) {
                loops.pop();
            }
        }
    }
    assert!(declared > 10, "only {declared} declarations were seen");
}

#[test]
fn a_form_is_one_dispatch() {
    for case in cases::all() {
        for cover in covers(&case.graph, Form::MATCHERS) {
            if let Ok(kernels) = lower_cover(&case.graph, &cover, LIMITS, Tuning::default()) {
                // A few rows are made ready for their products first. Parts of the keys are scored, then joined, wide rows
                // of them first of all; tiles of experts are told their choices first; large triangles take more rounds
                // than a loop may have; lists in order are joined in pairs, and those of a vocabulary's
                // segments at once.
                let large = || case.graph.tensor(cover.inputs[0]).shape.cols() == 400;
                let two = matches!(cover.form, Form::AttentionLinear(_))
                    || kernels[0].file == "experts_plan"
                    || kernels[0].file == "solve_triangular" && large();
                let joins = ["argsort_merge", "attention_join", "rows_bytes", "rows_ready"];
                let is_join = |kernel: &&Kernel| joins.contains(&kernel.file) || kernel.flags.contains(&"JOIN");
                let joined = kernels.iter().filter(is_join).count();
                assert_eq!(kernels.len(), 1 + usize::from(two) + joined, "{} {}", case.op, case.name);
            }
        }
    }
}

#[test]
fn inexact_products_are_those_of_several_rows_by_quantised_weights() {
    const SEVERAL: [&str; 5] = ["linear_block", "linear_bytes", "linear_large", "linear_tile", "linear_wide"];
    let several = |kernel: &&Kernel| SEVERAL.contains(&kernel.file);
    let quantised = |kernel: &Kernel| {
        let of =
            |(_, decoder): &(_, Decoder)| matches!(decoder, Decoder::Packed(format) if format.spec().is_quantised());
        kernel.decoders.iter().all(of)
    };
    for tuning in [Tuning::default(), Tuning::large(), Tuning::software()] {
        let (kernels, _) = all_kernels(Limits { products: Products::Int8, ..LIMITS }, tuning);
        let (bytes, floats): (Vec<_>, Vec<_>) =
            kernels.iter().filter(several).partition(|kernel| kernel.file == "linear_bytes");
        assert!(!bytes.is_empty() && bytes.iter().all(|kernel| quantised(kernel)));
        assert!(!floats.is_empty() && floats.iter().all(|kernel| !quantised(kernel)));
    }
    let (kernels, _) = all_kernels(LIMITS, Tuning::default());
    assert!(kernels.iter().all(|kernel| !kernel.file.ends_with("_bytes")));
}

#[test]
fn the_largest_tiles_are_for_many_of_them_on_large_devices() {
    let shapes = |tuning: Tuning| {
        let large = |kernel: &Kernel| kernel.file == "linear_large";
        all_kernels(LIMITS, tuning).0.iter().filter(|kernel| large(kernel)).count()
    };
    // No case has as many rows and columns as it takes.
    assert_eq!(shapes(Tuning::of_device(48 << 10)), 0);
    assert!(shapes(Tuning::large()) > 0);
    let of = |bytes: usize| Tuning::of_device(bytes).large_tiles;
    assert_eq!([of(16 << 10), of(32 << 10), of(48 << 10)], [0, 0, Tuning::default().large_tiles]);
}

#[test]
fn small_bindings_split_weights() {
    let packed = |limits: Limits| {
        let bindings = all_kernels(limits, Tuning::default()).0.into_iter().flat_map(|k| k.bindings);
        bindings.filter(|b| b.ty == "array<vec4<u32>>").collect::<Vec<_>>()
    };
    let limits = Limits { weights: 4096, ..LIMITS };
    assert!(packed(limits).iter().any(|b| b.chunk > 3));
    // Rows that are too wide for the device are refused with the reason.
    let (_, refused) = all_kernels(Limits { weights: 4096, binding: 4096, ..LIMITS }, Tuning::default());
    assert!(refused.iter().any(|why| why.reason.contains("narrower matrices")));
}

#[test]
fn chunks_cover_all_rows() {
    for format in Format::ALL {
        let shape = Shape::new(&[203, 512]).unwrap();
        for limit in [1 << 14, 40_000, 1 << 20] {
            let Ok(list) = chunks(DType::Packed(*format), &shape, &Limits { weights: limit, ..LIMITS }) else {
                panic!("{} rows fit any binding", format.name())
            };
            let mut next = 0;
            for chunk in &list {
                assert_eq!(chunk.first, next);
                assert!((chunk.bytes() <= limit || chunk.rows <= ROW_ALIGN) && chunk.first % ROW_ALIGN == 0);
                next += chunk.rows;
            }
            assert_eq!(next, 203);
        }
    }
}

#[test]
fn conditions_and_words_are_assembled() {
    let kernel = Kernel::new("norm", [1, 1, 1]).word("WG", "64u").u("rows", 1).f("eps", 0.5);
    let plain = assemble(&kernel).unwrap();
    assert!(plain.contains("struct Params {\n    rows: u32,\n    eps: f32,\n}"));
    assert!(!plain.contains("//!") && !plain.contains("beta") && !plain.contains("WG"));
    assert!(assemble(&kernel.clone().flag("LAYER", true)).unwrap().contains("value += beta[param + c];"));
    assert_eq!(assemble(&kernel).unwrap(), plain, "assembly is deterministic");
    assert!(assemble(&Kernel::new("no such file", [1, 1, 1])).is_err());
    assert!(assemble(&Kernel::new("get_rows", [1, 1, 1])).unwrap_err().contains("no decoder"));
}

#[test]
fn all_shaders_assemble() {
    let mut texts = BTreeMap::new();
    let devices = DEVICES.into_iter().flat_map(|limits| [(limits, Tuning::default()), (limits, Tuning::software())]);
    for kernel in devices.flat_map(|(limits, tuning)| all_kernels(limits, tuning).0) {
        texts.insert(format!("{}.wgsl", kernel.title()), assemble(&kernel).unwrap());
    }
    assert!(texts.len() > 1_000, "only {} shaders", texts.len());
    // Optional features are not required.
    assert!(texts.values().all(|text| !text.contains("enable f16")));
    write_if_asked("webgpu", &texts).unwrap();
}
