"""The gated attention unit (Hua et al. 2022) from its equations: one document at a time, every pair written out.

Its fixtures hold each published form of kernel, logits and normaliser.

Options are tensors <config>.<option>. t5_scale multiplies the buckets; rotary_dims 0 turns nothing; the rotary
position bias turns all features with the same base and pairs.
"""

import math
from dataclasses import asdict, dataclass

import torch

import checks
import reference as ref
import tools

WIDTH, LENGTH, MAX_LENGTH = 9, 13, 15
T5_BUCKETS, T5_LONGEST = 32, 128


@dataclass
class GauConfig:
    kernel: str = "squared-relu"   # squared-relu, laplace, softmax
    logits: str = "key-dim"        # key-dim, length, whole-length, log-length
    normaliser: str = "counted"    # counted, paper
    position_bias: str = "none"    # none, toeplitz, rotary, t5
    rotary_dims: int = 0           # 0: nothing turns
    interleaved: bool = False
    bias: bool = False
    key_dim: int = 6
    expansion: float = 1.5
    rotary_base: float = 100.0
    paper_length: int = 20
    t5_scale: float = 2.0

    def hidden(self):
        return math.floor(self.expansion * WIDTH + 0.5)


CONFIGS = {
    "body": GauConfig(rotary_dims=6, position_bias="rotary"),
    "appendix": GauConfig(logits="length", normaliser="paper", rotary_dims=6, position_bias="toeplitz", bias=True),
    "mega": GauConfig(kernel="laplace", logits="length", position_bias="toeplitz"),
    "port": GauConfig(logits="whole-length", position_bias="t5", bias=True),
    "port_laplace": GauConfig(kernel="laplace", logits="whole-length", normaliser="paper", position_bias="t5",
                              rotary_dims=4, interleaved=True, bias=True),
    "softmax": GauConfig(kernel="softmax", position_bias="rotary", interleaved=True, rotary_dims=6),
    "alpha": GauConfig(kernel="softmax", logits="log-length", rotary_dims=6, paper_length=600),
    "alpha_600": GauConfig(kernel="softmax", logits="log-length", normaliser="paper", rotary_dims=2, paper_length=600),
}


def parameter_shapes(config):
    packed, hidden, key_dim = 2 * config.hidden() + config.key_dim, config.hidden(), config.key_dim
    shapes = {"to_uvz.weight": (packed, WIDTH), "gain": (2, key_dim), "offset": (2, key_dim),
              "to_out.weight": (WIDTH, hidden)}
    if config.bias:
        shapes |= {"to_uvz.bias": (packed,), "to_out.bias": (WIDTH,)}
    return shapes | {"none": {}, "toeplitz": {"relative_bias.table": (2 * MAX_LENGTH - 1,)},
                     "rotary": {"relative_bias.a": (key_dim,), "relative_bias.c": (key_dim,)},
                     "t5": {"relative_bias.buckets": (T5_BUCKETS,)}}[config.position_bias]


def t5_bucket(distance, causal):
    """Of query position - key position. Half of the buckets hold one distance each, the others grow by a ratio."""
    buckets = T5_BUCKETS if causal else T5_BUCKETS // 2
    first = T5_BUCKETS // 2 if not causal and distance < 0 else 0
    distance = max(distance, 0) if causal else abs(distance)
    exact = buckets // 2
    if distance < exact:
        return first + distance
    ratio = (T5_LONGEST / exact) ** (1 / (buckets - exact))
    further = max(k for k in range(64) if exact * ratio**k <= distance * (1 + 1e-12))
    return first + min(exact + further, buckets - 1)


def turned(x, positions, config, dims):
    """The first `dims` features by their rotary positions."""
    if dims == 0:
        return x
    head = ref.rotary(x[:, :dims], positions, config.rotary_base, config.interleaved)
    return torch.cat([head, x[:, dims:]], dim=1)


def position_bias(params, config, positions, causal):
    """b_(i-j), (L, L)"""
    distance = positions[:, None] - positions[None, :]
    if config.position_bias == "toeplitz":
        return params["relative_bias.table"][distance + MAX_LENGTH - 1]
    if config.position_bias == "t5":
        buckets = torch.tensor([[t5_bucket(d, causal) for d in row] for row in distance.tolist()])
        return config.t5_scale * params["relative_bias.buckets"][buckets]
    if config.position_bias == "rotary":
        a, c = (turned(params[f"relative_bias.{name}"].expand(len(positions), -1), positions, config, config.key_dim)
                for name in ("a", "c"))
        return a @ c.T
    return torch.zeros_like(distance, dtype=torch.float64)


def kernel_weights(config, products, bias, visible, n=None):
    """(L, L): what each visible key weighs. n: (L, 1); not given, the number of keys that a query sees or a constant."""
    n = visible.sum(dim=1, keepdim=True).double() if n is None else n
    if config.normaliser == "paper":
        n = torch.full_like(n, config.paper_length)
    usual = 1 / math.sqrt(config.key_dim)
    logits = {"key-dim": lambda: products * usual + bias,
              "length": lambda: products / n + bias,
              "whole-length": lambda: (products + bias) / n,
              "log-length": lambda: products * usual * torch.log(n.clamp(min=16)) / math.log(512) + bias}
    logits = logits[config.logits]()
    if config.kernel == "softmax":
        return torch.softmax(logits.masked_fill(~visible, -torch.inf), dim=1)
    if config.kernel == "squared-relu":
        weights = torch.relu(logits) ** 2
    else:
        weights = (1 + torch.erf((logits - math.sqrt(0.5)) / (math.sqrt(1 / (4 * math.pi)) * math.sqrt(2)))) / 2
    return weights * visible / (n if config.logits == "key-dim" else 1)


def document(params, config, u, v, z, causal):
    """(L, E), (L, E), (L, Z) -> (L, E)"""
    positions = torch.arange(len(z))
    q, k = (turned(params["gain"][i] * z + params["offset"][i], positions, config, config.rotary_dims) for i in (0, 1))
    visible = torch.ones(len(z), len(z), dtype=torch.bool)
    if causal:
        visible = visible.tril()
    weights = kernel_weights(config, q @ k.T, position_bias(params, config, positions, causal), visible)
    return u * (weights @ v)


def gau(params, config, x, segment_ids, causal):
    """x: (B, T, D) -> (B, T, D)"""
    packed = ref.silu(x @ params["to_uvz.weight"].T + params.get("to_uvz.bias", 0))
    u, v, z = packed.split([config.hidden(), config.hidden(), config.key_dim], dim=-1)
    mixed = torch.zeros_like(u)
    for row, ids in enumerate(segment_ids):
        for segment in set(ids.tolist()) - {0}:
            own = ids == segment
            mixed[row, own] = document(params, config, u[row, own], v[row, own], z[row, own], causal)
    return mixed @ params["to_out.weight"].T + params.get("to_out.bias", 0)


def segments():
    """A full row; right padding; padding, two packed documents."""
    rows = [[1] * 13, [4] * 9 + [0] * 4, [0] * 2 + [3] * 5 + [7] * 6]
    return torch.tensor(rows, dtype=torch.int32)


def make():
    x, dy = tools.normal("gau.x", 3, LENGTH, WIDTH), tools.normal("gau.dy", 3, LENGTH, WIDTH)
    ids = segments()
    tensors, metadata = {"x": x, "dy": dy, "segment_ids": ids}, {"width": WIDTH, "max_length": MAX_LENGTH}
    for name, config in CONFIGS.items():
        params = {key: tools.normal(f"gau.{name}.{key}", *shape, stddev=0.5, mean=float(key == "gain"))
                  for key, shape in parameter_shapes(config).items()}
        tensors |= tools.prefixed(f"{name}.parameter", params)
        metadata |= {f"{name}.{key}": value for key, value in asdict(config).items()}
        for causal in (False, True):
            leaves, inputs = tools.with_gradients(params), x.clone().requires_grad_()
            y = gau(leaves, config, inputs, ids, causal)
            found = tools.gradients((y * dy).sum(), {"x": inputs, **leaves})
            checks.require(bool((found["x"][ids == 0] == 0).all()), "gau: padding has a gradient")
            if causal:
                later = torch.cat([x[:, :8], 9 * x[:, 8:]], dim=1)
                same = torch.equal(gau(params, config, later, ids, True)[0, :8], y[0, :8].detach())
                checks.require(same, "gau: a later token reaches an earlier one")
            case = f"{name}.{'causal' if causal else 'bidirectional'}"
            tensors |= {f"{case}.y": y, f"{case}.dx": found.pop("x"), **tools.prefixed(f"{case}.gradient", found)}
    tools.save("gau", tensors, metadata | {"configs": " ".join(CONFIGS)})
