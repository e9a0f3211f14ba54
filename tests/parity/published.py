"""Published modules, as twins written from their formulas or torch.nn's own: what a mixer or block with their weights must give.

A table gives, for each of Capstan's parameters, the module's tensors that are joined to it; NAME@i/n is the i-th of n parts of NAME.
Gradients are joined like weights. The biases of keys and of Fastformer's logits are not zero and have no counterpart: they cancel.

- AFT_FULL (xmu-xiaoma's External-Attention-pytorch), AFTLocal (labml), AFTFull, AFTLocal and AFTSimple of aft-pytorch;
- FastSelfAttention, FastAttention and FastformerLayer of the notebook of Fastformer's authors, which mask by lowering logits by 10000;
- MultiheadAttention and TransformerEncoderLayer of torch.nn.
"""

import torch

import tools

WIDTH, INNER, LENGTH, WINDOW = 12, 20, 17, 4
QKV_BIASES = {"query_bias": "{q}.bias", "value_bias": "{v}.bias"}
FAST_NAMES = {"to_qk.weight": "{a}query.weight {a}key.weight", "to_qk.bias": "{a}query.bias {a}key.bias",
              "query_logits.weight": "{a}query_att.weight", "key_logits.weight": "{a}key_att.weight",
              "to_r.weight": "{a}transform.weight", "to_r.bias": "{a}transform.bias"}
ATTENTION_NAMES = {"to_qkv.weight": "{a}in_proj_weight", "query_bias": "{a}in_proj_bias@0/3", "value_bias": "{a}in_proj_bias@2/3",
                   "to_out.weight": "{a}out_proj.weight", "to_out.bias": "{a}out_proj.bias"}


def affine(ours, theirs, weight="weight"):
    return {f"{ours}.{weight}": f"{theirs}.weight", f"{ours}.bias": f"{theirs}.bias"}


def block_names(mixer, norms, up, down):
    """The names of a block: its mixer's, those of its norms and of its feed-forward network."""
    names = {f"mixer.{ours}": theirs for ours, theirs in mixer.items()}
    names |= affine("mixer_norm", norms[0], "gain") | affine("feed_forward_norm", norms[1], "gain")
    return names | affine("feed_forward.up", up) | affine("feed_forward.down", down)


def filled_in(names, **parts):
    return {ours: theirs.format(**parts) for ours, theirs in names.items()}


def projected(q, k, v, **others):
    """Three Linear layers as to_qkv, and other names."""
    return {"to_qkv.weight": f"{q}.weight {k}.weight {v}.weight"} | filled_in(QKV_BIASES, q=q, v=v) | others


def joined(tensors, names):
    """Capstan's tensors from the module's."""
    def one(name):
        name, _, part = name.partition("@")
        if not part:
            return tensors[name]
        index, count = map(int, part.split("/"))
        return tensors[name].chunk(count)[index]
    return {ours: torch.cat([one(name) for name in theirs.split()]) for ours, theirs in names.items()}


class AftModule(torch.nn.Module):
    """y = output(sigmoid(q) * sum exp(k + w) v / sum exp(k + w)) over the tokens that are seen, with the names that each source has."""

    def __init__(self, names, inner=WIDTH, output=None, bias=None, window=None, causal=False):
        super().__init__()
        self.projections, self.output_name, self.bias_name = names, output, bias
        self.window, self.causal = window, causal
        for name in names:
            self.add_module(name, torch.nn.Linear(WIDTH, inner))
        if output:
            self.add_module(output, torch.nn.Linear(inner, WIDTH))
        if bias:
            self.register_parameter(bias, torch.nn.Parameter(torch.empty(LENGTH, LENGTH)))

    def forward(self, x, mask):
        q, k, v = (getattr(self, name)(x) for name in self.projections)
        at = torch.arange(x.shape[1])
        distance = at[:, None] - at[None, :]
        w = getattr(self, self.bias_name) if self.bias_name else torch.zeros(LENGTH, LENGTH, dtype=x.dtype)
        if self.window is not None:  # pos_bias is not zero outside of the window: it must not be used there
            w = w * (distance.abs() < self.window)
        if self.causal:
            w = w.masked_fill(distance < 0, -torch.inf)
        weights = torch.softmax(k[:, None] + w[None, :, :, None], dim=2)
        y = torch.sigmoid(q) * (weights * v[:, None]).sum(dim=2)
        return getattr(self, self.output_name)(y) if self.output_name else y


class FastSelfAttention(torch.nn.Module):
    """The authors' module: its names and its formula."""

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


def container(**modules):
    made = torch.nn.Module()
    for name, module in modules.items():
        made.add_module(name, module)
    return made


class FastAttention(torch.nn.Module):
    """The module around it, without the residual and norm, which belong to the block."""

    def __init__(self, width, heads):
        super().__init__()
        self.self, self.output = FastSelfAttention(width, heads), container(dense=torch.nn.Linear(width, width))

    def forward(self, x, mask):
        return self.output.dense(self.self(x, mask))


class FastformerLayer(torch.nn.Module):
    """Two post-norm branches: the attention with its projection, and a network with gelu."""

    def __init__(self, width, heads, hidden):
        super().__init__()
        linear, norm = torch.nn.Linear(width, width), torch.nn.LayerNorm(width, eps=1e-12)
        self.attention = container(self=FastSelfAttention(width, heads), output=container(dense=linear, LayerNorm=norm))
        self.intermediate = container(dense=torch.nn.Linear(width, hidden))
        self.output = container(dense=torch.nn.Linear(hidden, width), LayerNorm=torch.nn.LayerNorm(width, eps=1e-12))

    def forward(self, x, mask):
        mixer = self.attention.output
        x = mixer.LayerNorm(x + mixer.dense(getattr(self.attention, "self")(x, mask)))
        inner = torch.nn.functional.gelu(self.intermediate.dense(x))
        return self.output.LayerNorm(x + self.output.dense(inner))


def later(length, causal):
    return torch.ones(length, length).triu(1).bool() if causal else None


class TorchAttention(torch.nn.MultiheadAttention):
    def forward(self, x, mask, causal):
        return super().forward(x, x, x, attn_mask=later(x.shape[1], causal), need_weights=False)[0]


class TorchLayer(torch.nn.TransformerEncoderLayer):
    def forward(self, x, mask, causal):
        return super().forward(x, src_mask=later(x.shape[1], causal))


class Published:
    """A module, Capstan's mixer (or block) for it, and the names of its tensors."""

    def __init__(self, name, module, names, mixer, options, cases=("bidirectional",), padded=False):
        self.name, self.module, self.names, self.mixer, self.options = name, module, names, mixer, options
        self.cases, self.padded = cases, padded

    def tensors(self):
        x, dy = (tools.normal(f"published.{self.name}.{part}", 2, LENGTH, WIDTH) for part in ("x", "dy"))
        lengths = torch.tensor([LENGTH, 9 if self.padded else LENGTH])
        ids = (torch.arange(LENGTH) < lengths[:, None]).int()
        dy = dy * ids[..., None]  # at padding, a published module may give anything
        with torch.no_grad():
            for key, value in self.module.named_parameters():
                gain = key.endswith(("norm1.weight", "norm2.weight", "LayerNorm.weight"))
                value.copy_(tools.normal(f"published.{self.name}.{key}", *value.shape, stddev=0.4, mean=float(gain)))
        self.module.double().eval()
        weights = {key: value.detach().clone() for key, value in self.module.named_parameters()}
        found = {"x": x, "dy": dy, "segment_ids": ids} | tools.prefixed("parameter", joined(weights, self.names))
        for case in self.cases:
            leaf = x.clone().requires_grad_()
            more = {"causal": case == "causal"} if isinstance(self.module, (TorchAttention, TorchLayer)) else {}
            y = self.module(leaf, ids.double(), **more)
            leaves = dict(self.module.named_parameters()) | {"x": leaf}
            gradients = tools.gradients((y * dy).sum(), leaves)
            found |= {f"{case}.y": y.detach() * ids[..., None], f"{case}.dx": gradients.pop("x")}
            found |= tools.prefixed(f"{case}.gradient", joined(gradients, self.names))
        return found


def aft_modules():
    full, local, projected_names = ("fc_q", "fc_k", "fc_v"), ("query", "key", "value"), ("to_q", "to_k", "to_v")
    dense = {"position_bias": "dense", "bias": True}
    inner = {"inner": INNER, "bias": True, "output_projection": True}
    output = affine("to_out", "project")
    bare = {"bias": True, "output_projection": False}
    return [
        Published("AFT_FULL", AftModule(full, bias="position_biases"), projected(*full, position_bias="position_biases"),
                  "aft-full", dense | {"output_projection": False}),
        Published("AFT_FULL_simple", AftModule(full), projected(*full), "aft-simple", bare),
        Published("AFTLocal", AftModule(local, output="output", bias="pos_bias", window=WINDOW, causal=True),
                  projected(*local, position_bias="pos_bias") | affine("to_out", "output"), "aft-local",
                  dense | {"window": WINDOW}, ("causal",)),
        Published("aft-pytorch.AFTFull", AftModule(projected_names, INNER, "project", "wbias"),
                  projected(*projected_names, position_bias="wbias") | output, "aft-full", dense | inner),
        Published("aft-pytorch.AFTLocal", AftModule(projected_names, INNER, "project", "wbias", WINDOW),
                  projected(*projected_names, position_bias="wbias") | output, "aft-local", dense | inner | {"window": WINDOW}),
        Published("aft-pytorch.AFTSimple", AftModule(projected_names, INNER, "project"), projected(*projected_names) | output,
                  "aft-simple", inner)]


def fastformer_modules():
    options = {"heads": 4, "bias": True}
    whole = filled_in(FAST_NAMES, a="self.") | affine("to_out", "output.dense")
    return [
        Published("FastSelfAttention", FastSelfAttention(WIDTH, 4), filled_in(FAST_NAMES, a=""), "fastformer",
                  options | {"output_projection": False}, padded=True),
        Published("FastAttention", FastAttention(WIDTH, 4), whole, "fastformer", options, padded=True),
        Published("FastformerLayer", FastformerLayer(WIDTH, 4, 30), fastformer_layer_names(), "fastformer", options | block("gelu", 1e-12))]


def fastformer_layer_names():
    mixer = filled_in(FAST_NAMES, a="attention.self.") | affine("to_out", "attention.output.dense")
    return block_names(mixer, ("attention.output.LayerNorm", "output.LayerNorm"), "intermediate.dense", "output.dense")


def block(activation, eps, placement="post"):
    """Options of the layer that a block is made of."""
    return {"layer.norm_placement": placement, "norm.eps": eps, "feed_forward.type": activation, "feed_forward.expansion": 2.5}


def torch_layer_names():
    return block_names(filled_in(ATTENTION_NAMES, a="self_attn."), ("norm1", "norm2"), "linear1", "linear2")


def attention_modules():
    torch.backends.mha.set_fastpath_enabled(False)
    both, names = ("bidirectional", "causal"), filled_in(ATTENTION_NAMES, a="")
    plain = {ours: theirs for ours, theirs in names.items() if "bias" not in ours}
    modules = [Published("MultiheadAttention", TorchAttention(WIDTH, 3, batch_first=True), names, "attention",
                         {"heads": 3, "bias": True}, both),
               Published("MultiheadAttention_plain", TorchAttention(WIDTH, 3, bias=False, batch_first=True), plain, "attention",
                         {"heads": 3, "bias": False}, both)]
    for activation in ("relu", "gelu"):
        for placement in ("pre", "post"):
            layer = TorchLayer(WIDTH, 3, 30, dropout=0.0, activation=activation, norm_first=placement == "pre", batch_first=True)
            modules.append(Published(f"TransformerEncoderLayer_{activation}_{placement}", layer, torch_layer_names(), "attention",
                                     {"heads": 3, "bias": True} | block(activation, 1e-5, placement), both))
    return modules


def of_system(system):
    made = {"aft": aft_modules, "fastformer": fastformer_modules, "attention": attention_modules}
    return {module.name: module for module in made[system]()} if system in made else {}
