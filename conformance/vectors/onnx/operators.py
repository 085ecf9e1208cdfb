"""What ONNX's operators are in terms of anygpu's: one function an operator, by its definition.

*Source*: https://onnx.ai/onnx/operators
"""

from math import prod

import numpy as np

from graph import Unmapped, around
from tracing import axis_of, constant

HANDLERS = {}


def onnx(*names):
    """Registers the function for these operators."""

    def register(function):
        HANDLERS.update(dict.fromkeys(names, function))
        return function

    return register


UNARY = {
    "Abs": "abs", "Ceil": "ceil", "Cos": "cos", "Exp": "exp", "Floor": "floor", "HardSwish": "hardswish", "Log": "log",
    "Neg": "neg", "Relu": "relu", "Sigmoid": "sigmoid", "Sin": "sin", "Softplus": "softplus", "Sqrt": "sqrt",
    "Tanh": "tanh",
}  # fmt: skip


@onnx(*UNARY)
def unary(g, node, x):
    return g.unary(UNARY[node.op], x)


@onnx("Gelu")
def gelu(g, node, x):
    return g.unary("gelu_tanh" if node.get("approximate", "none") == "tanh" else "gelu_erf", x)


@onnx("Swish")
def swish(g, node, x):
    alpha = node.get("alpha", 1.0)
    if alpha == 1:
        return g.unary("silu", x)
    return g.binary("mul", x, g.unary("sigmoid", g.scale(x, alpha)))


@onnx("Reciprocal")
def reciprocal(g, node, x):
    return g.binary("div", np.float32(1), x)


@onnx("Softsign")
def softsign(g, node, x):
    return g.binary("div", x, g.scale(g.unary("abs", x), 1, 1))


@onnx("Add", "Sub", "Mul", "Div")
def binary(g, node, a, b):
    if node.opset < 7:
        raise Unmapped("broadcasting as it was before opset 7")
    return g.binary(node.op.lower(), a, b)


@onnx("Sum", "Mean")
def total(g, node, *parts):
    whole = g.floats(parts[0])
    for part in parts[1:]:
        whole = g.binary("add", whole, part)
    return g.scale(whole, 1 / len(parts)) if node.op == "Mean" and len(parts) > 1 else whole


@onnx("Max", "Min")
def largest(g, node, x, *others):
    if others:
        raise Unmapped(f"the operator {node.op}")
    return x


@onnx("Pow")
def power(g, node, x, exponent):
    e = constant(exponent)
    if e.size == 1 and e.item() == 2:
        return g.binary("mul", x, x)
    if e.size == 1 and e.item() == 3:
        return g.binary("mul", x, g.binary("mul", x, x))
    raise Unmapped("the operator Pow, but for squares and cubes")


@onnx("Identity", "Dropout")
def identity(g, node, x, ratio=None, training=None):
    if training is not None and constant(training):
        raise Unmapped("random numbers of training")
    if node.returns(1):
        raise Unmapped("truth values: there are floats and ids")
    return x


@onnx("Cast", "CastLike")
def cast(g, node, x, like=None):
    to = node.get("to", 1) if like is None else (1 if g.value(like).dtype == "f32" else 0)
    if to != 1:
        raise Unmapped("conversions of numbers to other types")
    return g.floats(x)


@onnx("Reshape")
def reshape(g, node, x, shape):
    x = g.floats(x)
    shape = [int(d) for d in constant(shape)]
    if not node.get("allowzero", 0):
        shape = [x.shape[i] if d == 0 else d for i, d in enumerate(shape)]
    return g.reshape(x, [prod(x.shape) // -prod(shape) if d == -1 else d for d in shape])


@onnx("Flatten")
def flatten(g, node, x):
    axis = axis_of(node.get("axis", 1), len(x.shape))
    return g.reshape(x, [prod(x.shape[:axis]), prod(x.shape[axis:])])


@onnx("Squeeze", "Unsqueeze")
def squeeze(g, node, x, axes=None):
    x = g.floats(x)
    axes = node.get("axes") if axes is None else constant(axes)
    if node.op == "Unsqueeze":
        rank = len(x.shape) + len(axes)
        new, old = {axis_of(a, rank) for a in axes}, iter(x.shape)
        return g.reshape(x, [1 if i in new else next(old) for i in range(rank)])
    gone = {i for i, d in enumerate(x.shape) if d == 1} if axes is None else {axis_of(a, len(x.shape)) for a in axes}
    return g.reshape(x, [d for i, d in enumerate(x.shape) if i not in gone])


@onnx("Transpose")
def transpose(g, node, x):
    x = g.floats(x)
    return g.permute(x, node.get("perm") or list(reversed(range(len(x.shape)))))


@onnx("SpaceToDepth", "DepthToSpace")
def blocks(g, node, x):
    (n, c, h, w), b = x.shape, node.get("blocksize")
    channels_last = node.get("mode", "DCR") == "DCR"
    if node.op == "SpaceToDepth":
        perm = (0, 3, 5, 1, 2, 4) if channels_last else (0, 1, 3, 5, 2, 4)
        split, shape = (n, c, h // b, b, w // b, b), (n, c * b * b, h // b, w // b)
    elif channels_last:
        split, perm, shape = (n, b, b, c // b**2, h, w), (0, 3, 4, 1, 5, 2), (n, c // b**2, h * b, w * b)
    else:
        split, perm, shape = (n, c // b**2, b, b, h, w), (0, 1, 4, 2, 5, 3), (n, c // b**2, h * b, w * b)
    return g.reshape(g.permute(g.reshape(x, split), perm), shape)


@onnx("Concat")
def concat(g, node, *parts):
    axis = axis_of(node.get("axis"), len(g.value(parts[0]).shape))
    return g.concat(parts, axis)


@onnx("Tile")
def tile(g, node, x, repeats):
    for axis, count in enumerate(constant(repeats)):
        x = g.concat([x] * int(count), axis)
    return x


@onnx("Expand")
def expand(g, node, x, shape):
    x = g.floats(x)
    to = np.broadcast_shapes(x.shape, tuple(int(d) for d in constant(shape)))
    x = g.reshape(x, (1,) * (len(to) - len(x.shape)) + x.shape)
    for axis, (n, wanted) in enumerate(zip(x.shape, to)):
        x = g.concat([x] * (wanted // n), axis)
    return x


@onnx("Split")
def split(g, node, x, sizes=None):
    axis = axis_of(node.get("axis", 0), len(x.shape))
    n = x.shape[axis]
    sizes = node.get("split") if sizes is None else constant(sizes)
    if sizes is None:
        size = -(-n // len(node.outputs))
        sizes = [min(size, n - start) for start in range(0, n, size)]
    starts = np.cumsum([0, *sizes])
    return [g.slice(x, axis, int(start), int(size)) for start, size in zip(starts, sizes)]


@onnx("Slice")
def slice_(g, node, x, starts=None, ends=None, axes=None, steps=None):
    x = g.floats(x)
    starts, ends = (node.get(n) if v is None else constant(v) for n, v in (("starts", starts), ("ends", ends)))
    axes = node.get("axes", range(len(starts))) if axes is None else constant(axes)
    steps = [1] * len(starts) if steps is None else constant(steps)
    for start, end, axis, step in zip(starts, ends, axes, steps):
        axis = axis_of(axis, len(x.shape))
        taken = range(*slice(int(start), int(end), int(step)).indices(x.shape[axis]))
        if step == 1:
            x = g.slice(x, axis, taken.start, len(taken))
            continue
        outer, n, inner = around(x.shape, axis)
        if step < 1 or n % step or len(taken) != n // step:
            raise Unmapped("slices with steps that do not divide the dimension, or go backwards")
        # One column of each group of `step`.
        shape = x.shape[:axis] + (len(taken),) + x.shape[axis + 1 :]
        groups = g.reshape(x, (outer, n // step, step, inner))
        x = g.reshape(g.slice(groups, 2, taken.start, 1), shape)
    return x


@onnx("Pad")
def pad(g, node, x, pads=None, value=None, axes=None):
    x = g.floats(x)
    if node.get("mode", "constant") != "constant":
        raise Unmapped("padding with anything but zeros")
    if np.any(constant(value) if value is not None else node.get("value", 0)):
        raise Unmapped("padding with anything but zeros")
    pads, rank = constant(pads) if pads is not None else node.get("pads"), len(x.shape)
    axes = range(rank) if axes is None else constant(axes)
    if rank > 4:
        raise Unmapped("tensors of more than 4 dimensions")
    if min(pads) < 0:
        raise Unmapped("padding by less than nothing")
    before, after, shape = [0] * 4, [0] * 4, list(x.shape)
    for i, axis in enumerate(axes):
        axis = axis_of(axis, rank)
        before[4 - rank + axis], after[4 - rank + axis] = int(pads[i]), int(pads[i + len(axes)])
        shape[axis] += int(pads[i] + pads[i + len(axes)])
    return g.push("pad", [g.at(x, x.shape)], (shape, shape), before=before, after=after)


@onnx("CenterCropPad")
def center(g, node, x, shape):
    axes = [axis_of(a, len(x.shape)) for a in node.get("axes", range(len(x.shape)))]
    for axis, to in zip(axes, constant(shape)):
        n, to = x.shape[axis], int(to)
        if to <= n:
            x = g.slice(x, axis, (n - to) // 2, to)
            continue
        pads = [0] * 2 * len(x.shape)
        pads[axis], pads[axis + len(x.shape)] = (to - n) // 2, to - n - (to - n) // 2
        x = pad(g, node, x, np.array(pads))
    return x


@onnx("Gather")
def gather(g, node, table, ids):
    table, ids = g.floats(table), constant(ids)
    rank, axis = len(table.shape), axis_of(node.get("axis", 0), len(table.shape))
    if np.any(ids < 0):
        raise Unmapped("indices that count from the end: get_rows clamps them")
    first = g.permute(table, [axis, *(i for i in range(rank) if i != axis)])
    v, d = table.shape[axis], prod(table.shape) // table.shape[axis]
    rest = table.shape[:axis] + table.shape[axis + 1 :]
    # A vector of ids, whatever its shape: the rows come in the same order.
    rows = g.push("get_rows", [g.at(first, (v, d)), g.value(ids.reshape(-1))], ((ids.size, d), ids.shape + rest))
    before = range(ids.ndim, ids.ndim + axis)
    return g.permute(rows, [*before, *range(ids.ndim), *range(ids.ndim + axis, len(rows.shape))])


def matrix_product(g, a, b):
    """numpy's `matmul`: anygpu's takes the second operand transposed."""
    if len(b.shape) == 1:
        b, drop_b = g.reshape(b, (b.shape[0], 1)), True
    else:
        drop_b = False
    drop_a = len(a.shape) == 1
    a = g.reshape(a, (1, *a.shape)) if drop_a else a
    b = g.permute(b, [*range(len(b.shape) - 2), len(b.shape) - 1, len(b.shape) - 2])
    # numpy repeats matrices of a batch of one alone; anygpu's rule is the same there.
    shape = (*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-2])
    y = g.push("matmul", [g.at(a, a.shape), g.at(b, b.shape)], (shape, shape))
    return g.reshape(y, shape[:-2] + shape[-2:][drop_a : 2 - drop_b])


@onnx("MatMul")
def matmul(g, node, a, b):
    return matrix_product(g, g.floats(a), g.floats(b))


@onnx("Gemm")
def gemm(g, node, a, b, c=None):
    a, b = (g.permute(x, [1, 0]) if node.get(n, 0) else g.floats(x) for n, x in (("transA", a), ("transB", b)))
    y, alpha, beta = matrix_product(g, a, b), node.get("alpha", 1.0), node.get("beta", 1.0)
    y = y if alpha == 1 else g.scale(y, alpha)
    return y if c is None else g.binary("add", y, c if beta == 1 else g.scale(c, beta))
