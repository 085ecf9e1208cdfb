"""Golden vectors of the weight formats: random blocks, and what the `gguf` package (0.19.0) decodes them to.

    pip install gguf==0.19.0
    python reference-cpu/tests/formats/make.py [FORMAT ...]

Beside this script NAME.bin becomes the blocks, then their elements as f32, all little-endian. Codebooks are written to
backend-api/src/format/codebooks.
"""

import sys
from pathlib import Path

import gguf
import numpy as np

# The byte offsets of each format's f16 fields, which are kept finite. One in parts has the bits where its nibbles begin.
HALVES = {
    "F32": None,
    "F16": [0],
    "BF16": None,
    "Q4_0": [0],
    "Q4_1": [0, 2],
    "Q5_0": [0],
    "Q5_1": [0, 2],
    "Q8_0": [0],
    "Q4_K": [0, 2],
    "Q5_K": [0, 2],
    "Q6_K": [208],
    "IQ4_NL": [0],
    "IQ2_XXS": [0],
    "Q2_K": [80, 82],
    "Q3_K": [108],
    "IQ4_XS": [0],
    "MXFP4": [],
    "NVFP4": [],
    "TQ2_0": [64],
    "TQ1_0": [52],
    "Q1_0": [0],
    "Q2_0": [0],
    "IQ2_XS": [0],
    "IQ2_S": [0],
    "IQ3_XXS": [0],
    "IQ3_S": [0],
    "IQ1_S": [0],
    "IQ1_M": [[396, 412, 428, 444]],
}

# Exponents that make numbers beyond floats are left out.
EXPONENTS = {"MXFP4": (0, 250)}

# Formats that the package does not decode: type id, elements and bytes of a block, and how they are defined.
OTHERS = {
    "Q1_0": (41, 128, 18, lambda d, q: np.where(np.unpackbits(q, axis=1, bitorder="little") == 1, d, -d)),
    "Q2_0": (42, 64, 18, lambda d, q: (quarters(q) - np.float32(1)) * d),
}


def quarters(q):
    """The four codes of each byte, the lowest first."""
    codes = q[:, :, None] >> np.array([0, 2, 4, 6], dtype=np.uint8) & 3
    return codes.reshape(len(q), -1).astype(np.float32)


# Where blocks have the indices of codebooks' entries: the first bits of their lower bytes, and of what is above those.
# Test data has each entry.
INDICES = {
    "IQ2_XXS": ([16 + 64 * group + 8 * i for group in range(8) for i in range(4)], 0, None),
    "IQ2_XS": ([16 + 16 * i for i in range(32)], 1, [24 + 16 * i for i in range(32)]),
    "IQ2_S": ([16 + 8 * i for i in range(32)], 2, [528 + 2 * i for i in range(32)]),
    "IQ3_XXS": ([16 + 8 * i for i in range(64)], 0, None),
    "IQ3_S": ([16 + 8 * i for i in range(64)], 1, [528 + i for i in range(64)]),
    "IQ1_S": ([16 + 8 * i for i in range(32)], 3, [272 + 16 * group + 3 * i for group in range(8) for i in range(4)]),
}

HERE = Path(__file__).parent
CODEBOOKS = HERE.parents[2] / "backend-api/src/format/codebooks"


def codebook(name):
    """The entries of a grid, 16 bits each: the codes of its values."""
    getattr(gguf.quants, name).init_grid()
    grid = getattr(gguf.quants, name).grid.squeeze()
    values, codes = np.unique(grid, return_inverse=True)
    bits = 16 // grid.shape[1]
    assert len(values) <= 1 << bits, name
    shifts = np.arange(0, 16, bits, dtype=np.uint16)
    return (codes.reshape(grid.shape).astype(np.uint16) << shifts).sum(axis=1).astype("<u2")


def put(data, first, values, bits):
    """Puts the lowest bits of values where each begins in the blocks."""
    block = np.unpackbits(data, axis=1, bitorder="little")
    for i in range(bits):
        block[:, np.add(first, i)] = values >> i & 1
    data[:] = np.packbits(block, axis=1, bitorder="little")


def blocks(name, sizes, halves, random):
    """Random bytes; a quarter of the f16 fields are subnormal."""
    length, size = sizes
    low, bits, high = INDICES.get(name, (None, 0, None))
    entries = 256 << bits
    count = entries // len(low) if low else max(4, 256 // length)
    data = random.integers(0, 256, (count, size), dtype=np.uint8)
    if low:
        indices = random.permutation(entries).reshape(count, -1)
        put(data, low, indices, 8)
        if high:
            put(data, high, indices >> 8, bits)
    if halves is None:
        values = random.standard_normal(count).astype("<f4")
        return values.view(np.uint8).reshape(count, 4)[:, 4 - size :]
    if name in EXPONENTS:
        at, end = EXPONENTS[name]
        data[:, at] %= end
    for at in halves:
        exponent = np.where(np.arange(count) % 4 == 3, 0, random.integers(1, 20, count)).astype(np.uint16)
        half = random.integers(0, 1 << 16, count).astype(np.uint16) & 0x83FF | exponent << 10
        if isinstance(at, list):
            for i, first in enumerate(at):
                put(data, [first], (half >> 4 * i)[:, None], 4)
            continue
        data[:, at : at + 2] = half.astype("<u2").view(np.uint8).reshape(count, 2)
    return data


def main():
    for name in sys.argv[1:] or HALVES:
        if name in OTHERS:
            kind, *sizes, decode = OTHERS[name]
        else:
            kind = gguf.GGMLQuantizationType[name]
            sizes, decode = gguf.GGML_QUANT_SIZES[kind], None
        data = np.ascontiguousarray(blocks(name, sizes, HALVES[name], np.random.default_rng(int(kind))))
        with np.errstate(all="ignore"):
            if decode:
                values = decode(data[:, :2].copy().view("<f2").astype("<f4"), data[:, 2:]).astype("<f4")
            else:
                values = gguf.quants.dequantize(data, kind).astype("<f4")
        assert np.isfinite(values).all(), name
        (HERE / f"{name}.bin").write_bytes(data.tobytes() + values.tobytes())
        if name in INDICES:
            (CODEBOOKS / f"{name.lower()}.bin").write_bytes(codebook(name).tobytes())


main()
