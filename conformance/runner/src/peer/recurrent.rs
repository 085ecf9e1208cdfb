//! Operators whose states are rewritten. Texts of a batch have states of their own, so ours is one text of it.

use super::operators::Mapped;
use super::row::Row;
use backend_api::case::{Case, Fill};
use backend_api::op::{GatedDeltaNet, ShortConv, SsmScan};
use backend_api::{DType, Kind, StepParams};

const SNAPSHOTS: &str = "states of several rows at once";

pub fn short_conv(row: &Row) -> Mapped {
    let [padded, channels, ..] = row.sources[0].dims;
    let taps = row.sources[1].dims[0];
    let tokens = padded + 1 - taps;
    Ok(Case::new(ShortConv, &row.text, StepParams::at(0, tokens as u32), |o| {
        vec![o.replaced(&[taps - 1, channels]), o.input(&[tokens, channels]), o.weight(&[channels, taps])]
    }))
}

pub fn ssm_scan(row: &Row) -> Mapped {
    if !row.plain("K", "1") {
        return Err(SNAPSHOTS);
    }
    let number = |name: &str| row.number::<usize>(name);
    let (n, heads, groups, tokens) = (number("d_state"), number("n_head"), number("n_group"), number("n_seq_tokens"));
    let (channels, mixes) = (heads * number("head_dim"), groups * n);
    // The list's Mamba has a pace for each channel, which is a head there, and a decay for each number of its state.
    let decays = if number("head_dim") == 1 { n } else { 1 };
    Ok(Case::new(SsmScan, &row.text, StepParams::at(0, tokens as u32), |o| {
        let (state, x, dt) = (o.replaced(&[channels, n]), o.input(&[tokens, channels]), o.input(&[tokens, heads]));
        let a = o.external(Kind::Weight, &[heads, decays], DType::F32, Fill::Uniform(-1.0, -0.5));
        let [b, c] = [0, 1].map(|_| o.input(&[tokens, mixes]));
        vec![state, x, dt, a, b, c, o.filled(&[heads], Fill::Values(vec![0.0]))]
    }))
}

pub fn gated_delta_net(row: &Row) -> Mapped {
    if !row.plain("K", "1") {
        return Err(SNAPSHOTS);
    }
    let number = |name: &str| row.number::<usize>(name);
    let (heads_k, size, tokens) = (number("head_count"), number("head_size"), number("n_seq_tokens"));
    let heads = heads_k * number("v_repeat");
    let gates = heads * if number("kda") == 1 { size } else { 1 };
    let key = (3.0 / size as f32).sqrt();
    Ok(Case::new(GatedDeltaNet { grouped: false }, &row.text, StepParams::at(0, tokens as u32), |o| {
        let state = o.replaced(&[heads * size, size]);
        let [q, k] = [0, 1].map(|_| o.filled(&[tokens, heads_k * size], Fill::Uniform(-key, key)));
        let (v, g) = (o.input(&[tokens, heads * size]), o.filled(&[tokens, gates], Fill::Uniform(-1.0, 0.0)));
        vec![state, q, k, v, g, o.filled(&[tokens, heads], Fill::Uniform(0.0, 1.0))]
    }))
}
