//! The kernels' tunables, with defaults that do on any device.

backend_api::tunables! {
    /// How the kernels are shaped. No value changes what is computed, but for rounding.
    pub struct Tuning {
        /// Whether kernels reduce within subgroups where the device has them: 0 or 1.
        subgroups: 1 in [0, 1],
        /// Invocations of a workgroup of the matrix-vector kernels.
        vec_wg: 64 in [32, 64, 128],
        /// Invocations that are enough to hide the latency of weights; with more rows than that, fewer share a row.
        vec_invocations: 32_768 in [8_192, 32_768, 131_072],
        /// Invocations of an attention workgroup; as many keys are scored at a time.
        attention_wg: 128 in [64, 128, 256],
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
