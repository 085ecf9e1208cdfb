//! Attention, and what comes between the projection and it.

use super::Lowering;
use crate::dense::Dense;
use crate::kernel::{Draw, Kernel, Source, Target};
use backend_api::op::{Activation, At, Attention, QkvAppend, RopeMode, SelfAttention};
use backend_api::{DType, Shape};

/// Channels of a line of 32 texels: heads of a part of it lie in one.
const HEAD_IN_LINE: usize = 128;

/// The queries of attention.
struct Queries {
    from: Source,
    /// Columns of their rows, of which theirs are the first.
    cols: usize,
    /// Whether they lie in the rows from the step's position on.
    at_position: bool,
    /// How they are still to be rotated: channels, pairing, and the operand that is the table.
    rope: Option<(usize, RopeMode, usize)>,
}

impl Lowering<'_> {
    pub(super) fn attention(&self, op: &Attention) -> Result<Kernel, String> {
        let cols = self.input(0)?.shape.cols();
        let queries = Queries { from: Source::Input(0), cols, at_position: false, rope: None };
        self.attend(op, queries, [1, 2])
    }

    /// Attention of some queries to the operands that are keys and values.
    fn attend(&self, op: &Attention, queries: Queries, [k_at, v_at]: [usize; 2]) -> Result<Kernel, String> {
        let (k, v) = (self.input(k_at)?, self.input(v_at)?);
        let (d, dv) = (k.shape.cols() / op.n_head_kv, v.shape.cols() / op.n_head_kv);
        let (m, n) = (self.output(0)?.shape.dim(0), k.shape.dim(0));
        let rows = m.checked_mul(op.n_head).ok_or("too many scores")?;
        let shape = Shape::new(&[rows, n]).map_err(|e| e.to_string())?;
        let scores = Dense::new(&shape, DType::F32, self.layout);
        let common = |draw: Draw| {
            let draw = Self::masking(draw, &op.masking, op.scale, op.softcap, m);
            draw.int("heads", op.n_head).int("heads_kv", op.n_head_kv)
        };
        let mut first = common(Draw::new("attention_scores", Target::Scratch(0), &scores)).int("head_dim", d);
        first = first.int("q_cols", queries.cols).define_if(queries.at_position, "Q_AT_POSITION");
        first = first.define_if(d.is_multiple_of(8) && HEAD_IN_LINE.is_multiple_of(d), "HEAD_IN_LINE");
        first = first.define_if(d.is_multiple_of(8), "ALIGNED").source("src_q", queries.from).input("src_k", k_at, k);
        if op.masking.explicit {
            first = first.define("EXPLICIT", "").input("src_mask", 3, self.input(3)?);
        }
        if let Some((n_dims, mode, table)) = queries.rope {
            first = self.rope_table(first, n_dims, mode, table)?.define_if(n_dims < d, "ROPE_PART");
        }
        let mut second = common(self.draw("attention")?).int("head_dim", dv).int("keys", n);
        second = second.define_if(dv.is_multiple_of(4), "ALIGNED").scratch("src_scores", 0).input("src_v", v_at, v);
        Ok(Kernel { draws: vec![first, second], scratch: vec![scores.texels()] })
    }

    /// One step of decoding: the caches' new rows, then attention with queries that are rotated where they are read.
    pub(super) fn self_attention(&self, op: &SelfAttention) -> Result<Kernel, String> {
        let end = self.inputs.len();
        let QkvAppend { n_head, n_head_kv, head_dim, rope } = op.qkv;
        if self.input(0)?.shape.rows() > 1 {
            return Err("queries of several rows are rotated once, not for every key".into());
        }
        let pairs = |(n, mode): (usize, RopeMode)| n.is_multiple_of(if mode == RopeMode::Neox { 8 } else { 4 });
        if !head_dim.is_multiple_of(8) || rope.is_some_and(|rope| !pairs(rope)) {
            return Err("heads must be pairs of texels, and what rotates of them whole texels".into());
        }
        let (append, queries) = if let Some(linear) = &op.project {
            if rope.is_some() || n_head != n_head_kv {
                return Err("only queries as wide as keys can be drawn with them, and none that rotate".into());
            }
            if linear.residual || linear.activation != Activation::None {
                return Err("the projection must be a matrix product".into());
            }
            let cache = self.dense(self.output(1)?);
            let draw = Draw::append("linear", Target::Output(1), &cache, At::Position, 1, 1).define("QKV", "");
            let indices: Vec<usize> = (0..end - 2).collect();
            let draw = self.linear_rows(draw.and(Target::Output(2)).and(Target::Beside(1)), linear, &indices)?;
            (draw, Queries { from: Source::Beside(1), cols: n_head * head_dim, at_position: true, rope: None })
        } else {
            let cols = self.input(0)?.shape.cols();
            let rope = rope.map(|(n_dims, mode)| (n_dims, mode, 1));
            (self.kv_append(&op.qkv)?, Queries { from: Source::Input(0), cols, at_position: false, rope })
        };
        let mut kernel = self.attend(&op.attention, queries, [end - 2, end - 1])?;
        kernel.draws.insert(0, append);
        Ok(kernel)
    }

    /// The parameters of `rope_at.glsl`, for heads in rows of `x_cols`.
    pub(super) fn rope(
        &self,
        draw: Draw,
        x_cols: usize,
        head_dim: usize,
        rope: Option<(usize, RopeMode)>,
    ) -> Result<Draw, String> {
        let draw = draw.input("src_x", 0, self.input(0)?).int("x_cols", x_cols).int("head_dim", head_dim);
        match rope {
            Some((n_dims, mode)) => self.rope_table(draw, n_dims, mode, 1),
            None => Ok(draw),
        }
    }

    fn rope_table(&self, draw: Draw, n_dims: usize, mode: RopeMode, at: usize) -> Result<Draw, String> {
        let table = self.input(at)?;
        let draw = draw.define("ROPE", "").int("n_dims", n_dims).int("table_rows", table.shape.rows());
        Ok(draw.define_if(mode == RopeMode::Neox, "NEOX").input("src_table", at, table))
    }

    pub(super) fn qkv_append(&self, op: &QkvAppend) -> Result<Kernel, String> {
        let q = self.rope(self.draw("rope")?, self.input(0)?.shape.cols(), op.head_dim, op.rope)?;
        Ok(Kernel { draws: vec![q, self.kv_append(op)?], scratch: Vec::new() })
    }

    /// Keys and values of the projection that is operand 0, into the caches that are results 1 and 2.
    fn kv_append(&self, op: &QkvAppend) -> Result<Draw, String> {
        let qkv = self.input(0)?;
        let cache = self.dense(self.output(1)?);
        let draw = Draw::append("kv_append", Target::Output(1), &cache, At::Position, 1, qkv.shape.dim(0));
        let draw = self.rope(draw.and(Target::Output(2)), qkv.shape.cols(), op.head_dim, op.rope)?;
        Ok(draw.int("k_start", op.n_head * op.head_dim))
    }
}
