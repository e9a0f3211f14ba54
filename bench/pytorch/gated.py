"""Causal gated attention units (Hua et al. 2022, arXiv 2202.10447): GAU and FLASH.  x: (B, T, D) -> (B, T, D).

Weights relu^2(q k / sqrt(Z) + b_(i-j)) / n, n the number of keys a query sees; rotary positions.
"""

import torch
from torch import nn
from torch.nn import functional as F

from layers import rotary_table, rotate


class RotaryBias(nn.Module):
    """b_(i-j) = (RoPE_i a) . (RoPE_j c)"""

    def __init__(self, key_dim):
        super().__init__()
        self.a = nn.Parameter(torch.zeros(key_dim))
        self.c = nn.Parameter(torch.zeros(key_dim))

    def forward(self, cos, sin):
        """(N, N) for tables of N positions."""
        return rotate(self.a, cos, sin) @ rotate(self.c, cos, sin).T


class ToeplitzBias(nn.Module):
    """b_(i-j) = table[N - 1 + i - j], by padding and reshaping as in the paper's appendix: the gradient of that is a sum, where
    indexing would scatter."""

    def __init__(self, positions):
        super().__init__()
        self.table = nn.Parameter(torch.zeros(2 * positions - 1))

    def forward(self, cos, sin):
        """(N, N); the tables of angles only say how large N is."""
        length = len(cos)
        unused = (len(self.table) + 1) // 2 - length
        values = self.table[unused:len(self.table) - unused].flip(0)
        rows = F.pad(values, (0, length)).repeat(length)[:-length].view(length, 3 * length - 2)
        return rows[:, length - 1:2 * length - 1]


class GatedUnit(nn.Module):
    """Projections, views of the shared features and gate; a variant's `attend` makes (B, T, E) of views and values."""

    def __init__(self, width, views, max_length, key_dim, bias):
        super().__init__()
        self.inner, self.key_dim = 2 * width, key_dim
        self.to_uvz = nn.Linear(width, 2 * self.inner + key_dim, bias=False)
        self.gain = nn.Parameter(torch.ones(views, key_dim))
        self.offset = nn.Parameter(torch.zeros(views, key_dim))
        self.relative_bias = bias
        self.to_out = nn.Linear(self.inner, width, bias=False)
        cos, sin = rotary_table(max_length, key_dim)
        self.register_buffer("cos", cos, persistent=False)
        self.register_buffer("sin", sin, persistent=False)

    def forward(self, x):
        u, v, z = F.silu(self.to_uvz(x)).split([self.inner, self.inner, self.key_dim], dim=-1)
        views = z[:, :, None] * self.gain + self.offset  # (B, T, views, Z)
        length = x.shape[1]
        views = rotate(views, self.cos[:length, None], self.sin[:length, None]).unbind(dim=2)
        return self.to_out(u * self.attend(views, v))

    def quadratic(self, q, k, v):
        """relu^2 attention of (..., N, Z) queries on the keys up to themselves; relu takes the mask's -inf to 0."""
        length = q.shape[-2]
        bias = self.relative_bias(self.cos[:length], self.sin[:length])
        bias = bias.masked_fill(torch.ones_like(bias, dtype=torch.bool).triu(1), -torch.inf)
        q, k = q.flatten(0, -3), k.flatten(0, -3)
        logits = torch.baddbmm(bias, q, k.transpose(1, 2), alpha=self.key_dim**-0.5)
        weights = F.relu(logits).square().view(*v.shape[:-1], length)
        return (weights @ v) / torch.arange(1, length + 1)[:, None]


class Gau(GatedUnit):
    def __init__(self, width, max_length, key_dim=128):
        super().__init__(width, 2, max_length, key_dim, RotaryBias(key_dim))

    def attend(self, views, v):
        q, k = views
        return self.quadratic(q, k, v)


class Flash(GatedUnit):
    """Quadratic inside chunks, linear in the keys of all chunks before. The chunk divides T, or T is shorter than it."""

    def __init__(self, width, max_length, key_dim=128, chunk=256):
        super().__init__(width, 4, max_length, key_dim, ToeplitzBias(chunk))
        self.chunk = chunk

    def attend(self, views, v):
        chunk = min(self.chunk, v.shape[1])
        quad_q, quad_k, lin_q, lin_k, v = (part.unflatten(1, (-1, chunk)) for part in (*views, v))
        local = self.quadratic(quad_q, quad_k, v)
        products = lin_k.transpose(-1, -2) @ v  # (B, chunks, Z, E)
        earlier = F.pad(products[:, :-1].cumsum(dim=1), (0, 0, 0, 0, 1, 0))
        count = chunk * torch.arange(products.shape[1]).clamp(min=1)
        return (local + lin_q @ (earlier / count[:, None, None])).flatten(1, 2)
