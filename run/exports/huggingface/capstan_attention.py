"""Multi-head attention."""

import torch
from torch.nn import functional as F

from .capstan_mixer import Mixer, Rotary, append


class Attention(Mixer):
    """Vaswani et al. 2017, arXiv 1706.03762: out_t = W_o sum_s softmax_s(q_t . k_s / sqrt(D / H)) v_s for each head."""

    def __init__(self, config, width, longest, causal):
        super().__init__()
        self.heads = config["heads"]
        self.rotary = Rotary(config, width // self.heads)
        self.make_projections(config, width, width, width)

    def project(self, x, positions):
        q, k, v = (x.unflatten(-1, (self.heads, -1)) for x in self.qkv(x))
        return self.rotary(q, positions), self.rotary(k, positions), v

    def attend(self, q, k, v, seen):
        """seen: (B, 1, T, S)"""
        q, k, v = (x.transpose(1, 2) for x in (q, k, v))
        return F.scaled_dot_product_attention(q, k, v, attn_mask=seen).transpose(1, 2).flatten(-2)

    def mix(self, parts, texts, causal):
        places = texts.positions
        seen = texts.valid[:, None, None] | (places[:, None] == places)  # padding sees itself: no row without a source
        return self.attend(*parts, seen & (places[:, None] >= places) if causal else seen)

    def state(self, parts, texts):
        return {"k": parts[1], "v": parts[2], "seen": texts.valid}

    def step(self, parts, state, position):
        q, k, v = parts
        append(state, k=k, v=v, seen=torch.ones_like(position[:, None], dtype=torch.bool))
        return self.attend(q, state["k"], state["v"], state["seen"][:, None, None])
