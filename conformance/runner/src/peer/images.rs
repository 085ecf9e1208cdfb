//! Images.

use super::operators::{DENSE, Mapped, NO_OPERATOR, floats, format};
use super::row::{Row, Source};
use super::views::{exchange, reshaped};
use backend_api::case::{Case, Operands};
use backend_api::format::Format;
use backend_api::op::{Conv2d, GetRows, Im2Col, Index, Resize, ResizeMode, Window};
use backend_api::{StepParams, TensorId};

pub fn upscale(row: &Row) -> Mapped {
    floats(row)?;
    let [x] = &row.sources[..] else { return Err(NO_OPERATOR) };
    let (mode, align_corners) = match row.text_of("mode") {
        "nearest" => (ResizeMode::Nearest, false),
        "bilinear" => (ResizeMode::Linear, false),
        "bilinear|antialias" => (ResizeMode::Antialias, false),
        "bilinear|align_corners" => (ResizeMode::Linear, true),
        "bicubic" => (ResizeMode::Cubic, false),
        "bicubic|align_corners" => (ResizeMode::Cubic, true),
        _ => return Err(NO_OPERATOR),
    };
    let dims = match row.list("ne_tgt")[..] {
        [w, h, inner, outer] => [outer, inner, h, w],
        _ => {
            let ([outer, inner, h, w], factor) = (x.shape(), row.number::<usize>("scale_factor"));
            [outer, inner, factor * h, factor * w]
        }
    };
    let op = Resize { dims, mode, align_corners };
    Ok(Case::new(op, &row.text, StepParams::at(0, 1), |o| vec![o.input(&x.shape())]))
}

pub fn im2col(row: &Row) -> Mapped {
    // The kernel gives its size alone.
    let [kernel, x] = &row.sources[..] else { return Err(NO_OPERATOR) };
    if x.kind != "f32" || !row.plain("dst_type", "f32") {
        return Err(DENSE);
    }
    let both = |letter: char| [1, 0].map(|axis| row.number::<usize>(&format!("{letter}{axis}")));
    let [stride, padding, dilation] = ['s', 'p', 'd'].map(both);
    let window = Window { stride, dilation, ..Window::PLAIN }.padded(padding);
    let ([n, c, h, w], [_, _, kh, kw]) = (x.shape(), kernel.shape());
    let (dims, size, window) = if row.plain("is_2D", "1") {
        ([n, c, h, w], [kh, kw], window)
    } else {
        // A signal, whose channels are the second dimension: an image of height 1.
        let window = Window { stride: [1, stride[1]], dilation: [1, dilation[1]], ..window };
        ([c, h, 1, w], [1, kw], window)
    };
    Ok(Case::new(Im2Col { kernel: size, window }, &row.text, StepParams::at(0, 1), |o| vec![o.input(&dims)]))
}

/// An operand whose channels lie innermost, in the order that ours has.
fn channels_last(o: &mut Operands, [n, c, h, w]: [usize; 4]) -> TensorId {
    let x = o.input(&[n, h, w, c]);
    o.push(exchange([c, w, h, n], [2, 0, 1, 3]), &[x])
}

/// The numbers of a kernel: of 16 bits they are looked up in a table of one row.
fn kernel(o: &mut Operands, source: &Source, format: Format) -> TensorId {
    if format == Format::F32 {
        return o.weight(&source.shape());
    }
    let numbers = source.dims.iter().product();
    let table = o.packed(format, 1, numbers);
    let row = o.push(GetRows { index: Index::First }, &[table]);
    reshaped(o, row, &source.shape())
}

/// A convolution; in groups of one channel, if the kernel has but one.
fn conv(row: &Row, [stride, padding, dilation]: [[usize; 2]; 3], layouts: bool) -> Mapped {
    let [weights, x] = &row.sources[..] else { return Err(NO_OPERATOR) };
    let format = format(&weights.kind).ok_or(DENSE)?;
    let mut window = Window { stride, dilation, ..Window::PLAIN }.padded(padding);
    for (axis, dim) in [2, 3].into_iter().enumerate() {
        // The list rounds the number of places towards 0, and so puts a kernel that goes beyond the padding at the first.
        let (image, reach) = (x.shape()[dim], dilation[axis] * (weights.shape()[dim] - 1) + 1);
        window.after[axis] += reach.saturating_sub(image + 2 * padding[axis]);
    }
    Ok(Case::new(Conv2d { window }, &row.text, StepParams::at(0, 1), |o| {
        let x = match row.text_of("cwhn") {
            "1" if layouts => channels_last(o, x.shape()),
            _ => o.input(&x.shape()),
        };
        vec![x, kernel(o, weights, format)]
    }))
}

pub fn conv_2d(row: &Row) -> Mapped {
    let both = |name: &str| [1, 0].map(|axis| row.number::<usize>(&format!("{name}{axis}")));
    conv(row, ["stride", "padding", "dilation"].map(both), false)
}

pub fn conv_2d_dw(row: &Row) -> Mapped {
    let both = |name: &str| [row.number::<usize>(name); 2];
    conv(row, ["stride", "padding", "dilation"].map(both), true)
}
