"""GAU and FLASH."""

import math

import torch
from torch import nn
from torch.nn import functional as F

from .capstan_layers import hidden_width, parameter
from .capstan_mixer import Mixer, Rotary, angles, append
from .capstan_spans import wide
from .capstan_texts import later, rows_at


class RelativeBias(nn.Module):
    """b of the distance d = t - s.
        toeplitz  a number for each distance
        rotary    (RoPE_t a) . (RoPE_s c), which depends on d alone: for each two features that turn by the angle w,
                  (a0 c0 + a1 c1) cos(w d) + (a0 c1 - a1 c0) sin(w d)
    """

    def __init__(self, config, positions):
        super().__init__()
        self.type, self.base = config["position_bias"], 10000
        self.interleaved = config["rotary_pairs"] == "interleaved"
        if self.type == "toeplitz":
            self.table = parameter(2 * positions - 1, stddev=0.02)
        elif self.type == "rotary":
            self.a, self.c = (parameter(config["key_dim"], stddev=0.02) for _ in range(2))

    def forward(self, distance):
        """(...) -> (...)"""
        if self.type == "toeplitz":
            middle = len(self.table) // 2
            return self.table[(distance + middle).clamp(0, 2 * middle)]
        (a0, a1), (c0, c1) = ((x[0::2], x[1::2]) if self.interleaved else x.chunk(2) for x in (self.a, self.c))
        cos, sin = angles(distance, self.base, len(a0), a0.dtype)
        return cos @ (a0 * c0 + a1 * c1) + sin @ (a0 * c1 - a1 * c0)

    def matrix(self, length, device):
        values = self(torch.arange(1 - length, length, device=device))
        places = torch.arange(length, device=device)
        return values[length - 1 + places[:, None] - places]


class GatedUnit(Mixer):
    """What GAU and FLASH share (Hua et al. 2022, arXiv 2202.10447): E = expansion D gates and values, Z shared features.
        (u, v, z) = SiLU(W x + b),   views y_c = RoPE(gain_c * z + offset_c),   out = W_o (u * Y)
    Y_t = sum_s A_ts v_s with queries and keys q, k that are views. With p = q_t . k_s, bias b = b_(t - s) and n a
    number of tokens, or a constant (`normaliser`), the weight A is

        logits        A, function f               A, softmax
        key-dim       f(p / sqrt(Z) + b) / n      softmax(p / sqrt(Z) + b)
        length        f(p / n + b)

    f is max(0, x)^2 or Laplace's (1 + erf((x - mean) / (deviation sqrt 2))) / 2 with mean sqrt(1 / 2) and deviation
    sqrt(1 / (4 pi)), which is not 0 at 0: hidden keys are masked after f.
    """

    def __init__(self, config, width, positions, gains, constant):
        """gains: initial ones of the views. constant: n, unless it is counted."""
        super().__init__()
        self.kernel, self.form, self.normaliser = config["kernel"], config["logits"], config["normaliser"]
        self.key_dim, self.hidden = config["key_dim"], hidden_width(config["expansion"], width)
        self.constant = constant
        self.rotary = Rotary(config, self.key_dim)
        self.to_uvz = nn.Linear(width, 2 * self.hidden + self.key_dim, bias=config["bias"])
        self.gain = nn.Parameter(torch.tensor(gains)[:, None].repeat(1, self.key_dim))
        self.offset = parameter(len(gains), self.key_dim)
        self.to_out = nn.Linear(self.hidden, width, bias=config["bias"])
        if config["position_bias"] != "none":
            self.relative_bias = RelativeBias(config, positions)

    def project(self, x, positions):
        u, v, z = F.silu(self.to_uvz(x)).split([self.hidden, self.hidden, self.key_dim], dim=-1)
        views = self.rotary(z[..., None, :] * self.gain + self.offset, positions)
        return u, v, *views.unbind(dim=-2)

    def output(self, parts, y):
        return self.to_out((parts[0] * y).to(parts[0].dtype))

    def bias(self, length, device):
        return self.relative_bias.matrix(length, device) if hasattr(self, "relative_bias") else 0.0

    def weigh(self, q, k, v, bias, seen, count):
        """sum_s A_ts v_s, in single precision at least. q: (..., L, Z), k, v: (..., S, .), bias, seen: to (..., L, S), count: n
        where it is counted, to (..., L, 1)."""
        q, k, v = wide(q), wide(k), wide(v)
        paper = self.normaliser == "paper"
        n = torch.tensor(float(self.constant)).to(q) if paper else count.clamp(min=1).to(q.dtype)
        product = q @ k.mT
        if self.form == "key-dim":
            logits = product * self.key_dim ** -0.5 + bias
        else:
            logits = product / n + bias
        if self.kernel == "softmax":
            hidden = torch.finfo(logits.dtype).min  # autocast may have made them half precision
            weights = torch.softmax(logits.masked_fill(~seen, hidden), dim=-1)
        elif self.kernel == "squared-relu":
            weights = F.relu(logits).square().masked_fill(~seen, 0.0)
        else:
            mean, deviation = 0.5 ** 0.5, (4 * math.pi) ** -0.5
            weights = (0.5 * (1 + torch.erf((logits - mean) / (deviation * 2 ** 0.5)))).masked_fill(~seen, 0.0)
        if self.form == "key-dim" and self.kernel != "softmax":
            weights = weights / n
        return weights @ v


class Gau(GatedUnit):
    """Gated attention unit (FLASH-Quad): Y attends to all tokens that t sees."""

    def __init__(self, config, width, longest, causal):
        super().__init__(config, width, longest, [1.0, 1.0], config["paper_length"])

    def mix(self, parts, texts, causal):
        _, v, q, k = parts
        places = texts.positions
        seen = texts.valid[:, None]
        if causal:
            seen = seen & (places[:, None] >= places)
        count = (places + 1)[:, None] if causal else texts.lengths[:, None, None]
        return self.weigh(q, k, v, self.bias(places.shape[0], v.device), seen, count)

    def state(self, parts, texts):
        return {"k": parts[3], "v": parts[1], "s": texts.positions.masked_fill(~texts.valid, -1)}

    def step(self, parts, state, position):
        _, v, q, k = parts
        append(state, k=k, v=v, s=position[:, None])
        bias = self.relative_bias(position[:, None] - state["s"])[:, None] if hasattr(self, "relative_bias") else 0.0
        seen = (state["s"] >= 0)[:, None]
        return self.weigh(q, state["k"], state["v"], bias, seen, (position + 1)[:, None, None])


class Flash(GatedUnit):
    """Mixed chunk attention: exact within chunks of C tokens, a linear memory M across them.
        Y_t = L_t + G_t,   L as in GAU among the tokens of t's chunk g,   G_t = q'_t M_g / n_g (q', k': two more views),
        M_g = sum of k'_s v_s^T over the tokens of all chunks before g (not causal: over the whole text)

        normaliser   n in L                            n_g, causal   n_g, not causal
        counted      the tokens of the chunk t sees    g C           tokens of the text
        paper        C                                 g C           C times the number of chunks
        document     tokens of the text, causal to t   g C           tokens of the text
    """

    def __init__(self, config, width, longest, causal):
        # G has no function that would make weak agreement small: its gains are smaller.
        gains = [1.0] * 2 * config["local"] + [config["key_dim"] ** -0.5] * 2 * config["global"]
        local = config if config["local"] else {**config, "position_bias": "none"}  # b is of L
        super().__init__(local, width, config["chunk"], gains, config["chunk"])
        self.chunk = config["chunk"]
        self.local, self.linear = config["local"], config["global"]

    def views(self, parts):
        """v, local q and k, global q and k; None for a part that is off."""
        _, v, *views = parts
        local = views[:2] if self.local else (None, None)
        return v, *local, *(views[-2:] if self.linear else (None, None))

    def global_count(self, chunks, lengths, causal):  # n_g: (G, 1, 1) or (B, 1, 1, 1)
        if causal:
            return (self.chunk * chunks).clamp(min=1)[:, None, None]
        if self.normaliser == "paper":
            lengths = (lengths + self.chunk - 1) // self.chunk * self.chunk
        return lengths.clamp(min=1)[:, None, None, None]

    def mix(self, parts, texts, causal):
        length = texts.valid.shape[1]
        size = min(self.chunk, length) if isinstance(length, int) else self.chunk
        count = (length + size - 1) // size

        def chunked(x):  # (B, T, ...) -> (B, G, C, ...)
            padded = F.pad(x, (0, 0) * (x.dim() - 2) + (0, count * size - length))
            return padded.unflatten(1, (count, size))
        v, q, k, linear_q, linear_k = (None if x is None else chunked(x) for x in self.views(parts))
        valid = chunked(texts.valid)
        y = torch.zeros_like(wide(v))
        if self.local:
            places = torch.arange(size, device=v.device)
            seen = valid[:, :, None]
            seen = seen & (places[:, None] >= places) if causal else seen.expand(-1, -1, size, -1)
            if self.normaliser != "document":
                tokens = seen.sum(dim=-1, keepdim=True)
            elif causal:
                tokens = torch.arange(1, count * size + 1, device=v.device).unflatten(0, (count, size))[..., None]
            else:
                tokens = texts.lengths[:, None, None, None]
            y = y + self.weigh(q, k, v, self.bias(size, v.device), seen, tokens)
        if self.linear:
            memory = wide(linear_k * valid[..., None]).mT @ wide(v)  # (B, G, Z, E), of each chunk
            memory = later(memory, 1).cumsum(dim=1) if causal else memory.sum(dim=1, keepdim=True)
            n = self.global_count(torch.arange(count, device=v.device), texts.lengths, causal)
            y = y + wide(linear_q) @ memory / n
        return y.flatten(1, 2)[:, :length]

    def state(self, parts, texts):
        """M of all full chunks, and the keys and values of the one that is not full."""
        v, _, k, _, linear_k = self.views(parts)
        begin = texts.lengths // self.chunk * self.chunk
        places = torch.arange(self.chunk, device=v.device)
        recent = torch.where(places < (texts.lengths - begin)[:, None], begin[:, None] + places, -1)
        state = {"v": rows_at(v, recent)}
        if self.local:
            state["k"] = rows_at(k, recent)
        if self.linear:
            full = texts.keep(begin).valid[..., None]
            state |= {"g": rows_at(linear_k, recent), "memory": wide(linear_k * full).mT @ wide(v)}
        return state

    def step(self, parts, state, position):
        v, q, k, linear_q, linear_k = self.views(parts)
        place = position % self.chunk
        here = (torch.arange(self.chunk, device=v.device) == place[:, None])[..., None]  # (B, C, 1)
        state["v"] = torch.where(here, v, state["v"])
        y = torch.zeros_like(wide(v))
        if self.local:
            state["k"] = torch.where(here, k, state["k"])
            lag = place[:, None] - torch.arange(self.chunk, device=v.device)  # (B, C)
            bias = self.relative_bias(lag)[:, None] if hasattr(self, "relative_bias") else 0.0
            tokens = (position if self.normaliser == "document" else place) + 1
            y = y + self.weigh(q, state["k"], state["v"], bias, (lag >= 0)[:, None], tokens[:, None, None])
        if self.linear:
            state["g"] = torch.where(here, linear_k, state["g"])
            n = self.global_count(position // self.chunk, None, True)
            y = y + wide(linear_q) @ state["memory"] / n
            full = (place == self.chunk - 1)[:, None, None]
            state["memory"] = torch.where(full, state["memory"] + wide(state["g"]).mT @ wide(state["v"]), state["memory"])
        return y
