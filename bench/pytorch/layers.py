"""What every twin is made of. Parameters have Capstan's names: `gain` and `bias` of a norm, `weight` and `bias` of a linear map."""

import torch
from torch import nn
from torch.nn import functional as F

SMALLEST_EXPONENT = -80.0  # e^-80 is still a normal float32, so that no sum of exponentials is 0


class Norm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width))

    def forward(self, x):
        return F.layer_norm(x, self.gain.shape, self.gain, self.bias, eps=1e-5)


class FeedForward(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x):
        return self.down(F.gelu(self.up(x)))


def stable_exp(logits):
    """e^(logits - max over time), (B, T, ...). The shift cancels in every quotient, so its gradient is left out."""
    return (logits - logits.detach().amax(dim=1, keepdim=True)).clamp(min=SMALLEST_EXPONENT).exp()


def rotary_table(length, dims, base=10000.0):
    """cos and sin of position * base^(-2i/dims), (length, dims/2) each."""
    angles = torch.arange(length, dtype=torch.float64)[:, None] * base ** (-torch.arange(0, dims, 2) / dims)
    return angles.cos().float(), angles.sin().float()


def rotate(x, cos, sin):
    """Turns the pairs (2i, 2i + 1) of the last axis; cos and sin broadcast to (..., dims/2)."""
    first, second = x[..., 0::2], x[..., 1::2]
    return torch.stack((first * cos - second * sin, first * sin + second * cos), dim=-1).flatten(-2)


def toeplitz(values, length):
    """values[length - 1 + i - j] at (i, j), from 2 length - 1 values, by padding and reshaping as in the appendix of the
    FLASH paper: its gradient is a sum, where indexing would scatter."""
    rows = F.pad(values.flip(0), (0, length)).repeat(length)[:-length].view(length, 3 * length - 2)
    return rows[:, length - 1:2 * length - 1]
