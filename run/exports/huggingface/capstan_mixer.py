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
from .configuration_capstan import compat


class Mixer(nn.Module):
    """What the systems have in common: projections, and reading prompts in both directions."""

    def make_projections(self, config, width, inner, keys):
        """to_qkv, whose biases are parameters of their own, and to_out."""
        self.widths = [inner, keys, inner]
        self.to_qkv = nn.Linear(width, 2 * inner + keys, bias=False)
        if config["bias"]:
            self.query_bias, self.value_bias = parameter(inner), parameter(inner)
        if compat(config, "key_bias", False):
            self.key_bias = parameter(keys)
        if config["output_projection"]:
            self.to_out = nn.Linear(inner, width, bias=config["bias"])

    def qkv(self, x):
        parts = self.to_qkv(x).split(self.widths, dim=-1)
        return [part + getattr(self, name, 0.0) for part, name in zip(parts, ("query_bias", "key_bias", "value_bias"))]

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
    Pair i is features i and i + n / 2, or 2 i and 2 i + 1 (interleaved). Only the first compat.rotary_dims turn."""

    def __init__(self, config, width):
        self.on, self.base = config["rotary"], config["rotary_base"]
        self.width = compat(config, "rotary_dims", 0) or width
        self.interleaved = compat(config, "rotary_pairs", "halves") == "interleaved"

    def __call__(self, x, positions):
        """x: (B, T, heads, features), positions: (T) or (B, T)."""
        if not self.on:
            return x
        cos, sin = (table[..., None, :] for table in angles(positions, self.base, self.width // 2, x.dtype))
        turned, rest = x[..., :self.width], x[..., self.width:]
        first, second = (turned[..., 0::2], turned[..., 1::2]) if self.interleaved else turned.chunk(2, dim=-1)
        pairs = first * cos - second * sin, first * sin + second * cos
        turned = torch.stack(pairs, dim=-1).flatten(-2) if self.interleaved else torch.cat(pairs, dim=-1)
        return torch.cat((turned, rest), dim=-1)
