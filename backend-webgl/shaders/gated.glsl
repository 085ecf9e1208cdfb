// A gated linear unit. One that is LIMITED keeps both parts within a limit, and adds 1 to the up part.
//!include activation.glsl

vec4 gated(vec4 gate, vec4 up) {
//!if LIMITED
    return ACT(min(gate, limit)) * (clamp(up, -limit, limit) + 1.0);
//!else
    return ACT(gate) * up;
//!end
}
