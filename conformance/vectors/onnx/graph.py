"""A graph of anygpu's operators, while it is made from nodes of ONNX."""

from math import prod

import numpy as np


class Unmapped(Exception):
    """Why a test has no counterpart among anygpu's operators."""


class Value:
    """A tensor of the graph. `stored` is the shape that it has there, `shape` the one that it has in ONNX.

    Reshaping changes `shape` alone; elements are brought into a shape when a node needs them in it. Ids cannot be: those
    of another axis than the last keep it as `axis`, and lie as if it were the last.
    """

    def __init__(self, source, stored, shape, dtype, array=None):
        self.source, self.stored, self.shape, self.dtype, self.array = source, stored, shape, dtype, array
        self.axis = None


def dims(shape):
    """A shape as anygpu has it: a scalar is a vector of one element."""
    return tuple(int(d) for d in shape) or (1,)


def around(shape, axis):
    """The elements outside an axis, along it and within it."""
    return prod(shape[:axis]), shape[axis], prod(shape[axis + 1 :])


class Graph:
    """Nodes in SSA form, with the arrays that they begin with."""

    def __init__(self):
        self.inputs, self.states, self.nodes, self.results, self.outputs = [], set(), [], 0, []

    def input(self, array):
        """An array of the test; indices become 32 bits wide, as anygpu has them."""
        array = np.asarray(array)
        if array.size == 0:
            raise Unmapped("tensors without elements: a shape has no dimension of 0")
        if array.dtype != np.float32:
            if not np.issubdtype(array.dtype, np.signedinteger) or np.abs(array).max() > 2**31 - 1:
                raise Unmapped(f"operands of the type {array.dtype}")
            array = array.astype(np.int32)
        stored = dims(array.shape) if array.ndim <= 4 else (array.size,)
        dtype = "f32" if array.dtype == np.float32 else "i32"
        self.inputs.append(array.reshape(stored))
        return Value(("input", len(self.inputs) - 1), stored, tuple(array.shape), dtype, array)

    def state(self, array):
        """What a node continues: it begins as this array."""
        value = self.input(array)
        self.states.add(value.source[1])
        return value

    def value(self, x):
        """A tensor of the graph; a constant becomes an input."""
        return x if isinstance(x, Value) else self.input(x)

    def floats(self, x):
        """The same, of floats."""
        value = self.value(x)
        if value.dtype != "f32":
            raise Unmapped("arithmetic on integers: anygpu's integers are ids")
        return value

    def push(self, op, operands, *results, **params):
        """Adds a node, whose results are given as (stored, shape, dtype); only the first two for floats."""
        self.nodes.append({"op": op, "inputs": [v.source for v in operands], **params})
        values = []
        for stored, shape, *dtype in results:
            values.append(Value(("result", self.results), dims(stored), tuple(shape), *(dtype or ["f32"])))
            self.results += 1
        return values[0] if len(values) == 1 else values

    def at(self, x, shape):
        """The elements in a shape, as operand of a node."""
        v, shape = self.floats(x), dims(shape)
        if len(shape) > 4:
            raise Unmapped("tensors of more than 4 dimensions")
        if v.stored == shape:
            return v
        perm = list(range(len(shape)))
        return self.push("permute", [v], (shape, v.shape), view=list(shape), perm=perm)

    def reshape(self, x, shape):
        """The same elements in another shape."""
        v = self.value(x)
        if v.axis is not None:
            raise Unmapped("ids that are transposed: none but floats are")
        return Value(v.source, v.stored, tuple(int(d) for d in shape), v.dtype, v.array)

    def permute(self, x, perm):
        """Dimension i of the result is dimension perm[i]. Those that stay neighbours are moved as one."""
        v = self.floats(x)
        shape = [v.shape[axis] for axis in perm]
        wide = [axis for axis in range(len(perm)) if v.shape[axis] != 1]
        groups = []
        for axis in (axis for axis in perm if axis in wide):
            if groups and wide.index(groups[-1][-1]) + 1 == wide.index(axis):
                groups[-1].append(axis)
            else:
                groups.append([axis])
        if len(groups) <= 1:
            return self.reshape(v, shape)
        order = sorted(groups)
        sizes = [prod(v.shape[axis] for axis in group) for group in order]
        perm = [order.index(group) for group in groups]
        stored = [sizes[i] for i in perm]
        return self.push("permute", [self.at(v, sizes)], (stored, shape), view=sizes, perm=perm)

    def unary(self, kind, x):
        """An elementwise function."""
        v = self.floats(x)
        return self.push("unary", [v], (v.stored, v.shape), kind=kind)

    def scale(self, x, factor, bias=0.0):
        """`factor * x + bias`."""
        v = self.floats(x)
        return self.push("scale", [v], (v.stored, v.shape), factor=float(factor), bias=float(bias))

    def binary(self, kind, a, b):
        """Elementwise arithmetic with broadcasting."""
        a, b = self.floats(a), self.floats(b)
        shape = np.broadcast_shapes(a.shape, b.shape)
        if a.shape == b.shape and a.stored == b.stored:
            return self.push("binary", [a, b], (a.stored, shape), kind=kind)
        return self.push("binary", [self.at(a, a.shape), self.at(b, b.shape)], (shape, shape), kind=kind)

    def slice(self, x, axis, start, length):
        """Some elements along an axis, seen as columns."""
        v = self.floats(x)
        outer, n, inner = around(v.shape, axis)
        if length == n:
            return v
        if length <= 0:
            raise Unmapped("tensors without elements: a shape has no dimension of 0")
        shape = v.shape[:axis] + (length,) + v.shape[axis + 1 :]
        columns = self.at(v, (outer, n * inner))
        return self.push("slice", [columns], ((outer, length * inner), shape), start=start * inner, len=length * inner)

    def concat(self, parts, axis):
        """Tensors one after the other along an axis."""
        whole = self.floats(parts[0])
        for part in map(self.floats, parts[1:]):
            shape = whole.shape[:axis] + (whole.shape[axis] + part.shape[axis],) + whole.shape[axis + 1 :]
            # More than four dimensions are taken together around the axis.
            few = len(shape) <= 4
            fit = lambda dims: dims if few else (prod(dims[:axis]), prod(dims[axis:]))
            operands = [self.at(v, fit(v.shape)) for v in (whole, part)]
            whole = self.push("concat", operands, (fit(shape), shape), axis=axis if few else 1)
        return whole

    def output(self, value, expected):
        """Makes a tensor an output, in the shape that the test gives; what is expected of ids is brought into theirs."""
        if not isinstance(value, Value):
            raise Unmapped("results that follow from integers, constants and shapes alone")
        expected = np.asarray(expected)
        if tuple(expected.shape) != value.shape:
            raise ValueError(f"{expected.shape} instead of {value.shape}")
        if value.dtype == "i32":
            if value.source[0] == "input":
                raise Unmapped("copies of integers: anygpu's integers are ids")
            if value.axis is not None:
                expected = np.moveaxis(expected, value.axis, -1)
            expected = expected.astype(np.int32).reshape(value.stored)
        else:
            shape = dims(expected.shape) if expected.ndim <= 4 else value.stored
            taken = value.source[0] == "input" or any(source == value.source for source, _ in self.outputs)
            if taken and value.stored == shape:
                value = self.push("permute", [value], (shape, shape), view=list(shape), perm=list(range(len(shape))))
            value = self.at(value, shape)
            expected = expected.reshape(shape)
        self.outputs.append((value.source, expected))

    def case(self, place):
        """Inputs that are used, nodes and outputs; tensors are numbered: inputs first, then what the nodes make."""
        used = {source for node in self.nodes for source in node["inputs"]}
        inputs = [i for i in range(len(self.inputs)) if ("input", i) in used]
        number = lambda source: inputs.index(source[1]) if source[0] == "input" else len(inputs) + source[1]
        return {
            "inputs": [{**place(self.inputs[i]), **({"state": True} if i in self.states else {})} for i in inputs],
            "nodes": [{**node, "inputs": [number(source) for source in node["inputs"]]} for node in self.nodes],
            "outputs": [{"tensor": number(source), **place(array)} for source, array in self.outputs],
        }
