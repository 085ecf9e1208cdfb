//! Any number of threads gives the same bits, and so does a step in parts.

use super::needs;
use crate::{Cpu, Options};
use backend_api::case::Case;
use backend_api::compare::Values;
use backend_api::form::{Activation, Linear};
use backend_api::op::{Attention, GluKind, Masking, MatMul, Norm, NormKind, UnaryKind};
use backend_api::run::{NativeHost, Rig};
use backend_api::{Backend, Format, StepParams};
use std::num::NonZeroUsize;

/// All results of a step: in the smallest parts there are, or whole.
fn results(case: &Case, threads: usize, in_parts: bool) -> Vec<Values> {
    let cpu = Cpu::new(Options { threads: NonZeroUsize::new(threads), ..Options::default() });
    assert!(cpu.info().adapter.contains(&format!(" {threads} thread")), "{}", cpu.info().adapter);
    let mut rig = Rig::of_case(&cpu, case).unwrap();
    // Scratch memory and results of the first step must not matter.
    rig.step(&case.step).unwrap();
    match in_parts {
        true => assert!(rig.step_in_parts(&case.step, 1).unwrap() > 0),
        false => rig.step(&case.step).unwrap(),
    }
    pollster::block_on(rig.results(&NativeHost::default())).unwrap()
}

fn same_with_any_number_of_threads(case: &Case) {
    let covers = Cpu::new(Options::default()).cover(&case.graph).unwrap();
    let [cover] = covers.as_slice() else { panic!("{}: {covers:#?}", case.name) };
    let operands: Vec<_> = cover.inputs.iter().map(|id| case.graph.tensor(*id)).collect();
    let alone = results(case, 1, false);
    assert!(alone.iter().any(|values| values.bytes.iter().any(|byte| *byte != 0)), "{}", case.name);
    for threads in [2, 3] {
        let needs = needs(&cover.form, &operands, threads);
        assert!(needs.parts > 1, "{}: {threads} threads have nothing to share", case.name);
        assert!(results(case, threads, false) == alone, "{} with {threads} threads", case.name);
    }
    for threads in [1, 3] {
        assert!(results(case, threads, true) == alone, "{} in parts, with {threads} threads", case.name);
    }
}

#[test]
fn linear() {
    let (n, k) = (1_030, 256);
    let rms = Some(Norm { kind: NormKind::Rms, eps: 1e-5, heads: 1 });
    let layer = Some(Norm { kind: NormKind::Layer, eps: 1e-5, heads: 1 });
    let kinds = [
        Linear::PLAIN,
        Linear { norm: layer, bias: true, activation: Activation::Unary(UnaryKind::GeluTanh), residual: true },
        Linear { norm: rms, bias: true, activation: Activation::Glu(GluKind::Swiglu), residual: true },
    ];
    for format in [Format::Q4_0, Format::Q4_1, Format::Q6_K, Format::F16, Format::F32] {
        for (op, m) in kinds.iter().flat_map(|op| [1, 3, 6, 8, 37].map(|m| (*op, m))) {
            // An odd number of rows but for a GLU, so that the last pair has one row.
            let n = if matches!(op.activation, Activation::Glu(_)) { n } else { n + 1 };
            let name = format!("{} {m} rows, {op:?}", format.name());
            let case = Case::new(op, name, StepParams::at(0, m as u32), |o| {
                let mut list = vec![o.input(&[m, k])];
                list.extend(
                    (0..op.norm.map_or(0, |norm| norm.kind.params())).map(|_| o.weight(&[k])).collect::<Vec<_>>(),
                );
                list.push(o.packed(format, n, k));
                if op.bias {
                    list.push(o.weight(&[n]));
                }
                if op.residual {
                    list.push(o.input(&[m, op.out_cols(n)]));
                }
                list
            });
            same_with_any_number_of_threads(&case);
        }
    }
}

#[test]
fn batches_of_matrices() {
    for m in [1, 2, 29] {
        let case = Case::new(MatMul, format!("{m} rows"), StepParams::at(0, m as u32), |o| {
            vec![o.input(&[2, 3, m, 200]), o.input(&[2, 1, 701, 200])]
        });
        same_with_any_number_of_threads(&case);
    }
}

#[test]
fn attention() {
    let cached = Masking { causal: true, cached: true, ..Masking::default() };
    let window = Masking { window: 150, ..cached };
    let explicit = Masking { explicit: true, ..Masking::default() };
    let cases = [
        ("decode", cached, 1, StepParams::at(900, 1)),
        ("prefill", cached, 45, StepParams::at(300, 45)),
        ("prefill of fewer rows than compiled for", cached, 45, StepParams::at(300, 31)),
        ("window", window, 45, StepParams::at(800, 45)),
        ("mask", explicit, 7, StepParams::at(0, 7)),
    ];
    for (name, masking, m, step) in cases {
        let op =
            Attention { n_head: 6, n_head_kv: 3, scale: 0.125, softcap: 0.0, max_bias: 0.0, masking, sinks: m == 1 };
        let case = Case::new(op, name, step, |o| {
            let mut list = vec![o.input(&[m, 6 * 64]), o.input(&[1_000, 3 * 64]), o.input(&[1_000, 3 * 32])];
            if masking.explicit {
                list.push(o.filled(&[m, 1_000], backend_api::case::Fill::Mask));
            }
            list.extend(op.sinks.then(|| o.weight(&[6])));
            list
        });
        same_with_any_number_of_threads(&case);
    }
}
