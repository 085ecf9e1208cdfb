//! Attention, and what comes between the projection and it.

use super::Lowering;
use crate::dense::Dense;
use crate::kernel::{Draw, Kernel, Source, Target};
use backend_api::form::{Activation, QkNorm, QkvAppend, SelfAttention};
use backend_api::op::{At, Attention, RopeMode};
use backend_api::{DType, Shape};

/// Channels of a line of 32 texels: heads of a part of it lie in one.
const HEAD_IN_LINE: usize = 128;

/// The scratch texture of the factors of heads, beside that of the scores.
const FACTORS: usize = 1;
/// That of rows of keys that are still to be encoded; the values' is the next.
const ROWS: usize = 2;

/// The queries of attention.
struct Queries {
    from: Source,
    /// Columns of their rows, of which theirs are the first.
    cols: usize,
    /// Whether they lie in the rows from the step's position on.
    at_position: bool,
    /// How they are still to be rotated: channels, pairing, and the operand that is the table.
    rope: Option<(usize, RopeMode, usize)>,
    /// How they are still to be normed: the norm, the scratch texture of factors, how many of them each row has, and
    /// the operand that is gamma.
    norm: Option<(QkNorm, usize, usize, usize)>,
}

/// The factors of a row whose queries and keys, and perhaps values, are normed: one for each head, or one for all queries
/// and one for all keys.
fn normed_heads(op: &QkvAppend) -> usize {
    match op.norm {
        Some(QkNorm { whole: true, .. }) => 2,
        Some(QkNorm { values: true, .. }) => op.n_head + 2 * op.n_head_kv,
        _ => op.n_head + op.n_head_kv,
    }
}

impl Lowering<'_> {
    pub(super) fn attention(&self, op: &Attention) -> Result<Kernel, String> {
        let cols = self.input(0)?.shape.cols();
        let queries = Queries { from: Source::Input(0), cols, at_position: false, rope: None, norm: None };
        self.attend(op, queries, [1, 2], op.sinks_at())
    }

    /// Attention of some queries to the operands that are keys and values, perhaps with sinks.
    fn attend(
        &self,
        op: &Attention,
        queries: Queries,
        [k_at, v_at]: [usize; 2],
        sinks: Option<usize>,
    ) -> Result<Kernel, String> {
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
        first = first.codec(self.layout, k, &["src_k"]);
        if op.masking.explicit {
            first = first.define("EXPLICIT", "").int("mask_rows", op.mask_rows(self.inputs));
            first = first.input("src_mask", 3, self.input(3)?);
        }
        if let Some((heads, ratio)) = op.slopes() {
            first = first.define("SLOPES", "").float("slope_heads", heads as f32).float("slope_ratio", ratio);
        }
        if let Some((n_dims, mode, table)) = queries.rope {
            first = self.rope_table(first, n_dims, mode, table)?.define_if(n_dims < d, "ROPE_PART");
        }
        if let Some((norm, factors, heads, gamma)) = queries.norm {
            first = first.define("NORM", "").define_if(norm.whole, "NORM_WHOLE").int("normed_heads", heads);
            first = first.scratch("src_factors", factors);
            first = first.input("src_gamma", gamma, self.input(gamma)?);
        }
        let mut second = common(self.draw("attention")?).int("head_dim", dv).int("keys", n);
        second = second.define_if(dv.is_multiple_of(4), "ALIGNED").scratch("src_scores", 0).input("src_v", v_at, v);
        second = second.codec(self.layout, v, &["src_v"]).define_if(op.masking.explicit, "EXPLICIT");
        if let Some(at) = sinks {
            second = second.define("SINKS", "").input("src_sinks", at, self.input(at)?);
        }
        Ok(Kernel { draws: vec![first, second], scratch: vec![scores.texels()] })
    }

    /// One step of decoding: the caches' new rows, then attention with queries that are rotated where they are read.
    pub(super) fn self_attention(&self, op: &SelfAttention) -> Result<Kernel, String> {
        let end = self.inputs.len() - usize::from(op.attention.sinks);
        let QkvAppend { n_head, n_head_kv, head_dim, rope, norm } = op.qkv;
        if self.input(0)?.shape.rows() > 1 {
            return Err("queries of several rows are rotated once, not for every key".into());
        }
        let pairs = |(n, mode): (usize, RopeMode)| n.is_multiple_of(if mode == RopeMode::Neox { 8 } else { 4 });
        if !head_dim.is_multiple_of(8) || rope.is_some_and(|rope| !pairs(rope)) {
            return Err("heads must be pairs of texels, and what rotates of them whole texels".into());
        }
        let mut extra = Vec::new();
        let (append, queries) = if let Some(linear) = &op.project {
            if rope.is_some() || norm.is_some() || n_head != n_head_kv {
                return Err("only queries as wide as keys can be drawn with them, and none that turn".into());
            }
            if self.as_words(self.output(1)?) {
                return Err("blocks are encoded from whole heads, which must be projected first".into());
            }
            if linear.residual || linear.activation != Activation::None {
                return Err("the projection must be a matrix product".into());
            }
            let cache = self.dense(self.output(1)?);
            let draw = Draw::append("linear", Target::Output(1), &cache, At::Position, 1, 1).define("QKV", "");
            let indices: Vec<usize> = (0..end - 2).collect();
            let draw = self.linear_rows(draw.and(Target::Output(2)).and(Target::Beside(1)), linear, &indices)?;
            let (from, cols) = (Source::Beside(1), n_head * head_dim);
            (vec![draw], Queries { from, cols, at_position: true, rope: None, norm: None })
        } else {
            let cols = self.input(0)?.shape.cols();
            let rope = rope.zip(op.qkv.table()).map(|((n_dims, mode), table)| (n_dims, mode, table));
            let mut draws: Vec<Draw> = self.head_factors(&op.qkv, FACTORS)?.into_iter().collect();
            let (appends, rows) = self.kv_append(&op.qkv, [FACTORS, ROWS])?;
            draws.extend(appends);
            extra = rows;
            let norm =
                norm.zip(op.qkv.gammas()).map(|(norm, [gamma, _])| (norm, FACTORS, normed_heads(&op.qkv), gamma));
            (draws, Queries { from: Source::Input(0), cols, at_position: false, rope, norm })
        };
        let mut kernel = self.attend(&op.attention, queries, [end - 2, end - 1], op.attention.sinks.then_some(end))?;
        kernel.draws.splice(..0, append);
        if norm.is_some() || !extra.is_empty() {
            kernel.scratch.push(if norm.is_some() { normed_heads(&op.qkv) } else { 1 });
            kernel.scratch.extend(extra);
        }
        Ok(kernel)
    }

    /// The parameters of `rope_at.glsl`, for heads in rows of `x_cols`; `rope` has the operand that is the table.
    pub(super) fn rope(
        &self,
        draw: Draw,
        x_cols: usize,
        head_dim: usize,
        rope: Option<(usize, RopeMode, usize)>,
    ) -> Result<Draw, String> {
        let draw = draw.input("src_x", 0, self.input(0)?).int("x_cols", x_cols).int("head_dim", head_dim);
        match rope {
            Some((n_dims, mode, table)) => self.rope_table(draw, n_dims, mode, table),
            None => Ok(draw),
        }
    }

    fn rope_table(&self, draw: Draw, n_dims: usize, mode: RopeMode, at: usize) -> Result<Draw, String> {
        let table = self.input(at)?;
        let draw = draw.define("ROPE", "").int("n_dims", n_dims).int("table_rows", table.shape.rows());
        Ok(draw.define_if(mode == RopeMode::Neox, "NEOX").input("src_table", at, table))
    }

    pub(super) fn qkv_append(&self, op: &QkvAppend) -> Result<Kernel, String> {
        let factors = self.head_factors(op, 0)?;
        let q = self.turned(self.draw("rope")?, op, 0, 0)?;
        let (appends, rows) = self.kv_append(op, [0, 1])?;
        let scratch = match (&factors, rows.is_empty()) {
            (None, true) => Vec::new(),
            (None, false) => [vec![1], rows].concat(),
            (Some(_), _) => [vec![self.input(0)?.shape.dim(0) * normed_heads(op)], rows].concat(),
        };
        Ok(Kernel { draws: factors.into_iter().chain([q]).chain(appends).collect(), scratch })
    }

    /// Draws the factors of the heads of Q and K into a scratch texture, if they are normed.
    fn head_factors(&self, op: &QkvAppend, to: usize) -> Result<Option<Draw>, String> {
        let Some(norm) = op.norm else { return Ok(None) };
        let (x, heads) = (self.input(0)?, normed_heads(op));
        let draw = Draw::raw("head_factors", to, x.shape.dim(0) * heads).input("src_x", 0, x).float("eps", norm.eps);
        let draw = draw.int("x_cols", x.shape.cols()).int("normed_heads", heads);
        Ok(Some(if norm.whole {
            let draw = draw.define("NORM_WHOLE", "").int("q_width", op.n_head * op.head_dim);
            draw.int("k_width", op.n_head_kv * op.head_dim)
        } else {
            draw.int("head_dim", op.head_dim)
        }))
    }

    /// A draw that norms and rotates heads of the projection that is operand 0: those of Q (0) or of K (1).
    fn turned(&self, draw: Draw, op: &QkvAppend, which: usize, factors: usize) -> Result<Draw, String> {
        let rope = op.rope.zip(op.table()).map(|((n_dims, mode), table)| (n_dims, mode, table));
        let draw = self.rope(draw, self.input(0)?.shape.cols(), op.head_dim, rope)?;
        let Some((norm, gammas)) = op.norm.zip(op.gammas()) else { return Ok(draw) };
        let mut draw = draw.define("NORM", "").int("normed_heads", normed_heads(op));
        if norm.whole {
            draw = draw.define("NORM_WHOLE", "").int("normed_part", which);
            draw = draw.int("normed_start", which * op.n_head * op.head_dim);
        }
        Ok(draw.scratch("src_factors", factors).input("src_gamma", gammas[which], self.input(gammas[which])?))
    }

    /// Keys and values of the projection that is operand 0, into the caches that are results 1 and 2, and the texels of the
    /// scratch textures that this takes from `rows` on.
    fn kv_append(&self, op: &QkvAppend, [factors, rows]: [usize; 2]) -> Result<(Vec<Draw>, Vec<usize>), String> {
        let (t, cols) = (self.input(0)?.shape.dim(0), op.n_head_kv * op.head_dim);
        let (state, k_start) = (self.output(1)?, op.n_head * op.head_dim);
        let cache = self.dense(state);
        if !self.as_words(state) {
            return self.kv_draw(op, &cache, factors);
        }
        let shape = Shape::new(&[t, cols]).map_err(|e| e.to_string())?;
        let plain = Dense::new(&shape, DType::F32, self.layout);
        let first = Draw::new("kv_append", Target::Scratch(rows), &plain).and(Target::Scratch(rows + 1));
        let first = self.normed_values(self.turned(first, op, 1, factors)?, op)?;
        let mut draws = vec![first.int("k_start", k_start)];
        for which in [0, 1] {
            let draw = Draw::append("append", Target::Output(1 + which), &cache, At::Position, 1, t);
            draws.push(draw.int("x_cols", cols).codec(self.layout, state, &["rows"]).scratch("src_x", rows + which));
        }
        Ok((draws, vec![plain.texels(); 2]))
    }

    /// Adds the norm of the heads of V to a draw, if the form has it.
    fn normed_values(&self, draw: Draw, op: &QkvAppend) -> Result<Draw, String> {
        match op.v_gamma() {
            Some(gamma) => Ok(draw.define("NORM_VALUES", "").input("src_v_gamma", gamma, self.input(gamma)?)),
            None => Ok(draw),
        }
    }

    /// The draw into both caches at once.
    fn kv_draw(&self, op: &QkvAppend, cache: &Dense, factors: usize) -> Result<(Vec<Draw>, Vec<usize>), String> {
        let draw = Draw::append("kv_append", Target::Output(1), cache, At::Position, 1, self.input(0)?.shape.dim(0));
        let draw = self.normed_values(self.turned(draw.and(Target::Output(2)), op, 1, factors)?, op)?;
        Ok((vec![draw.int("k_start", op.n_head * op.head_dim)], Vec::new()))
    }
}
