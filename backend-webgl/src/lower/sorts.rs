//! Sorting: short lists at once, then pairs of lists that become one.

use super::{LIST, Lowering};
use crate::kernel::{Draw, Kernel};
use backend_api::op::Argsort;

impl Lowering<'_> {
    pub(super) fn argsort(&self, op: &Argsort) -> Result<Kernel, String> {
        let x = self.input(0)?;
        let (rows, cols) = (x.shape.rows(), x.shape.cols());
        let mut list = LIST.min(cols.next_power_of_two());
        let mut lists = cols.div_ceil(list);
        let keyed =
            |draw: Draw| draw.int("cols", cols).int("descending", usize::from(op.descending)).input("src_x", 0, x);
        let rank = keyed(Draw::raw("argsort_rank", 0, rows * cols)).int("list", list);
        let sort = Draw::raw("top_k_sort", 1, rows * lists * list).int("cols", cols).int("list", list);
        let mut draws = vec![rank, sort.int("lists", lists).scratch("src_ranks", 0)];
        let mut scratch = vec![rows * cols, rows * lists * list];
        let (mut from, mut to) = (1, 0);
        while lists > 1 {
            let merged = rows * lists.div_ceil(2) * 2 * list;
            let merge = keyed(Draw::raw("argsort_merge", to, merged)).int("list", list).int("lists", lists);
            draws.push(merge.scratch("src_lists", from));
            scratch[to] = scratch[to].max(merged);
            (lists, list) = (lists.div_ceil(2), 2 * list);
            (from, to) = (to, from);
        }
        draws.push(self.draw("argsort")?.int("cols", cols).int("list", list).scratch("src_lists", from));
        Ok(Kernel { draws, scratch })
    }
}
