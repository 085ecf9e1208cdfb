//! How dense tensors lie in textures: rows of columns, folded over a fixed width.

use crate::gl::{Rect, Texels};
use crate::{Layout, Tuning};
use backend_api::{Codec, DType, Error, Shape, Tensor, host_rows};

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
        // Words are four to a texel in every layout.
        if let DType::Coded(codec) = dtype
            && let Some((words, _)) = layout.words(codec, shape.cols())
        {
            let layout = if layout == Layout::R32f { Layout::Packed } else { layout };
            return Dense { rows: shape.rows(), cols: words, layout, vector };
        }
        let (rows, cols) = match dtype {
            DType::I32 if vector => host_rows(shape),
            DType::F32 | DType::Coded(_) | DType::I32 | DType::Packed(_) => (shape.rows(), shape.cols()),
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

    /// How many elements from `col` of a host row on lie in neighbouring lanes of the texels to the end of a line of the
    /// fold.
    pub(crate) fn run(&self, fold: &Fold, row: usize, col: usize) -> usize {
        let (texel, lane) = self.place(row, col);
        let left = (fold.line() - texel % fold.line()) * self.layout.lanes() - lane;
        left.min(self.host_cols() - col)
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
            Layout::Packed | Layout::Bits => 4,
            Layout::R32f => 1,
        }
    }

    /// The texels of dense tensors, but for states in codecs.
    pub(crate) const fn texels(self) -> Texels {
        match self {
            Layout::Packed => Texels::Rgba32f,
            Layout::R32f => Texels::R32f,
            Layout::Bits => Texels::Words,
        }
    }

    /// For states that textures hold as words, so that shaders have a reader and a writer for them: the words of a row of
    /// so many floats, and which of them is the first scale.
    pub(crate) fn words(self, codec: Codec, cols: usize) -> Option<(usize, usize)> {
        let as_is = || (codec.row_bytes(cols) / 4, codec.row_bytes(cols) / 4);
        codec.device_words(cols).or_else(|| (self == Layout::Bits).then(as_is))
    }

    /// The texels of states of halves: drawing rounds, fetching gives floats, so that no shader knows of it. Where
    /// textures hold bits the halves are [words](Layout::words).
    pub(crate) const fn half_texels(self) -> Texels {
        match self {
            Layout::Packed => Texels::Rgba16f,
            Layout::R32f => Texels::R16f,
            Layout::Bits => Texels::Words,
        }
    }
}

/// How texels fold into a texture: lines of a power of two fill pages of a power of two of lines. Pages of dense tensors
/// lie beside each other, those of weights are the layers of an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fold {
    pub(crate) line_shift: u32,
    pub(crate) page_shift: u32,
    max_pages: usize,
    layered: bool,
}

/// The largest power of two that is a texture's size, and those of a line and a page within it.
fn shifts(max_texture_size: u32, line: usize, page: usize) -> [u32; 3] {
    let most = max_texture_size.max(1).ilog2();
    [most, most.min(line as u32), most.min(page as u32)]
}

impl Fold {
    /// The fold of dense tensors.
    pub(crate) fn dense(max_texture_size: u32, tuning: &Tuning) -> Fold {
        let [most, line_shift, page_shift] = shifts(max_texture_size, tuning.line_shift, tuning.page_shift);
        Fold { line_shift, page_shift, max_pages: 1 << (most - line_shift), layered: false }
    }

    /// The fold of weights.
    pub(crate) fn weights(max_texture_size: u32, max_layers: u32, tuning: &Tuning) -> Fold {
        let [_, line_shift, page_shift] = shifts(max_texture_size, tuning.weight_line_shift, tuning.weight_page_shift);
        Fold { line_shift, page_shift, max_pages: max_layers as usize, layered: true }
    }

    /// Texels of a line.
    pub(crate) fn line(&self) -> usize {
        1 << self.line_shift
    }

    /// Lines of a page.
    pub(crate) fn page(&self) -> usize {
        1 << self.page_shift
    }

    /// Width, height and layers of a texture for this many texels.
    ///
    /// *Errors*: more texels than the device can hold.
    pub(crate) fn size(&self, what: &str, texels: usize) -> Result<[u32; 3], Error> {
        let lines = texels.div_ceil(self.line()).max(1);
        let pages = lines.div_ceil(self.page());
        if pages > self.max_pages {
            return Err(Error::Limit {
                what: format!("a texture for {what}, in texels,"),
                need: texels as u64,
                have: (self.max_pages * self.line() * self.page()) as u64,
                remedy: "use a smaller context or model, or another backend",
            });
        }
        let width = if lines == 1 { texels.max(1) } else { self.line() };
        let (across, layers) = if self.layered { (1, pages) } else { (pages, 1) };
        Ok([(across * width) as u32, lines.min(self.page()) as u32, layers as u32])
    }

    /// Where a texel lies: x, y and layer.
    pub(crate) fn at(&self, texel: usize) -> [u32; 3] {
        let line = texel >> self.line_shift;
        let (x, y, page) = (texel & (self.line() - 1), line & (self.page() - 1), line >> self.page_shift);
        let (across, layer) = if self.layered { (0, page) } else { (page, 0) };
        [((across << self.line_shift) + x) as u32, y as u32, layer as u32]
    }

    /// The smallest rectangle of whole lines, or of one line's part, that holds texels `first..end` of one layer.
    pub(crate) fn rect(&self, first: usize, end: usize) -> Rect {
        let [x, y, _] = self.at(first);
        let [last_x, last_y, _] = self.at(end.saturating_sub(1).max(first));
        let line = self.line() as u32;
        let (strip, last_strip) = (x >> self.line_shift, last_x >> self.line_shift);
        if strip != last_strip {
            let (x, width) = (strip << self.line_shift, (last_strip + 1 - strip) << self.line_shift);
            Rect { x, y: 0, width, height: self.page() as u32 }
        } else if y == last_y {
            Rect { x, y, width: last_x + 1 - x, height: 1 }
        } else {
            Rect { x: strip << self.line_shift, y, width: line, height: last_y + 1 - y }
        }
    }

    /// The rectangles of exactly the texels `first..end`.
    pub(crate) fn rects(&self, first: usize, end: usize) -> Vec<Rect> {
        let (mut at, mut rects) = (first, Vec::new());
        while at < end {
            let (rect, _) = self.piece(at, end - at);
            at += rect.texels();
            rects.push(rect);
        }
        rects
    }

    /// The texels from `first` on that make a rectangle, at most `most` (one at least), and the layer it is in.
    pub(crate) fn piece(&self, first: usize, most: usize) -> (Rect, u32) {
        let [_, y, layer] = self.at(first);
        let into = first & (self.line() - 1);
        let lines = (most / self.line()).min(self.page() - y as usize);
        let texels = if into > 0 || lines == 0 { most.min(self.line() - into) } else { lines * self.line() };
        (self.rect(first, first + texels), layer)
    }
}
