//! Cases of `conv2d`.

use super::prelude::*;

pub(super) fn cases() -> Vec<Case> {
    let padded = |n: usize| Window::PLAIN.padded([n, n]);
    let rows: &[([usize; 4], [usize; 4], Window)] = &[
        ([1, 1, 1, 1], [1, 1, 1, 1], Window::PLAIN),
        ([2, 3, 6, 7], [4, 3, 3, 2], Window::PLAIN),
        // One group, some, and one of each channel with one result or two.
        ([2, 6, 5, 9], [4, 6, 3, 3], padded(1)),
        ([2, 6, 5, 9], [4, 3, 3, 3], padded(1)),
        ([1, 5, 8, 6], [5, 1, 3, 3], padded(1)),
        ([1, 5, 8, 6], [10, 1, 2, 3], padded(2)),
        ([2, 3, 9, 11], [2, 3, 3, 3], Window { stride: [2, 3], dilation: [2, 1], ..Window::PLAIN.padded([1, 2]) }),
        ([1, 2, 4, 33], [3, 2, 2, 4], Window { stride: [1, 2], before: [3, 0], after: [1, 2], dilation: [1, 5] }),
        // Patches of a vision transformer, and a signal of one dimension.
        ([1, 3, 28, 28], [16, 3, 14, 14], Window { stride: [14, 14], ..Window::PLAIN }),
        ([1, 80, 1, 30], [12, 80, 1, 3], Window { stride: [1, 2], ..Window::PLAIN.padded([0, 1]) }),
    ];
    let case = |&(x, kernel, window): &([usize; 4], [usize; 4], Window)| {
        let Window { stride, before, after, dilation } = window;
        let name =
            format!("{kernel:?} on {x:?}, stride {stride:?}, padding {before:?} {after:?}, dilation {dilation:?}");
        Case::new(Conv2d { window }, name, StepParams::at(0, 1), |o| vec![o.input(&x), o.weight(&kernel)])
    };
    rows.iter().map(case).collect()
}
