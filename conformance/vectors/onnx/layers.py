"""The operators of networks: reductions of rows, norms, attention, rotary embedding."""

from math import prod

import numpy as np

from graph import Unmapped
from operators import HANDLERS, onnx
from tracing import NOT_COMPARED, axis_of, constant

__all__ = ["HANDLERS"]

# The most candidates that top_k keeps, and the most taps that short_conv has.
TOP_K, TAPS = 64, 16


def on_last_axis(g, x, axis, apply):
    """Applies what works on rows along another axis, and brings the axis back."""
    rank = len(x.shape)
    perm = [*(i for i in range(rank) if i != axis), axis]
    y = apply(g.permute(x, perm))
    return g.permute(y, [perm.index(i) for i in range(rank)])


def row_softmax(g, x):
    """Softmax of rows, in whatever shape they lie."""
    shape = x.stored if x.stored[-1] == x.shape[-1] else (prod(x.shape[:-1]), x.shape[-1])
    return g.push("softmax", [g.at(x, shape)], (shape, x.shape), scale=1.0)


@onnx("Softmax")
def softmax(g, node, x):
    x = g.floats(x)
    if node.opset < 13:
        axis = axis_of(node.get("axis", 1), len(x.shape))
        rows = g.reshape(x, (prod(x.shape[:axis]), prod(x.shape[axis:])))
        return g.reshape(row_softmax(g, rows), x.shape)
    return on_last_axis(g, x, axis_of(node.get("axis", -1), len(x.shape)), lambda x: row_softmax(g, x))


@onnx("TopK")
def top_k(g, node, x, k=None):
    # The smallest are the largest of the negated.
    smallest, k = not node.get("largest", 1), int(node.get("k") if k is None else constant(k).item())
    if k > TOP_K:
        raise Unmapped(f"more than {TOP_K} of the largest elements")
    x = g.unary("neg", x) if smallest else g.floats(x)
    rank, axis = len(x.shape), axis_of(node.get("axis", -1), len(x.shape))
    perm = [*(i for i in range(rank) if i != axis), axis]
    rows = g.permute(x, perm)
    stored = (*rows.shape[:-1], k)
    shape = (*x.shape[:axis], k, *x.shape[axis + 1 :])
    values, ids = g.push("top_k", [g.at(rows, rows.shape)], (stored, stored), (stored, shape, "i32"), k=k)
    ids.axis = axis if axis < rank - 1 else None
    values = g.permute(values, [perm.index(i) for i in range(rank)])
    return [g.unary("neg", values) if smallest else values, ids]


@onnx("ArgMax", "ArgMin")
def arg_max(g, node, x):
    if node.get("select_last_index", 0):
        raise Unmapped("the last of equal elements: argmax gives the first")
    x = g.unary("neg", x) if node.op == "ArgMin" else g.floats(x)
    rank, shape = len(x.shape), list(x.shape)
    axis = axis_of(node.get("axis", 0), rank)
    rows = g.permute(x, [*(i for i in range(rank) if i != axis), axis])
    shape[axis : axis + 1] = [1] if node.get("keepdims", 1) else []
    return g.push("argmax", [g.at(rows, rows.shape)], (rows.shape[:-1], shape, "i32"))


def norm(g, x, kind, eps, n, gamma, beta=None):
    """Norms rows of n elements."""
    gamma = g.at(gamma, (n,))
    params = [gamma] if beta is None else [gamma, g.at(beta, (n,))]
    rows = (prod(x.shape) // n, n)
    return g.push("norm", [g.at(x, rows), *params], (rows, x.shape), kind=kind, eps=float(eps), heads=1)


@onnx("LayerNormalization", "RMSNormalization")
def layer_norm(g, node, x, gamma, beta=None):
    axis = axis_of(node.get("axis", -1), len(x.shape))
    n, eps = prod(x.shape[axis:]), node.get("epsilon", 1e-5)
    kind = "rms" if node.op == "RMSNormalization" else "layer"
    zeros = None if kind == "rms" else np.zeros(n, np.float32)
    if all(v is None or prod(v.shape) == n for v in (gamma, beta)):
        y = norm(g, x, kind, eps, n, gamma, zeros if beta is None else beta)
    else:
        # A factor for several elements is applied to the normed ones.
        y = g.binary("mul", norm(g, x, kind, eps, n, np.ones(n, np.float32), zeros), gamma)
        y = y if beta is None else g.binary("add", y, beta)
    # Mean and deviation are for training.
    return y if kind == "rms" else [y, NOT_COMPARED, NOT_COMPARED]


@onnx("GroupNormalization", "InstanceNormalization")
def group_norm(g, node, x, gamma, beta):
    channels = x.shape[1]
    groups = node.get("num_groups", channels)
    if node.op == "GroupNormalization" and node.opset < 21:
        raise Unmapped("group norms with a factor for each group")
    n = prod(x.shape[1:]) // groups
    one, zero = np.ones(n, np.float32), np.zeros(n, np.float32)
    y = norm(g, x, "layer", node.get("epsilon", 1e-5), n, one, zero)
    rows = (x.shape[0], channels, prod(x.shape[2:]))
    gamma, beta = (g.reshape(v, (channels, 1)) for v in (gamma, beta))
    return g.reshape(g.binary("add", g.binary("mul", g.reshape(y, rows), gamma), beta), x.shape)


@onnx("BatchNormalization")
def batch_norm(g, node, x, gamma, beta, mean, variance):
    if node.get("training_mode", 0) or node.returns(1):
        raise Unmapped("statistics of training")
    rows = (x.shape[0], x.shape[1], prod(x.shape[2:]))
    gamma, beta, mean, variance = (g.reshape(v, (x.shape[1], 1)) for v in (gamma, beta, mean, variance))
    deviation = g.unary("sqrt", g.scale(variance, 1, node.get("epsilon", 1e-5)))
    y = g.binary("div", g.binary("sub", g.reshape(x, rows), mean), deviation)
    return g.reshape(g.binary("add", g.binary("mul", y, gamma), beta), x.shape)


def token_major(g, x, heads):
    """[batch, tokens, heads * channels], from that or from [batch, heads, tokens, channels]."""
    if len(x.shape) == 3:
        return x, heads
    b, h, t, c = x.shape
    return g.reshape(g.permute(x, [0, 2, 1, 3]), (b, t, h * c)), h


def head_major(g, x, heads):
    """[batch, heads, tokens, channels]."""
    if len(x.shape) == 4:
        return x
    b, t, c = x.shape
    return g.permute(g.reshape(x, (b, t, heads, c // heads)), [0, 2, 1, 3])


def masks(node, m, n, first, mask, lengths, native):
    """What is added to the scores [batch, heads, m, n] or to dimensions of 1, or None. `first` is the position of the first
    query, of each text or of all."""
    bias = np.zeros((1, 1, m, n), np.float32)
    hidden = lambda seen: np.where(seen, np.float32(0), np.float32(-np.inf))
    if mask is not None:
        added = hidden(mask) if mask.dtype == bool else mask
        if added.shape[-1] < n:
            added = np.pad(added, [(0, 0)] * (added.ndim - 1) + [(0, n - added.shape[-1])], constant_values=-np.inf)
        bias = bias + added.reshape((1,) * (4 - added.ndim) + added.shape)
    if lengths is not None:
        bias = bias + hidden(np.arange(n) < np.reshape(lengths, (-1, 1, 1, 1)))
    before, after = windows(node)
    causal = bool(node.get("is_causal", 0))
    positioned = causal or max(before, after) >= 0
    if positioned and not native:
        apart = np.arange(n) - np.arange(m)[:, None] - np.reshape(first, (-1, 1, 1, 1))
        seen = np.ones(apart.shape, bool)
        seen &= (apart <= 0) if causal else True
        seen &= (apart >= -before) if before >= 0 else True
        seen &= (apart <= after) if after >= 0 else True
        bias = bias + hidden(seen)
    return None if mask is None and lengths is None and (native or not positioned) else bias.astype(np.float32)


def windows(node):
    """How many keys before and after its position a query sees; -1 where all of them."""
    return node.get("left_window_size", -1), node.get("right_window_size", -1)


@onnx("Attention")
def attention(g, node, q, k, v, mask=None, past_k=None, past_v=None, lengths=None):
    if node.returns(3):
        raise Unmapped("attention that returns its scores")
    rank = len(q.shape)
    q, heads = token_major(g, q, node.get("q_num_heads"))
    kv_heads = node.get("kv_num_heads") if rank == 3 else k.shape[1]
    past, presents = 0, []
    if past_k is not None or node.returns(1):
        k, v = head_major(g, k, kv_heads), head_major(g, v, kv_heads)
        if past_k is not None:
            past = past_k.shape[2]
            k, v = g.concat([past_k, k], 2), g.concat([past_v, v], 2)
        presents = [k, v]
    (k, _), (v, _) = token_major(g, k, kv_heads), token_major(g, v, kv_heads)
    (batch, m, _), n = q.shape, k.shape[1]
    # With lengths, the last query is that of the last key that counts.
    lengths = None if lengths is None else constant(lengths)
    first = past if lengths is None else lengths - m
    # With as many keys as queries besides the past, the last query sees the last key, as anygpu has it.
    whole_past = max(windows(node)) < 0 and n == m + past
    native = bool(node.get("is_causal", 0)) and whole_past and lengths is None
    bias = masks(node, m, n, first, None if mask is None else constant(mask), lengths, native)
    size = q.shape[2] // heads
    params = {"scale": node.get("scale", 1 / size**0.5), "softcap": node.get("softcap", 0.0), "causal": native}

    def run(q, k, v, h, h_kv, added):
        operands = [g.at(x, x.shape) for x in (q, k, v, *([] if added is None else [g.input(added)]))]
        shape = (q.shape[0], v.shape[1] // h_kv * h)
        explicit = added is not None
        return g.push("attention", operands, (shape, shape), n_head=h, n_head_kv=h_kv, explicit=explicit, **params)

    whole = []
    for b in range(batch):
        rows = [g.reshape(g.slice(x, 0, b, 1), x.shape[1:]) for x in (q, k, v)]
        masked = None if bias is None else bias[min(b, len(bias) - 1)]
        if masked is None or len(masked) == 1:
            y = run(*rows, heads, kv_heads, None if masked is None else masked[0])
        else:
            # A mask is for all heads of a node, so each head has a node.
            parts = []
            for h in range(heads):
                at = (h, h * kv_heads // heads, h * kv_heads // heads)
                widths = (size, k.shape[2] // kv_heads, v.shape[2] // kv_heads)
                head = [g.slice(x, 1, i * width, width) for x, i, width in zip(rows, at, widths)]
                parts.append(run(*head, 1, 1, masked[h]))
            y = g.concat(parts, 1)
        whole.append(g.reshape(y, (1, *y.shape)))
    y = g.concat(whole, 0)
    return [y if rank == 3 else head_major(g, y, heads), *presents]


@onnx("RotaryEmbedding")
def rotary(g, node, x, cos, sin, positions=None):
    rank = len(x.shape)
    x, heads = token_major(g, x, node.get("num_heads"))
    batch, t, width = x.shape
    n_dims = node.get("rotary_embedding_dim", 0) or width // heads
    if cos.shape[-1] != n_dims // 2:
        raise Unmapped("angles for more channels than rotate")
    positions = None if positions is None else constant(positions)
    whole = []
    for b in range(batch):
        angles = []
        for part in (cos, sin):
            if positions is None:
                rows = g.slice(part, 0, b, 1)
            else:
                rows = g.push("get_rows", [g.at(part, part.shape), g.value(positions[b])], ((t, n_dims // 2),) * 2)
            angles.append(g.reshape(rows, (t, n_dims // 2, 1)))
        table = g.reshape(g.concat(angles, 2), (t, n_dims))
        rows = g.at(g.reshape(g.slice(x, 0, b, 1), (t, width)), (t, width))
        mode = "normal" if node.get("interleaved", 0) else "neox"
        y = g.push("rope", [rows, g.at(table, (t, n_dims))], ((t, width),) * 2, n_head=heads, n_dims=n_dims, mode=mode)
        whole.append(g.reshape(y, (1, t, width)))
    y = g.concat(whole, 0)
    return y if rank == 3 else head_major(g, y, heads)


@onnx("CausalConvWithState")
def causal_conv(g, node, x, kernel, bias=None, past=None):
    (batch, channels, t), taps = x.shape, kernel.shape[2]
    if not 2 <= taps <= TAPS:
        raise Unmapped(f"convolutions of other than 2 to {TAPS} taps")
    past = np.zeros((batch, channels, taps - 1), np.float32) if past is None else constant(past)
    kernel, rows = g.at(kernel, (channels, taps)), g.permute(x, [0, 2, 1])
    whole, states = [], []
    for b in range(batch):
        # States lie as rows do: one row of all channels a token.
        operands = [g.state(past[b].T), g.at(g.slice(rows, 0, b, 1), (t, channels)), kernel]
        y, state = g.push("short_conv", operands, ((t, channels),) * 2, ((taps - 1, channels),) * 2)
        whole.append(g.reshape(y, (1, *y.shape)))
        states.append(g.reshape(state, (1, *state.shape)))
    y = g.concat(whole, 0)
    y = y if bias is None else g.binary("add", y, bias)
    y = y if node.get("activation", "none") == "none" else g.unary("silu", y)
    return [g.permute(y, [0, 2, 1]), g.permute(g.concat(states, 0), [0, 2, 1])]
