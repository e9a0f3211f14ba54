"""Capstan's models in PyTorch, for the transformers library (4.57 and 5.x).

Systems that mix tokens: the Attention Free Transformer in four forms, Fastformer, GAU, FLASH, and multi-head attention.
Models: language models, masked language models and text classifiers.

How to read it. `config.model` is the section `model:` of a Capstan configuration, with all defaults written out. Weights
have the names that Capstan gives them, so that `save_pretrained` writes what `train.init_from` reads. Shapes: B texts,
T tokens, D features, H heads, S sources (tokens that are read), V the vocabulary.

Every text of a batch is first moved to the left of its row (`Texts`): position t of a row is token t of the text, and padding
comes last, where causal layers do not see it. Each mixer has four functions:

    project(x, positions)         what it makes of each token alone: queries, keys, values
    mix(parts, texts, causal)     every token's view of the others, for all tokens at once; no loop over them
    state(parts, texts)           what later tokens need of these
    step(parts, state, position)  mix() for one more token

In a causal model whose prompts are read in both directions, mix() runs twice (`Mixer.forward`): the second time over prompts.
"""

import math
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F
from transformers import GenerationMixin, PretrainedConfig, PreTrainedModel
from transformers.modeling_layers import GradientCheckpointingLayer
from transformers.utils import ModelOutput

LOWEST = -1e30  # the key of a token that is not seen: finite, so that no difference is NaN
SMALLEST_SUM = 1e-25  # below it a sum of exponentials has lost terms to underflow
TILE = 64  # targets that are worked on together where only a window has a position bias


class CapstanConfig(PretrainedConfig):
    """model: the section `model:` of the run's configuration. capstan: what made the export."""

    model_type = "capstan"
    keys_to_ignore_at_inference = ["past_key_values", "cache"]

    def __init__(self, model=None, vocab_size=256, capstan=None, **kwargs):
        self.model = model or {"type": "language-model", "width": 0, "layers": []}
        self.vocab_size = vocab_size  # rows of the embedding without those for tokens that the model adds itself
        self.capstan = capstan or {}
        kwargs.setdefault("tie_word_embeddings", bool(self.model.get("tied_output", False)))
        super().__init__(**kwargs)

    hidden_size = property(lambda self: self.model.get("width", 0))

    @property
    def added_rows(self):  # of the embedding, after the vocabulary: the mask token, or the first token of every text
        return int(self.model["type"] == "masked-language-model" or self.model.get("pooling") == "cls")

    @property
    def causal(self):
        return self.model["type"] == "language-model" or bool(self.model.get("causal", False))

    @property
    def longest(self):  # positions in tables: the longest text, and the token that pooling `cls` puts in front
        return self.model["max_length"] + int(self.model.get("pooling") == "cls")


def compat(section, key, default):
    """A key that only published weights need; such keys are in a map of their own."""
    return section.get("compat", {}).get(key, default)


def wide(x):
    """x in single precision at least: sums of exponentials and of squares are beyond half precision."""
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


@dataclass
class Texts:
    """Where the texts of a batch are: text b is tokens 0 to lengths[b] - 1 of row b."""

    lengths: torch.Tensor  # (B)
    valid: torch.Tensor  # (B, T): not padding

    @property
    def positions(self):
        return torch.arange(self.valid.shape[1], device=self.valid.device)

    def keep(self, lengths):  # the beginnings of the texts, as texts
        return Texts(lengths, self.positions < lengths[:, None])


def aligned(x, mask=None):
    """(Texts, gather, back) for texts with padding on one side or both: x[b, gather[b]] has the text of row b first,
    and y[b, back[b]] is in the places of x, each (B, T). x: the input (B, T, ...). mask: (B, T), 0 for padding."""
    mask = torch.ones(x.shape[:2], dtype=torch.bool, device=x.device) if mask is None else mask != 0
    if mask.shape != x.shape[:2] or mask.numel() == 0:
        raise ValueError(f"the input is {tuple(x.shape[:2])}, attention_mask {tuple(mask.shape)}: give equal shapes, not empty")
    if not torch.compiler.is_exporting() and bool(((mask & ~later(mask, 1, False)).sum(dim=1) > 1).any()):
        raise ValueError("attention_mask has a 0 between two 1s: remove the tokens instead, so that a text is one piece")
    length, first = mask.shape[1], mask.int().argmax(dim=1)[:, None]
    places = torch.arange(length, device=mask.device)
    gather, back = places + first, places - first
    texts = Texts(mask.sum(dim=1), places < mask.sum(dim=1)[:, None])
    return texts, torch.where(gather < length, gather, gather - length), torch.where(back < 0, back + length, back)


def rows_at(x, index, fill=0.0):
    """x (B, T, ...) at index (B, J), of which places outside of [0, T) give `fill`: (B, J, ...)."""
    inside = (index >= 0) & (index < x.shape[1])
    rows = x[torch.arange(x.shape[0], device=x.device)[:, None], index.clamp(0, x.shape[1] - 1)]
    return torch.where(inside.view(*inside.shape, *[1] * (x.dim() - 2)), rows, fill)


def later(x, steps, fill=0.0):
    """x (B, T, ...) moved `steps` tokens towards the end, with `fill` before it."""
    return F.pad(x, (0, 0) * (x.dim() - 2) + (steps, 0), value=fill)[:, :x.shape[1]]


# ---------------------------------------------------------------------------------------------- averages by exponentials
#
# A span of tokens is three tensors (m, n, r): the largest key m, n = sum of e^(k_s - m), and the average
# r = sum of e^(k_s) v_s / sum of e^(k_s). A token is the span (k, 1, v); the empty span is (LOWEST, 0, 0). No exponent is
# positive, so nothing overflows, and n >= 1, so no division needs an epsilon. Keys are (..., G, 1 or C) and values
# (..., G, C): G groups of C channels, each channel with a key of its own, or all of a group with one.


def token_spans(keys, values):
    """(k, 1, v). m cancels in every result, so the gradient of the key goes through n = e^(k - m), whose value is 1."""
    m = keys.detach()
    return m, torch.exp(keys - m), values


def merge(a, b):
    """The span of two neighbouring spans."""
    (m_a, n_a, r_a), (m_b, n_b, r_b) = a, b
    m = torch.maximum(m_a, m_b)
    n_a, n_b = n_a * torch.exp(m_a - m), n_b * torch.exp(m_b - m)
    n = n_a + n_b
    return m, n, r_a + n_b / n * (r_b - r_a)


def running_spans(keys, values):
    """For every t the span of tokens 0 to t, along axis 1, by a parallel scan (Hillis and Steele 1986): after `level` merges
    a span has 2^level tokens, and the next merge adds as many from before it."""
    spans, length = token_spans(keys, values), keys.shape[1]
    levels = (length - 1).bit_length() if isinstance(length, int) else 16  # exported for any length: up to 2^16 tokens
    for level in range(levels):
        m, n, r = spans
        before = later(m, 1 << level, LOWEST), later(n, 1 << level), later(r, 1 << level)
        spans = merge(before, spans)
    return spans


def whole_average(keys, values, valid):
    """r of all tokens of a text, (B, 1, ...): a softmax of the keys, for each group or channel."""
    weights = torch.softmax(keys.masked_fill(~valid[..., None, None], LOWEST), dim=1)
    return (weights * values).sum(dim=1, keepdim=True)


def biased_average(spans, bias):
    """r_t = sum_s e^(k_s + w_ts) v_s / sum_s e^(k_s + w_ts), as two products of matrices: e^w with e^k v, and with e^k.

    spans: sources (B, N, S, G, 1 or C) of N tiles of targets. bias: w, (N or 1, G, L, S), -inf where t does not see s, the
    same for all texts. Result: (B, N, L, G, C).

    The largest k of the tile and the largest w of t are subtracted, which cancels. t need not see that key: where the sum
    that is left is too small, the row is computed again by itself.
    """
    if torch.is_autocast_enabled(bias.device.type):  # would make the products in half precision
        with torch.autocast(bias.device.type, enabled=False):
            return biased_average(spans, bias)
    m, n, r = spans
    bias = wide(bias)
    e = n * torch.exp(m - m.amax(dim=2, keepdim=True))
    weights = torch.exp(bias - bias.detach().amax(dim=-1, keepdim=True))
    above = torch.einsum("ngls,bnsgc->bnlgc", weights.expand(e.shape[1], -1, -1, -1), e * r)
    below = torch.einsum("ngls,bnsgc->bnlgc", weights.expand(e.shape[1], -1, -1, -1), e)
    average = above / below.clamp(min=SMALLEST_SUM)
    if torch.compiler.is_exporting() or not bool((below < SMALLEST_SUM).any()):
        return average
    text, tile, target = (below < SMALLEST_SUM).flatten(3).any(dim=-1).nonzero(as_tuple=True)
    logits = m[text, tile] + bias.expand(e.shape[1], -1, -1, -1)[tile, :, target].transpose(1, 2)[..., None]
    e = n[text, tile] * torch.exp(logits - logits.detach().amax(dim=1, keepdim=True))
    exact = (e * r[text, tile]).sum(dim=1) / e.sum(dim=1)
    return average.index_put((text, tile, target), exact)


def append(state, **tensors):  # tensors (B, 1, ...) of one more token
    for name, x in tensors.items():
        state[name] = torch.cat((state[name], x), dim=1)


def parameter(*shape, value=0.0, stddev=0.0):
    """A parameter, and where it starts outside transformers."""
    return nn.Parameter(value + stddev * torch.randn(shape))


class Norm(nn.Module):
    """layer: (x - mean) / sqrt(var + eps) * gain + bias; rms: x / sqrt(mean x^2 + eps) * gain; scale: rms with one gain.
    With compat.clamp, the last two divide by max(sqrt(mean x^2), eps)."""

    def __init__(self, config, width):
        super().__init__()
        self.type, self.eps, self.clamp = config["type"], config["eps"], compat(config, "clamp", False)
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
        root = square.sqrt().clamp(min=self.eps) if self.clamp else torch.sqrt(square + self.eps)
        return (x / root).to(x.dtype) * self.gain


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


def angles(positions, base, pairs, dtype):
    """cos and sin of position * base^(-i / pairs), (..., pairs), computed in double."""
    frequencies = base ** (-torch.arange(pairs, device=positions.device, dtype=torch.float64) / pairs)
    turn = positions[..., None].double() * frequencies
    return turn.cos().to(dtype), turn.sin().to(dtype)


class Rotary:
    """RoPE (Su et al. 2021): at position t, pair i of n features turns by the angle t base^(-2 i / n), i = 0, 1, ...
    Pair i is features i and i + n / 2, or 2 i and 2 i + 1 (interleaved). Only the first compat.rotary_dims turn."""

    def __init__(self, config, width):
        self.on, self.base = config["rotary"], config["rotary_base"]
        self.width = compat(config, "rotary_dims", 0) or width
        self.interleaved = compat(config, "rotary_pairs", "halves") == "interleaved"

    def __call__(self, x, positions):
        """x: (B, T, heads, features), positions: (T) or (B, T)."""
        if not self.on:
            return x
        cos, sin = (table[..., None, :] for table in angles(positions, self.base, self.width // 2, x.dtype))
        turned, rest = x[..., :self.width], x[..., self.width:]
        first, second = (turned[..., 0::2], turned[..., 1::2]) if self.interleaved else turned.chunk(2, dim=-1)
        pairs = first * cos - second * sin, first * sin + second * cos
        turned = torch.stack(pairs, dim=-1).flatten(-2) if self.interleaved else torch.cat(pairs, dim=-1)
        return torch.cat((turned, rest), dim=-1)


class Mixer(nn.Module):
    """What the systems have in common: projections, and reading prompts in both directions."""

    def make_projections(self, config, width, inner, keys):
        """to_qkv, whose biases are parameters of their own, and to_out."""
        self.widths = [inner, keys, inner]
        self.to_qkv = nn.Linear(width, 2 * inner + keys, bias=False)
        if config["bias"]:
            self.query_bias, self.value_bias = parameter(inner), parameter(inner)
        if compat(config, "key_bias", False):
            self.key_bias = parameter(keys)
        if config["output_projection"]:
            self.to_out = nn.Linear(inner, width, bias=config["bias"])

    def qkv(self, x):
        parts = self.to_qkv(x).split(self.widths, dim=-1)
        return [part + getattr(self, name, 0.0) for part, name in zip(parts, ("query_bias", "key_bias", "value_bias"))]

    def forward(self, x, texts, causal, prompts=None, keeps=False):
        """(mixed tokens, state). prompts: the beginnings that are read in both directions. keeps: make a state."""
        parts = self.project(x, texts.positions)
        y = self.mix(parts, texts, causal)
        if prompts is not None:
            y = torch.where(prompts.valid[..., None], self.mix(parts, prompts, False), y)
        return self.output(parts, y), self.state(parts, texts) if keeps else {}

    def output(self, parts, y):
        return self.to_out(y) if hasattr(self, "to_out") else y

    def one(self, x, state, position):  # forward() for one token of each text, x: (B, 1, D), position: (B)
        parts = self.project(x, position[:, None])
        return self.output(parts, self.step(parts, state, position))


# -------------------------------------------------------------------------------------- Attention Free Transformer
class Aft(Mixer):
    """Attention Free Transformer, Zhai et al. 2021, arXiv 2105.14103.
        Y_t = sigmoid(Q_t) * sum_s e^(K_s + w_ts) V_s / sum_s e^(K_s + w_ts),   out_t = W_o Y_t
    over the tokens s that t sees, for each channel by itself. The query gates the average; it selects nothing.

        aft-simple   w = 0
        aft-full     w_ts = u_t . v_s, or a table
        aft-local    as aft-full where |t - s| < window, else 0: distant tokens are averaged, all with the same weight
        aft-conv     w depends on t - s and the head where |t - s| < window, else 0; a head has one key for all its
                     channels. The taps are kernel_gain (kernel - mean) / std + kernel_bias, per head.
    """

    def __init__(self, config, width, longest, causal):
        super().__init__()
        self.type, self.causal, self.window, self.longest = config["type"], causal, config.get("window", 0), longest
        inner, conv = config["inner"] or width, self.type == "aft-conv"
        self.groups = config["heads"] if conv else 1
        self.make_projections(config, width, inner, self.groups if conv else inner)
        if conv:
            self.kernel_eps = compat(config, "kernel_eps", 1e-5)
            self.kernel = parameter(self.groups, self.window if causal else 2 * self.window - 1, stddev=1.0)
            self.kernel_gain, self.kernel_bias = parameter(self.groups), parameter(self.groups)
        elif self.type != "aft-simple" and config["position_bias"] == "dense":
            self.position_bias = parameter(longest, longest, stddev=config["position_stddev"])
        elif self.type != "aft-simple":
            self.position_u, self.position_v = (
                parameter(longest, config["rank"], stddev=config["position_stddev"]) for _ in range(2))

    def project(self, x, positions):
        q, k, v = self.qkv(x)
        return q, *(wide(part).unflatten(-1, (self.groups, -1)) for part in (k, v))

    def gated(self, q, r):
        return torch.sigmoid(q) * r.flatten(-2).to(q.dtype)

    def taps(self):
        centred = self.kernel - self.kernel.mean(dim=1, keepdim=True)
        deviation = torch.sqrt(centred.square().mean(dim=1, keepdim=True) + self.kernel_eps)
        return self.kernel_gain[:, None] * centred / deviation + self.kernel_bias[:, None]

    def bias(self, targets, sources):  # w of targets (N, L) and sources (N, S): (N, G, L, S)
        lag = targets[:, :, None] - sources[:, None]
        if self.type == "aft-conv":
            tap = lag if self.causal else lag + self.window - 1
            w = self.taps()[:, tap.clamp(0, self.kernel.shape[1] - 1)].transpose(0, 1)
        else:
            t, s = targets.clamp(0, self.longest - 1), sources.clamp(0, self.longest - 1)
            dense = hasattr(self, "position_bias")
            w = self.position_bias[t[:, :, None], s[:, None]] if dense else self.position_u[t] @ self.position_v[s].mT
            w = w[:, None]
        return torch.where((lag.abs() < self.window)[:, None], w, 0.0) if self.window else w

    def mix(self, parts, texts, causal):
        q, k, v = parts
        k = k.masked_fill(~texts.valid[..., None, None], LOWEST)
        if self.type == "aft-simple":
            r = running_spans(k, v)[2] if causal else whole_average(k, v, texts.valid)
        elif self.type == "aft-full":
            places = texts.positions[None]
            w = self.bias(places, places)
            if causal:
                w = w.masked_fill(places.mT < places, -torch.inf)
            r = biased_average([x[:, None] for x in token_spans(k, v)], w)[:, 0]
        else:
            r = self.windowed(k, v, causal)
        return self.gated(q, r)

    def windowed(self, k, v, causal):
        """The sources of a tile of targets are the tokens within the window of any of these, one by one, and all tokens before
        (and after, if not causal) as one span, for which w = 0."""
        length, before, after = k.shape[1], self.window - 1, 0 if causal else self.window - 1
        tiles = (length + TILE - 1) // TILE
        begins = TILE * torch.arange(tiles, device=k.device)[:, None]
        targets = begins + torch.arange(TILE, device=k.device)
        sources = begins + torch.arange(-before, TILE + after, device=k.device)
        w = self.bias(*([targets[:1], sources[:1]] if self.type == "aft-conv" else [targets, sources]))
        if causal:
            w = w.masked_fill((targets[:1, :, None] < sources[:1, None])[:, None], -torch.inf)
        inside = (sources >= 0) & (sources < length)
        places = sources.clamp(0, length - 1)
        m, n, r = (x[:, places] for x in token_spans(k, v))  # (B, N, S, G, C)
        spans = [(m.masked_fill(~inside[..., None, None], LOWEST), n * inside[..., None, None], r)]
        ends = (begins[:, 0] - before - 1).expand(k.shape[0], -1)
        spans.append([x[:, :, None] for x in spans_at(running_spans(k, v), ends)])
        if not causal:
            backwards = running_spans(k.flip(1), v.flip(1))
            first = (length - 1 - (begins[:, 0] + TILE + after)).expand(k.shape[0], -1)
            spans.append([x[:, :, None] for x in spans_at(backwards, first)])
        w = F.pad(w, (0, len(spans) - 1))
        average = biased_average([torch.cat(part, dim=2) for part in zip(*spans)], w)
        return average.flatten(1, 2)[:, :length]

    def state(self, parts, texts):
        """The tokens in the next one's window (aft-full: all), and the span of those before the window."""
        _, k, v = parts
        if self.type == "aft-full":
            k = k.masked_fill(~texts.valid[..., None, None], LOWEST)
            return {"k": k, "v": v, "s": texts.positions.expand(k.shape[0], -1)}
        ends = texts.lengths[:, None]
        state = dict(zip("mnr", spans_at(running_spans(k, v), ends - max(self.window, 1))))
        if self.type != "aft-simple":
            recent = ends + torch.arange(1 - self.window, 0, device=k.device)
            state |= {"k": rows_at(k, recent, LOWEST), "v": rows_at(v, recent), "s": recent}
        return state

    def step(self, parts, state, position):
        q, k, v = parts
        if self.type == "aft-simple":
            state["m"], state["n"], state["r"] = merge([state[x] for x in "mnr"], token_spans(k, v))
            return self.gated(q, state["r"])
        append(state, k=k, v=v, s=position[:, None])
        spans, w = token_spans(state["k"], state["v"]), self.bias(position[:, None], state["s"])
        if self.type != "aft-full":
            spans = [torch.cat(pair, dim=1) for pair in zip(spans, [state[x] for x in "mnr"])]
            w = F.pad(w, (0, 1))
        r = biased_average([x[None] for x in spans], w)[0]  # texts take the place of tiles: each has positions of its own
        if self.type != "aft-full":  # the oldest token leaves the window
            oldest = token_spans(state["k"][:, :1], state["v"][:, :1])
            state["m"], state["n"], state["r"] = merge([state[x] for x in "mnr"], oldest)
            state |= {x: state[x][:, 1:] for x in "kvs"}
        return self.gated(q, r)


def spans_at(spans, index):
    """Spans at index (B, J); before the first token the empty span."""
    return [rows_at(x, index, fill) for x, fill in zip(spans, (LOWEST, 0.0, 0.0))]


class Fastformer(Mixer):
    """Fastformer, Wu et al. 2021, arXiv 2108.09084. For each of H heads of D / H features, over the tokens i that t sees:
        pooled query  a_t = sum_i softmax_i(w_q . q_i / sqrt(D / H)) q_i      p_t = a_t * k_t
        pooled key    b_t = sum_i softmax_i(w_k . p_i / sqrt(D / H)) p_i      u_t = b_t * v_t
        y_t = W_r u_t + q_t,   out_t = W_o y_t

    w reads all D features, or those of its head (`logits: per-head`). v is q, or has a projection of its own. Not causal: a
    and b are the same for all t. Causal: averages that run, whose keys are the logits.
    """

    def __init__(self, config, width, longest, causal):
        super().__init__()
        self.heads, self.per_head = config["heads"], config["logits"] == "per-head"
        self.projection = "to_qkv" if config["value"] == "own" else "to_qk"
        parts = 3 if config["value"] == "own" else 2
        setattr(self, self.projection, nn.Linear(width, parts * width, bias=config["bias"]))
        read, logit_bias = width // self.heads if self.per_head else width, compat(config, "logit_bias", False)
        self.query_logits = nn.Linear(read, self.heads, bias=logit_bias)
        self.key_logits = nn.Linear(read, self.heads, bias=logit_bias)
        self.to_r = nn.Linear(width, width, bias=config["bias"])
        if config["output_projection"]:
            self.to_out = nn.Linear(width, width, bias=config["bias"])
        self.width = width

    def project(self, x, positions):
        q, k, *v = getattr(self, self.projection)(x).split(self.width, dim=-1)
        return q, k, v[0] if v else q

    def keys_and_values(self, layer, x):
        """The logits of x (B, T, D) as keys (B, T, H, 1), and x by heads."""
        values = wide(x).unflatten(-1, (self.heads, -1))
        scores = (values * layer.weight).sum(dim=-1) if self.per_head else wide(layer(x))  # a bias cancels
        return (scores * (self.heads / self.width) ** 0.5)[..., None], values

    def mix(self, parts, texts, causal):
        def pool(layer, x):
            pair = self.keys_and_values(layer, x)
            return (running_spans(*pair)[2] if causal else whole_average(*pair, texts.valid)).flatten(-2).to(x.dtype)
        q, k, v = parts
        return self.to_r(pool(self.key_logits, pool(self.query_logits, q) * k) * v) + q

    def state(self, parts, texts):
        """Both running averages. After a prompt that was read in both directions, they are the causal ones."""
        q, k, _ = parts
        queries = running_spans(*self.keys_and_values(self.query_logits, q))
        p = queries[2].flatten(-2).to(k.dtype) * k
        keys = running_spans(*self.keys_and_values(self.key_logits, p))
        last = texts.lengths[:, None] - 1
        return dict(zip(("qm", "qn", "qr", "km", "kn", "kr"), (*spans_at(queries, last), *spans_at(keys, last))))

    def step(self, parts, state, position):
        def pool(name, layer, x):
            spans = merge([state[name + part] for part in "mnr"], token_spans(*self.keys_and_values(layer, x)))
            state.update(zip((name + part for part in "mnr"), spans))
            return spans[2].flatten(-2).to(x.dtype)
        q, k, v = parts
        return self.to_r(pool("k", self.key_logits, pool("q", self.query_logits, q) * k) * v) + q


class Attention(Mixer):
    """Vaswani et al. 2017, arXiv 1706.03762: out_t = W_o sum_s softmax_s(q_t . k_s / sqrt(D / H)) v_s for each head."""

    def __init__(self, config, width, longest, causal):
        super().__init__()
        self.heads, self.dropout = config["heads"], config["attention_dropout"]
        self.rotary = Rotary(config, width // self.heads)
        self.make_projections(config, width, width, width)

    def project(self, x, positions):
        q, k, v = (x.unflatten(-1, (self.heads, -1)) for x in self.qkv(x))
        return self.rotary(q, positions), self.rotary(k, positions), v

    def attend(self, q, k, v, seen):
        """seen: (B, 1, T, S)"""
        q, k, v = (x.transpose(1, 2) for x in (q, k, v))
        rate = self.dropout if self.training else 0.0
        return F.scaled_dot_product_attention(q, k, v, attn_mask=seen, dropout_p=rate).transpose(1, 2).flatten(-2)

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


# --------------------------------------------------------------------------------------------------------- GAU and FLASH
class RelativeBias(nn.Module):
    """b of the distance d = t - s.
        toeplitz  a number for each distance
        rotary    (RoPE_t a) . (RoPE_s c), which depends on d alone: for each two features that turn by the angle w,
                  (a0 c0 + a1 c1) cos(w d) + (a0 c1 - a1 c0) sin(w d)
        t5        32 buckets of distances, the far ones ever wider (Raffel et al. 2020)
    """

    def __init__(self, config, positions, causal):
        super().__init__()
        self.type, self.causal, self.base = config["position_bias"], causal, config["rotary_base"]
        self.interleaved = compat(config, "rotary_pairs", "halves") == "interleaved"
        self.scale = compat(config, "t5_scale", 0) or config["key_dim"] ** 0.5
        if self.type == "toeplitz":
            self.table = parameter(2 * positions - 1, stddev=0.02)
        elif self.type == "rotary":
            self.a, self.c = (parameter(config["key_dim"], stddev=0.02) for _ in range(2))
        elif self.type == "t5":
            self.buckets = parameter(32, stddev=0.02)

    def forward(self, distance):
        """(...) -> (...)"""
        if self.type == "toeplitz":
            middle = len(self.table) // 2
            return self.table[(distance + middle).clamp(0, 2 * middle)]
        if self.type == "t5":
            return self.scale * self.buckets[self.bucket(distance)]
        (a0, a1), (c0, c1) = ((x[0::2], x[1::2]) if self.interleaved else x.chunk(2) for x in (self.a, self.c))
        cos, sin = angles(distance, self.base, len(a0), a0.dtype)
        return cos @ (a0 * c0 + a1 * c1) + sin @ (a0 * c1 - a1 * c0)

    def bucket(self, distance):
        count = 32 if self.causal else 16
        exact = count // 2
        away = distance.clamp(min=0) if self.causal else distance.abs()
        # Each distance below `exact` has a bucket; the others begin at exact (128 / exact)^(i / (count - exact)).
        begins = [math.ceil(exact * (128 / exact) ** (i / (count - exact)) - 1e-9) for i in range(1, count - exact)]
        far = exact + (away[..., None] >= torch.tensor(begins, device=away.device)).sum(dim=-1)
        bucket = torch.where(away < exact, away, far)
        return bucket if self.causal else bucket + 16 * (distance < 0)

    def matrix(self, length, device):
        values = self(torch.arange(1 - length, length, device=device))
        places = torch.arange(length, device=device)
        return values[length - 1 + places[:, None] - places]


class GatedUnit(Mixer):
    """What GAU and FLASH share (Hua et al. 2022, arXiv 2202.10447): E = expansion D gates and values, Z shared features.
        (u, v, z) = SiLU(W x + b),   views y_c = RoPE(gain_c * z + offset_c),   out = W_o (u * Y)
    Y_t = sum_s A_ts v_s with queries and keys q, k that are views. With p = q_t . k_s, bias b = b_(t - s) and n a
    number of tokens, or a constant (`normaliser`), the weight A is

        logits        A, function f               A, softmax
        key-dim       f(p / sqrt(Z) + b) / n      softmax(p / sqrt(Z) + b)
        length        f(p / n + b), or f((p + b) / n) with compat.whole_length
        log-length                                softmax(p log n / (log 512 sqrt(Z)) + b), n >= compat.least_length

    f is max(0, x)^2 or Laplace's (1 + erf((x - mean) / (deviation sqrt 2))) / 2 with mean sqrt(1 / 2) and deviation
    sqrt(1 / (4 pi)), which is not 0 at 0: hidden keys are masked after f.
    """

    def __init__(self, config, width, positions, causal, gains, constant):
        """gains: initial ones of the views. constant: n, unless it is counted."""
        super().__init__()
        self.kernel, self.form, self.normaliser = config["kernel"], config["logits"], config["normaliser"]
        self.whole_length, self.least = compat(config, "whole_length", False), compat(config, "least_length", 16)
        self.key_dim, self.hidden = config["key_dim"], hidden_width(config["expansion"], width)
        self.constant, self.dropout = constant, config["attention_dropout"]
        self.rotary = Rotary(config, self.key_dim)
        self.to_uvz = nn.Linear(width, 2 * self.hidden + self.key_dim, bias=config["bias"])
        self.gain = nn.Parameter(torch.tensor(gains)[:, None].repeat(1, self.key_dim))
        self.offset = parameter(len(gains), self.key_dim)
        self.to_out = nn.Linear(self.hidden, width, bias=config["bias"])
        if config["position_bias"] != "none":
            self.relative_bias = RelativeBias(config, positions, causal)

    def project(self, x, positions):
        u, v, z = F.silu(self.to_uvz(x)).split([self.hidden, self.hidden, self.key_dim], dim=-1)
        views = self.rotary(z[..., None, :] * self.gain + self.offset, positions)
        return u, v, *views.unbind(dim=-2)

    def output(self, parts, y):
        return self.to_out(parts[0] * y)

    def bias(self, length, device):
        return self.relative_bias.matrix(length, device) if hasattr(self, "relative_bias") else 0.0

    def weigh(self, q, k, v, bias, seen, count):
        """sum_s A_ts v_s. q: (..., L, Z), k, v: (..., S, .), bias, seen: to (..., L, S), count: n if counted, to (..., L, 1)."""
        counted = self.normaliser in ("counted", "document")
        n = count.clamp(min=1).to(q.dtype) if counted else torch.tensor(float(self.constant)).to(q)
        product = q @ k.mT
        if self.form == "key-dim":
            logits = product * self.key_dim ** -0.5 + bias
        elif self.form == "log-length":
            logits = product * (n.clamp(min=self.least).log() / (math.log(512) * self.key_dim ** 0.5)) + bias
        else:
            logits = (product + bias) / n if self.whole_length else product / n + bias
        if self.kernel == "softmax":
            weights = torch.softmax(wide(logits).masked_fill(~seen, LOWEST), dim=-1).to(v.dtype)
        elif self.kernel == "squared-relu":
            weights = F.relu(logits).square().masked_fill(~seen, 0.0)
        else:
            mean, deviation = 0.5 ** 0.5, (4 * math.pi) ** -0.5
            weights = (0.5 * (1 + torch.erf((logits - mean) / (deviation * 2 ** 0.5)))).masked_fill(~seen, 0.0)
        if self.form == "key-dim" and self.kernel != "softmax":
            weights = weights / n
        return F.dropout(weights, self.dropout, self.training) @ v


class Gau(GatedUnit):
    """Gated attention unit (FLASH-Quad): Y attends to all tokens that t sees."""

    def __init__(self, config, width, longest, causal):
        super().__init__(config, width, longest, causal, [1.0, 1.0], compat(config, "paper_length", 512))

    def mix(self, parts, texts, causal):
        _, v, q, k = parts
        places = texts.positions
        seen = texts.valid[:, None]
        if causal:
            seen = seen & (places[:, None] >= places)
        count = (places + 1)[:, None] if causal else texts.lengths[:, None, None]
        return self.weigh(q, k, v, self.bias(places.shape[0], v.device), seen, count)

    def state(self, parts, texts):
        return {"k": parts[3], "v": parts[1], "s": texts.positions.masked_fill(~texts.valid, -1)}

    def step(self, parts, state, position):
        _, v, q, k = parts
        append(state, k=k, v=v, s=position[:, None])
        bias = self.relative_bias(position[:, None] - state["s"])[:, None] if hasattr(self, "relative_bias") else 0.0
        seen = (state["s"] >= 0)[:, None]
        return self.weigh(q, state["k"], state["v"], bias, seen, (position + 1)[:, None, None])


class Flash(GatedUnit):
    """Mixed chunk attention: exact within chunks of C tokens, a linear memory M across them.
        Y_t = L_t + G_t,   L as in GAU among the tokens of t's chunk g,   G_t = q'_t M_g / n_g (q', k': two more views),
        M_g = sum of k'_s v_s^T over the tokens of all chunks before g (not causal: over the whole text)

        normaliser   n in L                            n_g, causal   n_g, not causal
        counted      the tokens of the chunk t sees    g C           tokens of the text
        paper        C                                 g C           C times the number of chunks
        chunk        C                                 C             tokens of the text
        document     tokens of the text, causal to t   g C           tokens of the text
    """

    def __init__(self, config, width, longest, causal):
        # G has no function that would make weak agreement small: its gains are smaller.
        gains = [1.0] * 2 * config["local"] + [config["key_dim"] ** -0.5] * 2 * config["global"]
        local = config if config["local"] else {**config, "position_bias": "none"}  # b is of L
        super().__init__(local, width, config["chunk"], causal, gains, config["chunk"])
        self.chunk, self.shifts = config["chunk"], compat(config, "shift_tokens", False)
        self.local, self.linear = config["local"], config["global"]

    def forward(self, x, texts, causal, prompts=None, keeps=False):
        y, state = super().forward(self.shifted(x, later(x, 1)), texts, causal, prompts, keeps)
        if keeps and self.shifts:
            state["last"] = rows_at(x, texts.lengths[:, None] - 1)
        return y, state

    def one(self, x, state, position):
        shifted = self.shifted(x, state["last"]) if self.shifts else x
        if self.shifts:
            state["last"] = x
        return super().one(shifted, state, position)

    def shifted(self, x, before):
        """With compat.shift_tokens: the first half of a token's features are those of the token before it."""
        half = (x.shape[-1] + 1) // 2
        return torch.cat((before[..., :half], x[..., half:]), dim=-1) if self.shifts else x

    def views(self, parts):
        """v, local q and k, global q and k; None for a part that is off."""
        _, v, *views = parts
        local = views[:2] if self.local else (None, None)
        return v, *local, *(views[-2:] if self.linear else (None, None))

    def global_count(self, chunks, lengths, causal):  # n_g: (G, 1, 1) or (B, 1, 1, 1)
        if causal:
            count = self.chunk * chunks if self.normaliser != "chunk" else torch.full_like(chunks, self.chunk)
            return count.clamp(min=1)[:, None, None]
        if self.normaliser == "paper":
            lengths = (lengths + self.chunk - 1) // self.chunk * self.chunk
        return lengths.clamp(min=1)[:, None, None, None]

    def mix(self, parts, texts, causal):
        length = texts.valid.shape[1]
        size = min(self.chunk, length) if isinstance(length, int) else self.chunk
        count = (length + size - 1) // size

        def chunked(x):  # (B, T, ...) -> (B, G, C, ...)
            padded = F.pad(x, (0, 0) * (x.dim() - 2) + (0, count * size - length))
            return padded.unflatten(1, (count, size))
        v, q, k, linear_q, linear_k = (None if x is None else chunked(x) for x in self.views(parts))
        valid = chunked(texts.valid)
        y = torch.zeros_like(v)
        if self.local:
            places = torch.arange(size, device=v.device)
            seen = valid[:, :, None]
            seen = seen & (places[:, None] >= places) if causal else seen.expand(-1, -1, size, -1)
            if self.normaliser != "document":
                tokens = seen.sum(dim=-1, keepdim=True)
            elif causal:
                tokens = torch.arange(1, count * size + 1, device=v.device).unflatten(0, (count, size))[..., None]
            else:
                tokens = texts.lengths[:, None, None, None]
            y = y + self.weigh(q, k, v, self.bias(size, v.device), seen, tokens)
        if self.linear:
            memory = wide(linear_k * valid[..., None]).mT @ wide(v)  # (B, G, Z, E), of each chunk
            memory = later(memory, 1).cumsum(dim=1) if causal else memory.sum(dim=1, keepdim=True)
            n = self.global_count(torch.arange(count, device=v.device), texts.lengths, causal)
            y = y + (wide(linear_q) @ memory / n).to(y.dtype)
        return y.flatten(1, 2)[:, :length]

    def state(self, parts, texts):
        """M of all full chunks, and the keys and values of the one that is not full."""
        v, _, k, _, linear_k = self.views(parts)
        begin = texts.lengths // self.chunk * self.chunk
        places = torch.arange(self.chunk, device=v.device)
        recent = torch.where(places < (texts.lengths - begin)[:, None], begin[:, None] + places, -1)
        state = {"v": rows_at(v, recent)}
        if self.local:
            state["k"] = rows_at(k, recent)
        if self.linear:
            full = texts.keep(begin).valid[..., None]
            state |= {"g": rows_at(linear_k, recent), "memory": wide(linear_k * full).mT @ wide(v)}
        return state

    def step(self, parts, state, position):
        v, q, k, linear_q, linear_k = self.views(parts)
        place = position % self.chunk
        here = (torch.arange(self.chunk, device=v.device) == place[:, None])[..., None]  # (B, C, 1)
        state["v"] = torch.where(here, v, state["v"])
        y = torch.zeros_like(v)
        if self.local:
            state["k"] = torch.where(here, k, state["k"])
            lag = place[:, None] - torch.arange(self.chunk, device=v.device)  # (B, C)
            bias = self.relative_bias(lag)[:, None] if hasattr(self, "relative_bias") else 0.0
            tokens = (position if self.normaliser == "document" else place) + 1
            y = y + self.weigh(q, state["k"], state["v"], bias, (lag >= 0)[:, None], tokens[:, None, None])
        if self.linear:
            state["g"] = torch.where(here, linear_k, state["g"])
            n = self.global_count(position // self.chunk, None, True)
            y = y + (wide(linear_q) @ state["memory"] / n).to(y.dtype)
            full = (place == self.chunk - 1)[:, None, None]
            state["memory"] = torch.where(full, state["memory"] + wide(state["g"]).mT @ wide(state["v"]), state["memory"])
        return y


MIXERS = {"aft-simple": Aft, "aft-full": Aft, "aft-local": Aft, "aft-conv": Aft, "fastformer": Fastformer,
          "attention": Attention, "gau": Gau, "flash": Flash}


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
        self.scale, self.dropout = config["scale"], config["dropout"]
        self.table = parameter(self.buckets, config["width"])
        self.output = nn.Linear(config["width"], outputs, bias=False)

    def sums(self, ids, valid):
        """The sum of the rows of the n-grams that end with each token, (B, T, width), and their number (B, T, 1)."""
        total, count = 0.0, 0
        for order in self.orders:
            whole = (valid & later(valid, order - 1, False))[..., None]
            kept = whole & (torch.rand(whole.shape, device=ids.device) >= self.dropout) if self.training else whole
            total = total + F.embedding(ngram_buckets(ids, order, self.buckets), self.table) * kept
            count = count + whole
        return total * (self.scale / (1 - self.dropout if self.training else 1)), count

    def of_tokens(self, ids, valid):
        """e_t = O (scale / sqrt(orders) * sum of the rows of the n-grams that end with t), (B, T, D)."""
        return self.output(self.sums(ids, valid)[0] * len(self.orders) ** -0.5)

    def of_texts(self, ids, valid):
        """O (scale / sqrt(n) * sum of the rows of the n n-grams of the text), (B, outputs)."""
        total, count = self.sums(ids, valid)
        return self.output(total.sum(dim=1) * count.sum(dim=1).clamp(min=1) ** -0.5)


# ------------------------------------------------------------------------------------------------------- blocks and stack
class Block(GradientCheckpointingLayer):
    """pre: x + drop(mixer(norm(x))), then x + drop(feed_forward(norm(x))); post: norm(x + drop(f(x)))."""

    def __init__(self, config, model, longest, causal):
        super().__init__()
        width = model["width"]
        self.post = config["norm_placement"] == "post"
        self.mixer_norm = Norm(config["norm"], width)
        self.mixer = MIXERS[config["mixer"]["type"]](config["mixer"], width, longest, causal)
        if config["short_conv"]:
            self.short_conv = ShortConv(width, config["short_conv"])
        if config["feed_forward"]["type"] != "none":
            self.feed_forward_norm = Norm(config["norm"], width)
            self.feed_forward = FeedForward(config["feed_forward"], width)
        self.dropout = nn.Dropout(model["dropout"])

    def residual(self, x, norm, branch):
        return norm(x + self.dropout(branch(x))) if self.post else x + self.dropout(branch(norm(x)))

    def finish(self, x):
        return self.residual(x, self.feed_forward_norm, self.feed_forward) if hasattr(self, "feed_forward") else x

    def forward(self, x, texts, causal, prompts=None, keeps=False):
        state = {}

        def mix(h):
            if hasattr(self, "short_conv"):
                state.update(self.short_conv.state(h, texts) if keeps else {})
                h = self.short_conv(h)
            y, of_mixer = self.mixer(h, texts, causal, prompts, keeps)
            state.update(of_mixer)
            return y
        return self.finish(self.residual(x, self.mixer_norm, mix)), state

    def one(self, x, state, position):
        def mix(h):
            h = self.short_conv.step(h, state) if hasattr(self, "short_conv") else h
            return self.mixer.one(h, state, position)
        return self.finish(self.residual(x, self.mixer_norm, mix))


class CapstanState:
    """What a generation remembers: for each layer named tensors, whose first axis is the text."""

    is_compileable = False
    is_linear = (True,)  # transformers 5.x then leaves it to prepare_inputs_for_generation to cut the ids

    def __init__(self):
        self.layers, self.lengths, self.recent, self.columns = [], None, None, 0

    def get_seq_length(self, layer_idx=0):  # columns of input that were read, padding included
        return self.columns

    def get_max_cache_shape(self, layer_idx=0):
        return -1

    def reorder_cache(self, beam_idx):  # text i becomes a copy of text beam_idx[i]
        def chosen(x):
            return None if x is None else x.index_select(0, beam_idx.to(x.device))
        self.layers = [{name: chosen(x) for name, x in layer.items()} for layer in self.layers]
        self.lengths, self.recent = chosen(self.lengths), chosen(self.recent)


@dataclass
class CapstanOutput(ModelOutput):
    """From 5.24 on, transformers calls the decode state `cache`, and turns past_key_values=state into it."""

    loss: torch.Tensor = None
    logits: torch.Tensor = None
    last_hidden_state: torch.Tensor = None
    past_key_values: CapstanState = None
    cache: CapstanState = None


class CapstanModel(PreTrainedModel):
    """Embedding + n-grams + positions, blocks, final norm: (B, T) -> (B, T, D)."""

    config_class = CapstanConfig
    base_model_prefix = ""  # weights have Capstan's names, without a prefix
    supports_gradient_checkpointing = True
    _no_split_modules = ["Block"]
    _input_embed_layer = "embed"
    _is_stateful = True  # a state cannot be cut back to an earlier token
    _supports_default_dynamic_cache = classmethod(lambda cls: False)

    def __init__(self, config):
        super().__init__(config)
        model = config.model
        width, longest, layers = model["width"], config.longest, model["layers"]
        self.embed = nn.Embedding(config.vocab_size + config.added_rows, width)
        if model["ngram_embedding"]["orders"]:
            self.ngram_embedding = Ngrams(model["ngram_embedding"], width)
        if model["positions"] == "learned":
            self.positions = nn.Embedding(longest, width)
        elif model["positions"] == "scaled-sinusoidal":
            self.positions = nn.ParameterDict({"scale": parameter(1, value=1.0)})
        self.embed_norm = Norm(model["final_norm"], width) if model["embedding_norm"] else nn.Identity()
        kinds = [layer for layer in layers for _ in range(layer["repeat"])]
        self.depth = len(kinds)
        own = kinds[:1] if model["share_layers"] else kinds
        self.blocks = nn.ModuleList(Block(kind, model, longest, config.causal) for kind in own)
        final = kinds[-1]["norm_placement"] == "pre" or compat(model, "norm_after_post", False)
        self.final_norm = Norm(model["final_norm"], width) if final else nn.Identity()
        self.dropout = nn.Dropout(model["dropout"])
        self.make_heads(model, width)
        self.post_init()

    def _init_weights(self, module):
        """What a file does not have: matrices N(0, 1 / inputs) or N(0, init_stddev^2), gains 1, biases and n-grams 0."""
        for name, weight in module.named_parameters(recurse=False):
            zero = name.endswith("bias") or name in ("gain", "scale", "offset", "kernel_gain") or isinstance(module, Ngrams)
            matrix = self.config.model.get("init_stddev") or weight.shape[-1] ** -0.5
            stddev = {"weight": matrix, "kernel": 1.0}.get(name, 0.0 if zero else 0.02)
            if not getattr(weight, "_is_hf_initialized", False):
                weight.data.normal_(0.0, stddev).add_(1.0 if name in ("gain", "scale") else 0.0)

    def make_heads(self, model, width):
        """For derived classes."""

    def resize_token_embeddings(self, *args, **kwargs):
        if self.config.added_rows:
            raise ValueError("the embedding ends with a token that the model adds: train a model with the larger vocabulary")
        return super().resize_token_embeddings(*args, **kwargs)

    def all_blocks(self):
        """The blocks in the order of computing; with `share_layers` there is only one."""
        return (self.blocks[min(layer, len(self.blocks) - 1)] for layer in range(self.depth))

    def has_position_limit(self):
        model = self.config.model
        return model["positions"] == "learned" or any(
            mixer["type"] in ("aft-full", "aft-local") or mixer["type"] == "gau" and mixer["position_bias"] == "toeplitz"
            for mixer in (layer["mixer"] for layer in model["layers"]))

    def check_length(self, longest):
        if not torch.compiler.is_exporting() and self.has_position_limit() and int(longest) > self.config.longest:
            raise ValueError(f"a text of {int(longest)} tokens is longer than the model's {self.config.longest} positions")

    def embedded(self, ids, embeds, ngrams, positions):  # positions: (T) or (B, 1)
        kind, width = self.config.model["positions"], self.config.model["width"]
        x = (self.embed(ids) if embeds is None else embeds) + ngrams
        if kind == "learned":
            x = x + self.positions(positions.clamp(max=self.config.longest - 1))  # beyond it is padding
        elif kind != "none":
            interleaved = kind == "sinusoidal"
            table = sinusoids(positions, width, interleaved).to(x.dtype)
            x = x * width ** 0.5 + table if interleaved else x + self.positions["scale"] * table
        return self.dropout(self.embed_norm(x))

    def read(self, ids, embeds, texts, prompts=None, state=None):
        """Whole texts at once: (B, T, D). Fills the state, if there is one."""
        self.check_length(texts.lengths.max())
        if hasattr(self, "ngram_embedding") and ids is None:
            raise ValueError("a model with n-grams needs input_ids")
        ngrams = self.ngram_embedding.of_tokens(ids, texts.valid) if hasattr(self, "ngram_embedding") else 0.0
        x = self.embedded(ids, embeds, ngrams, texts.positions)
        for block in self.all_blocks():
            x, of_layer = block(x, texts, self.config.causal, prompts, state is not None)
            if state is not None:
                state.layers.append(of_layer)
        if state is not None:
            state.lengths = texts.lengths
            if hasattr(self, "ngram_embedding"):
                before = torch.arange(1 - max(self.ngram_embedding.orders), 0, device=ids.device)
                state.recent = rows_at(ids, texts.lengths[:, None] + before, -1)
        return self.final_norm(x)

    def read_one(self, ids, embeds, state):
        """One more token of each text: (B, 1, D)."""
        ngrams = 0.0
        if hasattr(self, "ngram_embedding"):
            seen = torch.cat((state.recent, ids), dim=1)
            ngrams = self.ngram_embedding.of_tokens(seen, seen >= 0)[:, -1:]
            state.recent = seen[:, 1:]
        self.check_length(state.lengths.max() + 1)
        x = self.embedded(ids, embeds, ngrams, state.lengths[:, None])
        for block, of_layer in zip(self.all_blocks(), state.layers):
            x = block.one(x, of_layer, state.lengths)
        state.lengths = state.lengths + 1
        return self.final_norm(x)

    def prompts(self, attention_mask, labels, prefix_lengths, use_cache):
        """The beginnings that are read in both directions: lengths (B), or "all", or None."""
        bidirectional = self.config.model.get("prefix") == "bidirectional"
        if not bidirectional or prefix_lengths is not None:
            return prefix_lengths if bidirectional else None
        if labels is None and use_cache is False:
            raise ValueError("prompts are read in both directions: give their lengths as prefix_lengths (B), or use_cache=True")
        if labels is None:
            return "all"
        first = (labels != -100).int().argmax(dim=1)
        padding = 0 if attention_mask is None else (attention_mask != 0).int().argmax(dim=1)
        return torch.where((labels != -100).any(dim=1), first - padding, 0)

    def states(self, input_ids=None, attention_mask=None, inputs_embeds=None, past_key_values=None, prompts=None):
        """(B, T, D) in the places of the input. prompts: lengths of what is read in both directions, (B), or "all"."""
        given = input_ids if inputs_embeds is None else inputs_embeds
        if past_key_values is not None and past_key_values.columns:
            if given.shape[1] > 1 and prompts is not None:
                raise ValueError("a prompt of a model with `prefix: bidirectional` is read in one piece: give it whole")
            if attention_mask is not None and not bool((attention_mask[:, -given.shape[1]:] != 0).all()):
                raise ValueError("attention_mask hides tokens that follow those in the state: give texts without padding there")
            columns = [self.read_one(None if input_ids is None else input_ids[:, t:t + 1],
                                     None if inputs_embeds is None else inputs_embeds[:, t:t + 1], past_key_values)
                       for t in range(given.shape[1])]  # one, unless several were accepted at once
            past_key_values.columns += given.shape[1]
            return torch.cat(columns, dim=1)
        texts, gather, back = aligned(given, attention_mask)
        if input_ids is not None:
            input_ids = torch.where(texts.valid, input_ids.gather(1, gather), 0)
        if inputs_embeds is not None:
            inputs_embeds = rows_at(inputs_embeds, gather)
        if prompts is not None:
            prompts = texts.lengths if isinstance(prompts, str) else prompts.to(given.device)
            if not torch.compiler.is_exporting() and bool((prompts > texts.lengths).any()):
                raise ValueError("prefix_lengths: a prompt is longer than its text: give prompts whole, in one piece")
            prompts = texts.keep(prompts)
        x = self.read(input_ids, inputs_embeds, texts, prompts, past_key_values)
        if past_key_values is not None:
            past_key_values.columns += given.shape[1]
        return rows_at(x, back)

    def forward(self, input_ids=None, attention_mask=None, inputs_embeds=None, past_key_values=None, use_cache=None,
                cache=None, prefix_lengths=None, **kwargs):
        state = past_key_values or cache or (CapstanState() if use_cache and self.config.causal else None)
        prompts = self.prompts(attention_mask, None, prefix_lengths, use_cache)
        x = self.states(input_ids, attention_mask, inputs_embeds, state, prompts)
        return CapstanOutput(last_hidden_state=x, past_key_values=state)


def sinusoids(positions, width, interleaved):
    """sin and cos of position / 10000^(2 i / D), in turn (Vaswani et al. 2017), or all sines first: (..., D), in double."""
    half = (width + 1) // 2
    feature = torch.arange(width, device=positions.device)
    sine, pair = (feature % 2 == 0, feature // 2) if interleaved else (feature < half, feature % half)
    angle = positions[..., None].double() * 10000.0 ** (-2 * pair.double() / width)
    return torch.where(sine, angle.sin(), angle.cos())


# -------------------------------------------------------------------------------------------------------------- the tasks
def mean_cross_entropy(logits, labels, count=None, smoothing=0.0):
    """Over the labels that are not -100; count: their number in all batches of a step, where it is known."""
    total = F.cross_entropy(logits.flatten(0, -2).float(), labels.flatten(), ignore_index=-100, reduction="sum",
                            label_smoothing=smoothing)
    return total / (count if count is not None else (labels != -100).sum().clamp(min=1))


class TokenScores(CapstanModel):
    """A score for every token of the vocabulary: logits = W x + b, with W the embedding (tied) or weights of its own."""

    _tied_weights_keys = {"output.weight": "embed.weight"}

    def make_heads(self, model, width):
        rows = self.config.vocab_size + self.config.added_rows * model["tied_output"]
        self.output = nn.Linear(width, rows, bias=model["output_bias"])

    def get_output_embeddings(self):
        return self.output

    def set_output_embeddings(self, value):
        self.output = value


class CapstanForCausalLM(TokenScores, GenerationMixin):
    """Predicts every token from those before it. Its decode state is a CapstanState; texts may be padded on the left.

    With `prefix: bidirectional`, the beginning of a text is read as a whole: `prefix_lengths` (B) tokens; without it, the
    tokens in front of the first one that has a label; without labels, the whole input, which then is a prompt.
    """

    def forward(self, input_ids=None, attention_mask=None, inputs_embeds=None, past_key_values=None, labels=None,
                use_cache=None, logits_to_keep=0, prefix_lengths=None, num_items_in_batch=None, cache=None, **kwargs):
        caches = use_cache if use_cache is not None else not self.training
        state = past_key_values or cache or (CapstanState() if caches else None)
        prompts = self.prompts(attention_mask, labels, prefix_lengths, use_cache)
        x = self.states(input_ids, attention_mask, inputs_embeds, state, prompts)
        logits = self.output(x[:, -logits_to_keep:] if isinstance(logits_to_keep, int) else x[:, logits_to_keep])
        loss = None if labels is None else mean_cross_entropy(logits[:, :-1], labels[:, 1:], num_items_in_batch)
        return CapstanOutput(loss=loss, logits=logits, past_key_values=state)

    def prepare_inputs_for_generation(self, input_ids, past_key_values=None, attention_mask=None, inputs_embeds=None,
                                      use_cache=True, cache=None, prefix_lengths=None, **kwargs):
        state = next((given for given in (past_key_values, cache) if isinstance(given, CapstanState)), None)
        seen = state.columns if state else 0
        first, seen = inputs_embeds is not None and seen == 0, seen if inputs_embeds is None else -1  # only new input_ids then
        return {"input_ids": None if first else input_ids[:, seen:], "inputs_embeds": inputs_embeds if first else None,
                "attention_mask": attention_mask, "use_cache": use_cache, "logits_to_keep": 1, "past_key_values": state,
                "prefix_lengths": prefix_lengths}


class CapstanForMaskedLM(TokenScores):
    """Predicts hidden tokens from those around them. The mask token is the one after the vocabulary."""

    def forward(self, input_ids=None, attention_mask=None, inputs_embeds=None, labels=None, num_items_in_batch=None, **kwargs):
        logits = self.output(self.states(input_ids, attention_mask, inputs_embeds))
        loss = None if labels is None else mean_cross_entropy(logits, labels, num_items_in_batch)
        return CapstanOutput(loss=loss, logits=logits)


class Pooling(nn.Module):
    """a = softmax_t(w . tanh(W x_t + b)) over the tokens of a text."""

    def __init__(self, width):
        super().__init__()
        self.hidden = nn.Linear(width, width)
        self.score = nn.Linear(width, 1, bias=False)

    def forward(self, x, valid):
        scores = self.score(torch.tanh(self.hidden(x)))
        return torch.softmax(wide(scores).masked_fill(~valid[..., None], LOWEST), dim=1).to(x.dtype)


class CapstanForSequenceClassification(CapstanModel):
    """logits = H p + h (+ n-grams), with p = sum_t a_t x_t.
    pooling: mean a_t = 1 / n; last: a_t = 1 at the last token; cls: at a token of its own, which precedes every text;
    attention: learned.
    """
    accepts_loss_kwargs = False  # Trainer divides the loss by the steps that it accumulates

    def make_heads(self, model, width):
        self.head = nn.Linear(width, self.config.num_labels)
        if model["ngrams"]["orders"]:
            self.ngrams = Ngrams(model["ngrams"], self.config.num_labels)
        if model["pooling"] == "attention":
            self.pooling = Pooling(width)

    def pooled(self, x, texts):
        kind = self.config.model["pooling"]
        if kind == "cls":
            return x[:, 0]
        if kind == "last":
            return rows_at(x, texts.lengths[:, None] - 1)[:, 0]
        if kind == "attention":
            weights = self.pooling(x, texts.valid)
        else:
            weights = 1.0 / texts.lengths.clamp(min=1)[:, None, None].to(x.dtype)
        return (x * texts.valid[..., None] * weights).sum(dim=1)

    def forward(self, input_ids=None, attention_mask=None, labels=None, **kwargs):
        texts, gather, _ = aligned(input_ids, attention_mask)
        ids = torch.where(texts.valid, input_ids.gather(1, gather), 0)
        read, inside = ids, texts
        if self.config.model["pooling"] == "cls":
            read = F.pad(ids, (1, 0), value=self.config.vocab_size)
            inside = Texts(texts.lengths + 1, F.pad(texts.valid, (1, 0), value=True))
        logits = self.head(self.pooled(self.read(read, None, inside), inside))
        if hasattr(self, "ngrams"):
            logits = logits + self.ngrams.of_texts(ids, texts.valid)
        loss = None
        if labels is not None and self.config.problem_type == "multi_label_classification":  # summed over the labels
            loss = F.binary_cross_entropy_with_logits(logits, labels.to(logits.dtype), reduction="none").sum(-1).mean()
        elif labels is not None:
            loss = mean_cross_entropy(logits, labels, smoothing=self.config.model["label_smoothing"] * self.training)
        return CapstanOutput(loss=loss, logits=logits)
