//! Operators each of whose elements is a function of single elements of the operands.

use crate::args::Args;
use backend_api::Op;
use backend_api::op::View;

/// Any of them, row by row of the result.
pub(super) fn elementwise(op: &Op, args: &mut Args<'_>) {
    let operands = [args.input(0), args.input(1)];
    let count = args.inputs.iter().flatten().count().min(operands.len());
    let shapes = operands.map(|operand| operand.shape());
    let shapes = &shapes[..count];
    let (region, whole) = (op.region(shapes), args.shape.dims4());
    let Some(views) = op.views(shapes, &args.shape, whole, View::of(whole)) else { return };
    let is_copied = matches!(op, Op::Permute(_) | Op::Slice(_) | Op::Repeat(_))
        && views[0].wraps[3].is_none()
        && views[0].strides[3] == 1;
    let x = operands.map(|operand| operand.floats());
    for (row, out) in args.out().chunks_exact_mut(whole[3]).enumerate() {
        let mut place = View::place(row * whole[3], whole);
        let starts = views.map(|view| view.row(place));
        if is_copied {
            out.copy_from_slice(&x[0][starts[0]..][..out.len()]);
            continue;
        }
        for (col, out) in out.iter_mut().enumerate() {
            place[3] = col;
            let mut elements = [0.0; 3];
            for (i, element) in elements.iter_mut().enumerate().take(count) {
                *element = f64::from(x[i][starts[i] + views[i].along(3, col)]);
            }
            if let Some(region) = region {
                elements[count] = f64::from(u8::from(region.contains(place)));
            }
            let used = &elements[..count + usize::from(region.is_some())];
            *out = op.element(used, &mut |_, value| f64::from(value)).map_or(f32::NAN, |value| value as f32);
        }
    }
}
