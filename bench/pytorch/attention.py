"""Causal softmax attention, the Transformer's (Vaswani et al. 2017, arXiv 1706.03762).  x: (B, T, D) -> (B, T, D)."""

from torch import nn
from torch.nn import functional as F

HEAD_WIDTH = 64


class Attention(nn.Module):
    def __init__(self, width, max_length):
        super().__init__()
        self.heads = width // HEAD_WIDTH
        self.to_qkv = nn.Linear(width, 3 * width, bias=False)
        self.to_out = nn.Linear(width, width, bias=False)

    def forward(self, x):
        q, k, v = self.to_qkv(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        return self.to_out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
