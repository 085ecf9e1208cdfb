// A gated linear unit: ACT(gate) * up, or with numbers LIMITED and the up part beside 1.
//!include activation.glsl

vec4 gated(vec4 gate, vec4 up) {
//!if LIMITED
    return ACT(min(gate, limit)) * (clamp(up, -limit, limit) + 1.0);
//!else
    return ACT(gate) * up;
//!end
}
