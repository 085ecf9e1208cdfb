//! Tests without a device: every variant that the conformance cases need assembles and validates.

use crate::kernel::Kernel;
use crate::lower::{Limits, Node, lower};
use crate::shader::assemble;
use backend_api::op::Linear;
use backend_api::{Op, Unsupported};

const LIMITS: Limits = Limits { weights: 128 << 20, dense: 128 << 20 };

/// What core WebGPU has beyond the least that naga knows: `unpack2x16float`.
const CORE: naga::valid::Capabilities = naga::valid::Capabilities::SHADER_FLOAT16_IN_FLOAT32;

/// The kernels of all conformance cases that are supported with these limits, and the reasons of the others.
fn all_kernels(limits: Limits) -> (Vec<Kernel>, Vec<Unsupported>) {
    let (mut kernels, mut refused) = (Vec::new(), Vec::new());
    for case in Op::all_cases() {
        for node in case.graph.nodes() {
            let inputs = case.graph.operands(node);
            let outputs: Vec<_> = node.outputs.iter().map(|id| case.graph.tensor(*id)).collect();
            match lower(&node.op, &Node { inputs: &inputs, outputs: &outputs, limits }) {
                Ok(list) => kernels.extend(list),
                Err(why) => {
                    let several_rows = matches!(&node.op, Op::Linear(Linear { norm: Some(_), .. }))
                        && inputs[0].shape.rows() > 1;
                    assert!(several_rows || limits != LIMITS, "{}: {why}", case.name);
                    refused.push(why);
                }
            }
        }
    }
    (kernels, refused)
}

#[test]
fn every_shader_validates() {
    let mut seen = std::collections::HashSet::new();
    for kernel in all_kernels(LIMITS).0 {
        let source = assemble(&kernel).unwrap();
        if !seen.insert(source.clone()) {
            continue;
        }
        let module = match naga::front::wgsl::parse_str(&source) {
            Ok(module) => module,
            Err(e) => panic!("{}:\n{}\n{source}", kernel.title(), e.emit_to_string(&source)),
        };
        let mut validator =
            naga::valid::Validator::new(naga::valid::ValidationFlags::all(), CORE);
        if let Err(e) = validator.validate(&module) {
            panic!("{}: {}\n{source}", kernel.title(), e.emit_to_string(&source));
        }
        let storages = kernel.bindings.len();
        assert!(storages <= 8, "{} binds {storages} storage buffers", kernel.title());
    }
    assert!(seen.len() > 100, "only {} variants", seen.len());
}
