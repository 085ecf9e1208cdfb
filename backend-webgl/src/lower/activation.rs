//! Names of elementwise functions in shaders.

use backend_api::op::UnaryKind;

pub(super) const fn activation(kind: UnaryKind) -> &'static str {
    match kind {
        UnaryKind::GeluTanh => "act_gelu_tanh",
        UnaryKind::GeluErf => "act_gelu_erf",
        UnaryKind::GeluQuick => "act_gelu_quick",
        UnaryKind::Silu => "act_silu",
        UnaryKind::Relu => "act_relu",
        UnaryKind::Sigmoid => "act_sigmoid",
        UnaryKind::Tanh => "act_tanh",
        UnaryKind::Exp => "act_exp",
        UnaryKind::Log => "act_log",
        UnaryKind::Sqrt => "act_sqrt",
        UnaryKind::Sin => "act_sin",
        UnaryKind::Cos => "act_cos",
        UnaryKind::Abs => "act_abs",
        UnaryKind::Neg => "act_neg",
        UnaryKind::Floor => "act_floor",
        UnaryKind::Ceil => "act_ceil",
        UnaryKind::Softplus => "act_softplus",
        UnaryKind::Hardswish => "act_hardswish",
        UnaryKind::Sign => "act_sign",
        UnaryKind::Step => "act_step",
        UnaryKind::Elu => "act_elu",
        UnaryKind::Hardsigmoid => "act_hardsigmoid",
        UnaryKind::Expm1 => "act_expm1",
        UnaryKind::Round => "act_round",
        UnaryKind::Trunc => "act_trunc",
    }
}
