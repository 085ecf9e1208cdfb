//! Operators that choose the next token.

use super::{Node, grid, literal};
use crate::kernel::{Kernel, Operand, row_type};
use backend_api::op::TopK;

type Kernels = Result<Vec<Kernel>, String>;

fn search(node: &Node<'_>, at: usize) -> Kernel {
    let x = node.inputs[at];
    let cols = x.shape.cols();
    node.reducing("argmax", grid(x.shape.rows()), node.tuning.search_wg)
        .flag("VEC4", cols.is_multiple_of(4))
        .word("LOADS", literal(node.tuning.search_loads))
        .u("rows", x.shape.rows())
        .u("cols", cols)
        .bind("x", row_type(cols), Operand::Input(at), x)
}

pub fn argmax(node: &Node<'_>) -> Kernels {
    Ok(vec![search(node, 0).output("out", 0, node.outputs[0])])
}

pub fn argmax_append(node: &Node<'_>) -> Kernels {
    let history = node.outputs[0];
    let kernel = search(node, 1).flag("APPEND", true).u("n_ctx", history.shape.len());
    Ok(vec![kernel.output("out", 0, history)])
}

pub fn top_k(op: &TopK, node: &Node<'_>) -> Kernels {
    let x = node.inputs[0];
    let (rows, cols, wg) = (x.shape.rows(), x.shape.cols(), node.tuning.search_wg);
    // One workgroup would take milliseconds for a vocabulary. An invocation has one list at most when they are joined.
    let segment = node.tuning.search_segment.max(cols.div_ceil(wg)).min(cols);
    let lists = cols.div_ceil(segment);
    let kernel = |groups: usize| node.reducing("top_k", grid(groups), wg).u("rows", rows).u("cols", cols).u("k", op.k);
    let chosen = |kernel: Kernel| kernel.output("values", 0, node.outputs[0]).output("ids", 1, node.outputs[1]);
    let searching = kernel(rows * lists).u("lists", lists).u("segment", segment).input("x", 0, x);
    if lists == 1 {
        return Ok(vec![chosen(searching)]);
    }
    let words = 2 * rows * lists * op.k;
    let joining = kernel(rows).flag("JOIN", true).u("lists", lists).scratch_words("parts", false, words);
    Ok(vec![searching.flag("PART", true).scratch_words("parts", true, words), chosen(joining)])
}

pub fn sample(node: &Node<'_>) -> Kernels {
    let (values, ids) = (node.inputs[0], node.inputs[1]);
    let rows = values.shape.rows();
    let kernel = Kernel::new("sample", grid(rows))
        .u("rows", rows)
        .u("k", values.shape.cols())
        .input("values", 0, values)
        .input("ids", 1, ids)
        .output("out", 0, node.outputs[0]);
    Ok(vec![match node.inputs.get(2) {
        Some(penalties) => kernel.flag("MIN_P", true).input("penalties", 2, penalties),
        None => kernel,
    }])
}

pub fn penalize(node: &Node<'_>) -> Kernels {
    let (logits, history) = (node.inputs[0], node.inputs[1]);
    let kernel = node
        .elementwise("penalize", logits.shape.len())
        .u("len", logits.shape.len())
        .u("rows", logits.shape.rows())
        .u("cols", logits.shape.cols())
        .u("n_ctx", node.capacity(history))
        .input("logits", 0, logits)
        .input("history", 1, history)
        .input("bias", 2, node.inputs[2])
        .input("penalties", 3, node.inputs[3]);
    Ok(vec![kernel.output("out", 0, node.outputs[0])])
}

pub fn pick(node: &Node<'_>) -> Kernels {
    let (x, ids, out) = (node.inputs[0], node.inputs[1], node.outputs[0]);
    let kernel = node
        .elementwise("pick", out.shape.len())
        .u("len", out.shape.len())
        .u("k", out.shape.cols())
        .u("cols", x.shape.cols())
        .input("x", 0, x)
        .input("ids", 1, ids);
    Ok(vec![kernel.output("out", 0, out)])
}
