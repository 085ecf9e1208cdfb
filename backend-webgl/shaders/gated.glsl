// A gated linear unit: ACT(gate) * up; or LIMITED, where both are kept within a limit and 1 is added to the up part.
//!include activation.glsl

vec4 gated(vec4 gate, vec4 up) {
//!if LIMITED
    return ACT(min(gate, limit)) * (clamp(up, -limit, limit) + 1.0);
//!else
    return ACT(gate) * up;
//!end
}
