//! A watcher is called after each draw of a step and may paint its result before the texture is reused. GL calls are
//! unsafe, so painting is done here, whoever asks for it.

use crate::dense::Dense;
use crate::gl::{Picture as Painted, Texture, Tile as Place};
use crate::read::Rows;
use crate::{Shared, WebGl};
use backend_api::{DType, Error, KernelInfo, Made, Pass, ReadId, Shape, StepParams};
use std::rc::Rc;

/// Callback that runs after each draw.
pub(crate) type Watcher = Rc<dyn Fn(Watched<'_>)>;

/// A draw of a step, as its watcher sees it.
pub struct Watched<'a> {
    /// Its place among the program's kernels.
    pub kernel: usize,
    /// How many kernels the program has.
    pub kernels: usize,
    /// Description of the kernel.
    pub info: &'a KernelInfo,
    /// The parameters of its step.
    pub params: &'a StepParams,
    pub(crate) textures: Vec<&'a Texture>,
    pub(crate) shared: &'a Shared,
}

/// Where a matrix is painted: line `y` of the tile has the elements `first + y * stride` and those after it, a texel each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tile {
    /// The tile's place in the picture: x, y, width and height.
    ///
    /// *Units*: texels, from the first line of the texture.
    pub area: [u32; 4],
    /// The element in its corner.
    pub first: usize,
    /// Elements from one line to the next.
    pub stride: usize,
}

/// A texture of four bytes a texel, RGBA, that matrices are painted in: the application may draw it.
pub struct Picture {
    pub(crate) painted: Painted,
}

impl Picture {
    /// The texture. It is there as long as the picture is.
    pub fn texture(&self) -> glow::Texture {
        self.painted.texture()
    }
}

impl WebGl {
    /// Makes a picture, all black.
    ///
    /// *Errors*: it is larger than the device allows, out of memory, device lost.
    pub fn picture(&self, width: u32, height: u32) -> Result<Picture, Error> {
        let have = self.shared.gl.limits().texture_size;
        let need = width.max(height);
        if need > have || width.min(height) == 0 {
            let what = format!("a picture of {width} x {height} texels (texels a side)");
            let remedy = "ask for a smaller picture, of one texel at least";
            return Err(Error::Limit { what, need: need.into(), have: have.into(), remedy });
        }
        let _entered = self.shared.gl.enter()?;
        let picture = self.shared.gl.picture(&self.shared.picture_shader()?, [width, height])?;
        Ok(Picture { painted: picture })
    }

    /// Has each draw of all programs be followed by a call; of one that runs in parts, the last part. While nobody watches, steps
    /// are what they were.
    pub fn watch(&self, watcher: impl Fn(Watched<'_>) + 'static) {
        self.shared.watch(Some(Rc::new(watcher)));
    }
}

impl Shared {
    /// Has somebody watch, or nobody.
    pub(crate) fn watch(&self, watcher: Option<Watcher>) {
        *self.watcher.borrow_mut() = watcher;
    }
}

impl Watched<'_> {
    /// Shows it to a watcher that knows no WebGL.
    pub(crate) fn show(&self, watcher: &backend_api::Watcher) {
        let Watched { kernel, kernels, info, params, .. } = *self;
        watcher(Pass { kernel, kernels, info, params, read: &mut |made| self.read(made) });
    }

    fn read(&self, made: usize) -> Result<ReadId, Error> {
        let (texture, matrix) = self.made(made)?;
        let dense = Dense::new(&Shape::new(&[matrix.rows, matrix.cols])?, DType::F32, self.shared.layout);
        let all = Rows { dense, dtype: DType::F32, cols: matrix.cols, first: 0, count: matrix.rows };
        self.shared.reads.borrow_mut().copy(self.shared, texture, all)
    }

    /// A matrix, and where it is.
    fn made(&self, made: usize) -> Result<(&Texture, &Made), Error> {
        let found = self.textures.get(made).copied().zip(self.info.made.get(made));
        found.ok_or_else(|| Error::Invalid(format!("{} makes no matrix {made}", self.info.name)))
    }

    /// The texture that holds a matrix of [`KernelInfo::made`], as the backend's layout has it.
    pub fn texture(&self, made: usize) -> Option<glow::Texture> {
        self.textures.get(made).map(|texture| texture.raw())
    }

    /// Paints a matrix of [`KernelInfo::made`] into a tile of a picture: elements are dark at 0, orange above and blue below,
    /// at 1 half as bright as at 100 and beyond.
    ///
    /// *Errors*: there is no such matrix; the tile leaves the picture or has more than 2^31 elements.
    pub fn paint(&self, made: usize, picture: &Picture, tile: &Tile) -> Result<(), Error> {
        let (texture, matrix) = self.made(made)?;
        let int =
            |n: usize| i32::try_from(n).map_err(|_| Error::Invalid(format!("{n} elements are too many for a tile")));
        let elements = [int(tile.first)?, int(tile.stride)?, int(matrix.rows)?, int(matrix.cols)?];
        let last = tile.stride.saturating_mul(tile.area[3] as usize).saturating_add(tile.area[2] as usize);
        int(last.saturating_add(tile.first))?;
        self.shared.gl.paint(&picture.painted, texture, &Place { area: tile.area, elements })
    }
}
