"""Tables of hashed n-grams of tokens."""

import torch
from torch import nn
from torch.nn import functional as F

from .capstan_layers import parameter
from .capstan_spans import wide
from .capstan_texts import later

GOLDEN = 0x9E3779B97F4A7C15 - 2 ** 64  # integers of PyTorch have a sign


def mixed_bits(h):
    """The finaliser of SplitMix64 (Steele et al. 2014), on int64 tensors: every bit depends on every bit of h."""
    high = lambda x, by: (x >> by) & ((1 << (64 - by)) - 1)  # a shift that brings in zeros
    h = (h ^ high(h, 30)) * (0xBF58476D1CE4E5B9 - 2 ** 64)
    h = (h ^ high(h, 27)) * (0x94D049BB133111EB - 2 ** 64)
    return h ^ high(h, 31)


def ngram_buckets(ids, order, buckets):
    """For every t the bucket floor(h buckets / 2^64) of tokens t - order + 1 to t, (B, T); before t = order - 1 anything.
    h begins as bits(order); every token, the earliest first, makes of it bits(h + GOLDEN (token + 1)) (bits: mixed_bits)."""
    h = mixed_bits(torch.full_like(ids, order))
    for back in range(order - 1, -1, -1):
        h = mixed_bits(h + GOLDEN * (later(ids, back) + 1))
    low, high = h & 0xFFFFFFFF, (h >> 32) & 0xFFFFFFFF
    return (high * buckets + ((low * buckets) >> 32)) >> 32  # the upper half of h * buckets


class Ngrams(nn.Module):
    """Hashed n-grams in one table. After Joulin et al. 2017 (fastText) and Pagnoni et al. 2024 (arXiv 2412.09871)."""

    def __init__(self, config, outputs):
        super().__init__()
        self.orders, self.buckets = config["orders"], config["buckets"]
        self.scale, self.dropout = config.get("scale", 10.0), config["dropout"]
        self.table = parameter(self.buckets, config["width"])
        self.output = nn.Linear(config["width"], outputs, bias=False)

    def sums(self, ids, valid):
        """The sum of the rows of the n-grams that end with each token, (B, T, width) in single precision at least, and their
        number (B, T, 1)."""
        total, count = 0.0, 0
        for order in self.orders:
            whole = (valid & later(valid, order - 1, False))[..., None]
            kept = whole & (torch.rand(whole.shape, device=ids.device) >= self.dropout) if self.training else whole
            total = total + wide(F.embedding(ngram_buckets(ids, order, self.buckets), self.table)) * kept
            count = count + whole
        return total * (self.scale / (1 - self.dropout if self.training else 1)), count

    def of_tokens(self, ids, valid):
        """e_t = O (scale / sqrt(orders) * sum of the rows of the n-grams that end with t), (B, T, D)."""
        return self.projected(self.sums(ids, valid)[0] * len(self.orders) ** -0.5)

    def of_texts(self, ids, valid):
        """O (scale / sqrt(n) * sum of the rows of the n n-grams of the text), (B, outputs)."""
        total, count = self.sums(ids, valid)
        return self.projected(total.sum(dim=1) * count.sum(dim=1).clamp(min=1) ** -0.5)

    def projected(self, sums):
        return self.output(sums.to(self.output.weight.dtype))
