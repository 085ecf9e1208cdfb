//! How dense tensors lie in textures: rows of columns, folded over a fixed width.

use crate::Layout;
use crate::gl::Texels;
use backend_api::{DType, Error, Shape, Tensor, host_rows};

/// The layout of one dense tensor.
///
/// One-dimensional floats are one row. One-dimensional ids are rows of one column, so that a step can append one
/// element without touching its neighbours in a texel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Dense {
    pub(crate) rows: usize,
    pub(crate) cols: usize,
    pub(crate) layout: Layout,
    /// The elements of a one-dimensional tensor are rows for the host.
    vector: bool,
}

impl Dense {
    pub(crate) fn new(shape: &Shape, dtype: DType, layout: Layout) -> Dense {
        let vector = shape.rank() <= 1;
        let (rows, cols) = match dtype {
            DType::I32 if vector => host_rows(shape),
            DType::F32 | DType::F16 | DType::I32 | DType::Packed(_) => (shape.rows(), shape.cols()),
        };
        Dense { rows, cols, layout, vector }
    }

    pub(crate) fn of(tensor: &Tensor, layout: Layout) -> Dense {
        Dense::new(&tensor.shape, tensor.dtype, layout)
    }

    /// Texels of a row.
    pub(crate) fn row_texels(&self) -> usize {
        self.cols.div_ceil(self.layout.lanes())
    }

    /// Texels of all rows.
    pub(crate) fn texels(&self) -> usize {
        self.rows * self.row_texels()
    }

    /// Texels with guard rows, which for a vector are guard elements.
    pub(crate) fn texels_with(&self, guard_rows: usize) -> usize {
        if self.split() {
            self.texels() + guard_rows.div_ceil(self.layout.lanes())
        } else {
            self.texels() + guard_rows * self.row_texels()
        }
    }

    /// Whether host rows are single elements of the one row here.
    fn split(&self) -> bool {
        self.vector && self.rows == 1
    }

    /// Elements of a host row.
    pub(crate) fn host_cols(&self) -> usize {
        if self.split() { 1 } else { self.cols }
    }

    /// Host rows without guards.
    pub(crate) fn host_rows(&self) -> usize {
        if self.split() { self.cols } else { self.rows }
    }

    /// Where an element of a host row lies: texel and lane. Guard elements of a vector begin at a whole texel, so
    /// that kernels may fill up the last one with zeros.
    pub(crate) fn place(&self, row: usize, col: usize) -> (usize, usize) {
        let lanes = self.layout.lanes();
        if !self.split() {
            return (row * self.row_texels() + col / lanes, col % lanes);
        }
        let at = if row < self.cols { row } else { self.row_texels() * lanes + row - self.cols };
        (at / lanes, at % lanes)
    }
}

impl Layout {
    /// Values of a texel.
    pub(crate) const fn lanes(self) -> usize {
        match self {
            Layout::Packed => 4,
            Layout::R32f => 1,
        }
    }

    /// The texels of dense tensors, but for states of halves.
    pub(crate) const fn texels(self) -> Texels {
        match self {
            Layout::Packed => Texels::Rgba32f,
            Layout::R32f => Texels::R32f,
        }
    }

    /// The texels of states of halves: drawing rounds, fetching gives floats, so that no shader knows of it.
    pub(crate) const fn half_texels(self) -> Texels {
        match self {
            Layout::Packed => Texels::Rgba16f,
            Layout::R32f => Texels::R16f,
        }
    }
}

/// How texels fold: powers of two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fold {
    pub(crate) width_shift: u32,
    pub(crate) height_shift: u32,
    pub(crate) max_layers: u32,
}

/// Wider textures gain nothing, and waste more at their ends.
const WIDTH_SHIFT: u32 = 12;

impl Fold {
    pub(crate) fn new(max_texture_size: u32, max_layers: u32) -> Fold {
        let height_shift = max_texture_size.max(1).ilog2();
        Fold { width_shift: height_shift.min(WIDTH_SHIFT), height_shift, max_layers }
    }

    pub(crate) fn width(&self) -> usize {
        1 << self.width_shift
    }

    pub(crate) fn height(&self) -> usize {
        1 << self.height_shift
    }

    /// The size of a texture for this many texels; several layers only where they are allowed.
    ///
    /// *Errors*: more texels than the device can hold.
    pub(crate) fn size(&self, what: &str, texels: usize, layered: bool) -> Result<[u32; 3], Error> {
        let lines = texels.div_ceil(self.width()).max(1);
        let layers = lines.div_ceil(self.height());
        let allowed = if layered { self.max_layers as usize } else { 1 };
        if layers > allowed {
            return Err(Error::Limit {
                what: format!("a texture for {what}, in texels,"),
                need: texels as u64,
                have: (allowed * self.width() * self.height()) as u64,
                remedy: "use a smaller context or model, or another backend",
            });
        }
        let width = if lines == 1 { texels.max(1) } else { self.width() };
        Ok([width as u32, lines.min(self.height()) as u32, layers as u32])
    }

    /// The lines that hold texels `first..end`.
    pub(crate) fn rect(&self, first: usize, end: usize) -> crate::gl::Rect {
        let (y, last) = (first >> self.width_shift, end.saturating_sub(1).max(first) >> self.width_shift);
        let (x, width) = if y == last { (first & (self.width() - 1), (end - first).max(1)) } else { (0, self.width()) };
        crate::gl::Rect { x: x as u32, y: y as u32, width: width as u32, height: (last - y + 1) as u32 }
    }
}
