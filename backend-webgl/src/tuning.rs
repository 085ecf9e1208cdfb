//! The kernels' tunables: none changes what is computed beyond rounding.

backend_api::tunables! {
    /// Tunable sizes of draws. The defaults are those for a GPU; see [`Tuning::software`].
    pub struct Tuning {
        /// Texels of a line of dense tensors, as a power of two. A GPU hands out squares of a picture to its cores, each
        /// with a memory of its own, so results in a compact block are made faster than in one long line.
        line_shift: 5 in [4, 5, 6, 7],
        /// Lines of a page of a dense tensor, as a power of two: what is left of the last page is wasted.
        page_shift: 11,
        /// Texels of a line of weights, which are read and not drawn, as a power of two.
        weight_line_shift: 8 in [6, 8, 10],
        /// Layers of weights have so many lines, as a power of two.
        weight_page_shift: 11,
        /// Rows of x that share one decoding of the weights, each with a target of its own: 4 or 8.
        block_rows: 8 in [4, 8],
        /// The most slices of a product's columns.
        slices: 16 in [1, 8, 16, 32],
        /// Whether blending adds the slices up, or else a draw.
        blend: 1,
        /// Groups of columns that a slice has at least.
        slice_groups: 2,
        /// Fragments, slices included, that keep a device busy.
        fragments: 32768 in [8192, 16384, 32768],
        /// Weights from which on products with a norm or an activation are made in slices, too, as a power of two: another
        /// draw joins them.
        joined_from: 21 in [19, 21, 31],
    }
}

impl Tuning {
    /// For a rasteriser on the CPU: it has no idle units that slices would keep busy. SwiftShader's threads share pairs of
    /// lines, so compact results suit it too; those of Mesa share squares of 64 texels, of which results must fill several.
    pub fn software(renderer: &str) -> Tuning {
        let usual = Tuning::default();
        let line_shift = if renderer.contains("SwiftShader") { usual.line_shift } else { 7 };
        Tuning { line_shift, slices: 1, ..usual }
    }
}
