//! Mixtures of experts: routing, products with the matrices that ids choose, and their sums.

use super::{Lowering, SEVERAL_NORMS, whole_groups};
use crate::kernel::{Draw, Kernel, Target};
use backend_api::form::{ExpertsGlu, ExpertsSum};
use backend_api::op::{Gate, Groups, MatMulId, NormKind, Route};
use backend_api::{Kind, Tensor};

/// Rounds of a fragment's loops: Mesa's software device ends those of a shader after 65,535 in all, silently.
const MOST_ROUNDS: usize = 60_000;

impl Lowering<'_> {
    pub(super) fn route(&self, op: &Route) -> Result<Kernel, String> {
        let logits = self.input(0)?;
        let cols = logits.shape.cols();
        if (op.k + 1) * cols.div_ceil(4) + op.groups.map_or(0, |groups| groups.used * cols) > MOST_ROUNDS {
            return Err(format!("a fragment cannot choose {} of {cols} experts", op.k));
        }
        let of_chosen = op.gate == Gate::SoftmaxOfChosen;
        let is_slot = |i: usize| Ok::<bool, String>(self.output(i)?.kind == Kind::Temporary);
        if is_slot(0)? != is_slot(1)? {
            // A slot may be larger than a storage.
            return Err("ids and weights are drawn together, so that the caller must read both or neither".into());
        }
        let mut draw = self
            .draw("route")?
            .and(Target::Output(1))
            .define_if(op.gate == Gate::Softmax, "SOFTMAX")
            .define_if(op.gate == Gate::Sigmoid, "SIGMOID")
            .define_if(op.normalised || of_chosen, "NORMALISED")
            .int("cols", cols)
            .int("choices", op.k)
            .float("scale", op.scale)
            .float("least_sum", if of_chosen { f32::MIN_POSITIVE } else { Route::LEAST_SUM })
            .input("src_logits", 0, logits);
        if let Some(Groups { count, used }) = op.groups {
            draw = draw.define("GROUPED", "").int("groups", count).int("groups_used", used).int("group", cols / count);
        }
        Ok(match op.biased {
            true => draw.define("BIASED", "").input("src_bias", 1, self.input(1)?).into(),
            false => draw.into(),
        })
    }

    pub(super) fn weighted_sum(&self) -> Result<Kernel, String> {
        let (x, weights) = (self.input(0)?, self.input(1)?);
        let draw = self.draw("weighted_sum")?.int("choices", weights.shape.cols());
        Ok(draw.input("src_x", 0, x).input("src_shares", 1, weights).into())
    }

    /// The weights of experts: the next packed operand of a draw.
    fn matrices(&self, draw: Draw, op: &MatMulId, at: usize) -> Result<Draw, String> {
        let name = crate::shader::OPERANDS.get(draw.weights.len()).ok_or("too many packed operands")?;
        let draw = draw.int(format!("start_{name}"), op.first).int(format!("stride_{name}"), op.stride);
        draw.packed(at, self.input(at)?)
    }

    /// A draw of products with the matrices of experts.
    fn by_ids(&self, file: &'static str, x: &Tensor, ids: &Tensor, [x_at, ids_at]: [usize; 2]) -> Result<Draw, String> {
        Ok(self.of_rows(file, x, x_at, ids.shape.cols())?.input("src_ids", ids_at, ids))
    }

    /// A draw of products of rows, each of which goes to so many experts.
    fn of_rows(&self, file: &'static str, x: &Tensor, x_at: usize, choices: usize) -> Result<Draw, String> {
        let k = x.shape.cols();
        let draw = self.draw(file)?.int("choices", choices).int("k", k);
        Ok(whole_groups(draw, k).input("src_x", x_at, x))
    }

    pub(super) fn matmul_id(&self, op: &MatMulId) -> Result<Kernel, String> {
        let (x, w, out) = (self.input(0)?, self.input(1)?, self.output(0)?.shape);
        let draw = match self.inputs.get(2) {
            Some(ids) => self.by_ids("matmul_id", x, ids, [0, 2])?.int("experts", op.experts(w.shape.rows())),
            None => self.of_rows("matmul_id", x, 0, out.dim(1))?.define("IN_TURN", ""),
        };
        Ok(self.matrices(draw.int("x_choices", out.rows() / x.shape.rows()), op, 1)?.into())
    }

    pub(super) fn experts_glu(&self, op: &ExpertsGlu) -> Result<Kernel, String> {
        let places: Vec<usize> = (0..self.inputs.len()).collect();
        let o = op.operands(&places).ok_or("the number of operands does not fit")?;
        let (x, ids) = (self.input(*o.x)?, self.input(*o.ids)?);
        let [gates, ups] = o.weights.map(|at| self.inputs[*at].shape.rows());
        let experts = op.gate.experts(gates).min(op.up.experts(ups));
        let mut draw = self.by_ids("matmul_id", x, ids, [*o.x, *o.ids])?.int("x_choices", ids.shape.cols());
        draw = draw.define("GLU", "").define("GATED", op.kind.function()).int("experts", experts);
        if let Some(norm) = &op.norm {
            if x.shape.rows() > 1 {
                return Err(SEVERAL_NORMS.into());
            }
            if norm.kind == NormKind::Layer {
                return Err("a layer norm before experts is computed by itself".into());
            }
            draw = draw.define("NORM", "").float("eps", norm.eps).input("src_gamma", o.norm[0], self.input(o.norm[0])?);
        }
        draw = self.matrices(draw, &op.gate, *o.weights[0])?;
        draw = self.matrices(draw, &op.up, *o.weights[1])?;
        if let Some([gate, up]) = o.biases {
            draw = draw.define("BIAS", "").input("src_bias", *gate, self.input(*gate)?);
            draw = draw.input("src_bias_up", *up, self.input(*up)?);
        }
        Ok(draw.into())
    }

    pub(super) fn experts_sum(&self, op: &ExpertsSum) -> Result<Kernel, String> {
        let (x, w, ids, weights) = (self.input(0)?, self.input(1)?, self.input(2)?, self.input(3)?);
        let mut draw = self.by_ids("experts_sum", x, ids, [0, 2])?.int("experts", op.down.experts(w.shape.rows()));
        draw = self.matrices(draw, &op.down, 1)?.input("src_shares", 3, weights);
        let [bias, residual] = op.places();
        if let Some(at) = bias {
            draw = draw.define("BIAS", "").input("src_bias", at, self.input(at)?);
        }
        if let Some(at) = residual {
            draw = draw.define("RESIDUAL", "").input("src_residual", at, self.input(at)?);
        }
        Ok(draw.into())
    }
}
