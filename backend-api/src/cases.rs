//! The conformance cases: a file for each operator and each form.

use crate::case::Case;
use crate::form::Form;
use crate::op::Op;

mod append;
mod argmax;
mod argmax_append;
mod attention;
mod attention_linear;
mod binary;
mod chain;
mod concat;
mod conv;
mod delta;
mod embed;
mod epilogue;
mod experts_glu;
mod experts_sum;
mod gated_delta_net;
mod get_rows;
mod glu;
mod linear;
mod linear_qkv;
mod matmul;
mod matmul_id;
mod norm;
mod norm_add;
mod norm_add_linear;
mod norm_gate;
mod pad;
mod penalize;
mod permute;
mod pick;
mod qkv_append;
mod rope;
mod route;
mod sample;
mod scale;
mod scan;
mod self_attention;
mod short_conv;
mod slice;
mod softmax;
mod ssm_scan;
mod top_k;
mod unary;
mod weighted_sum;

mod argsort;
mod clamp;
mod conv2d;
mod cumsum;
mod im2col;
mod repeat;
mod resize;
mod set;
mod solve_triangular;
mod sum;
mod tri;
mod xielu;

/// Imports that every file of cases needs.
mod prelude {
    pub use crate::case::{Case, Fill};
    pub use crate::codec::Codec;
    pub use crate::form::*;
    pub use crate::format::Format;
    pub use crate::graph::TensorId;
    pub use crate::op::*;
    pub use crate::step::StepParams;
    pub use crate::tensor::{DType, Kind, Shape};
}

/// The names of what has cases: operators, then forms of several nodes.
pub fn names() -> impl Iterator<Item = &'static str> {
    Op::NAMES.iter().chain(Form::NAMES).copied()
}

/// All cases: first those of operators that no model records.
pub fn all() -> Vec<Case> {
    let lists = [
        pad::cases(),
        resize::cases(),
        im2col::cases(),
        conv2d::cases(),
        solve_triangular::cases(),
        sum::cases(),
        cumsum::cases(),
        argsort::cases(),
        set::cases(),
        tri::cases(),
        of_models(),
    ];
    lists.into_iter().flatten().collect()
}

/// The cases of operators and forms that steps of models have: all that a page needs, which proves its backend by them.
pub fn of_models() -> Vec<Case> {
    let lists = [
        get_rows::cases(),
        matmul::cases(),
        norm::cases(),
        softmax::cases(),
        unary::cases(),
        binary::cases(),
        scale::cases(),
        glu::cases(),
        rope::cases(),
        permute::cases(),
        slice::cases(),
        concat::cases(),
        append::cases(),
        argmax::cases(),
        top_k::cases(),
        penalize::cases(),
        pick::cases(),
        sample::cases(),
        attention::cases(),
        short_conv::cases(),
        route::cases(),
        matmul_id::cases(),
        weighted_sum::cases(),
        ssm_scan::cases(),
        gated_delta_net::cases(),
        clamp::cases(),
        xielu::cases(),
        repeat::cases(),
        conv::cases(),
        scan::cases(),
        delta::cases(),
        linear::cases(),
        epilogue::cases(),
        norm_add::cases(),
        norm_add_linear::cases(),
        norm_gate::cases(),
        qkv_append::cases(),
        self_attention::cases(),
        embed::cases(),
        argmax_append::cases(),
        chain::cases(),
        linear_qkv::cases(),
        experts_glu::cases(),
        experts_sum::cases(),
        attention_linear::cases(),
    ];
    lists.into_iter().flatten().collect()
}
