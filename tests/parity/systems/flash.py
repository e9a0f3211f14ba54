"""FLASH's mixed chunk attention (Hua et al. 2022) from its equations: one document, one chunk, one sum at a time."""

import math
from dataclasses import dataclass

import torch

import reference as ref

T5_BUCKETS, T5_LONGEST = 32, 128
ROTARY_BASE = 10000


@dataclass
class FlashConfig:
    width: int
    causal: bool
    chunk: int
    expansion: float = 2.0
    key_dim: int = 6
    kernel: str = "squared-relu"
    normaliser: str = "counted"
    rotary: bool = True
    position_bias: str = "none"
    local: bool = True
    global_: bool = True
    bias: bool = True

    def inner(self):
        return round(self.expansion * self.width)


def parameter_shapes(config):
    """Names and shapes, in the order of the C++ module."""
    width, inner, key_dim = config.width, config.inner(), config.key_dim
    shapes = {"to_uvz.weight": (2 * inner + key_dim, width), "to_uvz.bias": (2 * inner + key_dim,),
              "gain": (4, key_dim), "offset": (4, key_dim)}
    shapes |= {"none": {}, "toeplitz": {"relative_bias.table": (2 * config.chunk - 1,)},
               "rotary": {"relative_bias.a": (key_dim,), "relative_bias.c": (key_dim,)},
               "t5": {"relative_bias.buckets": (T5_BUCKETS,)}}[config.position_bias]
    shapes |= {"to_out.weight": (width, inner), "to_out.bias": (width,)}
    unused = set()
    if not config.bias:
        unused |= {"to_uvz.bias", "to_out.bias"}
    return {name: shape for name, shape in shapes.items() if name not in unused}


def t5_bucket(distance, causal):
    """Raffel et al. 2020: half of the buckets hold one distance each, the others grow logarithmically."""
    if causal:
        buckets, first, distance = T5_BUCKETS, 0, max(distance, 0)
    else:
        buckets = T5_BUCKETS // 2
        first, distance = (buckets if distance < 0 else 0), abs(distance)
    exact = buckets // 2
    if distance < exact:
        return first + distance
    grown = exact + int(math.log(distance / exact) / math.log(T5_LONGEST / exact) * (buckets - exact) + 1e-9)
    return first + min(grown, buckets - 1)


def position_bias(params, config, length):
    """b_(i-j) for the pairs of one chunk: (length, length)."""
    distance = torch.arange(length)[:, None] - torch.arange(length)[None, :]
    if config.position_bias == "none":
        return torch.zeros(length, length, dtype=torch.float64)
    if config.position_bias == "toeplitz":
        return params["relative_bias.table"][distance + config.chunk - 1]
    if config.position_bias == "t5":
        buckets = [[t5_bucket(d, config.causal) for d in row] for row in distance.tolist()]
        return params["relative_bias.buckets"][torch.tensor(buckets)]
    positions = torch.arange(length)
    a, c = (ref.rotary(params[f"relative_bias.{name}"].expand(length, -1), positions, ROTARY_BASE, True)
            for name in ("a", "c"))
    return a @ c.T


def attention_kernel(logits, kernel):
    if kernel == "squared-relu":
        return logits.clamp(min=0) ** 2
    mean, deviation = math.sqrt(0.5), math.sqrt(1 / (4 * math.pi))
    return (1 + torch.erf((logits - mean) / (deviation * math.sqrt(2)))) / 2


def local_part(params, config, q, k, v):
    """V_quad of one chunk: the GAU kernel among its own tokens."""
    length = len(q)
    bias = position_bias(params, config, length)
    visible = torch.ones(length, length, dtype=torch.bool)
    if config.causal:
        visible = visible.tril()
    if config.normaliser == "paper":
        logits, factor = q @ k.T / config.chunk + bias, torch.ones(length, dtype=torch.float64)
    else:
        logits, factor = q @ k.T / math.sqrt(config.key_dim) + bias, 1 / visible.sum(dim=1)
    weights = attention_kernel(logits, config.kernel) * visible
    return factor[:, None] * (weights @ v)


def global_part(config, q, k, v, chunks, index):
    """V_lin of chunk `index`: Q_lin times the mean of K_lin^T V over the tokens of the chunks it sees."""
    seen = chunks[:index] if config.causal else chunks
    if not seen:
        return torch.zeros_like(v[chunks[index]])
    tokens = sum(chunk.stop - chunk.start for chunk in seen)
    n = config.chunk * len(seen) if config.normaliser == "paper" else tokens
    state = sum(k[chunk].T @ v[chunk] for chunk in seen)
    return q[chunks[index]] @ state / n


def document(params, config, u, v, z):
    """One document: (L, E), (L, E), (L, Z) -> (L, E)."""
    length = len(z)
    positions = torch.arange(length)
    views = [params["gain"][i] * z + params["offset"][i] for i in range(4)]
    if config.rotary:
        views = [ref.rotary(view, positions, ROTARY_BASE, True) for view in views]
    quad_q, quad_k, lin_q, lin_k = views
    chunks = [slice(begin, min(begin + config.chunk, length)) for begin in range(0, length, config.chunk)]
    mixed = []
    for index, chunk in enumerate(chunks):
        total = torch.zeros_like(v[chunk])
        if config.local:
            total = total + local_part(params, config, quad_q[chunk], quad_k[chunk], v[chunk])
        if config.global_:
            total = total + global_part(config, lin_q, lin_k, v, chunks, index)
        mixed.append(total)
    return u * torch.cat(mixed)


def flash(params, config, x, segment_ids):
    """x: (B, T, D) -> (B, T, D)"""
    inner = config.inner()
    packed = x @ params["to_uvz.weight"].T + params.get("to_uvz.bias", 0)
    u, v, z = ref.silu(packed).split([inner, inner, config.key_dim], dim=-1)
    rows = []
    for row, ids in enumerate(segment_ids.tolist()):
        parts, begin = [], 0
        while begin < len(ids):
            end = begin + 1
            while end < len(ids) and ids[end] == ids[begin]:
                end += 1
            piece = slice(begin, end)
            parts.append(torch.zeros_like(u[row, piece]) if ids[begin] == 0 else
                         document(params, config, u[row, piece], v[row, piece], z[row, piece]))
            begin = end
        rows.append(torch.cat(parts))
    return torch.stack(rows) @ params["to_out.weight"].T + params.get("to_out.bias", 0)
