//! Products with matrices, and what stands before and after them.

use super::{GROUP, Lowering, SEVERAL_NORMS, whole_groups};
use crate::Tuning;
use crate::dense::Dense;
use crate::kernel::{Draw, Kernel, Region, Target};
use backend_api::form::{Activation, Linear, LinearOperands};
use backend_api::op::{IDENTITY, NormKind};
use backend_api::{DType, Shape};

/// With fewer rows of x than this each is multiplied on its own.
const BLOCK_LEAST: usize = 4;
/// Texels of a line of blocks: those of neighbouring blocks lie above and below each other, so that the fragments of a
/// square share rows of x as well as weights.
const BLOCK_LINE: usize = 32;
/// The results of a block's rows.
const BLOCK: [&str; 8] =
    ["src_row0", "src_row1", "src_row2", "src_row3", "src_row4", "src_row5", "src_row6", "src_row7"];

impl Lowering<'_> {
    pub(super) fn matmul(&self) -> Result<Kernel, String> {
        let (a, b) = (self.input(0)?, self.input(1)?);
        if matches!(b.dtype, DType::Packed(_)) {
            return self.linear(&Linear::PLAIN);
        }
        let ([a0, a1, m, k], [b0, b1, n, _]) = (a.shape.dims4(), b.shape.dims4());
        let [dim0, dim1, _, _] = self.output(0)?.shape.dims4();
        let batch = |draw: Draw| {
            let sizes = [("k", k), ("a0", a0), ("a1", a1), ("b0", b0), ("b1", b1), ("dim0", dim0), ("dim1", dim1)];
            sizes.into_iter().fold(whole_groups(draw, k), |draw, (name, value)| draw.int(name, value))
        };
        if m < BLOCK_LEAST {
            let draw = self.draw("matmul")?.input("src_a", 0, a).input("src_b", 1, b).int("m", m);
            return Ok(batch(draw).into());
        }
        let blocks = |draw: Draw| Ok(batch(draw.define("DENSE", "").input("src_x", 0, a).input("src_w", 1, b)));
        self.in_blocks([dim0 * dim1, m, n], blocks, |draw| Ok(draw.define("ACT", IDENTITY).int("weight_rows", n)))
    }

    pub(super) fn linear(&self, op: &Linear) -> Result<Kernel, String> {
        let indices: Vec<usize> = (0..self.inputs.len()).collect();
        let at = op.operands(&indices).ok_or("the number of operands does not fit")?;
        let (x, w) = (self.input(*at.x)?, self.input(*at.w)?);
        let (rows, k, n) = (x.shape.rows(), x.shape.cols(), w.shape.rows());
        if rows < BLOCK_LEAST {
            if let Some(kernel) = self.joined(op, &at, [rows, n, k])? {
                return Ok(kernel);
            }
            let draw = self.draw("linear")?;
            return match self.slices(&draw, op, k) {
                1 => Ok(self.linear_rows(draw, op, &indices)?.into()),
                slices if self.tuning.blend == 1 => Ok(self.linear_rows(draw, op, &indices)?.sliced(slices).into()),
                slices => self.stacked(op, &indices, [rows, n], slices),
            };
        }
        if op.norm.is_some() {
            return Err(SEVERAL_NORMS.into());
        }
        let blocks = |draw: Draw| Ok(whole_groups(draw.packed(*at.w, w)?.input("src_x", *at.x, x).int("k", k), k));
        self.in_blocks([1, rows, n], blocks, |draw| self.epilogue(draw, op, &at))
    }

    /// The products of `matrices` of `rows` rows of x each with `n` rows of weights, in blocks of rows, which a second draw
    /// puts in order. `first` gives the one its operands, `second` the other what follows the products.
    fn in_blocks(
        &self,
        [matrices, rows, n]: [usize; 3],
        first: impl FnOnce(Draw) -> Result<Draw, String>,
        second: impl FnOnce(Draw) -> Result<Draw, String>,
    ) -> Result<Kernel, String> {
        let block_rows = if rows > BLOCK_LEAST { self.tuning.block_rows } else { BLOCK_LEAST };
        let (apart, lanes) = (rows.div_ceil(block_rows), self.layout.lanes());
        let blocks = matrices * apart;
        let lines = n.div_ceil(lanes * BLOCK_LINE) * blocks;
        let shape = Shape::new(&[lines, lanes * BLOCK_LINE]).map_err(|e| e.to_string())?;
        let made = Dense::new(&shape, DType::F32, self.layout);
        let common = |draw: Draw| {
            let draw = draw.int("blocks", blocks).int("apart", apart).int("x_rows", rows).int("block_line", BLOCK_LINE);
            draw.define_if(block_rows == BLOCK.len(), "EIGHT")
        };
        let mut products = first(common(Draw::new("linear_block", Target::Scratch(0), &made)))?.int("weight_rows", n);
        products.targets.extend((1..block_rows).map(Target::Scratch));
        let mut join = common(self.draw("linear_join")?);
        for (index, name) in BLOCK.into_iter().enumerate().take(block_rows) {
            join = join.scratch(name, index);
        }
        Ok(Kernel { draws: vec![products, second(join)?], scratch: vec![made.texels(); block_rows] })
    }

    /// A product whose norm or activation needs the whole sums, in slices that a second draw joins: if it is large, and
    /// has too few fragments for a GPU.
    fn joined(
        &self,
        op: &Linear,
        at: &LinearOperands<'_, usize>,
        [rows, n, k]: [usize; 3],
    ) -> Result<Option<Kernel>, String> {
        let factor = op.norm.is_none_or(|norm| norm.kind == NormKind::Rms);
        let needed = self.needs_sums(op);
        let large = n.saturating_mul(k) >> self.tuning.joined_from > 0;
        if !factor || !needed || !large || self.tuning.blend == 0 {
            return Ok(None);
        }
        let lanes = self.layout.lanes();
        let sum_cols = n.next_multiple_of(lanes) + if op.norm.is_some() { lanes } else { 0 };
        let shape = Shape::new(&[rows, sum_cols]).map_err(|e| e.to_string())?;
        let made = Dense::new(&shape, DType::F32, self.layout);
        let draw = Draw::new("linear", Target::Scratch(0), &made);
        let (products, slices) = (Linear { norm: op.norm, ..Linear::PLAIN }, self.slices_of(&draw, k));
        if slices < 2 {
            return Ok(None);
        }
        let operands = [&[*at.x], at.norm, &[*at.w]].concat();
        let alone = Lowering { following: None, ..*self };
        let first = alone.linear_rows(draw, &products, &operands)?.sliced(slices);
        let join = self.draw("linear_join")?.define("SLICED", "").scratch("src_sums", 0).int("sum_cols", sum_cols);
        let join = match &op.norm {
            Some(norm) => join.define("NORM", "").int("k", k).float("eps", norm.eps),
            None => join,
        };
        Ok(Some(Kernel { draws: vec![first, self.epilogue(join, op, at)?], scratch: vec![made.texels()] }))
    }

    /// The parameters of `linear.glsl` for an operator whose operands are those of the node at `indices`.
    pub(super) fn linear_rows(&self, draw: Draw, op: &Linear, indices: &[usize]) -> Result<Draw, String> {
        let at = op.operands(indices).ok_or("the number of operands does not fit")?;
        let (x, w) = (self.input(*at.x)?, self.input(*at.w)?);
        if op.norm.is_some() && x.shape.rows() > 1 {
            return Err(SEVERAL_NORMS.into());
        }
        let k = x.shape.cols();
        let mut draw = whole_groups(draw.packed(*at.w, w)?.input("src_x", *at.x, x).int("k", k), k);
        draw = draw.float("eps", op.norm.map_or(0.0, |norm| norm.eps));
        if let Some(norm) = &op.norm {
            draw = draw.define("NORM", "").define_if(norm.kind == NormKind::Layer, "LAYER");
            for (name, index) in ["src_gamma", "src_beta"].into_iter().zip(at.norm) {
                draw = draw.input(name, *index, self.input(*index)?);
            }
        }
        self.epilogue(draw, op, &at)
    }

    /// How many slices of the columns a draw is made in: several if its fragments are too few for a GPU and sums suffice
    /// for it.
    fn slices(&self, draw: &Draw, op: &Linear, k: usize) -> usize {
        if self.needs_sums(op) { 1 } else { self.slices_of(draw, k) }
    }

    /// Whether something needs whole sums: what is more than added to them.
    fn needs_sums(&self, op: &Linear) -> bool {
        op.norm.is_some() || op.activation != Activation::None || self.following.is_some()
    }

    /// Returns the number of slices of a draw that makes partial sums.
    fn slices_of(&self, draw: &Draw, k: usize) -> usize {
        let Region::Whole(fragments) = draw.region else { return 1 };
        let Tuning { slices, slice_groups, fragments: enough, .. } = *self.tuning;
        (k.div_ceil(GROUP) / slice_groups).min(enough / fragments.max(1)).min(slices).max(1)
    }

    /// A product in slices of the columns, whose sums are added up by a draw.
    fn stacked(&self, op: &Linear, indices: &[usize], [rows, n]: [usize; 2], slices: usize) -> Result<Kernel, String> {
        let shape = Shape::new(&[slices * rows, n]).map_err(|e| e.to_string())?;
        let made = Dense::new(&shape, DType::F32, self.layout);
        let first = Draw::new("linear", Target::Scratch(0), &made).define("SLICED", "").define("STACKED", "");
        let first = self.linear_rows(first.int("slices", slices).int("x_rows", rows), op, indices)?;
        let second = self.draw("linear_sum")?.int("slices", slices).scratch("src_slices", 0);
        Ok(Kernel { draws: vec![first, second], scratch: vec![made.texels()] })
    }

    /// The parameters of `epilogue.glsl`.
    fn epilogue(&self, draw: Draw, op: &Linear, at: &LinearOperands<'_, usize>) -> Result<Draw, String> {
        let mut draw = draw.int("weight_rows", self.input(*at.w)?.shape.rows());
        if let Some(index) = at.bias {
            draw = draw.define("BIAS", "").input("src_bias", *index, self.input(*index)?);
        }
        if let Some(index) = at.residual {
            draw = draw.define("RESIDUAL", "").input("src_residual", *index, self.input(*index)?);
        }
        let draw = self.followed(draw)?;
        Ok(match op.activation {
            Activation::None => draw.define("ACT", IDENTITY),
            Activation::Unary(kind) => draw.define("ACT", kind.function()),
            Activation::Glu(kind) => draw.define("GLU", "").define("ACT", kind.activation().function()),
        })
    }
}
