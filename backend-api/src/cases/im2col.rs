//! Cases of `im2col`.

use super::prelude::*;

pub(super) fn cases() -> Vec<Case> {
    let rows: &[([usize; 4], [usize; 2], Window)] = &[
        ([1, 1, 1, 1], [1, 1], Window::PLAIN),
        ([2, 3, 6, 7], [3, 2], Window::PLAIN),
        ([1, 2, 1, 20], [1, 3], Window::PLAIN.padded([0, 3])),
        ([2, 3, 9, 11], [3, 3], Window { stride: [2, 3], dilation: [2, 1], ..Window::PLAIN.padded([1, 2]) }),
        ([1, 5, 4, 33], [2, 4], Window { stride: [1, 2], before: [3, 0], after: [1, 2], dilation: [1, 5] }),
        ([3, 2, 2, 2], [2, 2], Window::PLAIN.padded([5, 4])),
    ];
    let case = |&(dims, kernel, window): &([usize; 4], [usize; 2], Window)| {
        let Window { stride, before, after, dilation } = window;
        let name =
            format!("{kernel:?} on {dims:?}, stride {stride:?}, padding {before:?} {after:?}, dilation {dilation:?}");
        Case::new(Im2Col { kernel, window }, name, StepParams::at(0, 1), |o| vec![o.input(&dims)])
    };
    rows.iter().map(case).collect()
}
