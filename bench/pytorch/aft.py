"""Causal AFT mixers (Zhai et al. 2021, arXiv 2105.14103).  x: (B, T, D) -> (B, T, D).

Y_t = sigmoid(Q_t) * sum_s e^(K_s + w_ts) V_s / sum_s e^(K_s + w_ts) over s <= t. Channels stand in G groups: both sums are
weighted sums over time of some (B, T, G, C), with the same weights e^w.
"""

import torch
from torch import nn
from torch.nn import functional as F

from layers import stable_exp

TILE = 64  # targets whose band is one matrix; divides T
KERNEL_EPS = 1e-5
POSITION_STDDEV = 0.1


class Aft(nn.Module):
    """Projections and quotient. A variant has `weights(length)` and `weighted_sums(weights, x)` of x: (B, T, G, C)."""

    def __init__(self, width, heads=None):
        """heads: keys per token, each shared by width / heads channels; None: every channel has a key of its own."""
        super().__init__()
        self.width = width
        self.groups, self.keys = (heads, 1) if heads else (1, width)
        self.to_qkv = nn.Linear(width, 2 * width + self.groups * self.keys, bias=False)
        self.to_out = nn.Linear(width, width, bias=False)

    def forward(self, x):
        q, k, v = self.to_qkv(x).split([self.width, self.groups * self.keys, self.width], dim=-1)
        e = stable_exp(k).unflatten(-1, (self.groups, self.keys))
        weights = self.weights(x.shape[1])
        above = self.weighted_sums(weights, e * v.unflatten(-1, (self.groups, -1)))
        average = above / self.weighted_sums(weights, e)
        return self.to_out(torch.sigmoid(q) * average.flatten(-2))


class AftSimple(Aft):
    def __init__(self, width, max_length):
        super().__init__(width)

    def weights(self, length):
        return None

    def weighted_sums(self, weights, x):
        return x.cumsum(dim=1)


class AftFull(Aft):
    def __init__(self, width, max_length, rank=64):
        super().__init__(width)
        self.position_u = nn.Parameter(POSITION_STDDEV * torch.randn(max_length, rank))
        self.position_v = nn.Parameter(POSITION_STDDEV * torch.randn(max_length, rank))

    def weights(self, length):
        w = self.position_u[:length] @ self.position_v[:length].T
        w = w.masked_fill(torch.ones_like(w, dtype=torch.bool).triu(1), -torch.inf)
        return (w - w.detach().amax(dim=1, keepdim=True)).exp()

    def weighted_sums(self, weights, x):
        return (weights @ x.flatten(2)).view_as(x)


def before(x, window):
    """x: (T, ...) behind `window` rows of zeros."""
    return F.pad(x, (0, 0) * (x.dim() - 1) + (window, 0))


def lags(window):
    """Distance from target a of a tile back to its source b, the first of which stands `window` before the tile."""
    return torch.arange(TILE)[:, None] - torch.arange(TILE + window)[None, :] + window


class WindowedAft(Aft):
    """Weights: the band, (tiles or 1, G, TILE, TILE + window), for the sources in the window, and one number for all before
    them, (T or 1, G, 1)."""

    def __init__(self, width, window, heads=None):
        super().__init__(width, heads)
        self.window = window
        lag = lags(window)
        self.register_buffer("inside", (lag >= 0) & (lag < window), persistent=False)
        self.register_buffer("tap", lag.clamp(0, window - 1), persistent=False)

    def weighted_sums(self, weights, x):
        band, outside = weights
        padded = F.pad(x, (0, 0, 0, 0, self.window, 0))
        sources = padded.unfold(1, TILE + self.window, TILE)  # (B, tiles, G, C, TILE + window)
        near = (band @ sources.transpose(-1, -2)).transpose(2, 3).flatten(1, 2)
        return near + outside * padded[:, :x.shape[1]].cumsum(dim=1)


class AftLocal(WindowedAft):
    def __init__(self, width, max_length, rank=64, window=32):
        super().__init__(width, window)
        self.position_u = nn.Parameter(POSITION_STDDEV * torch.randn(max_length, rank))
        self.position_v = nn.Parameter(POSITION_STDDEV * torch.randn(max_length, rank))

    def weights(self, length):
        targets = self.position_u[:length].unflatten(0, (-1, TILE))
        sources = before(self.position_v[:length], self.window).unfold(0, TILE + self.window, TILE)
        w = torch.where(self.inside, targets @ sources, 0.0)  # 0 also stands for the sources outside
        largest = w.detach().amax(dim=-1, keepdim=True)
        band = (w - largest).exp() * self.inside
        return band[:, None], (-largest).exp().view(length, 1, 1)


class AftConv(WindowedAft):
    def __init__(self, width, max_length, heads=4, window=32):
        super().__init__(width, window, heads)
        self.kernel = nn.Parameter(torch.randn(heads, window))
        self.kernel_gain = nn.Parameter(torch.zeros(heads))
        self.kernel_bias = nn.Parameter(torch.zeros(heads))

    def weights(self, length):
        centred = self.kernel - self.kernel.mean(dim=1, keepdim=True)
        deviation = (centred.square().mean(dim=1, keepdim=True) + KERNEL_EPS).sqrt()
        taps = self.kernel_gain[:, None] * centred / deviation + self.kernel_bias[:, None]
        largest = taps.detach().amax(dim=1, keepdim=True).clamp(min=0)
        return (taps - largest).exp()[:, self.tap] * self.inside, (-largest).exp()
