// A gated linear unit of two numbers, with a limit or without.
//!include lib/unary.wgsl

fn gated(gate: f32, up: f32) -> f32 {
//!if LIMITED
    return ACT(min(gate, p.limit)) * (clamp(up, -p.limit, p.limit) + 1.0);
//!else
    return ACT(gate) * up;
//!end
}
