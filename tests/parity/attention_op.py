"""The attention op behind three systems, from its equation: one document, or one chunk of it, and one head at a time.

The file has q, k, v, bias (2, 29), row_scale, output_scale, dy, and for each of cases, <kernel>.<direction>.<chunk>, y and
gradient.q|k|v|bias.
"""

import torch

import mixers
import tools

LENGTH = 13
KERNELS = ("softmax", "squared-relu", "laplace")
OP_HEADS, KEY_WIDTH, VALUE_WIDTH, LONGEST, CHUNK, SCALE = 2, 3, 5, 15, 4, 0.6


def segments():
    """A full row; right padding; padding, two packed documents."""
    rows = [[1] * 13, [4] * 9 + [0] * 4, [0] * 2 + [3] * 5 + [7] * 6]
    return torch.tensor(rows, dtype=torch.int32)


def pieces(segment_ids, chunk=0):
    """(row, tokens) for everything whose tokens see each other."""
    for row, ids in enumerate(segment_ids.tolist()):
        for segment in sorted(set(ids) - {0}):
            own = [t for t, other in enumerate(ids) if other == segment]
            for begin in range(0, len(own), chunk or len(own)):
                yield row, own[begin:begin + (chunk or len(own))]


def attention_op(kernel, causal, chunk, leaves, factors, segment_ids):
    q, k, v = (leaves[name].unflatten(-1, (OP_HEADS, -1)) for name in ("q", "k", "v"))
    y = torch.zeros_like(v)
    for row, own in pieces(segment_ids, chunk):
        at = torch.arange(len(own))
        lag = at[:, None] - at[None, :]
        for head in range(OP_HEADS):
            logits = SCALE * factors["row_scale"][row, own, None] * (q[row, own, head] @ k[row, own, head].T)
            logits = logits + leaves["bias"][head, LONGEST - 1 + lag]
            weights = mixers.kernel(kernel, logits, mixers.pairs(len(own), causal))
            y[row, own, head] = factors["output_scale"][row, own, None] * (weights @ v[row, own, head])
    return y.flatten(2)


def make():
    ids = segments()
    shapes = {"q": (3, LENGTH, OP_HEADS * KEY_WIDTH), "k": (3, LENGTH, OP_HEADS * KEY_WIDTH),
              "v": (3, LENGTH, OP_HEADS * VALUE_WIDTH), "bias": (OP_HEADS, 2 * LONGEST - 1)}
    inputs = {name: tools.normal(f"attention_op.{name}", *shape) for name, shape in shapes.items()}
    factors = {name: tools.normal(f"attention_op.{name}", 3, LENGTH) for name in ("row_scale", "output_scale")}
    dy = tools.normal("attention_op.dy", *shapes["v"])
    tensors, cases = inputs | factors | {"dy": dy, "segment_ids": ids}, []
    for kernel in KERNELS:
        for direction in ("bidirectional", "causal"):
            for chunk in (0, CHUNK):
                leaves = tools.with_gradients(inputs)
                y = attention_op(kernel, direction == "causal", chunk, leaves, factors, ids)
                found = tools.gradients((y * dy).sum(), leaves)
                cases.append(f"{kernel}.{direction}.{chunk}")
                tensors |= tools.prefixed(cases[-1], {"y": y, **tools.prefixed("gradient", found)})
    tools.save("attention_op", tensors, {"heads": OP_HEADS, "scale": SCALE, "cases": " ".join(cases)})
