//! `qkv_append`: splits the fused projection into Q, K and V, norms the heads of Q and K, and perhaps of V, rotates those of
//! Q and K, and appends K and V to their caches.
//!
//! *Operands*: qkv `[t, (n_head + 2 * n_head_kv) * head_dim]`; with `norm` the gamma of Q and that of K, `[head_dim]`
//! or as long as all heads, and that of V if it is normed; with `rope` the table `[n_ctx, n_dims]`; K cache and V cache, states `[n_ctx, n_head_kv *
//! head_dim]`.
//! *Results*: q `[t, n_head * head_dim]`; the K cache; the V cache.

use super::found::Found;
use super::linear::slices_of;
use crate::error::Error;
use crate::graph::{Graph, TensorId};
use crate::links::Links;
use crate::op::{Append, At, Norm, NormKind, Op, Rope, RopeMode, Slice};

/// An RMS norm of Q and K, and perhaps of V.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QkNorm {
    /// Added under the root.
    pub eps: f32,
    /// Whether all heads of a row are normed at once, rather than each by itself.
    pub whole: bool,
    /// Whether heads of V are normed, too. Not where all heads of a row are normed at once.
    pub values: bool,
}

/// See the [module page](self).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QkvAppend {
    /// Query heads.
    pub n_head: usize,
    /// Key and value heads.
    pub n_head_kv: usize,
    /// Channels of a head.
    pub head_dim: usize,
    /// The norm of Q and K, if there is one.
    pub norm: Option<QkNorm>,
    /// Rotating channels and pairing; none for models with learned positions.
    pub rope: Option<(usize, RopeMode)>,
}

impl QkvAppend {
    /// The places of the gammas of Q and K among the operands, if there is a norm.
    pub fn gammas(&self) -> Option<[usize; 2]> {
        self.norm.map(|_| [1, 2])
    }

    /// The place of the gamma of V, if that is normed.
    pub fn v_gamma(&self) -> Option<usize> {
        self.norm.filter(|norm| norm.values).map(|_| 3)
    }

    fn gamma_count(&self) -> usize {
        2 * usize::from(self.norm.is_some()) + usize::from(self.v_gamma().is_some())
    }

    /// The place of the table among the operands, if there is a rotation.
    pub fn table(&self) -> Option<usize> {
        self.rope.map(|_| 1 + self.gamma_count())
    }

    /// How many operands follow the first.
    pub fn rest(&self) -> usize {
        2 + self.gamma_count() + usize::from(self.rope.is_some())
    }

    /// The one that begins at the slice which takes the queries, if there is one.
    pub fn find(links: &Links<'_>, at: usize) -> Option<Found<QkvAppend>> {
        let node = links.node(at);
        match (&node.op, node.inputs.as_slice()) {
            (Op::Slice(Slice { start: 0, .. }), [qkv]) => QkvAppend::of(links, *qkv),
            _ => None,
        }
    }

    /// The one that takes a projection apart.
    pub(super) fn of(links: &Links<'_>, qkv: TensorId) -> Option<Found<QkvAppend>> {
        let slices = slices_of(links, qkv)?;
        let [(q_at, mut q), (k_at, mut k), (v_at, mut v)] = *slices.as_slice() else { return None };
        let cols = |id: TensorId| links.tensor(id).shape.cols();
        if cols(k) != cols(v) || links.tensor(qkv).shape.rank() != 2 {
            return None;
        }
        let mut nodes = vec![q_at, k_at, v_at];
        let (mut rope, mut table, mut heads) = (None, None, None);
        let (mut normed, mut gammas) = (None, Vec::new());
        if let Some((q_at, q_norm, q_gamma, q_out)) = norm_of(links, q) {
            let (k_at, k_norm, k_gamma, k_out) = norm_of(links, k)?;
            if q_norm.eps != k_norm.eps {
                return None;
            }
            normed = Some((q_norm.eps, (q_norm.heads, k_norm.heads)));
            gammas = vec![q_gamma, k_gamma];
            (q, k) = (q_out, k_out);
            nodes.extend([q_at, k_at]);
            if let Some((v_at, v_norm, v_gamma, v_out)) = norm_of(links, v) {
                if (v_norm.eps, v_norm.heads) != (k_norm.eps, k_norm.heads) {
                    return None;
                }
                gammas.push(v_gamma);
                v = v_out;
                nodes.push(v_at);
            }
        }
        if let Some((q_at, q_rope, q_table, q_out)) = rope_of(links, q) {
            let (k_at, k_rope, k_table, k_out) = rope_of(links, k)?;
            if (q_rope.n_dims, q_rope.mode, q_table) != (k_rope.n_dims, k_rope.mode, k_table) {
                return None;
            }
            heads = Some((q_rope.n_head, k_rope.n_head));
            rope = Some((q_rope.n_dims, q_rope.mode));
            table = Some(q_table);
            (q, k) = (q_out, k_out);
            nodes.extend([q_at, k_at]);
        }
        // Without rotation attention knows the heads, or norms do, and without them any split will do.
        let attended = || match links.only_user(q)?.1.op {
            Op::Attention(op) => Some((op.n_head, op.n_head_kv)),
            _ => None,
        };
        let heads = heads.or_else(attended).or(normed.map(|(_, heads)| heads)).unwrap_or((cols(q) / cols(k), 1));
        let norm = match normed {
            None => None,
            Some((eps, each)) if each == heads => Some(QkNorm { eps, whole: false, values: gammas.len() == 3 }),
            Some((eps, (1, 1))) if gammas.len() == 2 => Some(QkNorm { eps, whole: true, values: false }),
            Some(_) => return None,
        };
        let (n_head, n_head_kv) = heads;
        let head_dim = cols(k) / n_head_kv;
        if cols(q) != n_head * head_dim {
            return None;
        }
        let (k_append, k_cache, k_next) = append_of(links, k)?;
        let (v_append, v_cache, v_next) = append_of(links, v)?;
        let (k_state, v_state) = (links.tensor(k_cache), links.tensor(v_cache));
        if (k_state.dtype, k_state.shape) != (v_state.dtype, v_state.shape) || k_state.shape.rank() != 2 {
            return None;
        }
        nodes.extend([k_append, v_append]);
        let inputs = std::iter::once(qkv).chain(gammas).chain(table).chain([k_cache, v_cache]).collect();
        let form = QkvAppend { n_head, n_head_kv, head_dim, norm, rope };
        Some(Found { form, nodes, inputs, outputs: vec![q, k_next, v_next] })
    }

    /// Records it as models do.
    ///
    /// *Errors*: operands that do not fit.
    pub fn record(&self, graph: &mut Graph, operands: &[TensorId]) -> Result<Vec<TensorId>, Error> {
        let [x, .., k_cache, v_cache] = *operands else {
            return Err(Error::Invalid(format!("qkv_append does not take {} operands", operands.len())));
        };
        let (q_len, kv_len) = (self.n_head * self.head_dim, self.n_head_kv * self.head_dim);
        let mut q = graph.push(Slice { start: 0, len: q_len }, &[x])?;
        let mut k = graph.push(Slice { start: q_len, len: kv_len }, &[x])?;
        let mut v = graph.push(Slice { start: q_len + kv_len, len: kv_len }, &[x])?;
        if let (Some(QkNorm { eps, whole, .. }), Some([q_gamma, k_gamma])) = (self.norm, self.gammas()) {
            let norm = |heads| Norm { kind: NormKind::Rms, eps, heads: if whole { 1 } else { heads } };
            q = graph.push(norm(self.n_head), &[q, operands[q_gamma]])?;
            k = graph.push(norm(self.n_head_kv), &[k, operands[k_gamma]])?;
            if let Some(v_gamma) = self.v_gamma() {
                v = graph.push(norm(self.n_head_kv), &[v, operands[v_gamma]])?;
            }
        }
        if let (Some((n_dims, mode)), Some(table)) = (self.rope, self.table()) {
            q = graph.push(Rope { n_head: self.n_head, n_dims, mode }, &[q, operands[table]])?;
            k = graph.push(Rope { n_head: self.n_head_kv, n_dims, mode }, &[k, operands[table]])?;
        }
        let append = Append { at: At::Position };
        let k_cache = graph.push(append, &[k_cache, k])?;
        let v_cache = graph.push(append, &[v_cache, v])?;
        Ok(vec![q, k_cache, v_cache])
    }
}

/// The RMS norm of heads that is the only user of a tensor: node, operator, gamma, result.
fn norm_of(links: &Links<'_>, id: TensorId) -> Option<(usize, Norm, TensorId, TensorId)> {
    let (at, user) = links.only_user(id)?;
    let Op::Norm(norm) = user.op else { return None };
    // A gamma for all heads alike.
    let width = links.tensor(id).shape.cols() / norm.heads;
    let alike = links.tensor(user.inputs[1]).shape.len() == width;
    (norm.kind == NormKind::Rms && user.inputs[0] == id && alike).then(|| (at, norm, user.inputs[1], user.outputs[0]))
}

/// The rotation that is the only user of a tensor: node, operator, table, result.
fn rope_of(links: &Links<'_>, id: TensorId) -> Option<(usize, Rope, TensorId, TensorId)> {
    let (at, user) = links.only_user(id)?;
    let Op::Rope(rope) = user.op else { return None };
    (user.inputs[0] == id).then(|| (at, rope, user.inputs[1], user.outputs[0]))
}

/// The append at the step's position that is the only user of a tensor: node, state before, state after.
fn append_of(links: &Links<'_>, id: TensorId) -> Option<(usize, TensorId, TensorId)> {
    let (at, user) = links.only_user(id)?;
    let Op::Append(Append { at: At::Position }) = user.op else { return None };
    (user.inputs[1] == id).then(|| (at, user.inputs[0], user.outputs[0]))
}
