"""Fastformer (Wu et al. 2021) from its equations: every document on its own, every prefix pooled anew.

Causal, every prefix is pooled separately: p of a token is made with the query pooled up to it. public_fastformer is
the state dict of the official notebook's attention; its _io has x, y, y_self (without output.dense) and segment_ids,
masked as there by lowering logits by 10000. At padding the public module passes its query through: those rows are not
to be compared.
"""

from dataclasses import dataclass

import torch

import checks
import reference as ref
import tools


@dataclass
class FastformerConfig:
    width: int
    causal: bool
    heads: int
    per_head: bool = False          # logits read the head's own features
    bias: bool = False
    logit_bias: bool = False
    output_projection: bool = False
    own_values: bool = False        # otherwise the queries are the values


def parameter_shapes(config):
    """Names and shapes, as in the C++ module."""
    width, heads = config.width, config.heads
    logits = (heads, width // heads if config.per_head else width)
    packed, parts = ("to_qkv", 3) if config.own_values else ("to_qk", 2)
    shapes = {f"{packed}.weight": (parts * width, width), "to_r.weight": (width, width),
              "query_logits.weight": logits, "key_logits.weight": logits}
    if config.bias:
        shapes |= {f"{packed}.bias": (parts * width,), "to_r.bias": (width,)}
    if config.logit_bias:
        shapes |= {"query_logits.bias": (heads,), "key_logits.bias": (heads,)}
    if config.output_projection:
        shapes |= {"to_out.weight": (width, width)} | ({"to_out.bias": (width,)} if config.bias else {})
    return shapes


def linear(x, params, name):
    return x @ params[f"{name}.weight"].T + params.get(f"{name}.bias", 0)


def logits(params, config, rows, name):
    """(L, H) of rows (L, D)."""
    head_width = config.width // config.heads
    if not config.per_head:
        return linear(rows, params, name) / head_width**0.5
    own = torch.stack([rows[:, h * head_width:(h + 1) * head_width] @ params[f"{name}.weight"][h]
                       for h in range(config.heads)], dim=1)
    return (own + params.get(f"{name}.bias", 0)) / head_width**0.5


def pool(rows, a, config):
    """(D): per head, the average of its features with weights softmax(a) over the tokens."""
    weights = torch.softmax(a, dim=0).repeat_interleave(config.width // config.heads, dim=1)
    return (weights * rows).sum(dim=0)


def pooled(rows, a, config):
    """(L, D): what every token of the document gets; causal, from itself and the tokens before it."""
    if not config.causal:
        return pool(rows, a, config).expand_as(rows)
    return torch.stack([pool(rows[:t + 1], a[:t + 1], config) for t in range(len(rows))])


def document(params, config, q, k, v):
    p = pooled(q, logits(params, config, q, "query_logits"), config) * k
    u = pooled(p, logits(params, config, p, "key_logits"), config) * v
    return linear(u, params, "to_r") + q


def fastformer(params, config, x, segment_ids):
    """x: (B, T, D) -> (B, T, D); 0 before the output projection for padding."""
    if config.own_values:
        q, k, v = linear(x, params, "to_qkv").split(config.width, dim=-1)
    else:
        q, k = linear(x, params, "to_qk").split(config.width, dim=-1)
        v = q
    rows = []
    for row, ids in enumerate(segment_ids.tolist()):
        parts, begin = [], 0
        while begin < len(ids):
            end = begin + 1
            while end < len(ids) and ids[end] == ids[begin]:
                end += 1
            piece = slice(begin, end)
            parts.append(document(params, config, q[row, piece], k[row, piece], v[row, piece]) if ids[begin] != 0
                         else torch.zeros_like(q[row, piece]))
            begin = end
        rows.append(torch.cat(parts))
    y = torch.stack(rows)
    return linear(y, params, "to_out") if config.output_projection else y


class FastSelfAttention(torch.nn.Module):
    """Twin of the official notebook's module: its names and its formula."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.transform = (torch.nn.Linear(width, width) for _ in range(3))
        self.query_att, self.key_att = (torch.nn.Linear(width, heads) for _ in range(2))

    def pool(self, rows, scores, mask):
        """(B, 1, D); masked logits are lowered by 10000."""
        head_width = rows.shape[-1] // self.heads
        weights = torch.softmax(scores / head_width**0.5 - 10000 * (1 - mask[..., None]), dim=1)
        return (weights.repeat_interleave(head_width, dim=-1) * rows).sum(dim=1, keepdim=True)

    def forward(self, x, mask):
        q = self.query(x)
        p = self.pool(q, self.query_att(q), mask) * self.key(x)
        return self.transform(self.pool(p, self.key_att(p), mask) * q) + q


class FastAttention(torch.nn.Module):
    """Twin of the module around it; its LayerNorm and residual belong to the block."""

    def __init__(self, width, heads):
        super().__init__()
        self.self = FastSelfAttention(width, heads)
        self.output = torch.nn.Module()
        self.output.dense = torch.nn.Linear(width, width)
        self.output.LayerNorm = torch.nn.LayerNorm(width)

    def forward(self, x, mask):
        return self.output.dense(self.self(x, mask))


BATCH, LENGTH, WIDTH = 3, 13, 12


def segments():
    """Right padding; left padding; two packed documents and padding."""
    rows = [[1] * 9 + [0] * 4, [0] * 3 + [4] * 10, [2] * 5 + [7] * 7 + [0]]
    return {"full": torch.ones(BATCH, LENGTH, dtype=torch.int32), "ragged": torch.tensor(rows, dtype=torch.int32)}


def make_mixer(name, **options):
    x, dy = tools.normal("fastformer.x", BATCH, LENGTH, WIDTH), tools.normal("fastformer.dy", BATCH, LENGTH, WIDTH)
    tensors, cases = {"x": x, "dy": dy}, []
    for layout, ids in segments().items():
        tensors[f"segment_ids.{layout}"] = ids
        for causal in (False, True):
            config = FastformerConfig(WIDTH, causal, **options)
            params = {key: tools.normal(f"{name}.{key}", *shape, stddev=0.5)
                      for key, shape in parameter_shapes(config).items()}
            leaves = tools.with_gradients(params)
            inputs = x.clone().requires_grad_()
            y = fastformer(leaves, config, inputs, ids)
            found = tools.gradients((y * dy).sum(), {"x": inputs, **leaves})
            dx = found.pop("x")
            checks.require(bool((dx[ids == 0] == 0).all()), "padding has a gradient")
            later = x.clone()
            later[:, 8:] = 100 - 50 * later[:, 8:]
            same = torch.equal(fastformer(params, config, later, ids)[:, :8], y[:, :8].detach())
            checks.require(same == causal, "causality")
            cases.append(f"{'causal' if causal else 'bidirectional'}.{layout}")
            tensors |= tools.prefixed(cases[-1], {"y": y, "dx": dx, **tools.prefixed("gradient", found)})
    tensors |= tools.prefixed("parameter", params)
    metadata = {key: value for key, value in vars(config).items() if key != "causal"}
    tools.save(name, tensors, metadata | {"cases": " ".join(cases)})


def make_public_module():
    heads, x = 4, tools.normal("public_fastformer.x", BATCH, LENGTH, WIDTH)
    mask = (torch.arange(LENGTH) < torch.tensor([13, 9, 1])[:, None]).double()
    module = FastAttention(WIDTH, heads)
    with torch.no_grad():
        for key, value in module.named_parameters():
            value.copy_(tools.normal(f"public_fastformer.{key}", *value.shape, stddev=0.5))
        state = {key: value.clone() for key, value in module.state_dict().items()}
        module.double()
        y, y_self = module(x, mask), module.self(x, mask)
    config = FastformerConfig(WIDTH, causal=False, heads=heads, bias=True, logit_bias=True)
    names = {"to_r": "transform", "query_logits": "query_att", "key_logits": "key_att"}
    params = {f"{ours}.{part}": state[f"self.{theirs}.{part}"].double() for ours, theirs in names.items()
              for part in ("weight", "bias")}
    params |= {f"to_qk.{part}": torch.cat([state[f"self.{name}.{part}"].double() for name in ("query", "key")])
               for part in ("weight", "bias")}
    expected = fastformer(params, config, x, mask.int())
    torch.testing.assert_close(y_self[mask != 0], expected[mask != 0], rtol=1e-10, atol=1e-10)
    tools.save("public_fastformer", state, {"format": "pt"})
    tools.save("public_fastformer_io", {"x": x, "y": y, "y_self": y_self, "segment_ids": mask.int()}, {})


def make():
    make_mixer("fastformer_all_features", heads=4, bias=True, logit_bias=True, output_projection=True)
    make_mixer("fastformer_per_head", heads=3, per_head=True)
    make_mixer("fastformer_one_head", heads=1, bias=True)
    make_mixer("fastformer_own_values", heads=3, bias=True, output_projection=True, own_values=True)
    make_public_module()
