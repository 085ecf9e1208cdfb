//! The kernels' tunables: none changes what is computed beyond rounding.

backend_api::tunables! {
    /// How the kernels are shaped. The defaults do on any GPU; see [`Tuning::software`].
    pub struct Tuning {
        /// Whether kernels reduce within subgroups where the device has them: 0 or 1.
        subgroups: 1 in [0, 1],
        /// Invocations of a workgroup of the matrix-vector kernels, where there are many.
        vec_wg: 256 in [64, 128, 256],
        /// Whether a row that is normed on its way into a product is brought into the memory of each workgroup, for all its
        /// invocations, however small the matrix: 0 or 1.
        stage: 0 in [0, 1],
        /// Weights of a matrix from which on any row is. Otherwise weights do not wait for x.
        stage_weights: 4_194_304 in [0, 4_194_304, 2_147_483_648],
        /// Rows of weights that an invocation of them multiplies at once at most.
        vec_rows: 4 in [1, 2, 4],
        /// Rows of weights an invocation takes where it multiplies them with a few rows of x.
        few_rows: 2 in [1, 2, 4],
        /// Invocations that share rows of weights at most.
        vec_lanes: 64 in [1, 8, 32, 64],
        /// Invocations that are enough to hide the latency of weights; with more rows than that, fewer share a row.
        vec_invocations: 98_304 in [1_024, 98_304, 262_144],
        /// Tiles of the largest size that are enough to keep the device busy; 0: tiles are not as large.
        large_tiles: 448 in [0, 1, 448],
        /// Invocations of a workgroup whose invocations each multiply several rows with some columns on their own; 0: they share
        /// a tile in the memory of the workgroup.
        block_wg: 0 in [0, 64],
        /// Invocations of an attention workgroup; as many keys are scored at a time.
        attention_wg: 128 in [32, 64, 128, 256],
        /// Queries from which on workgroups take 64 of a head together, so that keys are read once for them; 0: each its own.
        attention_tile: 32 in [0, 32],
        /// Parts that one query's keys are cut into at most.
        splits: 32 in [16, 32, 64],
        /// Keys that a workgroup scores at a time, and the fewest of such a part.
        split_keys: 64,
        /// Workgroups that are enough to score the parts of all heads.
        split_groups: 512 in [256, 512, 8_192],
        /// Invocations that share a key.
        split_share: 4 in [1, 4],
        /// Values up to which an invocation loads all of its own before their weights are known.
        split_early: 16,
        /// Invocations of a workgroup that joins them, each of which does so for itself.
        parts_wg: 256,
        /// Parts that are loaded at a time when they are joined.
        split_join: 4,
        /// Invocations that search a row.
        search_wg: 256,
        /// Columns of a row in which a workgroup finds the largest few, if the row is longer; then their lists are joined.
        search_segment: 1_024 in [256, 1_024, 2_147_483_648],
        /// Loads that each of them has under way.
        search_loads: 8,
        /// Invocations that share a row of a norm or a softmax.
        row_wg: 64,
        /// Invocations of a workgroup of elementwise kernels.
        wg: 64,
    }
}

impl Tuning {
    /// For a GPU with so much memory for a workgroup. No kernel needs more than 16 KiB; but who has three times that has
    /// registers for the largest tiles, of which an invocation takes some 200, and others may be slower with them.
    ///
    /// *Units*: bytes.
    pub fn of_device(workgroup_bytes: usize) -> Tuning {
        let usual = Tuning::default();
        if workgroup_bytes < 48 << 10 { Tuning { large_tiles: 0, ..usual } } else { usual }
    }

    /// For a GPU, with small matrices multiplied as large ones are: with x in the memory of workgroups, and in the largest
    /// tiles. For the suite.
    pub fn large() -> Tuning {
        Tuning { stage_weights: 0, large_tiles: 1, ..Tuning::default() }
    }

    /// For a device that is a CPU. It runs few invocations at a time and keeps the state of each that waits at a barrier, so
    /// invocations share as little as they can: rows of weights and blocks of products are their own, and those that reduce
    /// are few. Searches stay wide, and attention is not cut as small as it could be: llvmpipe ends a shader's loops after
    /// 65,535 rounds in all and says nothing.
    pub fn software() -> Tuning {
        Tuning {
            stage: 1,
            stage_weights: 2_147_483_648,
            vec_wg: 64,
            vec_rows: 1,
            vec_lanes: 1,
            // So that rows of x stay together: decoding weights again for each costs more than it gains.
            vec_invocations: 1_024,
            large_tiles: 0,
            block_wg: 64,
            attention_wg: 32,
            attention_tile: 0,
            search_segment: 2_147_483_648,
            split_keys: 8,
            split_share: 1,
            row_wg: 8,
            wg: 256,
            ..Tuning::default()
        }
    }
}
