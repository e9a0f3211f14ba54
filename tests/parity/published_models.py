"""Published whole models: the classifier of Fastformer's authors (a twin, from its formulas) and PyTorch's language model.

Width 16, vocabulary 19, two layers; weights under Capstan's names, as in published.py. Each file has tokens, segment_ids, labels (of
every token, -1 at padding; of every text for the classifier), logits (0 at padding), loss_sum and its gradients, and 20 batches:
curve.tokens, .segment_ids, .labels and .losses, the mean loss of each before AdamW's step (metadata; no weight decay).
"""

import torch

import checks
import tools
from published import FastformerLayer, affine, container, fastformer_layer_names, joined, torch_layer_names

WIDTH = 16
VOCABULARY, LENGTH, BATCH, STEPS, LAYERS, HEADS, CLASSES, POSITIONS = 19, 21, 3, 20, 2, 4, 5, 24
OPTIMIZER = {"lr": 3e-3, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0.0}


class FastformerModel(torch.nn.Module):
    """The classifier of the authors' notebook: token 0 is padding."""

    def __init__(self):
        super().__init__()
        self.dense_linear = torch.nn.Linear(WIDTH, CLASSES)
        self.word_embedding = torch.nn.Embedding(VOCABULARY, WIDTH, padding_idx=0)
        pooler = container(att_fc1=torch.nn.Linear(WIDTH, WIDTH), att_fc2=torch.nn.Linear(WIDTH, 1))
        self.fastformer_model = container(
            encoders=torch.nn.ModuleList(FastformerLayer(WIDTH, HEADS, 2 * WIDTH) for _ in range(LAYERS)),
            position_embeddings=torch.nn.Embedding(POSITIONS, WIDTH),
            LayerNorm=torch.nn.LayerNorm(WIDTH, eps=1e-12), poolers=torch.nn.ModuleList([pooler]))

    def forward(self, tokens, segment_ids):
        parts, mask = self.fastformer_model, (segment_ids != 0).double()
        x = self.word_embedding(tokens) + parts.position_embeddings.weight[: tokens.shape[1]]
        x = parts.LayerNorm(x)
        for layer in parts.encoders:
            x = layer(x, mask)
        pooler = parts.poolers[0]
        weight = torch.exp(pooler.att_fc2(torch.tanh(pooler.att_fc1(x)))) * mask[..., None]
        return self.dense_linear((x * weight / (weight.sum(dim=1, keepdim=True) + 1e-8)).sum(dim=1))


class TransformerModel(torch.nn.Module):
    """The language model of PyTorch's tutorial; pre-norm with a norm after the last layer, as in its examples."""

    def __init__(self, norm_first):
        super().__init__()
        layer = torch.nn.TransformerEncoderLayer(WIDTH, HEADS, 2 * WIDTH, 0.0, "relu", norm_first=norm_first,
                                                 batch_first=True)
        norm = torch.nn.LayerNorm(WIDTH) if norm_first else None
        self.embedding = torch.nn.Embedding(VOCABULARY, WIDTH)
        self.transformer_encoder = torch.nn.TransformerEncoder(layer, LAYERS, norm, enable_nested_tensor=False)
        self.linear = torch.nn.Linear(WIDTH, VOCABULARY)
        positions, pairs = torch.arange(POSITIONS).double(), torch.arange(0, WIDTH, 2).double()
        angles = positions[:, None] * 10000.0 ** (-pairs / WIDTH)
        table = torch.stack([angles.sin(), angles.cos()], dim=-1).reshape(POSITIONS, 1, WIDTH)
        self.pos_encoder = torch.nn.Module()
        self.pos_encoder.register_buffer("pe", table)

    def forward(self, tokens, _):
        length = tokens.shape[1]
        x = self.embedding(tokens) * WIDTH**0.5 + self.pos_encoder.pe[:length, 0]
        mask = torch.full((length, length), -torch.inf, dtype=x.dtype).triu(1)
        return self.linear(self.transformer_encoder(x, mask=mask, is_causal=False))


def lengths_of(name, padded):
    """(B, T): 1 up to the length of each text."""
    if not padded:
        return torch.ones(BATCH, LENGTH, dtype=torch.int32)
    lengths = LENGTH - tools.integers(f"{name}.lengths", 8, BATCH)
    return (torch.arange(LENGTH) < lengths[:, None]).int()


def batch(name, classifier, padded):
    ids = lengths_of(name, padded)
    tokens = (1 + tools.integers(f"{name}.tokens", VOCABULARY - 1, BATCH, LENGTH)) * ids
    labels = (tools.integers(f"{name}.labels", CLASSES, BATCH) if classifier
              else torch.where(ids != 0, (tokens * 3 + 1) % VOCABULARY, -1).int())
    return tokens, ids, labels


def mean_loss(logits, labels):
    rows = logits.reshape(-1, logits.shape[-1])
    return torch.nn.functional.cross_entropy(rows, labels.reshape(-1).long(), ignore_index=-1)


def below(layers, names):
    """The names of all blocks, from those of one."""
    return {f"blocks.{layer}.{ours}": " ".join(f"{layers}.{layer}.{name}" for name in theirs.split())
            for layer in range(LAYERS) for ours, theirs in names.items()}


FASTFORMER_NAMES = {"embed.weight": "word_embedding.weight", "positions.weight": "fastformer_model.position_embeddings.weight",
                    "pooling.score.weight": "fastformer_model.poolers.0.att_fc2.weight",
                    **affine("embed_norm", "fastformer_model.LayerNorm", "gain"),
                    **affine("pooling.hidden", "fastformer_model.poolers.0.att_fc1"), **affine("head", "dense_linear"),
                    **below("fastformer_model.encoders", fastformer_layer_names())}
TRANSFORMER_NAMES = {"embed.weight": "embedding.weight", **affine("output", "linear"),
                     **below("transformer_encoder.layers", torch_layer_names())}


def fill(name, module):
    """With weights in float32, of a size at which layers matter."""
    with torch.no_grad():
        for key, value in module.named_parameters():
            one = key.endswith(("norm.weight", "LayerNorm.weight", "norm1.weight", "norm2.weight"))
            fan_in = value.shape[-1] if value.dim() > 1 else 16
            value.copy_(tools.normal(f"{name}.{key}", *value.shape, stddev=0.2 if one else fan_in**-0.5, mean=float(one)))


def curve_of(name, module, classifier, padded):
    curve = {"tokens": [], "segment_ids": [], "labels": [], "losses": []}
    optimizer = torch.optim.AdamW(module.parameters(), **OPTIMIZER)
    for step in range(STEPS):
        made = batch(f"{name}.{step}", classifier, padded)
        loss = mean_loss(module(*made[:2]), made[2])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        for key, value in zip(curve, (*made, loss.detach())):
            curve[key].append(value)
    losses = curve["losses"]
    print(f"{name}: loss {losses[0]:.3f} to {losses[-1]:.3f}")
    checks.require(losses[-1] < losses[0], f"{name} does not learn")
    return {key: torch.stack(values) for key, values in curve.items()}


def save(name, module, names, classifier=False, padded=False):
    fill(name, module)
    module.double().eval()
    tokens, ids, labels = batch(name, classifier, padded)
    logits = module(tokens, ids)
    loss = mean_loss(logits, labels) * (labels >= 0).sum()
    leaves = dict(module.named_parameters())
    gradients = joined(tools.gradients(loss, leaves), names)
    weights = joined({key: value.detach().clone() for key, value in leaves.items()}, names)
    shown = logits if classifier else logits * (ids != 0)[..., None]
    found = {"tokens": tokens, "segment_ids": ids, "labels": labels, "logits": shown, "loss_sum": loss.reshape(1)}
    found |= tools.prefixed("parameter", weights) | tools.prefixed("gradient", gradients)
    found |= tools.prefixed("curve", curve_of(name, module, classifier, padded))
    tools.save(name, found, {"learning_rate": OPTIMIZER["lr"]})


def make():
    torch.backends.mha.set_fastpath_enabled(False)
    save("published_fastformer", FastformerModel(), FASTFORMER_NAMES, classifier=True, padded=True)
    save("published_transformer_pre", TransformerModel(True),
         TRANSFORMER_NAMES | affine("final_norm", "transformer_encoder.norm", "gain"))
    save("published_transformer_post", TransformerModel(False), TRANSFORMER_NAMES)
