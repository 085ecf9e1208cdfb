// The values that differ from step to step.
struct Step {
    position: u32,
    rows: u32,
    top_k: u32,
    top_p: f32,
    temperature: f32,
    seed_lo: u32,
    seed_hi: u32,
    sequence: u32,
    // Where the workgroups of this dispatch begin, if it is a part of a kernel; else 0.
    origin: vec3<u32>,
//!if SEQUENCES
    // For each row: position, sequence and seed; then top_k, top_p and temperature, the latter two as bits.
    each: array<vec4<u32>, 2u * MOST_SEQUENCES>,
//!end
}
