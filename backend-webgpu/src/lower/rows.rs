//! Rows of tables: get_rows and embed.

use super::Node;
use crate::kernel::Kernel;
use crate::storage::{Chunk, chunks};
use backend_api::Tensor;
use backend_api::format::GROUP;
use backend_api::op::{GetRows, Index};

fn table_chunks(tensor: &Tensor, node: &Node<'_>) -> Result<Vec<Chunk>, String> {
    chunks(tensor.dtype, &tensor.shape, &node.limits).map_err(|e| e.to_string())
}

fn rows_of(kernel: Kernel, name: &str, tensor: &Tensor, chunk: &Chunk) -> Kernel {
    kernel
        .u(format!("{name}_rows"), tensor.shape.rows())
        .u(format!("{name}_first"), chunk.first)
        .u(format!("{name}_count"), chunk.rows)
}

pub fn get_rows(op: &GetRows, node: &Node<'_>) -> Result<Vec<Kernel>, String> {
    let (table, out) = (node.inputs[0], node.outputs[0]);
    let (rows, d) = (out.shape.rows(), out.shape.cols());
    let flag = match op.index {
        Index::Ids => "IDS",
        Index::Tokens { .. } => "TOKENS",
        Index::Positions { .. } => "POSITIONS",
        Index::First => "FIRST",
        Index::Last => "LAST",
    };
    let kernel = |chunk: &Chunk| {
        let mut kernel = node
            .elementwise("get_rows", rows * d.div_ceil(GROUP))
            .flag(flag, true)
            .u("rows", rows)
            .u("d", d)
            .table("w", 0, table, chunk);
        kernel = rows_of(kernel, "w", table, chunk);
        if let Some(ids) = node.inputs.get(1) {
            kernel = kernel.u("n_ctx", node.capacity(ids)).input("ids", 1, ids);
        }
        kernel.output("out", 0, out)
    };
    Ok(table_chunks(table, node)?.iter().map(kernel).collect())
}

pub fn embed(node: &Node<'_>) -> Result<Vec<Kernel>, String> {
    let (tokens, history, positions, out) = (node.inputs[0], node.inputs[1], node.inputs[2], node.outputs[0]);
    let (rows, d) = (out.shape.rows(), out.shape.cols());
    let mut kernels = Vec::new();
    for a in table_chunks(tokens, node)? {
        for b in table_chunks(positions, node)? {
            let kernel = node
                .elementwise("embed", rows * d.div_ceil(GROUP))
                .u("rows", rows)
                .u("d", d)
                .u("n_ctx", node.capacity(history))
                .table("w", 0, tokens, &a)
                .table("u", 2, positions, &b)
                .input("ids", 1, history)
                .output("out", 0, out);
            kernels.push(rows_of(rows_of(kernel, "w", tokens, &a), "u", positions, &b));
        }
    }
    Ok(kernels)
}
