//! From forms to kernels: the only place that knows what this backend can do.

mod attention;
mod elementwise;
mod experts;
mod images;
mod linear;
mod norm;
mod recurrent;
mod solve;
mod sorts;
mod sums;

use crate::dense::Dense;
use crate::gl::WEIGHT_UNIT;
use crate::kernel::{Draw, Kernel, Target};
use crate::{Layout, Tuning};
use backend_api::form::{
    ArgMaxAppend, Chain, Conv, Delta, Embed, Epilogue, ExpertsGlu, ExpertsSum, Linear, NormAdd, NormGate, QkvAppend,
    Scan, SelfAttention,
};
use backend_api::op::{Append, At, GetRows, Index, Masking, Softmax, TopK};
use backend_api::{Cover, DType, Form, Graph, Kind, Matcher, Op, Tensor, TensorId, Unsupported};
use elementwise::Following;

/// Elements of the lists that top-k sorts and merges: as many as it may yield.
const LIST: usize = TopK::MAX;

/// Texture units for dense operands: those before the weights'.
const UNITS: usize = WEIGHT_UNIT as usize;

/// The forms of several nodes that have kernels here.
pub(crate) const MATCHERS: &[Matcher] = &[
    SelfAttention::matcher,
    QkvAppend::matcher,
    Conv::matcher,
    Scan::matcher,
    Delta::matcher,
    NormGate::matcher,
    Epilogue::matcher,
    Linear::matcher,
    ExpertsGlu::matcher,
    ExpertsSum::matcher,
    NormAdd::matcher,
    Embed::matcher,
    ArgMaxAppend::matcher,
    Chain::matcher,
];

/// The kernel of a cover.
///
/// *Errors*: why there is none.
pub(crate) fn lower(graph: &Graph, cover: &Cover, layout: Layout, tuning: &Tuning) -> Result<Kernel, Unsupported> {
    let tensors = |ids: &[TensorId]| ids.iter().map(|id| graph.tensor(*id)).collect::<Vec<_>>();
    let (inputs, outputs) = (tensors(&cover.inputs), tensors(&cover.outputs));
    let (from, to) = (&inputs[..], &outputs[..]);
    let kernel = Lowering { inputs: from, outputs: to, layout, tuning, following: None }.lower(&cover.form);
    // A sampler without a unit of its own would read another operand.
    let kernel = kernel.and_then(|kernel| match kernel.draws.iter().find(|draw| draw.dense.len() > UNITS) {
        Some(draw) => Err(format!("a draw of it has {} operands, and there are units for {UNITS}", draw.dense.len())),
        None => Ok(kernel),
    });
    kernel.map_err(|reason| {
        let list: Vec<String> = inputs.iter().map(|t| t.to_string()).collect();
        Unsupported { op: format!("{}({})", cover.form.name(), list.join(", ")), reason }
    })
}

/// Columns that decoders yield at once.
const GROUP: usize = 32;

const SEVERAL_NORMS: &str = "a norm of several rows is computed once, not for every output";

/// Tells a shader that reads groups whether rows of `k` columns are whole ones.
fn whole_groups(draw: Draw, k: usize) -> Draw {
    draw.define_if(k.is_multiple_of(GROUP), "WHOLE_GROUPS")
}

/// Columns of one row that each fragment looks at by itself, at most.
const LOOKED_AT: usize = 16 << 10;

/// A draw over the rows of `x` that needs two numbers of each whole row. Several rows have a pass of their own for them,
/// `first`; for one row that costs more than having each fragment look at it, unless it is as long as a vocabulary.
fn by_rows(x: &Tensor, names: [&'static str; 2], first: impl FnOnce(usize, usize) -> Draw, last: Draw) -> Kernel {
    let rows = x.shape.rows();
    if rows == 1 && x.shape.cols() <= LOOKED_AT {
        return last.into();
    }
    let first = first(0, rows).and(Target::Scratch(1)).int("cols", x.shape.cols());
    let last = last.define("ROWS", "").scratch(names[0], 0).scratch(names[1], 1);
    Kernel { draws: vec![first, last], scratch: vec![rows; 2] }
}

struct Lowering<'a> {
    inputs: &'a [&'a Tensor],
    outputs: &'a [&'a Tensor],
    layout: Layout,
    tuning: &'a Tuning,
    /// Chain that follows the last result.
    following: Option<Following<'a>>,
}

impl<'a> Lowering<'a> {
    fn input(&self, index: usize) -> Result<&'a Tensor, String> {
        self.inputs.get(index).copied().ok_or_else(|| format!("operand {index} is missing"))
    }

    fn output(&self, index: usize) -> Result<&'a Tensor, String> {
        self.outputs.get(index).copied().ok_or_else(|| format!("result {index} is missing"))
    }

    fn dense(&self, tensor: &Tensor) -> Dense {
        Dense::of(tensor, self.layout)
    }

    /// Whether a tensor is a state that textures hold as words.
    fn as_words(&self, tensor: &Tensor) -> bool {
        matches!(tensor.dtype, DType::Coded(codec) if self.layout.words(codec, tensor.shape.cols()).is_some())
    }

    fn draw(&self, shader: &'static str) -> Result<Draw, String> {
        Ok(Draw::new(shader, Target::Output(0), &self.dense(self.output(0)?)))
    }

    fn lower(&self, form: &Form) -> Result<Kernel, String> {
        match form {
            Form::Op(op) => self.primitive(op),
            Form::Conv(op) => self.conv(op),
            Form::Delta(op) => self.delta(op),
            Form::NormGate(op) => self.norm_heads(&op.norm, Some(op)),
            Form::Scan(op) => self.scan(op, op.places(self.inputs.len())),
            Form::Epilogue(op) => {
                let (inputs, following) = Following::of(op, self.inputs);
                Lowering { inputs, following: Some(following), ..*self }.lower(&op.head)
            }
            Form::Linear(op) => self.linear(op),
            Form::NormAdd(op) if op.norm.heads != 1 => Err("norms of heads are drawn in passes of their own".into()),
            Form::NormAdd(op) => self.norm(&op.norm),
            Form::QkvAppend(op) => self.qkv_append(op),
            Form::SelfAttention(op) => self.self_attention(op),
            Form::ExpertsGlu(op) => self.experts_glu(op),
            Form::ExpertsSum(op) => self.experts_sum(op),
            Form::Embed(_) => {
                let (table, ids, positions) = (self.input(0)?, self.input(1)?, self.input(2)?);
                let draw = self.draw("embed")?.packed(0, table)?.packed(2, positions)?.input("src_ids", 1, ids);
                let draw = draw.int("n_ctx", ids.shape.len()).int("table_rows", table.shape.rows());
                Ok(draw.int("position_rows", positions.shape.rows()).into())
            }
            Form::ArgMaxAppend(_) => {
                let history = self.dense(self.input(0)?);
                let draw = Draw::append("argmax", Target::Output(0), &history, At::Next, 1, 1);
                self.argmax(draw, 1)
            }
            Form::Chain(op) => self.chain(op),
            Form::LinearQkv(_) | Form::AttentionLinear(_) | Form::NormAddLinear(_) => {
                Err("its parts are drawn one after the other".into())
            }
        }
    }

    fn primitive(&self, op: &Op) -> Result<Kernel, String> {
        match op {
            Op::GetRows(op) => self.get_rows(op),
            Op::MatMul(_) => self.matmul(),
            Op::Norm(op) => self.norm(op),
            Op::Softmax(op) => self.softmax(op),
            Op::Rope(op) => {
                let cols = self.input(0)?.shape.cols();
                let rope = Some((op.n_dims, op.mode, 1));
                self.rope(self.draw("rope")?, cols, cols / op.n_head, rope).map(Kernel::from)
            }
            Op::Append(op) => self.append(op),
            Op::ArgMax(_) => self.argmax(self.draw("argmax")?, 0),
            Op::TopK(op) => self.top_k(op),
            Op::Penalize(_) => {
                let (logits, history) = (self.input(0)?, self.input(1)?);
                let draw = self.draw("penalize")?.int("rows", logits.shape.rows()).int("n_ctx", history.shape.len());
                let draw = draw.input("src_logits", 0, logits).input("src_history", 1, history);
                Ok(draw.input("src_bias", 2, self.input(2)?).input("src_penalties", 3, self.input(3)?).into())
            }
            Op::Pick(_) => {
                let (x, ids) = (self.input(0)?, self.input(1)?);
                let draw = self.draw("pick")?.int("cols", x.shape.cols()).int("ids_cols", self.dense(ids).cols);
                Ok(draw.input("src_x", 0, x).input("src_ids", 1, ids).into())
            }
            Op::Sample(_) => {
                let (values, ids) = (self.input(0)?, self.input(1)?);
                let draw = self.draw("sample")?.int("k", values.shape.cols()).int("rows", values.shape.rows());
                let draw = draw.input("src_values", 0, values).input("src_ids", 1, ids);
                Ok(match self.inputs.get(2) {
                    Some(penalties) => draw.define("MIN_P", "").input("src_penalties", 2, penalties),
                    None => draw,
                }
                .into())
            }
            Op::Attention(op) => self.attention(op),
            Op::ShortConv(_) => self.short_conv(),
            Op::Route(op) => self.route(op),
            Op::MatMulId(op) => self.matmul_id(op),
            Op::WeightedSum(_) => self.weighted_sum(),
            Op::SsmScan(_) => self.ssm_scan(),
            Op::GatedDeltaNet(op) => self.gated_delta_net(op),

            Op::Resize(op) => self.resize(op),
            Op::Im2Col(op) => self.im2col(op),
            Op::Conv2d(op) => self.conv2d(op),
            Op::SolveTriangular(_) => self.solve_triangular(),
            Op::Sum(_) => self.sum(),
            Op::Cumsum(_) => self.cumsum(),
            Op::Argsort(op) => self.argsort(op),
            // It refuses what is not.
            _ => self.chain(&Chain::of(op, self.inputs, self.output(0)?)),
        }
    }

    fn get_rows(&self, op: &GetRows) -> Result<Kernel, String> {
        let table = self.input(0)?;
        let mut draw = self.draw("get_rows")?.int("table_rows", table.shape.rows());
        draw = match table.dtype {
            DType::Packed(_) => draw.define("TABLE_PACKED", "").packed(0, table)?,
            DType::F32 | DType::I32 | DType::Coded(_) => draw.input("src_table", 0, table),
        };
        Ok(match op.index {
            Index::Ids => {
                let ids = self.input(1)?;
                let cols = self.dense(ids).cols;
                draw.define("IDS", "").input("src_ids", 1, ids).int("ids_cols", cols)
            }
            Index::Tokens { .. } => {
                let history = self.input(1)?;
                draw.define("TOKENS", "").input("src_ids", 1, history).int("n_ctx", history.shape.len())
            }
            Index::Positions { .. } => draw.define("POSITIONS", ""),
            Index::First => draw.define("FIRST", ""),
            Index::Last => draw.define("LAST", ""),
        }
        .into())
    }

    fn masking(draw: Draw, masking: &Masking, scale: f32, softcap: f32, queries: usize) -> Draw {
        let flags = [("causal", masking.causal), ("cached", masking.cached)];
        let draw = flags.into_iter().fold(draw, |d, (name, on)| d.int(name, usize::from(on)));
        draw.int("window", masking.window as usize)
            .float("scale", scale)
            .float("softcap", softcap)
            .int("queries", queries)
    }

    fn softmax(&self, op: &Softmax) -> Result<Kernel, String> {
        let x = self.input(0)?;
        let [_, heads, m, _] = x.shape.dims4();
        let sinks = op.sinks_at().map(|at| Ok::<_, String>((at, self.input(at)?))).transpose()?;
        let mask = if op.masking.explicit { Some(self.input(1)?) } else { None };
        let scores = |draw: Draw| {
            let draw = Self::masking(draw, &op.masking, op.scale, op.softcap, m).input("src_x", 0, x);
            let draw = match mask {
                Some(mask) => draw.define("EXPLICIT", "").input("src_mask", 1, mask),
                None => draw,
            };
            match sinks {
                Some((at, sinks)) => draw.define("SINKS", "").int("heads", heads).input("src_sinks", at, sinks),
                None => draw,
            }
        };
        Ok(by_rows(
            x,
            ["src_largest", "src_factor"],
            |to, count| scores(Draw::raw("softmax_rows", to, count)),
            scores(self.draw("softmax")?),
        ))
    }

    fn append(&self, op: &Append) -> Result<Kernel, String> {
        let (state, x) = (self.input(0)?, self.input(1)?);
        let (to, from) = (self.dense(state), self.dense(x));
        let blocks = self.as_words(state);
        if !blocks && (to.cols != from.cols || to.host_cols() != to.cols) {
            return Err("a state of single floats cannot be written in part; give it the shape [n, 1]".into());
        }
        let unit = to.rows / state.shape.dim(0);
        let draw = Draw::append("append", Target::Output(0), &to, op.at, unit, x.shape.dim(0));
        Ok(draw.int("x_cols", from.cols).codec(self.layout, state, &["rows"]).input("src_x", 1, x).into())
    }

    /// Two passes over operand `x`; `last` is the second one's draw.
    fn argmax(&self, last: Draw, x: usize) -> Result<Kernel, String> {
        let tensor = self.input(x)?;
        let (rows, cols) = (tensor.shape.rows(), tensor.shape.cols());
        let chunk = cols.isqrt().max(8).next_multiple_of(4);
        let chunks = cols.div_ceil(chunk);
        let first = Draw::raw("argmax_chunks", 0, rows * chunks).int("cols", cols).int("chunk", chunk);
        let first = first.int("chunks", chunks).input("src_x", x, tensor);
        let last = last.int("cols", cols).int("chunks", chunks).input("src_x", x, tensor).scratch("src_chunks", 0);
        Ok(Kernel { draws: vec![first, last], scratch: vec![rows * chunks] })
    }

    fn top_k(&self, op: &TopK) -> Result<Kernel, String> {
        let x = self.input(0)?;
        if op.k > LIST {
            return Err(format!("lists hold {LIST} candidates, not {}", op.k));
        }
        let (rows, cols) = (x.shape.rows(), x.shape.cols());
        let mut lists = cols.div_ceil(LIST);
        let common = |draw: Draw| draw.input("src_x", 0, x).int("cols", cols).int("list", LIST);
        let mut scratch = vec![rows * cols, rows * lists * LIST];
        let mut draws = vec![common(Draw::raw("top_k_rank", 0, rows * cols))];
        let sort = Draw::raw("top_k_sort", 1, rows * lists * LIST).int("cols", cols).int("list", LIST);
        draws.push(sort.int("lists", lists).scratch("src_ranks", 0));
        let (mut from, mut to) = (1, 0);
        while lists > 1 {
            let merged = rows * lists.div_ceil(2) * LIST;
            let merge = common(Draw::raw("top_k_merge", to, merged)).int("lists", lists);
            draws.push(merge.scratch("src_lists", from));
            scratch[to] = scratch[to].max(merged);
            lists = lists.div_ceil(2);
            (from, to) = (to, from);
        }
        // Drawn together, they must be of one size. A slot may be larger than a storage, and ids of a vector are rows.
        let outs = [self.dense(self.output(0)?), self.dense(self.output(1)?)];
        let is_slot = |i: usize| Ok::<bool, String>(self.output(i)?.kind == Kind::Temporary);
        let apart = is_slot(0)? != is_slot(1)? || outs[0].texels() != outs[1].texels();
        let (first, second) =
            if apart { (Target::Scratch(2), Target::Scratch(3)) } else { (Target::Output(0), Target::Output(1)) };
        draws.push(common(Draw::new("top_k", first, &outs[0]).and(second)).scratch("src_lists", from));
        if apart {
            scratch.extend([outs[0].texels(); 2]);
            draws.extend([0, 1].map(|i| {
                let copy = Draw::new("copy", Target::Output(i), &outs[i]).scratch("src_x", 2 + i);
                copy.int("x_cols", outs[0].cols)
            }));
        }
        Ok(Kernel { draws, scratch })
    }
}
