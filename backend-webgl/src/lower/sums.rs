//! Sums of rows, whole and up to each element: first those of chunks, so that nobody adds up a whole row.

use super::Lowering;
use crate::kernel::{Draw, Kernel};

impl Lowering<'_> {
    pub(super) fn sum(&self) -> Result<Kernel, String> {
        self.chunked(self.draw("sum")?)
    }

    pub(super) fn cumsum(&self) -> Result<Kernel, String> {
        self.chunked(self.draw("cumsum")?.input("src_x", 0, self.input(0)?))
    }

    /// `last`, after the sums of chunks of rows, whose number and length balance.
    fn chunked(&self, last: Draw) -> Result<Kernel, String> {
        let x = self.input(0)?;
        let (rows, cols) = (x.shape.rows(), x.shape.cols());
        let chunk = cols.isqrt().max(8).next_multiple_of(4);
        let chunks = cols.div_ceil(chunk);
        let common = |draw: Draw| draw.int("chunk", chunk).int("chunks", chunks);
        let first = common(Draw::raw("sum_chunks", 0, rows * chunks)).int("cols", cols).input("src_x", 0, x);
        Ok(Kernel { draws: vec![first, common(last).scratch("src_sums", 0)], scratch: vec![rows * chunks] })
    }
}
