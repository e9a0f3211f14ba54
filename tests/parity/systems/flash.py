"""FLASH's mixed chunk attention (Hua et al. 2022) from its equations: one document, one chunk, one sum at a time.

Rows: a full row of four chunks, a row padded on both sides, and a document of one token packed before one of sixteen.
Chunks begin at position 0 of every document, the last one is as long as it is. The causal global part reads the
chunks before the query's own, the bidirectional one the whole document; it is divided by the number of tokens it
reads (counted, document) or by the chunk's length times the number of chunks (paper). The local part's n is the number
of keys that a query sees (counted), the chunk's length (paper), or the number of tokens of the document, causal up to
the query itself (document). Rows of gain and offset: query and key of the local part, query and key of the global part.
"""

import math
from dataclasses import asdict, dataclass

import torch

import checks
import reference as ref
import tools
from systems.gau import T5_BUCKETS, kernel_weights, t5_bucket, turned

WIDTH, LENGTH, CHUNK = 9, 19, 5


@dataclass
class FlashConfig:
    kernel: str = "squared-relu"   # as for GAU
    logits: str = "key-dim"
    normaliser: str = "counted"
    position_bias: str = "none"
    rotary_dims: int = 0           # 0: nothing turns
    interleaved: bool = False
    bias: bool = False
    key_dim: int = 6
    expansion: float = 1.5
    rotary_base: float = 100.0
    t5_scale: float = 2.0
    chunk: int = CHUNK
    local_part: bool = True
    global_part: bool = True

    @property
    def paper_length(self):
        return self.chunk

    def hidden(self):
        return math.floor(self.expansion * WIDTH + 0.5)

    def views(self):
        return 2 * (self.local_part + self.global_part)


CONFIGS = {
    "counted": FlashConfig(rotary_dims=6, position_bias="toeplitz"),
    "paper": FlashConfig(logits="length", normaliser="paper", rotary_dims=6, position_bias="toeplitz", bias=True),
    "laplace": FlashConfig(kernel="laplace", logits="length", position_bias="rotary", rotary_dims=4, interleaved=True),
    "laplace_paper": FlashConfig(kernel="laplace", normaliser="paper", position_bias="t5", bias=True, chunk=7),
    "softmax": FlashConfig(kernel="softmax", rotary_dims=6, position_bias="t5"),
    "local": FlashConfig(rotary_dims=6, position_bias="rotary", global_part=False),
    "global": FlashConfig(rotary_dims=6, local_part=False, bias=True),
    "single": FlashConfig(rotary_dims=6, position_bias="toeplitz", chunk=1),
    "document": FlashConfig(normaliser="document"),  # relu(q k)^2 / (n s), without b and rotary positions
    "document_biased": FlashConfig(normaliser="document", rotary_dims=6, position_bias="toeplitz", bias=True, chunk=7),
    "document_laplace": FlashConfig(kernel="laplace", logits="length", normaliser="document", position_bias="t5"),
    "document_softmax": FlashConfig(kernel="softmax", logits="log-length", normaliser="document", rotary_dims=4),
}


def parameter_shapes(config):
    packed, hidden, key_dim = 2 * config.hidden() + config.key_dim, config.hidden(), config.key_dim
    shapes = {"to_uvz.weight": (packed, WIDTH), "gain": (config.views(), key_dim), "offset": (config.views(), key_dim),
              "to_out.weight": (WIDTH, hidden)}
    if config.bias:
        shapes |= {"to_uvz.bias": (packed,), "to_out.bias": (WIDTH,)}
    return shapes | {"none": {}, "toeplitz": {"relative_bias.table": (2 * config.chunk - 1,)},
                     "rotary": {"relative_bias.a": (key_dim,), "relative_bias.c": (key_dim,)},
                     "t5": {"relative_bias.buckets": (T5_BUCKETS,)}}[config.position_bias]


def position_bias(params, config, length, causal):
    """b_(i-j) among the tokens of one chunk, (L, L)"""
    positions = torch.arange(length)
    if config.position_bias == "rotary":
        a, c = (turned(params[f"relative_bias.{name}"].expand(length, -1), positions, config, config.key_dim)
                for name in ("a", "c"))
        return a @ c.T
    bias = torch.zeros(length, length, dtype=torch.float64)
    for i in range(length if config.position_bias != "none" else 0):
        for j in range(length):
            bias[i, j] = (params["relative_bias.table"][i - j + config.chunk - 1]
                          if config.position_bias == "toeplitz" else
                          config.t5_scale * params["relative_bias.buckets"][t5_bucket(i - j, causal)])
    return bias


def local_part(params, config, q, k, v, chunk, causal):
    """V_quad of one chunk of a document."""
    length, q, k, v = len(q), q[chunk], k[chunk], v[chunk]
    visible, n = torch.ones(len(q), len(q), dtype=torch.bool), None
    if causal:
        visible = visible.tril()
    if config.normaliser == "document":
        n = torch.arange(chunk.start + 1, chunk.stop + 1) if causal else torch.full((len(q),), length)
        n = n[:, None].double()
    return kernel_weights(config, q @ k.T, position_bias(params, config, len(q), causal), visible, n) @ v


def global_part(config, q, k, v, chunks, index, causal):
    """V_lin of one chunk: Q_lin times the mean of k^T v over the tokens of the chunks it sees."""
    seen = chunks[:index] if causal else chunks
    if not seen:
        return torch.zeros(len(q[chunks[index]]), v.shape[1], dtype=v.dtype)
    n = config.chunk * len(seen) if config.normaliser == "paper" else sum(len(k[chunk]) for chunk in seen)
    state = sum(torch.outer(k[t], v[t]) for chunk in seen for t in range(chunk.start, chunk.stop))
    return q[chunks[index]] @ state / n


def document(params, config, u, v, z, causal):
    """(L, E), (L, E), (L, Z) -> (L, E)"""
    positions = torch.arange(len(z))
    views = [turned(params["gain"][i] * z + params["offset"][i], positions, config, config.rotary_dims)
             for i in range(config.views())]
    chunks = [slice(begin, min(begin + config.chunk, len(z))) for begin in range(0, len(z), config.chunk)]
    mixed = []
    for index, chunk in enumerate(chunks):
        total = 0
        if config.local_part:
            total = total + local_part(params, config, views[0], views[1], v, chunk, causal)
        if config.global_part:
            total = total + global_part(config, views[-2], views[-1], v, chunks, index, causal)
        mixed.append(total)
    return u * torch.cat(mixed)


def flash(params, config, x, segment_ids, causal):
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
    """A full row of four chunks; padding on both sides; two packed documents, one of a single token, and padding."""
    rows = [[1] * 19, [0] * 2 + [4] * 14 + [0] * 3, [3] * 1 + [7] * 16 + [0] * 2]
    return torch.tensor(rows, dtype=torch.int32)


def check_position(config, params, x, causal):
    """The common port's causal global term grows with position; the equations' does not: constant inputs, no gate."""
    constant = x[:1, :1].expand(1, LENGTH, -1)
    y = flash(params, config, constant, torch.ones(1, LENGTH, dtype=torch.int32), causal)
    first, last = y[0, config.chunk], y[0, -1]
    checks.require(torch.allclose(first, last, rtol=1e-12, atol=1e-12), "flash: the global term depends on the position")


def check_document(params, config, x):
    """A bidirectional text of n tokens by the formula that divides both parts by the text's length, and s = key_dim:
    o_i = W_o (u_i * (sum over the chunk of relu(q_i k_j)^2 / (n s) v_j + sum over the text of (q'_i k'_j) / n v_j))."""
    y = flash(params, config, x, torch.ones(x.shape[:2], dtype=torch.int32), False)
    packed = ref.silu(x[0] @ params["to_uvz.weight"].T)
    u, v, z = packed.split([config.hidden(), config.hidden(), config.key_dim], dim=-1)
    q, k, linear_q, linear_k = (z * gain + offset for gain, offset in zip(params["gain"], params["offset"]))
    n = len(z)
    for i in (0, 4, 5, 11, n - 1):
        mixed = sum((q[i] @ k[j]).clamp(min=0) ** 2 / (n * config.key_dim) * v[j]
                    for j in range(n) if j // config.chunk == i // config.chunk)
        mixed = mixed + sum(linear_q[i] @ linear_k[j] / n * v[j] for j in range(n))
        same = torch.allclose(y[0, i], params["to_out.weight"] @ (u[i] * mixed), rtol=1e-12, atol=1e-12)
        checks.require(same, "flash: the normaliser document is not the published formula")


def make():
    x, dy = tools.normal("flash.x", 3, LENGTH, WIDTH), tools.normal("flash.dy", 3, LENGTH, WIDTH)
    ids = segments()
    tensors, metadata = {"x": x, "dy": dy, "segment_ids": ids}, {"width": WIDTH, "max_length": LENGTH}
    for name, config in CONFIGS.items():
        params = {key: tools.normal(f"flash.{name}.{key}", *shape, stddev=0.5, mean=float(key == "gain"))
                  for key, shape in parameter_shapes(config).items()}
        tensors |= tools.prefixed(f"{name}.parameter", params)
        metadata |= {f"{name}.{key}": value for key, value in asdict(config).items()}
        if name == "document":
            check_document(params, config, x[:1])
        for causal in (False, True):
            leaves, inputs = tools.with_gradients(params), x.clone().requires_grad_()
            y = flash(leaves, config, inputs, ids, causal)
            found = tools.gradients((y * dy).sum(), {"x": inputs, **leaves})
            checks.require(bool((found["x"][ids == 0] == 0).all()), "flash: padding has a gradient")
            if causal:
                later = torch.cat([x[:, :12], 9 * x[:, 12:]], dim=1)
                same = torch.equal(flash(params, config, later, ids, True)[0, :12], y[0, :12].detach())
                checks.require(same, "flash: a later token reaches an earlier one")
            case = f"{name}.{'causal' if causal else 'bidirectional'}"
            tensors |= {f"{case}.y": y, f"{case}.dx": found.pop("x"), **tools.prefixed(f"{case}.gradient", found)}
    for causal in (False, True):
        still = FlashConfig(local_part=False)
        params = {key: tools.normal(f"flash.still.{key}", *shape) for key, shape in parameter_shapes(still).items()}
        check_position(still, params, x, causal)
    tools.save("flash", tensors, metadata | {"configs": " ".join(CONFIGS)})
