"""What the mixers of all systems have in common.

A mixer has four functions:

    project(x, positions)         what it makes of each token alone: queries, keys, values
    mix(parts, texts, causal)     every token's view of the others, for all tokens at once; no loop over them
    state(parts, texts)           what later tokens need of these
    step(parts, state, position)  mix() for one more token

In a causal model whose prompts are read in both directions, mix() runs twice (`Mixer.forward`): the second time over prompts."""

import torch
from torch import nn

from .capstan_layers import parameter


class Mixer(nn.Module):
    """What the systems have in common: projections, and reading prompts in both directions."""

    def make_projections(self, config, width, inner, keys):
        """to_qkv, whose biases are parameters of their own, and to_out."""
        self.widths = [inner, keys, inner]
        self.to_qkv = nn.Linear(width, 2 * inner + keys, bias=False)
        if config["bias"]:
            self.query_bias, self.value_bias = parameter(inner), parameter(inner)
        if config["output_projection"]:
            self.to_out = nn.Linear(inner, width, bias=config["bias"])

    def qkv(self, x):
        q, k, v = self.to_qkv(x).split(self.widths, dim=-1)
        return q + getattr(self, "query_bias", 0.0), k, v + getattr(self, "value_bias", 0.0)

    def forward(self, x, texts, causal, prompts=None, keeps=False):
        """(mixed tokens, state). prompts: the beginnings that are read in both directions. keeps: make a state."""
        parts = self.project(x, texts.positions)
        y = self.mix(parts, texts, causal)
        if prompts is not None:
            y = torch.where(prompts.valid[..., None], self.mix(parts, prompts, False), y)
        return self.output(parts, y), self.state(parts, texts) if keeps else {}

    def output(self, parts, y):
        return self.to_out(y) if hasattr(self, "to_out") else y

    def one(self, x, state, position):  # forward() for one token of each text, x: (B, 1, D), position: (B)
        parts = self.project(x, position[:, None])
        return self.output(parts, self.step(parts, state, position))


def append(state, **tensors):  # tensors (B, 1, ...) of one more token
    for name, x in tensors.items():
        state[name] = torch.cat((state[name], x), dim=1)


def angles(positions, base, pairs, dtype):
    """cos and sin of position * base^(-i / pairs), (..., pairs), computed in double."""
    frequencies = base ** (-torch.arange(pairs, device=positions.device, dtype=torch.float64) / pairs)
    turn = positions[..., None].double() * frequencies
    return turn.cos().to(dtype), turn.sin().to(dtype)


class Rotary:
    """RoPE (Su et al. 2021): at position t, pair i of n features turns by the angle t base^(-2 i / n), i = 0, 1, ...
    Pair i is features i and i + n / 2, or 2 i and 2 i + 1 (interleaved)."""

    def __init__(self, config, width):
        self.on, self.base = config["rotary"], 10000
        self.width, self.interleaved = width, config["rotary_pairs"] == "interleaved"

    def __call__(self, x, positions):
        """x: (B, T, heads, features), positions: (T) or (B, T)."""
        if not self.on:
            return x
        cos, sin = (table[..., None, :] for table in angles(positions, self.base, self.width // 2, x.dtype))
        first, second = (x[..., 0::2], x[..., 1::2]) if self.interleaved else x.chunk(2, dim=-1)
        pairs = first * cos - second * sin, first * sin + second * cos
        return torch.stack(pairs, dim=-1).flatten(-2) if self.interleaved else torch.cat(pairs, dim=-1)
