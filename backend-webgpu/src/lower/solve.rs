//! Triangular systems: rows of the solutions in as many dispatches as bounded loops need.

use super::Node;
use crate::kernel::Kernel;

/// Most rounds of an invocation's loops, since Mesa's software device ends them after 65,535, silently. Rows of the largest
/// matrices have fewer numbers.
const ROUNDS: usize = 60_000;

pub fn solve_triangular(node: &Node<'_>) -> Result<Vec<Kernel>, String> {
    let (a, b, out) = (node.inputs[0], node.inputs[1], node.outputs[0]);
    let (n, k) = (a.shape.cols(), b.shape.cols());
    let columns = b.shape.len() / n;
    let mut kernels = Vec::new();
    let mut first = 0;
    while first < n {
        let mut rounds = 0;
        let enough = (first..n).find(|row| {
            rounds += row + 1;
            rounds > ROUNDS
        });
        let end = enough.unwrap_or(n).max(first + 1);
        let kernel = node.elementwise("solve_triangular", columns).u("columns", columns).u("n", n).u("k", k);
        let kernel = kernel.u("first", first).u("end", end).input("a", 0, a).input("b", 1, b);
        kernels.push(kernel.output("out", 0, out));
        first = end;
    }
    Ok(kernels)
}
