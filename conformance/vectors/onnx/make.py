"""Cases from the node tests of ONNX: those that map to anygpu's operators, and a list of the others.

    python conformance/vectors/onnx/make.py --tests DIR --out DIR

Into DIR go cases.json, a case a line; arrays.bin, their arrays, each once; README.md, what is mapped and why the rest is
not. `cargo xtask vectors` fetches the package with the tests and runs this.
"""

import argparse
import json
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import onnx
from layers import HANDLERS
from tracing import Unmapped, trace


class Arrays:
    """All arrays, one after the other; equal ones are kept once."""

    def __init__(self):
        self.bytes, self.places = bytearray(), {}

    def place(self, array):
        """How a case refers to an array."""
        data = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<")).tobytes()
        if data not in self.places:
            self.places[data] = len(self.bytes)
            self.bytes += data
        dtype = "f32" if array.dtype == np.float32 else "i32"
        return {"dtype": dtype, "shape": list(array.shape), "at": self.places[data]}


def convert(folder, arrays):
    """The cases of a test, one for each set of its data, and which results are left out of them."""
    model = onnx.load(folder / "model.onnx")
    ops = {node.op_type for node in model.graph.node}
    cases, left_out = [], []
    sets = sorted(folder.glob("test_data_set_*"))
    for index, data in enumerate(sets):
        graph, left_out = trace(model, data, HANDLERS)
        name = folder.name if len(sets) == 1 else f"{folder.name} {index}"
        of = next(iter(ops)) if len(ops) == 1 else "a graph"
        cases.append({"name": name, "of": of, **graph.case(arrays.place)})
    return cases, left_out


def listing(version, cases, unmapped, partial):
    """The document that says what is mapped, and why the rest is not."""
    left = sum(map(len, unmapped.values()))
    lines = [
        "# Node tests of ONNX",
        "",
        f"Of {len(cases) + left} node tests of ONNX ({version}, Apache-2.0), {len(cases)} are cases here and {left} are not.",
        "Their results were computed by the authors of ONNX; `cargo xtask vectors` wrote this page and the files beside it.",
        "",
        "    cargo run --release -p conformance -- --vectors conformance/vectors/onnx",
        "",
        "Tests are mapped by what their nodes compute, never by name. A node becomes operators of anygpu's whose",
        "definitions make up its own, with reshapes, transposes, slices and copies where layouts differ; a test whose",
        "operator is given as a graph goes node by node. What follows from integers, shapes and constants alone is",
        "computed beforehand; indices become 32 bits wide. A backend that refuses an operator fails.",
        "",
        "## Mapped",
        "",
        "| operator of anygpu's | nodes | cases |",
        "|---|---|---|",
    ]
    nodes = Counter(node["op"] for case in cases for node in case["nodes"])
    having = Counter(op for case in cases for op in {node["op"] for node in case["nodes"]})
    lines += [f"| {op} | {nodes[op]} | {count} |" for op, count in sorted(having.items())]
    lines += ["", "| ONNX operator | cases |", "|---|---|"]
    of = defaultdict(list)
    for case in cases:
        of[case["of"]].append(case["name"].removeprefix("test_"))
    lines += [f"| {op} | {', '.join(of[op])} |" for op in sorted(of, key=lambda op: (op == "a graph", op))]
    if partial:
        lines += ["", "Results that are not compared, since anygpu's operators do not give them:", ""]
        lines += [f"- {', '.join(results)}: {', '.join(names)}" for results, names in sorted(partial.items())]
    lines += ["", "## Not mapped", "", "| what anygpu does not have | tests | which |", "|---|---|---|"]
    ranked = sorted(unmapped.items(), key=lambda item: (-len(item[1]), item[0]))
    lines += [f"| {why} | {len(names)} | {', '.join(n.removeprefix('test_') for n in names)} |" for why, names in ranked]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tests", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    arrays, cases, unmapped, partial = Arrays(), [], defaultdict(list), defaultdict(list)
    for folder in sorted(options.tests.iterdir()):
        if not (folder / "model.onnx").is_file():
            continue
        try:
            found, left_out = convert(folder, arrays)
        except Unmapped as why:
            unmapped[str(why)].append(folder.name)
            continue
        cases += found
        if left_out:
            partial[tuple(left_out)].append(folder.name.removeprefix("test_"))
    options.out.mkdir(parents=True, exist_ok=True)
    body = ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases)
    (options.out / "cases.json").write_text(f"[\n{body}\n]\n")
    (options.out / "arrays.bin").write_bytes(arrays.bytes)
    (options.out / "README.md").write_text(listing(onnx.__version__, cases, unmapped, partial))
    print(f"{len(cases)} mapped, {sum(map(len, unmapped.values()))} not mapped")


main()
