//! The one small block of values that may differ from step to step.

/// Parameters of one step. Everything else is fixed when a program is compiled.
///
/// *Units*: positions and rows in tokens. The layout is that of a uniform block of two `vec4<u32>`.
#[derive(Debug, Clone, Copy, PartialEq, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub struct StepParams {
    /// Position of the first row; also the number of tokens already in the KV cache.
    pub position: u32,
    /// Rows of this step that are real, at least 1, at most those the program was compiled for.
    pub rows: u32,
    /// Candidates that sampling keeps; 0 keeps all that the graph's top-k node yields.
    pub top_k: u32,
    /// Sampling keeps the smallest set of candidates whose probability reaches this; 1 keeps all.
    pub top_p: f32,
    /// Divides the logits before sampling; 0 takes the best candidate.
    pub temperature: f32,
    /// Low half of the seed.
    pub seed_lo: u32,
    /// High half of the seed.
    pub seed_hi: u32,
    /// The sequence that the rows belong to: an index into those that the program was
    /// [compiled for](crate::Backend::compile_sequences).
    pub sequence: u32,
}

impl StepParams {
    /// A greedy step of `rows` rows at `position`.
    pub fn at(position: u32, rows: u32) -> StepParams {
        StepParams { position, rows, top_k: 0, top_p: 1.0, temperature: 0.0, seed_lo: 0, seed_hi: 0, sequence: 0 }
    }

    /// The random number in [0, 1) that sampling draws after a row of the step: a 32-bit hash (PCG) of the seed and the
    /// row's position, in integer arithmetic, so that it is the same on every backend and however a text is cut into
    /// steps.
    ///
    /// *Source*: M. O'Neill, "PCG: A Family of Simple Fast Space-Efficient Statistically Good Algorithms", 2014.
    pub fn uniform(&self, row: u32) -> f32 {
        let h = pcg(self.position.wrapping_add(row) ^ pcg(self.seed_lo ^ pcg(self.seed_hi)));
        (h >> 8) as f32 / 16_777_216.0
    }
}

fn pcg(x: u32) -> u32 {
    let state = x.wrapping_mul(747_796_405).wrapping_add(2_891_336_453);
    let word = ((state >> ((state >> 28) + 4)) ^ state).wrapping_mul(277_803_737);
    (word >> 22) ^ word
}
