"""What every twin is made of. Parameters have Capstan's names: `gain` and `bias` of a norm, the others as in torch.nn."""

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
    """Turns features i and i + dims/2 together; cos and sin broadcast to (..., dims/2)."""
    first, second = x.chunk(2, dim=-1)
    return torch.cat((first * cos - second * sin, first * sin + second * cos), dim=-1)
