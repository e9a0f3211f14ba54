"""Twins of the GAU and FLASH modules of the common PyTorch port, written from its formulas: state dicts and outputs.

Width 16, key width 8, groups of 8, texts of 24 tokens; _io has x and y.<kernel> (GAU: y.<kernel>.<direction>), norm
and residual included. Offsets, gains and T5 buckets are large, so that the attention and not the output's bias makes
the branch. GAU divides logits and bias by the text's length, FLASH the logits alone by the group's.
public_flash_rotary turns the first four features in neighbouring pairs.
"""

import math

import torch

import checks
import reference as ref
import tools
from systems.gau import T5_BUCKETS, t5_bucket

WIDTH, KEY_DIM, EXPANSION, LENGTH, GROUP, ROTARY_DIMS = 16, 8, 2.0, 24, 8, 4


class OffsetScale(torch.nn.Module):
    def __init__(self, views):
        super().__init__()
        self.gamma = torch.nn.Parameter(torch.empty(views, KEY_DIM))
        self.beta = torch.nn.Parameter(torch.empty(views, KEY_DIM))

    def forward(self, z):
        return [z * gamma + beta for gamma, beta in zip(self.gamma, self.beta)]


class PositionBias(torch.nn.Module):
    def __init__(self, scale, causal):
        super().__init__()
        self.scale, self.causal = scale, causal
        self.relative_attention_bias = torch.nn.Embedding(T5_BUCKETS, 1)

    def forward(self, length):
        buckets = [[t5_bucket(i - j, self.causal) for j in range(length)] for i in range(length)]
        return self.scale * self.relative_attention_bias(torch.tensor(buckets))[..., 0]


class Rotary(torch.nn.Module):
    """Neighbouring features turn together; features past 2 * freqs stay."""

    def __init__(self, dims):
        super().__init__()
        self.register_buffer("freqs", 10000.0 ** (-torch.arange(0, dims, 2) / dims))

    def forward(self, x):
        dims, positions = 2 * len(self.freqs), torch.arange(x.shape[1])
        return torch.stack([torch.cat([ref.rotary(row[:, :dims], positions, 10000.0, True), row[:, dims:]], dim=1)
                            for row in x])


class GatedModule(torch.nn.Module):
    """What both have: norm, projections to values | gate and to the shared features, and their names."""

    def __init__(self, causal, laplace, norm=torch.nn.LayerNorm):
        super().__init__()
        hidden = int(EXPANSION * WIDTH)
        self.causal, self.laplace = causal, laplace
        self.norm = norm(WIDTH)
        self.to_hidden = torch.nn.Sequential(torch.nn.Linear(WIDTH, 2 * hidden), torch.nn.SiLU())
        self.to_qk = torch.nn.Sequential(torch.nn.Linear(WIDTH, KEY_DIM), torch.nn.SiLU())

    def weights(self, logits):
        if self.laplace:
            found = 0.5 * (1 + torch.erf((logits - math.sqrt(0.5)) / (math.sqrt(1 / (4 * math.pi)) * math.sqrt(2))))
        else:
            found = torch.relu(logits) ** 2
        return found.tril() if self.causal else found


class Gau(GatedModule):
    """The kernel of (q k + bias) / length, causal or not."""

    def __init__(self, causal, laplace):
        super().__init__(causal, laplace)
        self.rel_pos_bias = PositionBias(WIDTH**0.5, causal)
        self.offsetscale = OffsetScale(2)
        self.to_out = torch.nn.Sequential(torch.nn.Linear(int(EXPANSION * WIDTH), WIDTH), torch.nn.Dropout(0.0))

    def forward(self, x):
        normed = self.norm(x)
        v, gate = self.to_hidden(normed).chunk(2, dim=-1)
        q, k = self.offsetscale(self.to_qk(normed))
        weights = self.weights((q @ k.transpose(1, 2) + self.rel_pos_bias(x.shape[1])) / x.shape[1])
        return self.to_out((weights @ v) * gate) + x


class Flash(GatedModule):
    """The kernel of q k / group + bias inside groups. Beyond them, bidirectional: q (k^T v) / length over the whole text;
    causal: q (k^T v) / group over the preceding groups, however many there are. With `shift`, the first half of a
    token's normed features are those of the token before it."""

    def __init__(self, laplace, rotary_dims, causal=False, shift=False, norm=torch.nn.LayerNorm):
        super().__init__(causal, laplace, norm)
        self.shift = shift
        self.rotary_pos_emb = Rotary(rotary_dims) if rotary_dims > 0 else None
        self.rel_pos_bias = PositionBias(KEY_DIM**0.5, causal)
        self.qk_offset_scale = OffsetScale(4)
        self.to_out = torch.nn.Linear(int(EXPANSION * WIDTH), WIDTH)

    def forward(self, x):
        normed = self.norm(x)
        if self.shift:
            first, second = normed.chunk(2, dim=-1)
            normed = torch.cat([torch.cat([torch.zeros_like(first[:, :1]), first[:, :-1]], dim=1), second], dim=-1)
        v, gate = self.to_hidden(normed).chunk(2, dim=-1)
        views = self.qk_offset_scale(self.to_qk(normed))
        if self.rotary_pos_emb is not None:
            views = [self.rotary_pos_emb(view) for view in views]
        quad_q, lin_q, quad_k, lin_k = views
        groups = []
        for begin in range(0, x.shape[1], GROUP):
            own = slice(begin, begin + GROUP)
            logits = quad_q[:, own] @ quad_k[:, own].transpose(1, 2) / GROUP
            logits = logits + self.rel_pos_bias(GROUP)[: logits.shape[1], : logits.shape[2]]
            local = self.weights(logits) @ v[:, own]
            seen, count = (begin, GROUP) if self.causal else (x.shape[1], x.shape[1])
            groups.append(local + lin_q[:, own] @ (lin_k[:, :seen].transpose(1, 2) @ v[:, :seen]) / count)
        return self.to_out(gate * torch.cat(groups, dim=1)) + x


def filled(name, module):
    """With float32 weights under which attention, not the bias behind it, makes the output."""
    with torch.no_grad():
        for key, value in module.named_parameters():
            loud = any(part in key for part in ("offset", "rel_pos_bias"))  # logits are divided by the length
            value.copy_(tools.normal(f"{name}.{key}", *value.shape, stddev=5 if loud else 0.3))
    return {key: value.clone() for key, value in module.state_dict().items()}


def save(name, modules, length=LENGTH):
    """The state dict they share, and what each of them makes of x (the residual included)."""
    x, outputs = tools.normal(f"{name}.x", 2, length, WIDTH), {}
    for case, module in modules.items():
        state = filled(name, module)
        with torch.no_grad():
            outputs[f"y.{case}"] = module.double()(x)
        branch = (outputs[f"y.{case}"] - x).std().item()
        checks.require(branch > 0.5, f"{name}: the branch is small beside the residual")
    tools.save(name, state, {"format": "pt"})
    tools.save(f"{name}_io", {"x": x, **outputs}, {"layout": "batch, time, width", "group_size": GROUP})


def make():
    kernels = {"squared-relu": False, "laplace": True}
    save("public_gau", {f"{kernel}.{'causal' if causal else 'bidirectional'}": Gau(causal, laplace)
                        for kernel, laplace in kernels.items() for causal in (False, True)})
    save("public_flash", {kernel: Flash(laplace, 0) for kernel, laplace in kernels.items()})
    save("public_flash_rotary", {kernel: Flash(laplace, ROTARY_DIMS) for kernel, laplace in kernels.items()})
    directions = {"causal": True, "bidirectional": False}
    save("public_flash_uneven", {f"{kernel}.{direction}{'.shifted' if shift else ''}": Flash(laplace, ROTARY_DIMS, causal, shift)
                                 for kernel, laplace in kernels.items() for direction, causal in directions.items()
                                 for shift in (False, True)}, LENGTH - 3)
