//! Sorting: short lists at once, then pairs of lists that become one.

use super::Node;
use crate::kernel::{Kernel, Operand};
use backend_api::op::Argsort;

type Kernels = Result<Vec<Kernel>, String>;

/// Elements that are put in order by counting.
const LIST: usize = 64;

pub fn argsort(op: &Argsort, node: &Node<'_>) -> Kernels {
    let (x, out) = (node.inputs[0], node.outputs[0]);
    let cols = x.shape.cols();
    // The results and the scratch memory take turns, so that the last pass writes the results.
    let merges = std::iter::successors(Some(LIST), |list| Some(2 * list)).take_while(|list| *list < cols).count();
    let place = |pass: usize, write: bool| {
        if (merges - pass).is_multiple_of(2) { Operand::Output(0) } else { Operand::Scratch { write } }
    };
    let kernel = |pass: usize, list: usize| {
        let file = if pass == 0 { "argsort" } else { "argsort_merge" };
        let kernel = node.elementwise(file, out.shape.len()).u("len", out.shape.len()).u("cols", cols).u("list", list);
        let kernel = kernel.u("flip", if op.descending { u32::MAX as usize } else { 0 }).input("x", 0, x);
        let kernel = if pass == 0 { kernel } else { kernel.bind("lists", "array<i32>", place(pass - 1, false), out) };
        kernel.bind("ordered", "array<i32>", place(pass, true), out)
    };
    let first = kernel(0, LIST);
    Ok([first].into_iter().chain((1..=merges).map(|pass| kernel(pass, LIST << (pass - 1)))).collect())
}
