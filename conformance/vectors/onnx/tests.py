"""Writes the node tests of the package `onnx`, which makes them but does not ship them: a folder each, with model.onnx and
sets of data.

    python tests.py --out DIR
"""

import argparse
from pathlib import Path

import numpy as np
from onnx import TensorProto, numpy_helper
from onnx.backend.test.case.node import collect_testcases

# How values that are not tensors are written, by the field of their type.
OTHERS = {
    "map_type": numpy_helper.from_dict, "sequence_type": numpy_helper.from_list,
    "optional_type": numpy_helper.from_optional,
}  # fmt: skip


def proto(value, info):
    """A value as protobuf, by what the model says of it."""
    for field, convert in OTHERS.items():
        if info.type.HasField(field):
            return convert(value, info.name)
    return value if isinstance(value, TensorProto) else numpy_helper.from_array(np.asarray(value), info.name)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    out = parser.parse_args().out
    # Some tests divide by zero on purpose.
    with np.errstate(all="ignore"):
        tests = collect_testcases(None)
    for test in tests:
        folder = out / test.name
        for index, arrays in enumerate(test.data_sets):
            data = folder / f"test_data_set_{index}"
            data.mkdir(parents=True)
            graph = test.model.graph
            for kind, values, infos in zip(("input", "output"), arrays, (graph.input, graph.output)):
                for place, (value, info) in enumerate(zip(values, infos)):
                    (data / f"{kind}_{place}.pb").write_bytes(proto(value, info).SerializeToString())
        (folder / "model.onnx").write_bytes(test.model.SerializeToString())


main()
