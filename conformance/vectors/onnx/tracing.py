"""From a node test of ONNX to a graph: what follows from shapes and integers is computed, the rest becomes nodes."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from graph import Graph, Unmapped, Value

# The element types of inputs: floats become tensors, integers and truth values are constants of the case.
FLOAT = TensorProto.FLOAT
CONSTANTS = {
    TensorProto.BOOL,
    TensorProto.INT8,
    TensorProto.INT16,
    TensorProto.INT32,
    TensorProto.INT64,
    TensorProto.UINT8,
    TensorProto.UINT16,
    TensorProto.UINT32,
    TensorProto.UINT64,
}

# What a handler returns for a result that anygpu does not give.
NOT_COMPARED = object()


class Node:
    """A node of ONNX as handlers see it."""

    def __init__(self, proto, opset):
        self.op, self.opset, self.outputs = proto.op_type, opset, list(proto.output)
        self.attributes = {a.name: helper.get_attribute_value(a) for a in proto.attribute}

    def get(self, name, default=None):
        """An attribute."""
        value = self.attributes.get(name, default)
        return value.decode() if isinstance(value, bytes) else value

    def returns(self, index):
        """Whether the test has this result."""
        return index < len(self.outputs) and self.outputs[index] != ""


def constant(x):
    """The value of an input that says what is computed, such as axes."""
    if not isinstance(x, Value):
        return x
    if x.array is None:
        raise Unmapped("parameters that are computed")
    return x.array.reshape(x.shape)


def axis_of(axis, rank):
    """An axis counted from the first dimension."""
    return int(axis) + rank if axis < 0 else int(axis)


def type_name(kind):
    """How an element type is called."""
    return TensorProto.DataType.Name(kind).lower()


def tensor_type(info):
    """The element type of an input or output of the model."""
    kind = info.type.WhichOneof("value")
    if kind != "tensor_type":
        raise Unmapped(f"{kind.removesuffix('_type').replace('_', ' ')}s: all of anygpu's values are tensors")
    return info.type.tensor_type.elem_type


def read(path):
    """The array of a `.pb` file."""
    tensor = onnx.TensorProto()
    tensor.ParseFromString(path.read_bytes())
    return numpy_helper.to_array(tensor)


def fold(proto, opset, inputs):
    """The results of a node whose operands are all known."""
    names = [name for name in proto.input if name]
    kind = lambda name: helper.np_dtype_to_tensor_dtype(np.asarray(inputs[name]).dtype)
    operands = [helper.make_tensor_value_info(name, kind(name), None) for name in names]
    results = [helper.make_empty_tensor_value_info(name) for name in proto.output if name]
    made = helper.make_graph([proto], "fold", operands, results)
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", opset)])
    with np.errstate(all="ignore"):
        results = ReferenceEvaluator(model).run(None, {name: np.asarray(inputs[name]) for name in names})
    return dict(zip((n for n in proto.output if n), results))


def trace(model, data, handlers):
    """The graph of a test with one set of data, and the names of the results that are not compared."""
    if any(node.domain not in ("", "ai.onnx") for node in model.graph.node):
        raise Unmapped(f"operators of the domain {next(n.domain for n in model.graph.node if n.domain)}")
    kinds = [tensor_type(info) for info in [*model.graph.input, *model.graph.output]]
    for kind in kinds:
        if kind != FLOAT and kind not in CONSTANTS:
            raise Unmapped(f"tensors of the type {type_name(kind)}")
    opset = next(o.version for o in model.opset_import if o.domain in ("", "ai.onnx"))
    graph, values = Graph(), {"": None}
    for initializer in model.graph.initializer:
        values[initializer.name] = numpy_helper.to_array(initializer)
    for index, info in enumerate(model.graph.input):
        array = read(data / f"input_{index}.pb")
        values[info.name] = graph.input(array) if array.dtype == np.float32 else array
    if not graph.inputs:
        raise Unmapped("operands of integers or truth values alone, or none: anygpu computes with floats")
    for proto in model.graph.node:
        inputs = [values[name] for name in proto.input]
        node = Node(proto, opset)
        if proto.op_type in ("Shape", "Size") and isinstance(inputs[0], Value):
            known = {proto.input[0]: np.empty(inputs[0].shape, np.float32)}
            values.update(fold(proto, opset, known))
        elif not any(isinstance(x, Value) for x in inputs):
            if any(a.type in (a.GRAPH, a.GRAPHS) for a in proto.attribute):
                raise Unmapped("control flow: graphs are straight")
            values.update(fold(proto, opset, dict(zip(proto.input, inputs))))
        elif proto.op_type not in handlers:
            raise Unmapped(f"the operator {proto.op_type}")
        else:
            found = handlers[proto.op_type](graph, node, *inputs)
            found = found if isinstance(found, list) else [found]
            values.update(zip(proto.output, found))
    left_out = []
    for index, info in enumerate(model.graph.output):
        if values[info.name] is NOT_COMPARED:
            left_out.append(info.name)
        else:
            graph.output(values[info.name], read(data / f"output_{index}.pb"))
    return graph, left_out
