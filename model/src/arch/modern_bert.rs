//! ModernBERT: norms before each layer, which alone may have biases; windows around each token in two of three blocks,
//! whose rotation has a base of its own; a gated unit from a single matrix.
//!
//! *Source*: Warner et al., "Smarter, Better, Faster, Longer: A Modern Bidirectional Encoder", 2024.

use backend_api::op::{GluKind, Norm, RopeMode, RopeTable};

use super::attention::Attention;
use super::keys::{Keys, MAX_WIDTH};
use super::recorder::Recorder;
use super::rope::Rope;
use super::{Architecture, Sizes};
use crate::error::ModelError;

/// Period of blocks with full attention.
const PERIOD: usize = 3;

#[derive(Debug)]
struct ModernBert {
    sizes: Sizes,
    n_ff: usize,
    norm: Norm,
    /// Attention of blocks with a window.
    local: Attention,
    /// Attention of blocks without one.
    global: Attention,
    /// Whether each block has a window.
    is_local: Vec<bool>,
    glu: GluKind,
}

pub(super) fn read(keys: &Keys<'_>) -> Result<Box<dyn Architecture>, ModelError> {
    let sizes = keys.sizes()?;
    let rope = Rope::read(keys, &sizes, RopeMode::Neox)?;
    let base = keys.positive("rope.freq_base_swa", Some(10_000.0))?;
    let local_rope =
        Rope { table: "rope_table_swa", angles: RopeTable::plain(rope.angles.n_dims, base), ..rope.clone() };
    let global = Attention { rope: Some(rope), ..Attention::new(&sizes) };
    let window = keys.get::<u32>("attention.sliding_window")?.unwrap_or(0);
    let windowed = || keys.windowed_after_the_first(sizes.n_blocks, PERIOD);
    Ok(Box::new(ModernBert {
        sizes,
        n_ff: keys.size("feed_forward_length", MAX_WIDTH, None)?,
        norm: keys.layer_norm()?,
        local: Attention { window, rope: Some(local_rope), ..global.clone() },
        global,
        is_local: if window == 0 { vec![false; sizes.n_blocks] } else { windowed()? },
        glu: glu(keys)?,
    }))
}

/// Returns the gate by the name of its activation.
fn glu(keys: &Keys<'_>) -> Result<GluKind, ModelError> {
    let key = "hidden_activation";
    match keys.get::<&str>(key)? {
        None | Some("geglu" | "gelu" | "gelu_pytorch_tanh") => Ok(GluKind::GegluTanh),
        Some("swiglu" | "silu" | "swish") => Ok(GluKind::Swiglu),
        Some("reglu" | "relu") => Ok(GluKind::Reglu),
        Some(_) => Err(keys.wrong(key, "only geglu, swiglu and reglu are supported")),
    }
}

impl Architecture for ModernBert {
    fn sizes(&self) -> &Sizes {
        &self.sizes
    }

    fn record(&self, m: &mut Recorder<'_>) -> Result<(), ModelError> {
        let ModernBert { sizes: Sizes { n_embd, .. }, n_ff, norm, .. } = self;
        let x = m.input(|m| {
            let x = m.embed("token_embd")?;
            m.norm("token_embd_norm", *norm, x)
        })?;
        let x = m.blocks(x, |m, i, x| {
            // The input of the first block is already normed.
            let a = if i == 0 { x } else { m.norm("attn_norm", *norm, x)? };
            let a = m.attention(if self.is_local[i] { &self.local } else { &self.global }, a)?;
            let [a, x] = m.wanted([a, x])?;
            let a = m.linear("attn_output", *n_embd, a)?;
            let x = m.add(a, x)?;
            let f = m.norm("ffn_norm", *norm, x)?;
            let f = m.fused_glu("ffn_up", self.glu, *n_ff, f)?;
            let f = m.linear("ffn_down", *n_embd, f)?;
            m.add(f, x)
        })?;
        m.output(x, |m, x| m.norm("output_norm", *norm, x))
    }
}
