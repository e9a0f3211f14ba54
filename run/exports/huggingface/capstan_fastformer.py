"""Fastformer."""

from torch import nn

from .capstan_mixer import Mixer
from .capstan_spans import merge, running_spans, spans_at, token_spans, whole_average, wide


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
        read = width // self.heads if self.per_head else width
        self.query_logits, self.key_logits = (nn.Linear(read, self.heads, bias=False) for _ in range(2))
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
        scores = (values * layer.weight).sum(dim=-1) if self.per_head else wide(layer(x))
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
