//! The kernels' tunables: none changes what is computed beyond rounding.

backend_api::tunables! {
    /// How the kernels are shaped. The defaults do on any GPU; see [`Tuning::software`].
    pub struct Tuning {
        /// Whether kernels reduce within subgroups where the device has them: 0 or 1.
        subgroups: 1 in [0, 1],
        /// Invocations of a workgroup of the matrix-vector kernels.
        vec_wg: 64 in [32, 64, 128],
        /// Whether a row that is normed on its way into a product is normed once by each workgroup, into its memory: 0 or 1.
        stage: 0 in [0, 1],
        /// Invocations that share a row of weights at most.
        vec_lanes: 32 in [1, 8, 32],
        /// Invocations that are enough to hide the latency of weights; with more rows than that, fewer share a row.
        vec_invocations: 32_768 in [8_192, 32_768, 131_072],
        /// Invocations of a workgroup whose invocations each multiply several rows with some columns on their own; 0: they share
        /// a tile in the memory of the workgroup.
        block_wg: 0 in [0, 64],
        /// Invocations of an attention workgroup; as many keys are scored at a time.
        attention_wg: 128 in [32, 64, 128, 256],
        /// Parts that one query's keys are cut into at most.
        splits: 32 in [16, 32, 64],
        /// Invocations of a workgroup that scores such a part, and the fewest keys of one.
        split_wg: 64,
        /// Vectors of four of a value head up to which values are loaded before their weights are known.
        split_early: 16,
        /// Invocations of a workgroup that joins them, each of which does so for itself.
        parts_wg: 256,
        /// Parts that are loaded at a time when they are joined.
        split_join: 4,
        /// Invocations that search a row.
        search_wg: 256,
        /// Loads that each of them has under way.
        search_loads: 8,
        /// Invocations that share a row of a norm or a softmax.
        row_wg: 64,
        /// Invocations of a workgroup of elementwise kernels.
        wg: 64,
    }
}

impl Tuning {
    /// For a device that is a CPU. It runs few invocations at a time and keeps the state of each that waits at a barrier, so
    /// invocations share as little as they can: rows of weights and blocks of products are their own, and those that reduce
    /// are few. Searches stay wide, and attention is not cut as small as it could be: llvmpipe ends a shader's loops after
    /// 65,535 rounds in all and says nothing.
    pub fn software() -> Tuning {
        Tuning {
            stage: 1,
            vec_lanes: 1,
            block_wg: 64,
            attention_wg: 32,
            split_wg: 8,
            row_wg: 8,
            wg: 256,
            ..Tuning::default()
        }
    }
}
