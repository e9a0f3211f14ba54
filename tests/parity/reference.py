"""The mathematics, as plainly as PyTorch can say it: every logit of every pair of tokens is written out, O(T^2 D).

Nothing here is an algorithm of Capstan: no scans, no tiles, no running maxima. Shapes: B batch, T targets,
S sources (= T), D width, H heads. Parameters are dictionaries from name to tensor.
"""

from dataclasses import dataclass

import torch

NORM_EPS = 1e-5
KERNEL_EPS = 1e-5
IGNORED = -1


@dataclass
class AftConfig:
    variant: str  # full, local, simple, conv
    width: int
    causal: bool
    dense: bool = False      # full, local: position_bias (max_length, max_length) instead of u v^T
    rank: int = 0            # full, local: columns of position_u and position_v
    window: int = 0          # local, conv
    heads: int = 0           # conv
    max_length: int = 0      # full, local
    output_projection: bool = False

    def key_width(self):
        return self.heads if self.variant == "conv" else self.width

    def taps(self):
        """Taps of a conv kernel: lags 0..window-1 when causal, offsets -(window-1)..window-1 otherwise."""
        return self.window if self.causal else 2 * self.window - 1


def part(params, prefix):
    """The parameters below `prefix.`, without it."""
    return {name[len(prefix) + 1:]: value for name, value in params.items() if name.startswith(prefix + ".")}


def visibility(segment_ids, causal):
    """(B, T, S): source s is seen by target t when both are in the same document and, when causal, s <= t."""
    same = segment_ids[:, :, None] == segment_ids[:, None, :]
    visible = same & (segment_ids != 0)[:, :, None]
    return torch.tril(visible) if causal else visible


def document_positions(segment_ids):
    """(B, T): position of each token within its document; 0 for padding."""
    positions = torch.zeros_like(segment_ids, dtype=torch.long)
    for row, ids in enumerate(segment_ids.tolist()):
        for t, segment in enumerate(ids):
            positions[row, t] = t - ids.index(segment) if segment != 0 else 0
    return positions


def softmax_over_visible(logits, visible):
    """Softmax over axis 2 of (B, T, S, C). Invisible sources weigh 0; so do all for a target that sees nothing."""
    sees_something = visible.any(dim=2, keepdim=True)
    masked = torch.where(sees_something, logits.masked_fill(~visible, -torch.inf), torch.zeros_like(logits))
    return torch.softmax(masked, dim=2) * visible


def normalised_kernel(kernel, gain, bias):
    """Reparametrised conv kernel (H, taps): gain (w - mean) / sqrt(population variance + eps) + bias, per head."""
    centred = kernel - kernel.mean(dim=1, keepdim=True)
    variance = (centred**2).mean(dim=1, keepdim=True)
    return gain[:, None] * centred / torch.sqrt(variance + KERNEL_EPS) + bias[:, None]


def conv_bias(params, config, distance):
    """(B, T, S, H): tap t - s (plus window - 1 when bidirectional) inside the window, 0 outside."""
    kernel = normalised_kernel(params["kernel"], params["kernel_gain"], params["kernel_bias"])
    tap = distance if config.causal else distance + config.window - 1
    inside = (tap >= 0) & (tap < config.taps())
    w = kernel[:, tap.clamp(0, config.taps() - 1)].permute(1, 2, 3, 0)
    return torch.where(inside[..., None], w, torch.zeros_like(w))


def table_bias(params, config, positions, distance):
    """(B, T, S, 1): w_ts of full and local, read at the positions within the document."""
    table = params["position_bias"] if config.dense else params["position_u"] @ params["position_v"].T
    w = table[positions[:, :, None], positions[:, None, :]]
    if config.variant == "local":
        w = torch.where(distance.abs() < config.window, w, torch.zeros_like(w))
    return w[..., None]


def aft_core(k, v, w, visible):
    """R_tc = sum_s exp(K_sc + w_ts) V_sc / sum_s exp(K_sc + w_ts) over visible s.

    k, v: (B, S, D), w: (B, T, S, 1 or D) -> (B, T, D); 0 where nothing is visible.
    """
    weights = softmax_over_visible(k[:, None] + w, visible[..., None])
    return (weights * v[:, None]).sum(dim=2)


def aft(params, config, x, segment_ids):
    """Attention Free Transformer (Zhai et al. 2021), x: (B, T, D) -> (B, T, D)."""
    q, k, v = (x @ params["to_qkv.weight"].T).split([config.width, config.key_width(), config.width], dim=-1)
    q, v = q + params["query_bias"], v + params["value_bias"]
    positions = document_positions(segment_ids)
    distance = positions[:, :, None] - positions[:, None, :]
    if config.variant == "conv":
        channels_per_head = config.width // config.heads
        k = k.repeat_interleave(channels_per_head, dim=-1)
        w = conv_bias(params, config, distance).repeat_interleave(channels_per_head, dim=-1)
    elif config.variant == "simple":
        w = torch.zeros_like(distance, dtype=x.dtype)[..., None]
    else:
        w = table_bias(params, config, positions, distance)
    y = torch.sigmoid(q) * aft_core(k, v, w, visibility(segment_ids, config.causal))
    return linear(y, part(params, "to_out")) if config.output_projection else y


def linear(x, params):
    return x @ params["weight"].T + params["bias"]


def layer_norm(x, params):
    centred = x - x.mean(dim=-1, keepdim=True)
    return centred / torch.sqrt((centred**2).mean(dim=-1, keepdim=True) + NORM_EPS) * params["gain"] + params["bias"]


def rms_norm(x, gain):
    """Also ScaleNorm when the gain is one number."""
    return x / torch.sqrt((x**2).mean(dim=-1, keepdim=True) + NORM_EPS) * gain


def gelu(x):
    return 0.5 * x * (1 + torch.erf(x / 2**0.5))


def silu(x):
    return x / (1 + torch.exp(-x))


def cross_entropy_sum(logits, targets):
    """Sum over the targets that are not IGNORED of logsumexp(logits) - logits[target]."""
    counted = targets != IGNORED
    rows = logits[counted]
    return (torch.logsumexp(rows, dim=-1) - rows.gather(1, targets[counted].long()[:, None])[:, 0]).sum()


def rotary(x, positions, base, interleaved):
    """x: (T, D). Pair i turns by position * base^(-2i/D); it is (2i, 2i + 1) when interleaved, else (i, i + D/2)."""
    half = x.shape[-1] // 2
    angle = positions[:, None] * base ** (-2 * torch.arange(half, dtype=torch.float64) / x.shape[-1])
    first, second = (x[:, 0::2], x[:, 1::2]) if interleaved else (x[:, :half], x[:, half:])
    turned = (first * angle.cos() - second * angle.sin(), first * angle.sin() + second * angle.cos())
    return torch.stack(turned, dim=-1).flatten(1) if interleaved else torch.cat(turned, dim=-1)


def hidden_states(params, config, layers, tokens, segment_ids):
    """Embeddings, learned positions, pre-norm blocks, final norm: (B, T) -> (B, T, D)."""
    x = params["embed.weight"][tokens.long()] + params["positions.weight"][document_positions(segment_ids)]
    for layer in range(layers):
        block = part(params, f"blocks.{layer}")
        x = x + aft(part(block, "mixer"), config, layer_norm(x, part(block, "mixer_norm")), segment_ids)
        feed_forward = part(block, "feed_forward")
        inner = gelu(linear(layer_norm(x, part(block, "feed_forward_norm")), part(feed_forward, "up")))
        x = x + linear(inner, part(feed_forward, "down"))
    return layer_norm(x, part(params, "final_norm"))


def language_model_logits(params, config, layers, tokens, segment_ids):
    """(B, T) -> (B, T, V), the output sharing embed.weight."""
    return hidden_states(params, config, layers, tokens, segment_ids) @ params["embed.weight"].T


def classifier_logits(params, config, layers, tokens, segment_ids):
    """(B, T) -> (B, classes): mean of the final states over the tokens that are not padding, then the head."""
    valid = (segment_ids != 0)[..., None]
    states = hidden_states(params, config, layers, tokens, segment_ids) * valid
    return linear(states.sum(dim=1) / valid.sum(dim=1), part(params, "head"))


class AFT_FULL(torch.nn.Module):
    """Twin of the public module of that name: dense position_biases, everything visible, no output projection."""

    def __init__(self, width, length):
        super().__init__()
        self.fc_q, self.fc_k, self.fc_v = (torch.nn.Linear(width, width) for _ in range(3))
        self.position_biases = torch.nn.Parameter(torch.empty(length, length))

    def forward(self, x):  # (B, T, D)
        weights = torch.softmax(self.fc_k(x)[:, None] + self.position_biases[None, :, :, None], dim=2)
        return torch.sigmoid(self.fc_q(x)) * torch.einsum("btsc,bsc->btc", weights, self.fc_v(x))


class AFTLocal(torch.nn.Module):
    """Twin of the public module of that name: dense pos_bias times local_mask (|t - s| < window), causal, projected."""

    def __init__(self, width, length, window):
        super().__init__()
        self.query, self.key, self.value, self.output = (torch.nn.Linear(width, width) for _ in range(4))
        self.pos_bias = torch.nn.Parameter(torch.empty(length, length))
        offsets = torch.arange(length)[:, None] - torch.arange(length)[None, :]
        self.local_mask = torch.nn.Parameter(offsets.abs() < window, requires_grad=False)

    def forward(self, x):  # (T, B, D): time first
        length = x.shape[0]
        w = (self.pos_bias * self.local_mask)[:length, :length]
        w = w.masked_fill(torch.ones(length, length, dtype=torch.bool).triu(1), -torch.inf)
        weights = torch.softmax(self.key(x)[None] + w[:, :, None, None], dim=1)  # (T, S, B, D)
        return self.output(torch.sigmoid(self.query(x)) * torch.einsum("tsbc,sbc->tbc", weights, self.value(x)))
