"""Multi-head attention (Vaswani et al. 2017) and the op behind it from the equations: one document, or one chunk of it,
and one head at a time, every pair of tokens written out.

The file attention has, for each of the metadata's configs (no positions; all biases; rotary interleaved, halves, or
of two features of each head), <config>.parameter.<name> and the cases. The file attention_op has q, k, v, bias (2,
29), row_scale, output_scale, dy, and for each of cases, <kernel>.<direction>.<chunk>, y and gradient.q|k|v|bias.
"""

import math
from dataclasses import asdict, dataclass

import torch
import torch.nn.functional as F

import checks
import reference as ref
import tools

WIDTH, HEADS, LENGTH = 12, 3, 13
KERNELS = ("softmax", "squared-relu", "laplace")
OP_HEADS, KEY_WIDTH, VALUE_WIDTH, LONGEST, CHUNK, SCALE = 2, 3, 5, 15, 4, 0.6


@dataclass
class AttentionConfig:
    rotary_dims: int = 0        # of each head; 0: nothing turns
    interleaved: bool = False
    rotary_base: float = 100.0
    bias: bool = False
    key_bias: bool = False
    output_projection: bool = True


HEAD_WIDTH = WIDTH // HEADS
CONFIGS = {
    "plain": AttentionConfig(),
    "biases": AttentionConfig(bias=True, key_bias=True),
    "interleaved": AttentionConfig(rotary_dims=HEAD_WIDTH, interleaved=True, bias=True),
    "halves": AttentionConfig(rotary_dims=HEAD_WIDTH, bias=True, key_bias=True),
    "partial": AttentionConfig(rotary_dims=2, output_projection=False),
}


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


def kernel_weights(kernel, logits, visible):
    if kernel == "softmax":
        return torch.softmax(logits.masked_fill(~visible, -torch.inf), dim=1)
    if kernel == "squared-relu":
        return torch.relu(logits) ** 2 * visible
    deviation = math.sqrt(1 / (4 * math.pi))
    return (1 + torch.erf((logits - math.sqrt(0.5)) / (deviation * math.sqrt(2)))) / 2 * visible


def visible_pairs(length, causal):
    pairs = torch.ones(length, length, dtype=torch.bool)
    return pairs.tril() if causal else pairs


# --- the mixer --------------------------------------------------------------------------------------------------------


def parameter_shapes(config):
    shapes = {"to_qkv.weight": (3 * WIDTH, WIDTH)}
    if config.bias:
        shapes |= {"query_bias": (WIDTH,), "value_bias": (WIDTH,)}
    if config.key_bias:
        shapes |= {"key_bias": (WIDTH,)}
    if config.output_projection:
        shapes |= {"to_out.weight": (WIDTH, WIDTH)} | ({"to_out.bias": (WIDTH,)} if config.bias else {})
    return shapes


def turned(x, config):
    """(L, head width): the first features by their positions."""
    if config.rotary_dims == 0:
        return x
    head = ref.rotary(x[:, :config.rotary_dims], torch.arange(len(x)), config.rotary_base, config.interleaved)
    return torch.cat([head, x[:, config.rotary_dims:]], dim=1)


def projected(params, x):
    """q, k, v: (B, T, H, head width) each."""
    parts = (x @ params["to_qkv.weight"].T).split(WIDTH, dim=-1)
    biased = [part + params.get(f"{name}_bias", 0) for part, name in zip(parts, ("query", "key", "value"))]
    return [part.unflatten(-1, (HEADS, HEAD_WIDTH)) for part in biased]


def attention(params, config, x, segment_ids, causal):
    """x: (B, T, D) -> (B, T, D)"""
    q, k, v = projected(params, x)
    mixed = torch.zeros_like(v)
    for row, own in pieces(segment_ids):
        for head in range(HEADS):
            logits = turned(q[row, own, head], config) @ turned(k[row, own, head], config).T / math.sqrt(HEAD_WIDTH)
            mixed[row, own, head] = kernel_weights("softmax", logits, visible_pairs(len(own), causal)) @ v[row, own, head]
    mixed = mixed.flatten(2)
    if not config.output_projection:
        return mixed
    return mixed @ params["to_out.weight"].T + params.get("to_out.bias", 0)


def check_against_torch(params, x, segment_ids, causal, y):
    """Without positions: PyTorch's own attention under a mask."""
    q, k, v = (part.transpose(1, 2) for part in projected(params, x))
    mask = segment_ids[:, None, :, None] == segment_ids[:, None, None, :]
    if causal:
        mask = mask & visible_pairs(x.shape[1], True)
    theirs = F.scaled_dot_product_attention(q, k, v, attn_mask=mask).transpose(1, 2).flatten(2)
    theirs = theirs @ params["to_out.weight"].T + params.get("to_out.bias", 0)
    valid = segment_ids != 0
    torch.testing.assert_close(y[valid], theirs[valid], rtol=1e-12, atol=1e-12)


def mixer_cases(name, config, x, dy, segment_ids):
    params = {parameter: tools.normal(f"attention.{name}.{parameter}", *shape, stddev=0.5)
              for parameter, shape in parameter_shapes(config).items()}
    tensors = tools.prefixed(f"{name}.parameter", params)
    for direction in ("bidirectional", "causal"):
        leaves = tools.with_gradients(params) | {"x": x.clone().requires_grad_()}
        causal = direction == "causal"
        y = attention(leaves, config, leaves["x"], segment_ids, causal)
        if config.rotary_dims == 0:
            check_against_torch(params, x, segment_ids, causal, y.detach())
        if causal:
            later = torch.cat([x[:, :7], -50 * x[:, 7:]], dim=1)
            checks.require(torch.equal(attention(params, config, later, segment_ids, True)[:, :7], y[:, :7].detach()),
                           "attention: later tokens reach earlier outputs")
        found = tools.gradients((y * dy).sum(), leaves)
        dx = found.pop("x")
        checks.require(bool((dx[segment_ids == 0] == 0).all()), "attention: padding has a gradient")
        tensors |= tools.prefixed(f"{name}.{direction}", {"y": y, "dx": dx, **tools.prefixed("gradient", found)})
    return tensors


def make_mixer():
    x, dy, ids = tools.normal("attention.x", 3, LENGTH, WIDTH), tools.normal("attention.dy", 3, LENGTH, WIDTH), segments()
    tensors, metadata = {"x": x, "dy": dy, "segment_ids": ids}, {"width": WIDTH, "heads": HEADS}
    for name, config in CONFIGS.items():
        tensors |= mixer_cases(name, config, x, dy, ids)
        metadata |= tools.prefixed(name, asdict(config))
    tools.save("attention", tensors, metadata | {"configs": " ".join(CONFIGS)})


# --- the op -----------------------------------------------------------------------------------------------------------


def attention_op(kernel, causal, chunk, leaves, factors, segment_ids):
    q, k, v = (leaves[name].unflatten(-1, (OP_HEADS, -1)) for name in ("q", "k", "v"))
    y = torch.zeros_like(v)
    for row, own in pieces(segment_ids, chunk):
        at = torch.arange(len(own))
        lag = at[:, None] - at[None, :]
        for head in range(OP_HEADS):
            logits = SCALE * factors["row_scale"][row, own, None] * (q[row, own, head] @ k[row, own, head].T)
            logits = logits + leaves["bias"][head, LONGEST - 1 + lag]
            weights = kernel_weights(kernel, logits, visible_pairs(len(own), causal))
            y[row, own, head] = factors["output_scale"][row, own, None] * (weights @ v[row, own, head])
    return y.flatten(2)


def make_op():
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


def make():
    make_mixer()
    make_op()
