//! Kernels of steps of one token or a few: the projection to Q, K and V that fills the caches itself, and attention
//! whose keys are cut into parts, joined by the projection that follows.

use super::linear::{Batch, CHUNK, ROW_AT, Share, Source, lower, normed, of_ready, ready, ready_quads, staged};
use super::rowwise::{masked, sloped, sunk};
use super::tokens::put;
use super::{Node, grid, literal};
use crate::kernel::{Kernel, MAX_BINDINGS, Operand, quads_type, row_type, written_together};
use crate::storage::chunks;
use crate::tuning::Tuning;
use backend_api::form::{AttentionLinear, LinearQkv};
use backend_api::format::GROUP;
use backend_api::op::{Attention, RopeMode};
use backend_api::{DType, Shape};

/// Numbers of a row from which on it is joined once, not by each workgroup that multiplies it: those take longer then than
/// another dispatch. A shorter one is all in the memory of a workgroup.
const JOINED_ONCE: usize = 1024;
const _: () = assert!(JOINED_ONCE <= CHUNK * GROUP);

type Kernels = Result<Vec<Kernel>, String>;

pub fn linear_qkv(op: &LinearQkv, node: &Node<'_>) -> Kernels {
    let x = node.inputs[0];
    let (qkv, places) = (&op.qkv, (0..op.linear_operands()).collect::<Vec<_>>());
    let o = op.linear.operands(&places).ok_or("the number of operands does not fit")?;
    let w = node.inputs[*o.w];
    let (k, n) = (x.shape.cols(), w.shape.dim(0));
    let rows = x.shape.rows();
    if !node.is_few(rows) {
        return Err("several rows are multiplied first and taken apart after".into());
    }
    if written_together(node.outputs[1]) > 2 {
        return Err("blocks are encoded from whole heads, not from pairs of products".into());
    }
    if qkv.norm.is_some() {
        return Err("a norm of whole heads needs all their products first".into());
    }
    if !qkv.head_dim.is_multiple_of(2) {
        return Err("heads of an odd width have channels without a pair".into());
    }
    let together = |n_dims: usize| n_dims.is_multiple_of(4) && qkv.head_dim.is_multiple_of(4);
    let apart = qkv.rope.is_some_and(|(n_dims, mode)| mode == RopeMode::Neox && !together(n_dims));
    if apart && matches!(node.outputs[1].dtype, DType::Coded(_)) {
        return Err("halves that share a word must be in pairs beside each other".into());
    }
    let all = chunks(w.dtype, &w.shape, &node.limits).map_err(|e| e.to_string())?;
    let [weights] = all.as_slice() else {
        return Err("the weights lie in several bindings".into());
    };
    let of_row = Share::of_pairs(k, n / 2, &node.tuning);
    let share = of_row.of_rows(rows, n / 2, node);
    let mut kernel = share
        .kernel("linear_qkv", share.grid(n / 2), node)
        .flag("VEC4", k.is_multiple_of(4) && rows == 1)
        .flag("BIAS", op.linear.bias)
        .u("k", k)
        .u("pairs", n / 2);
    let (norm, bind) = (op.linear.norm.as_ref(), |kernel: Kernel| kernel.bind("x", row_type(k), Operand::Input(0), x));
    let mut kernels = Vec::new();
    if rows > 1 {
        kernels.push(ready([rows, k], of_row.wg, &bind, norm, o.norm, node));
        kernel = of_ready(kernel, 0, [rows, k]).table("w", *o.w, w, weights);
    } else {
        kernel = staged(bind(kernel).table("w", *o.w, w, weights), [n, k], norm.is_some(), node);
        kernel = normed(kernel, norm, o.norm, node);
    }
    if let Some(place) = o.bias {
        kernel = kernel.input("bias", *place, node.inputs[*place]);
    }
    if let Some((n_dims, mode)) = qkv.rope {
        let place = op.linear_operands();
        let table = node.inputs[place];
        kernel = kernel
            .flag("ROPE", true)
            .flag("NEOX", mode == RopeMode::Neox)
            .u("n_dims", n_dims)
            .u("head_dim", qkv.head_dim)
            .u("table_rows", table.shape.dim(0))
            .input("table", place, table);
    }
    kernel = put(kernel, node)?;
    if kernel.bindings.len() > MAX_BINDINGS {
        return Err(format!("it needs {} storage bindings, and devices have {MAX_BINDINGS}", kernel.bindings.len()));
    }
    kernels.push(kernel);
    Ok(kernels)
}

/// Attention of one query or a few in parts, and how its result is read.
struct Parts<'a> {
    attention: &'a Attention,
    tuning: Tuning,
    queries: usize,
    /// Keys.
    n: usize,
    /// Vectors of four of a head of K and of V.
    d4: usize,
    values: usize,
}

impl Parts<'_> {
    /// Vectors of four of a row that they are joined to.
    fn row(&self) -> usize {
        self.attention.n_head * self.values
    }

    /// Those of the sums and the shares of all heads and parts, before the rows.
    fn before(&self) -> usize {
        self.queries * self.attention.n_head * self.tuning.splits * (self.values + 1)
    }

    /// Those of the memory that all of it takes.
    fn quads(&self) -> usize {
        let rows = if self.queries > 1 { ready_quads(self.queries, self.row() * 4) } else { self.row() };
        self.before() + rows
    }

    /// Invocations of a workgroup that joins a row for itself, unless a dispatch of its own does.
    fn joining(&self) -> Option<usize> {
        (self.row() * 4 < JOINED_ONCE).then_some(self.tuning.parts_wg)
    }

    fn join(&self, node: &Node<'_>) -> Kernel {
        let (few, groups) = (self.queries > 1, (self.row() * 4).div_ceil(GROUP));
        let quads = if few { self.queries * 8 * groups } else { self.row() };
        let mut kernel = self.common(node.elementwise("attention_join", quads)).word(ROW_AT, literal(self.before()));
        if few {
            kernel = kernel.rows(self.queries).u("w_groups", groups);
        }
        sunk(kernel.scratch("parts", true, self.quads()), self.attention.sinks_at(), node)
    }

    fn common(&self, kernel: Kernel) -> Kernel {
        let (a, tuning) = (self.attention, &self.tuning);
        masked(kernel, &a.masking, a.scale, a.softcap, self.queries, self.n)
            .word("QUERIES", literal(self.queries))
            .word("HEADS", literal(a.n_head))
            .word("SPLITS", literal(tuning.splits))
            .word("SPLIT_KEYS", literal(tuning.split_keys))
            .word("VALUES", literal(self.values))
            .word("JOIN", literal(tuning.split_join))
    }

    fn score(&self, node: &Node<'_>) -> Kernel {
        let tuning = &self.tuning;
        let wg = tuning.split_keys * tuning.split_share;
        // There are as many keys as parts of them at least.
        let channels = self.values.next_power_of_two().clamp(tuning.split_share, wg);
        let rounds = channels / tuning.split_share;
        // Most parts of a short text are empty, and starting a workgroup takes time, too.
        let heads = self.queries * self.attention.n_head;
        let sharers = tuning.splits.min(tuning.split_groups.div_ceil(heads).next_power_of_two());
        let [keys, values] = [1, 2].map(|i| matches!(node.inputs[i].dtype, DType::Coded(_)));
        let kernel = node
            .reducing("attention_split", grid(self.queries * self.attention.n_head * sharers), wg)
            .word("SHARERS", literal(sharers))
            // Each invocation can hold all its values: one channel of a few keys.
            .flag("EARLY", self.values <= channels && rounds <= tuning.split_early)
            .word("SHARE", literal(tuning.split_share))
            .keys_and_values(node.inputs[1], node.inputs[2])
            .word("KEY_QUADS", literal(node.inputs[1].shape.cols() / 4))
            .word("VALUE_QUADS", literal(node.inputs[2].shape.cols() / 4))
            .flag("VEC4", keys)
            .flag("VALUES4", values)
            .word("KEY", "vec4<f32>")
            .word("VALUE", "vec4<f32>")
            .word("D4", literal(self.d4))
            .word("CHANNELS", literal(channels))
            .word("PER", literal(self.values.div_ceil(channels)))
            .u("n_head_kv", self.attention.n_head_kv);
        let mut kernel = sloped(self.common(kernel), self.attention);
        for (index, name) in ["q", "k", "v"].into_iter().enumerate() {
            kernel = kernel.bind(name, quads_type(node.inputs[index]), Operand::Input(index), node.inputs[index]);
        }
        kernel.scratch("parts", true, self.quads())
    }
}

pub fn attention_linear(op: &AttentionLinear, node: &Node<'_>) -> Kernels {
    let attention = &op.attention;
    let (q, k) = (node.inputs[0], node.inputs[1]);
    let (d, dv) = attention.head_dims(node.inputs);
    let queries = q.shape.dim(0);
    if !node.is_few(queries) || attention.masking.explicit {
        return Err("keys are cut into parts for one query, without a mask".into());
    }
    if !d.is_multiple_of(4) || !dv.is_multiple_of(4) {
        return Err(format!("heads of {d} and {dv} channels are not multiples of 4"));
    }
    let parts = Parts { attention, tuning: node.tuning, queries, n: node.capacity(k), d4: d / 4, values: dv / 4 };
    // A workgroup's memory has no room for several rows.
    let once = queries > 1 || parts.joining().is_none();
    let bind = |kernel: Kernel| {
        if once {
            return kernel.word(ROW_AT, literal(parts.before())).scratch("x", false, parts.quads());
        }
        let kernel = parts.common(kernel).flag("PARTS", true).scratch("parts", false, parts.quads());
        sunk(kernel, attention.sinks_at(), node)
    };
    let front = op.attention_operands();
    let source = Source {
        shape: Shape::new(&[queries, attention.n_head * dv]).map_err(|e| e.to_string())?,
        bind: &bind,
        wg: parts.joining(),
        ready: (queries > 1).then(|| parts.before()),
        places: std::iter::once(0).chain(front..node.inputs.len()).collect(),
    };
    let mut kernels = vec![parts.score(node)];
    kernels.extend(once.then(|| parts.join(node)));
    kernels.extend(lower(&op.linear, node, &source, &Batch::ONE)?);
    Ok(kernels)
}
