"""Twins of whole public models, written from their formulas: state dicts, logits, and the losses of 20 training steps.

Width 16, vocabulary 19, two layers. _io has tokens, segment_ids, logits (0 at padding), and 20 batches: curve.tokens,
.segment_ids, .labels (of every token, -1 at padding; of every text for the classifier) and .losses, the mean loss of
each before AdamW's step (metadata; no weight decay).
"""

import math

import torch

import checks
import tools
from systems.fastformer import FastSelfAttention
from systems.public_gated import ROTARY_DIMS, WIDTH, Flash

VOCABULARY, LENGTH, BATCH, STEPS, LAYERS, HEADS, CLASSES, POSITIONS = 19, 21, 3, 20, 2, 4, 5, 24
OPTIMIZER = {"lr": 3e-3, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0.0}


class ScaleNorm(torch.nn.Module):
    """x / max(root mean square, 1e-5), with one gain."""

    def __init__(self, width):
        super().__init__()
        self.g = torch.nn.Parameter(torch.ones(1))

    def forward(self, x):
        return x / torch.clamp(torch.sqrt((x**2).mean(dim=-1, keepdim=True)), min=1e-5) * self.g


class ScaledPositions(torch.nn.Module):
    """All sines, then all cosines, times a learned number."""

    def __init__(self, width):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(1))
        self.register_buffer("inv_freq", 10000.0 ** (-torch.arange(0, width, 2) / width))

    def forward(self, length):
        angles = torch.arange(length)[:, None] * self.inv_freq
        return self.scale * torch.cat([angles.sin(), angles.cos()], dim=1)


class FlashModel(torch.nn.Module):
    """FLASHTransformer: embeddings, scaled positions, FLASH layers, norm and output."""

    def __init__(self, causal, norm, shift, laplace):
        super().__init__()
        self.token_emb = torch.nn.Embedding(VOCABULARY, WIDTH)
        self.abs_pos_emb = ScaledPositions(WIDTH)
        self.layers = torch.nn.ModuleList(Flash(laplace, ROTARY_DIMS, causal, shift, norm) for _ in range(LAYERS))
        self.to_logits = torch.nn.Sequential(torch.nn.LayerNorm(WIDTH), torch.nn.Linear(WIDTH, VOCABULARY))

    def forward(self, tokens, _):
        x = self.token_emb(tokens) + self.abs_pos_emb(tokens.shape[1])
        for layer in self.layers:
            x = layer(x)
        return self.to_logits(x)


def container(**modules):
    made = torch.nn.Module()
    for name, module in modules.items():
        made.add_module(name, module)
    return made


class FastformerLayer(torch.nn.Module):
    """Two post-norm branches: the attention with its projection, and a network with gelu."""

    def __init__(self):
        super().__init__()
        linear, norm = torch.nn.Linear(WIDTH, WIDTH), torch.nn.LayerNorm(WIDTH, eps=1e-12)
        hidden = 2 * WIDTH
        self.attention = container(self=FastSelfAttention(WIDTH, HEADS), output=container(dense=linear, LayerNorm=norm))
        self.intermediate = container(dense=torch.nn.Linear(WIDTH, hidden))
        self.output = container(dense=torch.nn.Linear(hidden, WIDTH), LayerNorm=torch.nn.LayerNorm(WIDTH, eps=1e-12))

    def forward(self, x, mask):
        mixer = self.attention.output
        x = mixer.LayerNorm(x + mixer.dense(getattr(self.attention, "self")(x, mask)))
        inner = torch.nn.functional.gelu(self.intermediate.dense(x))
        return self.output.LayerNorm(x + self.output.dense(inner))


class FastformerModel(torch.nn.Module):
    """The classifier of the authors' notebook: token 0 is padding."""

    def __init__(self):
        super().__init__()
        self.dense_linear = torch.nn.Linear(WIDTH, CLASSES)
        self.word_embedding = torch.nn.Embedding(VOCABULARY, WIDTH, padding_idx=0)
        pooler = container(att_fc1=torch.nn.Linear(WIDTH, WIDTH), att_fc2=torch.nn.Linear(WIDTH, 1))
        self.fastformer_model = container(
            encoders=torch.nn.ModuleList(FastformerLayer() for _ in range(LAYERS)),
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


class ScaleOffset(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(width))

    def forward(self, x):
        return x * self.weight


class GauAlphaUnit(torch.nn.Module):
    """Softmax attention whose logits grow with log(length) / log(512); no biases."""

    def __init__(self, hidden, key_width):
        super().__init__()
        self.hidden, self.key_width = hidden, key_width
        self.i_dense = torch.nn.Linear(WIDTH, 2 * hidden + key_width, bias=False)
        self.o_dense = torch.nn.Linear(hidden, WIDTH, bias=False)
        self.q_scaleoffset, self.k_scaleoffset = ScaleOffset(key_width), ScaleOffset(key_width)

    def turn(self, x):
        half = self.key_width // 2
        angle = torch.arange(x.shape[1])[:, None] * 10000.0 ** (-2 * torch.arange(half, dtype=x.dtype) / self.key_width)
        first, second = x[..., 0::2], x[..., 1::2]
        return torch.cat([first * angle.cos() - second * angle.sin(), first * angle.sin() + second * angle.cos()], dim=-1)

    def forward(self, x, mask):
        gate, value, z = torch.nn.functional.silu(self.i_dense(x)).split([self.hidden, self.hidden, self.key_width], -1)
        logits = self.turn(self.q_scaleoffset(z)) @ self.turn(self.k_scaleoffset(z)).transpose(1, 2)
        counts = mask.sum(dim=1)[:, None, None]
        logits = logits / self.key_width**0.5 * torch.log(counts) / math.log(512)
        weights = torch.softmax(logits.masked_fill(mask[:, None] == 0, -1e12), dim=-1)
        return self.o_dense(gate * (weights @ value))


def plain_norm(x):
    return x / torch.sqrt((x**2).mean(dim=-1, keepdim=True) + 1e-12)


class GauAlpha(torch.nn.Module):
    """GAUAlphaForMaskedLM with untied output: post-norm layers whose norm has no parameters."""

    def __init__(self):
        super().__init__()
        layers = torch.nn.ModuleList(container(gau=GauAlphaUnit(2 * WIDTH, 8)) for _ in range(LAYERS))
        embeddings = container(word_embeddings=torch.nn.Embedding(VOCABULARY, WIDTH),
                               token_type_embeddings=torch.nn.Embedding(2, WIDTH))
        self.gau_alpha = container(embeddings=embeddings, encoder=container(layer=layers))
        self.cls = container(predictions=container(decoder=torch.nn.Linear(WIDTH, VOCABULARY, bias=False)))

    def forward(self, tokens, segment_ids):
        tables, mask = self.gau_alpha.embeddings, (segment_ids != 0).double()
        x = plain_norm(tables.word_embeddings(tokens) + tables.token_type_embeddings.weight[0].detach())
        for layer in self.gau_alpha.encoder.layer:
            x = plain_norm(x + layer.gau(x, mask))
        return self.cls.predictions.decoder(x)


class TransformerModel(torch.nn.Module):
    """The language model of PyTorch's tutorial (post- or pre-norm), or of its examples (with a norm after the last layer)."""

    def __init__(self, names, norm_first, final_norm):
        super().__init__()
        self.names = names
        layer = torch.nn.TransformerEncoderLayer(WIDTH, HEADS, 2 * WIDTH, 0.0, "relu", norm_first=norm_first,
                                                 batch_first=True)
        norm = torch.nn.LayerNorm(WIDTH) if final_norm else None
        embedding, encoder, output = names
        self.add_module(embedding, torch.nn.Embedding(VOCABULARY, WIDTH))
        self.add_module(encoder, torch.nn.TransformerEncoder(layer, LAYERS, norm, enable_nested_tensor=False))
        self.add_module(output, torch.nn.Linear(WIDTH, VOCABULARY))
        angles = torch.arange(POSITIONS)[:, None] * 10000.0 ** (-torch.arange(0, WIDTH, 2) / WIDTH)
        table = torch.stack([angles.sin(), angles.cos()], dim=-1).reshape(POSITIONS, 1, WIDTH)
        self.pos_encoder = torch.nn.Module()
        self.pos_encoder.register_buffer("pe", table)

    def forward(self, tokens, _):
        embedding, encoder, output = (getattr(self, name) for name in self.names)
        length = tokens.shape[1]
        x = embedding(tokens) * WIDTH**0.5 + self.pos_encoder.pe[:length, 0]
        mask = torch.full((length, length), -torch.inf, dtype=x.dtype).triu(1)
        return output(encoder(x, mask=mask, is_causal=False))


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


def filled(name, module):
    """Weights in float32, of a size at which layers matter."""
    with torch.no_grad():
        for key, value in module.named_parameters():
            loud = any(part in key for part in ("offset_scale", "rel_pos_bias", "_scaleoffset"))
            one = key.endswith(("norm.weight", "LayerNorm.weight", "norm1.weight", "norm2.weight", ".g", ".scale"))
            fan_in = value.shape[-1] if value.dim() > 1 else 16
            value.copy_(tools.normal(f"{name}.{key}", *value.shape, stddev=2 if loud else 0.2 if one else fan_in**-0.5,
                                     mean=1 if one else 0))
    return {key: value.clone() for key, value in module.state_dict().items()}


def save(name, module, classifier=False, padded=False, frozen=()):
    state = filled(name, module)
    module.double().eval()
    tokens, ids, _ = batch(name, classifier, padded)
    with torch.no_grad():
        logits = module(tokens, ids)
    shown = logits if classifier else logits * (ids != 0)[..., None]
    trained = [value for key, value in module.named_parameters() if not any(part in key for part in frozen)]
    optimizer, curve = torch.optim.AdamW(trained, **OPTIMIZER), {"tokens": [], "segment_ids": [], "labels": [], "losses": []}
    for step in range(STEPS):
        tokens_i, ids_i, labels_i = batch(f"{name}.{step}", classifier, padded)
        loss = mean_loss(module(tokens_i, ids_i), labels_i)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        for key, value in zip(curve, (tokens_i, ids_i, labels_i, loss.detach())):
            curve[key].append(value)
    losses = curve["losses"]
    print(f"{name}: loss {losses[0]:.3f} to {losses[-1]:.3f}")
    checks.require(losses[-1] < losses[0], f"{name} does not learn")
    tools.save(name, state, {"format": "pt"})
    stacked = {f"curve.{key}": torch.stack(values) for key, values in curve.items()}
    tools.save(f"{name}_io", {"tokens": tokens, "segment_ids": ids, "logits": shown, **stacked},
               {"lr": OPTIMIZER["lr"], "beta1": 0.9, "beta2": 0.999, "eps": 1e-8})


def make():
    torch.backends.mha.set_fastpath_enabled(False)
    save("public_flash_model", FlashModel(True, ScaleNorm, shift=True, laplace=False))
    save("public_flash_model_masked", FlashModel(False, torch.nn.LayerNorm, shift=False, laplace=True))
    save("public_fastformer_model", FastformerModel(), classifier=True, padded=True)
    save("public_gau_alpha", GauAlpha(), padded=True, frozen=("token_type",))
    tutorial, example = ("embedding", "transformer_encoder", "linear"), ("input_emb", "encoder", "decoder")
    save("public_transformer", TransformerModel(tutorial, norm_first=True, final_norm=True))
    save("public_transformer_post", TransformerModel(example, norm_first=False, final_norm=True))
    save("public_transformer_plain", TransformerModel(("encoder", "transformer_encoder", "decoder"), False, False))
    layer, x = FastformerLayer(), tools.normal("public_fastformer_layer.x", 2, LENGTH, WIDTH)
    state = filled("public_fastformer_layer", layer)
    with torch.no_grad():
        y = layer.double()(x, torch.ones(2, LENGTH, dtype=torch.float64))
    tools.save("public_fastformer_layer", state, {"format": "pt"})
    tools.save("public_fastformer_layer_io", {"x": x, "y": y}, {"layout": "batch, time, width"})
