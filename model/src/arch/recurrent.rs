//! Recurrent layers, which have a state of constant size: from the normed input to the input of the output projection.

use backend_api::op::{GatedDeltaNet, Glu, GluKind, Norm, NormKind, ShortConv, SsmScan, UnaryKind};
use backend_api::{DType, TensorId, Update};

use super::keys::{Keys, MAX_WIDTH};
use super::part::Part;
use super::recorder::{Recorded, Recorder};
use super::weights::Contents;
use crate::error::ModelError;

/// Sizes of a selective state-space model.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ssm {
    /// Channels.
    d_inner: usize,
    /// Width of the convolution before it, in tokens.
    taps: usize,
    /// State size of a channel.
    n_state: usize,
    /// Rank of the step sizes (delta) in Mamba; number of heads in Mamba 2.
    rank: usize,
    /// Number of groups of heads that share B and C.
    groups: usize,
}

impl Ssm {
    pub fn read(keys: &Keys<'_>) -> Result<Ssm, ModelError> {
        Ssm::grouped(keys, keys.size("ssm.group_count", MAX_WIDTH, Some(1))?)
    }

    /// Reads the sizes of a scan with heads that all share B and C.
    pub fn of_heads(keys: &Keys<'_>) -> Result<Ssm, ModelError> {
        let ssm = Ssm::grouped(keys, 1)?;
        if ssm.d_inner.is_multiple_of(ssm.rank) {
            return Ok(ssm);
        }
        Err(keys.wrong("ssm.time_step_rank", format!("{} heads do not divide {} channels", ssm.rank, ssm.d_inner)))
    }

    fn grouped(keys: &Keys<'_>, groups: usize) -> Result<Ssm, ModelError> {
        Ok(Ssm {
            d_inner: keys.size("ssm.inner_size", MAX_WIDTH, None)?,
            taps: taps(keys)?,
            n_state: keys.size("ssm.state_size", SsmScan::MAX_STATE, None)?,
            rank: keys.size("ssm.time_step_rank", MAX_WIDTH, None)?,
            groups,
        })
    }
}

/// Norm of what Mamba makes of a token: its step sizes, B and C.
#[derive(Debug, Clone, Copy)]
pub(super) enum Selected {
    /// There is none.
    Plain,
    /// Without weights.
    Unit(Norm),
    /// With weights.
    Weighted(Norm),
}

fn taps(keys: &Keys<'_>) -> Result<usize, ModelError> {
    let key = "ssm.conv_kernel";
    match keys.size(key, ShortConv::MAX_TAPS, None)? {
        1 => Err(keys.wrong(key, "a convolution needs 2 tokens or more")),
        taps => Ok(taps),
    }
}

/// Sizes of a gated delta net.
#[derive(Debug, Clone, Copy)]
pub(super) struct DeltaNet {
    /// Width of the convolution before it, in tokens.
    taps: usize,
    /// Number of query and key heads.
    heads_k: usize,
    /// Number of value heads.
    heads: usize,
    /// Width of a query or key head.
    dk: usize,
    /// Width of a value head.
    dv: usize,
    /// Whether neighbouring value heads share a key head.
    grouped: bool,
    /// Norm of queries and keys, and of the result.
    norm: Norm,
}

impl DeltaNet {
    pub fn read(keys: &Keys<'_>, grouped: bool, norm: Norm) -> Result<DeltaNet, ModelError> {
        let size = |key| keys.size(key, MAX_WIDTH, None);
        let (heads, heads_k) = (size("ssm.time_step_rank")?, size("ssm.group_count")?);
        let inner = size("ssm.inner_size")?;
        if !heads.is_multiple_of(heads_k) || !inner.is_multiple_of(heads) {
            let reason = format!("{heads_k} must divide {heads}, and that {inner} channels");
            return Err(keys.wrong("ssm.time_step_rank", reason));
        }
        let dk = keys.size("ssm.state_size", GatedDeltaNet::MAX_KEY, None)?;
        Ok(DeltaNet { taps: taps(keys)?, heads_k, heads, dk, dv: inner / heads, grouped, norm })
    }
}

impl Recorder<'_> {
    /// Records a convolution of each channel along the tokens, followed by SiLU.
    fn smooth(&mut self, taps: usize, x: TensorId) -> Recorded {
        const NAME: &str = "ssm_conv1d";
        let channels = self.cols(x);
        let y = self.short_conv(NAME, taps, x)?;
        let y = self.biased(NAME, &[(NAME, channels).into()], y)?;
        self.unary(UnaryKind::Silu, y)
    }

    /// Records the norm of step sizes, B or C.
    fn selected(&mut self, selected: Selected, name: &str, x: TensorId) -> Recorded {
        match selected {
            Selected::Plain => Ok(x),
            Selected::Unit(norm) => self.scaled_norm(norm, 1.0, x),
            Selected::Weighted(norm) => self.norm(name, norm, x),
        }
    }

    /// Records the selective scan of x with step sizes (delta), B and C.
    fn scan(&mut self, s: &Ssm, [heads, decays]: [usize; 2], [x, dt, b, c]: [TensorId; 4]) -> Recorded {
        let name = self.scoped("ssm_a");
        // A vector may have any shape.
        let tensor = match decays {
            1 => self.step.tensors.flat(&name, heads)?,
            _ => self.step.tensors.dense(&name, &[heads, decays])?.clone(),
        };
        let a = self.weight(name, &[heads, decays], DType::F32, Contents::Tensors(vec![tensor]))?;
        let skip = self.flat("ssm_d", heads)?;
        let shape = [s.d_inner, s.n_state];
        let state = self.state(self.scoped("ssm_state"), &shape, DType::F32, Update::Replace)?;
        let [y, _] = self.ops(SsmScan, &[state, x, dt, a, b, c, skip])?;
        Ok(y)
    }

    /// Records a vector that may have any shape in the file.
    pub fn flat(&mut self, name: &str, len: usize) -> Recorded {
        let name = self.scoped(name);
        let tensor = self.step.tensors.flat(&name, len)?;
        self.weight(name, &[len], DType::F32, Contents::Tensors(vec![tensor]))
    }

    /// Records an RMS norm of parts of a row, whose result is multiplied by one number.
    fn scaled_norm(&mut self, norm: Norm, factor: f32, x: TensorId) -> Recorded {
        let len = self.cols(x) / norm.heads;
        let gamma = self.weight(format!("all_{factor}.{len}"), &[len], DType::F32, Contents::Constant(factor))?;
        self.op(norm, &[x, gamma])
    }

    /// Records Mamba: each channel has a step size of its own.
    pub fn mamba(&mut self, s: &Ssm, norm: Selected, x: TensorId) -> Recorded {
        let Ssm { d_inner, taps, n_state, rank, .. } = *s;
        let xz = self.linear("ssm_in", 2 * d_inner, x)?;
        let [x, z] = self.columns(xz, [d_inner; 2])?;
        let x = self.smooth(taps, x)?;
        let mix = self.linear("ssm_x", rank + 2 * n_state, x)?;
        let [dt, b, c] = self.columns(mix, [rank, n_state, n_state])?;
        let dt = self.selected(norm, "ssm_dt_norm", dt)?;
        let b = self.selected(norm, "ssm_b_norm", b)?;
        let c = self.selected(norm, "ssm_c_norm", c)?;
        let dt = self.linear("ssm_dt", d_inner, dt)?;
        let y = self.scan(s, [d_inner, n_state], [x, dt, b, c])?;
        self.op(Glu { kind: GluKind::Swiglu }, &[z, y])
    }

    /// Records the Mamba of PLaMo 2: the channels of a head share a step size and a decay, which a token makes by a
    /// product of low rank.
    pub fn mamba_of_heads(&mut self, s: &Ssm, norm: Norm, x: TensorId) -> Recorded {
        let Ssm { d_inner, taps, n_state, rank: heads, .. } = *s;
        let (turns, low) = ([d_inner / heads; 2], (self.cols(x) / 16).max(64));
        let part = |nth| Part::dealt("ssm_in", heads, &turns, nth);
        let [z, x] = self.joint("ssm_zx", [part(0), part(1)], x)?;
        let x = self.smooth(taps, x)?;
        let mix = self.linear("ssm_x", 2 * n_state + low, x)?;
        let [b, c, dt] = self.columns(mix, [n_state, n_state, low])?;
        let b = self.norm("ssm_b_norm", norm, b)?;
        let c = self.norm("ssm_c_norm", norm, c)?;
        let dt = self.norm("ssm_dt_norm", norm, dt)?;
        let dt = self.linear("ssm_dt", heads, dt)?;
        let y = self.scan(s, [heads, 1], [x, dt, b, c])?;
        self.op(Glu { kind: GluKind::Swiglu }, &[z, y])
    }

    /// Records Mamba 2: the channels of a head share a step size and a decay.
    pub fn mamba2(&mut self, s: &Ssm, x: TensorId) -> Recorded {
        let Ssm { d_inner, taps, n_state, rank: heads, groups } = *s;
        let mixes = groups * n_state;
        let all = self.linear("ssm_in", 2 * d_inner + 2 * mixes + heads, x)?;
        let [z, xbc, dt] = self.columns(all, [d_inner, d_inner + 2 * mixes, heads])?;
        let xbc = self.smooth(taps, xbc)?;
        let [x, b, c] = self.columns(xbc, [d_inner, mixes, mixes])?;
        let bias = self.vector("ssm_dt.bias", heads)?;
        let dt = self.add(dt, bias)?;
        let y = self.scan(s, [heads, 1], [x, dt, b, c])?;
        self.op(Glu { kind: GluKind::Swiglu }, &[z, y])
    }

    /// Records the output projection of a scan, after a norm of groups if the file has one.
    pub fn ssm_out(&mut self, s: &Ssm, norm: Norm, y: TensorId) -> Recorded {
        const NORM: &str = "ssm_norm.weight";
        let normed = if self.has(NORM) {
            let gamma = self.flat(NORM, s.d_inner)?;
            self.op(Norm { heads: s.groups, ..norm }, &[y, gamma])?
        } else {
            y
        };
        self.linear("ssm_out", self.step.sizes.n_embd, normed)
    }

    /// Records a gated delta net, whose heads are normed and gated.
    pub fn delta_net(&mut self, d: &DeltaNet, x: TensorId) -> Recorded {
        let DeltaNet { taps, heads_k, heads, dk, dv, grouped, norm } = *d;
        let (keys, values) = (heads_k * dk, heads * dv);
        let [qkv, z] = self.qkv_and_gate(d, x)?;
        let [b, a] = self.beta_and_alpha(d, x)?;
        let beta = self.unary(UnaryKind::Sigmoid, b)?;
        let bias = self.vector("ssm_dt.bias", heads)?;
        let pace = self.add(a, bias)?;
        let pace = self.unary(UnaryKind::Softplus, pace)?;
        let decay = self.flat("ssm_a", heads)?;
        let g = self.mul(pace, decay)?;
        let qkv = self.smooth(taps, qkv)?;
        let [qk, v] = self.columns(qkv, [2 * keys, values])?;
        // Queries and keys are scaled to length 1: an RMS norm divided by the root of the width, with the same eps
        // added to the sum of squares.
        let unit = Norm { heads: 2 * heads_k, eps: norm.eps / dk as f32, kind: NormKind::Rms };
        let qk = self.scaled_norm(unit, 1.0 / (dk as f32).sqrt(), qk)?;
        let [q, k] = self.columns(qk, [keys; 2])?;
        let state = self.state(self.scoped("ssm_state"), &[values, dk], DType::F32, Update::Replace)?;
        let [o, _] = self.ops(GatedDeltaNet { grouped }, &[state, q, k, v, g, beta])?;
        let y = self.norm("ssm_norm", Norm { heads, ..norm }, o)?;
        self.op(Glu { kind: GluKind::Swiglu }, &[z, y])
    }

    /// Records queries, keys and values side by side, and the gates. They come from two tensors, or from one in which
    /// the rows of a key head are followed by those of its value heads.
    fn qkv_and_gate(&mut self, d: &DeltaNet, x: TensorId) -> Result<[TensorId; 2], ModelError> {
        let (keys, values) = (d.heads_k * d.dk, d.heads * d.dv);
        if !self.has("ssm_in.weight") {
            return self.joint("ssm_qkvz", [("attn_qkv", 2 * keys + values), ("attn_gate", values)], x);
        }
        let shared = values / d.heads_k;
        let turns = [d.dk, d.dk, shared, shared];
        let parts = [0, 1, 2, 3].map(|nth| Part::dealt("ssm_in", d.heads_k, &turns, nth));
        let all = self.projection("ssm_qkvz", &parts, x)?;
        self.columns(all, [2 * keys + values, values])
    }

    /// Records the learning rate and the input of the decay, for each head.
    fn beta_and_alpha(&mut self, d: &DeltaNet, x: TensorId) -> Result<[TensorId; 2], ModelError> {
        if !self.has("ssm_ba.weight") {
            return self.joint("ssm_beta_alpha", [("ssm_beta", d.heads), ("ssm_alpha", d.heads)], x);
        }
        let turns = [d.heads / d.heads_k; 2];
        let parts = [0, 1].map(|nth| Part::dealt("ssm_ba", d.heads_k, &turns, nth));
        let all = self.projection("ssm_beta_alpha", &parts, x)?;
        self.columns(all, [d.heads; 2])
    }
}
