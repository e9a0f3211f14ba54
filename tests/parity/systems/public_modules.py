"""Public attention and AFT modules: state dicts and outputs. torch.nn's own, and twins written from formulas.

public_aft_full: x is (batch, time, width), bidirectional, no output projection. public_aft_local: x is (time, batch,
width), causal; local_mask is a BOOL that the module keeps as a parameter. Its pos_bias is not zero outside the
window: the importer must not use it there. The key biases are not zero: they must be accepted, and cancel.
"""

import torch

import tools

WIDTH, HIDDEN, HEADS, LENGTH, WINDOW, FEED_FORWARD = 12, 20, 3, 17, 4, 30


class AftModule(torch.nn.Module):
    """y = project(sigmoid(q) * sum exp(k + w) v / sum exp(k + w)), for every pair of tokens. wbias: w, where there is one."""

    def __init__(self, with_bias, window=None):
        super().__init__()
        self.to_q, self.to_k, self.to_v = (torch.nn.Linear(WIDTH, HIDDEN) for _ in range(3))
        self.project = torch.nn.Linear(HIDDEN, WIDTH)
        self.window = window
        if with_bias:
            self.wbias = torch.nn.Parameter(torch.empty(LENGTH, LENGTH))

    def forward(self, x):
        q, k, v = self.to_q(x), self.to_k(x), self.to_v(x)
        length = x.shape[1]
        w = self.wbias[:length, :length] if hasattr(self, "wbias") else torch.zeros(length, length, dtype=x.dtype)
        if self.window is not None:
            distance = (torch.arange(length)[:, None] - torch.arange(length)[None, :]).abs()
            w = torch.where(distance < self.window, w, torch.zeros_like(w))
        weights = torch.softmax(k[:, None] + w[None, :, :, None], dim=2)  # (B, T, T, hidden)
        return self.project(torch.sigmoid(q) * (weights * v[:, None]).sum(dim=2))


class SimpleAft(torch.nn.Module):
    """AFT_FULL with simple=True: no position biases, no projection."""

    def __init__(self):
        super().__init__()
        self.fc_q, self.fc_k, self.fc_v = (torch.nn.Linear(WIDTH, WIDTH) for _ in range(3))

    def forward(self, x):
        weights = torch.softmax(self.fc_k(x), dim=1)
        return torch.sigmoid(self.fc_q(x)) * (weights * self.fc_v(x)).sum(dim=1, keepdim=True)


class LocalAft(torch.nn.Module):
    """AFTLocal with bias=False: only the output has a bias. Causal, time first."""

    def __init__(self):
        super().__init__()
        self.query, self.key, self.value = (torch.nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(3))
        self.pos_bias = torch.nn.Parameter(torch.empty(LENGTH, LENGTH))
        position = torch.arange(LENGTH)
        mask = ((position[:, None] - position[None, :]).abs() < WINDOW).float()
        self.register_buffer("local_mask", mask)
        self.output = torch.nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        length = len(x)
        q, k, v = self.query(x), self.key(x), self.value(x)
        w = (self.pos_bias * self.local_mask)[:length, :length].tril()
        logits = k[None, :] + w[:, :, None, None]
        hidden = torch.ones(length, length).triu(1).bool()[:, :, None, None]
        weights = torch.softmax(logits.masked_fill(hidden, float("-inf")), dim=1)
        return self.output(torch.sigmoid(q) * (weights * v[None]).sum(dim=1))


def filled(name, module):
    with torch.no_grad():
        for key, value in module.named_parameters():
            value.copy_(tools.normal(f"{name}.{key}", *value.shape, stddev=0.5, mean=1 if key.endswith("norm.weight") else 0))
    return {key: value.clone() for key, value in module.state_dict().items()}


def save(name, module, outputs, time_first=False):
    state = filled(name, module)
    x = tools.normal(f"{name}.x", *((LENGTH, 2) if time_first else (2, LENGTH)), WIDTH)
    with torch.no_grad():
        module.double().eval()
        results = {f"y.{case}" if case else "y": function(x) for case, function in outputs.items()}
    tools.save(name, state, {"format": "pt"})
    tools.save(f"{name}_io", {"x": x, **results}, {"layout": "time, batch, width" if time_first else "batch, time, width"})


def attention(module, causal):
    mask = torch.ones(LENGTH, LENGTH).triu(1).bool() if causal else None
    return lambda x: module(x, x, x, attn_mask=mask, need_weights=False)[0]


def make():
    for name, module in {"full": AftModule(True), "simple": AftModule(False), "local": AftModule(True, WINDOW)}.items():
        save(f"public_aft_projected_{name}", module, {"": module})
    simple, local = SimpleAft(), LocalAft()
    save("public_aft_full_simple", simple, {"": simple})
    save("public_aft_local_plain", local, {"": local}, time_first=True)
    for name, bias in {"public_attention": True, "public_attention_plain": False}.items():
        module = torch.nn.MultiheadAttention(WIDTH, HEADS, bias=bias, batch_first=True)
        save(name, module, {"causal": attention(module, True), "bidirectional": attention(module, False)})
    torch.backends.mha.set_fastpath_enabled(False)
    layers = {f"{activation}.{'pre' if first else 'post'}": torch.nn.TransformerEncoderLayer(
        WIDTH, HEADS, FEED_FORWARD, dropout=0.0, activation=activation, norm_first=first, batch_first=True)
        for activation in ("relu", "gelu") for first in (False, True)}
    for layer in list(layers.values())[1:]:
        filled("public_encoder_layer", layer), layer.double().eval()
    first = next(iter(layers.values()))
    save("public_encoder_layer", first, {case: layer for case, layer in layers.items()})
