"""Layers of a block that see one token, or the last few: norms, feed-forward networks, short convolutions."""

import math

import torch
from torch import nn
from torch.nn import functional as F

from .capstan_spans import wide
from .capstan_texts import rows_at


def parameter(*shape, value=0.0, stddev=0.0):
    """A parameter, and where it starts outside transformers."""
    return nn.Parameter(value + stddev * torch.randn(shape))


class Norm(nn.Module):
    """layer: (x - mean) / sqrt(var + eps) * gain + bias; rms: x / sqrt(mean x^2 + eps) * gain; scale: rms with one gain."""

    def __init__(self, config, width):
        super().__init__()
        self.type, self.eps = config, 1e-5
        if self.type != "none":
            self.gain = parameter(1 if self.type == "scale" else width, value=1.0)
        if self.type == "layer":
            self.bias = parameter(width)

    def forward(self, x):
        if self.type == "none":
            return x
        if self.type == "layer":
            return F.layer_norm(x, self.gain.shape, self.gain, self.bias, self.eps)
        square = wide(x).square().mean(dim=-1, keepdim=True)
        return (x / torch.sqrt(square + self.eps)).to(x.dtype) * self.gain


ACTIVATIONS = {"relu": F.relu, "squared-relu": lambda x: F.relu(x).square(), "gelu": F.gelu, "silu": F.silu,
               "glu": torch.sigmoid, "swiglu": F.silu, "geglu": F.gelu}  # of the last three, of the gate


def hidden_width(expansion, width):
    return max(1, math.floor(expansion * width + 0.5))


class FeedForward(nn.Module):
    """W_down f(W_up x); gated: W_down (f(gate) * value), with gate and value the halves of W_up x."""

    def __init__(self, config, width):
        super().__init__()
        self.type, hidden = config["type"], hidden_width(config["expansion"], width)
        self.up = nn.Linear(width, 2 * hidden if self.type.endswith("glu") else hidden, bias=config["bias"])
        self.down = nn.Linear(hidden, width, bias=config["bias"])

    def forward(self, x):
        x, f = self.up(x), ACTIVATIONS[self.type]
        if not self.type.endswith("glu"):
            return self.down(f(x))
        gate, value = x.chunk(2, dim=-1)
        return self.down(f(gate) * value)


class ShortConv(nn.Module):
    """y_t = x_t + sum_k kernel_k x_(t - K + 1 + k), each channel by itself, with zeros before the text."""

    def __init__(self, width, taps):
        super().__init__()
        self.kernel = nn.Parameter((2 * torch.rand(width, taps) - 1) * taps ** -0.5)

    def forward(self, x):
        padded = F.pad(x.transpose(1, 2), (self.kernel.shape[1] - 1, 0))
        return x + F.conv1d(padded, self.kernel[:, None], groups=x.shape[2]).transpose(1, 2)

    def state(self, x, texts):
        before = torch.arange(1 - self.kernel.shape[1], 0, device=x.device)
        return {"conv": rows_at(x, texts.lengths[:, None] + before)}

    def step(self, x, state):
        seen = torch.cat((state["conv"], x), dim=1)  # (B, K, D)
        state["conv"] = seen[:, 1:]
        return x + (seen * self.kernel.T).sum(dim=1, keepdim=True)
