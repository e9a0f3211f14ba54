"""The Attention Free Transformer in four forms."""

import torch
from torch.nn import functional as F

from .capstan_layers import parameter
from .capstan_mixer import Mixer, append
from .capstan_spans import LOWEST, biased_average, merge, running_spans, spans_at, token_spans, whole_average, wide
from .capstan_texts import rows_at

TILE = 64  # targets that are worked on together where only a window has a position bias


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
        deviation = torch.sqrt(centred.square().mean(dim=1, keepdim=True) + 1e-5)
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
