//! Sums of rows, whole and up to each element.

use super::{Node, grid, literal};
use crate::kernel::Kernel;

type Kernels = Result<Vec<Kernel>, String>;

pub fn sum(node: &Node<'_>) -> Kernels {
    let (x, out) = (node.inputs[0], node.outputs[0]);
    let (rows, cols) = (x.shape.rows(), x.shape.cols());
    let kernel = node.reducing("sum", grid(rows), node.row_wg(cols)).u("rows", rows).u("cols", cols);
    Ok(vec![kernel.input("x", 0, x).output("out", 0, out)])
}

pub fn cumsum(node: &Node<'_>) -> Kernels {
    let (x, out) = (node.inputs[0], node.outputs[0]);
    let (rows, cols) = (x.shape.rows(), x.shape.cols());
    // Each column is looked at twice.
    let wg = literal(node.row_wg(2 * cols));
    let kernel = Kernel::new("cumsum", grid(rows)).word("WG", wg).u("rows", rows).u("cols", cols);
    Ok(vec![kernel.input("x", 0, x).output("out", 0, out)])
}
