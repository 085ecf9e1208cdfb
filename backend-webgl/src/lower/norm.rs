//! Norms of rows and of their heads.

use super::{Lowering, by_rows, whole_groups};
use crate::kernel::{Draw, Kernel, Target};
use backend_api::form::NormGate;
use backend_api::op::{Norm, NormKind};

impl Lowering<'_> {
    /// A norm, and what its result is added to if there is one operand more.
    pub(super) fn norm(&self, op: &Norm) -> Result<Kernel, String> {
        if op.heads != 1 {
            return self.norm_heads(op, None);
        }
        let x = self.input(0)?;
        let stats = |draw: Draw| {
            let draw = draw.define_if(op.kind == NormKind::Layer, "LAYER").define_if(op.kind == NormKind::L2, "L2");
            whole_groups(draw, x.shape.cols()).float("eps", op.eps).input("src_x", 0, x)
        };
        let mut last = stats(self.draw("norm")?).input("src_gamma", 1, self.input(1)?);
        if op.kind == NormKind::Layer {
            last = last.input("src_beta", 2, self.input(2)?);
        }
        let residual = 1 + op.kind.params();
        if let Some(tensor) = self.inputs.get(residual) {
            last = last.define("RESIDUAL", "").input("src_residual", residual, tensor);
        }
        let last = self.followed(last)?;
        Ok(by_rows(x, ["src_mean", "src_factor"], |to, count| stats(Draw::raw("norm_rows", to, count)), last))
    }

    pub(super) fn norm_heads(&self, op: &Norm, gate: Option<&NormGate>) -> Result<Kernel, String> {
        let x = self.input(0)?;
        let (rows, cols) = (x.shape.rows(), x.shape.cols());
        let count = rows.checked_mul(op.heads).ok_or("too many heads")?;
        let common = |draw: Draw| {
            let draw = draw.define_if(op.kind == NormKind::Layer, "LAYER").define_if(op.kind == NormKind::L2, "L2");
            draw.input("src_x", 0, x).int("heads", op.heads).int("head_dim", cols / op.heads)
        };
        let first = common(Draw::raw("norm_head_rows", 0, count).and(Target::Scratch(1))).int("cols", cols);
        let mut last = common(self.draw("norm_heads")?).input("src_gamma", 1, self.input(1)?);
        last = last.int("params", self.input(1)?.shape.len());
        if op.kind == NormKind::Layer {
            last = last.input("src_beta", 2, self.input(2)?);
        }
        if let Some(NormGate { kind, gate, .. }) = gate {
            last = last.define("GATE", "").define("ACT", kind.activation().function());
            last = self.view(last, ("src_z", "z", *gate))?;
        }
        let last = last.scratch("src_mean", 0).scratch("src_factor", 1);
        Ok(Kernel { draws: vec![first.float("eps", op.eps), last], scratch: vec![count; 2] })
    }
}
