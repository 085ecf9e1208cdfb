//! `argmax_append`: the index of the largest element, or -1 if one is not finite, written into the token history after the
//! step's rows.
//!
//! *Operands*: token history, a state `[n_ctx]` i32; x `[1, n]`. *Results*: the history.

use super::found::Found;
use crate::error::Error;
use crate::graph::{Graph, TensorId};
use crate::links::Links;
use crate::op::{Append, ArgMax, At, Op};

/// See the [module page](self).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArgMaxAppend;

impl ArgMaxAppend {
    /// The one that begins at an argmax, if there is one.
    pub fn find(links: &Links<'_>, at: usize) -> Option<Found<ArgMaxAppend>> {
        let node = links.node(at);
        let (Op::ArgMax(_), [x]) = (&node.op, node.inputs.as_slice()) else { return None };
        let (append_at, append) = links.only_user(node.outputs[0])?;
        let Op::Append(Append { at: At::Next }) = append.op else { return None };
        let one_row = links.tensor(*x).shape.rows() == 1 && append.inputs[1] == node.outputs[0];
        one_row.then(|| Found {
            form: ArgMaxAppend,
            nodes: vec![at, append_at],
            inputs: vec![append.inputs[0], *x],
            outputs: append.outputs.clone(),
        })
    }

    /// Records it as models do.
    ///
    /// *Errors*: operands that do not fit.
    pub fn record(&self, graph: &mut Graph, operands: &[TensorId]) -> Result<Vec<TensorId>, Error> {
        let [history, x] = *operands else {
            return Err(Error::Invalid(format!("argmax_append does not take {} operands", operands.len())));
        };
        let id = graph.push(ArgMax, &[x])?;
        Ok(vec![graph.push(Append { at: At::Next }, &[history, id])?])
    }
}
