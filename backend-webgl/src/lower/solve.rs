//! Triangular systems: four rows of the solutions a draw, from one scratch texture to the other.

use super::Lowering;
use crate::kernel::{Draw, Kernel, Target};

/// Rows that a draw adds.
const ROWS: usize = 4;

impl Lowering<'_> {
    pub(super) fn solve_triangular(&self) -> Result<Kernel, String> {
        let (a, b, out) = (self.input(0)?, self.input(1)?, self.dense(self.output(0)?));
        let n = a.shape.cols();
        let last = n.div_ceil(ROWS) - 1;
        let draw = |step: usize| {
            let to = if step == last { Target::Output(0) } else { Target::Scratch(step % 2) };
            let draw = Draw::new("solve_triangular", to, &out).input("src_a", 0, a).input("src_b", 1, b);
            let draw = draw.int("n", n).int("first", step * ROWS).int("end", (step + 1) * ROWS);
            if step == 0 { draw } else { draw.define("BEGUN", "").scratch("src_x", (step - 1) % 2) }
        };
        Ok(Kernel { draws: (0..=last).map(draw).collect(), scratch: vec![out.texels(); last.min(2)] })
    }
}
