//! Any number of threads gives the same bits.

use super::needs;
use crate::{Cpu, Options};
use backend_api::case::Case;
use backend_api::op::{Activation, Attention, GluKind, Linear, Masking, MatMul, Norm, NormKind, UnaryKind};
use backend_api::{Backend, Format, Kind, Plan, StepParams, StorageDesc, host_rows};
use std::num::NonZeroUsize;

/// The bytes of all results.
fn results(case: &Case, threads: usize) -> Vec<Vec<u8>> {
    let cpu = Cpu::new(Options { fast: true, threads: NonZeroUsize::new(threads) });
    assert!(cpu.info().adapter.contains(&format!(" {threads} thread")), "{}", cpu.info().adapter);
    let plan = Plan::new(case.graph.clone(), &|tensor| cpu.slot_size(tensor));
    let mut storages = Vec::new();
    for (index, ((_, tensor), fill)) in plan.graph().externals().zip(&case.fills).enumerate() {
        let id = cpu.create(&StorageDesc::of(tensor)).unwrap();
        cpu.write(id, 0, &fill.bytes(tensor, index as u64)).unwrap();
        storages.push(id);
    }
    let mut program = cpu.compile(&plan, &storages).unwrap();
    // Scratch memory and results of the first step must not matter.
    program.step(&case.step).unwrap();
    program.step(&case.step).unwrap();
    let written = plan.graph().externals().zip(&storages).filter(|((_, tensor), _)| tensor.kind == Kind::Output);
    let read = |((_, tensor), id): ((_, &backend_api::Tensor), &_)| {
        let (rows, cols) = host_rows(&tensor.shape);
        let mut bytes = vec![0; 4 * rows * cols];
        assert!(cpu.try_read(cpu.read(*id, 0, rows).unwrap(), &mut bytes).unwrap());
        bytes
    };
    written.map(read).collect()
}

fn same_with_any_number_of_threads(case: &Case) {
    let node = &case.graph.nodes()[0];
    let alone = results(case, 1);
    assert!(alone.iter().flatten().any(|byte| *byte != 0), "{}", case.name);
    for threads in [2, 3] {
        let needs = needs(&node.op, &case.graph.operands(node), threads);
        assert!(needs.parts > 1, "{}: {threads} threads have nothing to share", case.name);
        assert!(results(case, threads) == alone, "{} with {threads} threads", case.name);
    }
}

#[test]
fn linear() {
    let (n, k) = (1_030, 256);
    let rms = Some(Norm { kind: NormKind::Rms, eps: 1e-5 });
    let layer = Some(Norm { kind: NormKind::Layer, eps: 1e-5 });
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
        let op = Attention { n_head: 6, n_head_kv: 3, scale: 0.125, softcap: 0.0, masking };
        let case = Case::new(op, name, step, |o| {
            let mut list = vec![o.input(&[m, 6 * 64]), o.input(&[1_000, 3 * 64]), o.input(&[1_000, 3 * 32])];
            if masking.explicit {
                list.push(o.filled(&[m, 1_000], backend_api::case::Fill::Mask));
            }
            list
        });
        same_with_any_number_of_threads(&case);
    }
}
