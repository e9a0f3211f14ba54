"""Whole models on AFT: parameters, logits, losses, gradients, and a curve of training.

Two pre-norm blocks, x += mixer(norm(x)), x += down(gelu(up(norm(x)))), learned positions, final LayerNorm, eps 1e-5,
gelu with erf. gradient.<name> is of the loss sum. labels are -1 where ignored; logits are 0 at padding and must not
be used there.

- language_model: aft-local, causal, one full, one right-padded, one packed row. The curve starts from parameter.*:
  step i of 20 takes curve.tokens[i], .segment_ids[i], .labels[i], and curve.losses[i] is its mean loss before AdamW's
  step on that mean (lr 1e-2, betas 0.9 and 0.999, eps 1e-8, no clip, weight decay 0.1 on every tensor of rank 2).
  curve.losses_positions_undecayed is the same run with no decay on positions.weight, position_u, position_v.
- masked_language_model: aft-local, bidirectional; embed.weight has one row more, the mask token. labels are the
  tokens of a third of the places, and read is tokens with the mask token there.
- prefix_language_model: aft-simple; t sees s if s <= t, or if both are in the document's source (sources, segment
  ids). Sources have no label but for their last token.
- classifier: aft-simple, bidirectional; mean of the final states over the valid ones.
"""

import torch

import checks
import mixers
import reference as ref
from tools import ADAMW, WEIGHT_DECAY, gradients, integers, normal, prefixed, save, with_gradients

LAYERS, MODEL_WIDTH, MODEL_RANK, VOCABULARY, MODEL_MAX_LENGTH = 2, 24, 4, 11, 16
CURVE_STEPS, CURVE_BATCH, CURVE_LENGTH = 20, 4, 12
CLASSES, CLASSIFIER_WIDTH = 5, 20
MODEL_STDDEV = 0.3
WINDOW = 5


class Mixer:
    """An AFT mixer with biases and output projection; called, it mixes."""

    def __init__(self, type, width, causal, **options):
        self.type, self.width, self.causal = type, width, causal
        self.options = options | {"bias": True, "output_projection": True}

    def __call__(self, params, x, segment_ids):
        return mixers.mix(self.type, params, self.options, x, segment_ids, self.causal)

    def parameters(self, name):
        shapes = mixers.shapes_of(self.type, self.options, self.width, MODEL_MAX_LENGTH, self.causal)
        return {key: normal(f"{name}.{key}", *shape, stddev=MODEL_STDDEV) for key, shape in shapes.items()}


def norm_parameters(name, width):
    return {f"{name}.gain": normal(f"{name}.gain", width, stddev=0.2, mean=1),
            f"{name}.bias": normal(f"{name}.bias", width, stddev=0.2)}


def linear_parameters(name, outputs, inputs):
    return {f"{name}.weight": normal(f"{name}.weight", outputs, inputs, stddev=MODEL_STDDEV),
            f"{name}.bias": normal(f"{name}.bias", outputs, stddev=MODEL_STDDEV)}


def stack_parameters(model, mixer):
    """Embeddings, positions, LAYERS pre-norm blocks, final norm. `model` only keys the random streams."""
    width = mixer.width
    params = {"embed.weight": normal(f"{model}.embed", VOCABULARY, width, stddev=MODEL_STDDEV),
              "positions.weight": normal(f"{model}.positions", MODEL_MAX_LENGTH, width, stddev=MODEL_STDDEV)}
    for layer in range(LAYERS):
        block = f"blocks.{layer}"
        params |= norm_parameters(f"{block}.mixer_norm", width)
        params |= prefixed(f"{block}.mixer", mixer.parameters(f"{model}.{block}.mixer"))
        params |= norm_parameters(f"{block}.feed_forward_norm", width)
        params |= linear_parameters(f"{block}.feed_forward.up", 4 * width, width)
        params |= linear_parameters(f"{block}.feed_forward.down", width, 4 * width)
    return params | norm_parameters("final_norm", width)


def model_metadata(mixer):
    options = {f"mixer.{key}": value for key, value in mixer.options.items()}
    return options | {"layers": LAYERS, "width": mixer.width, "vocabulary": VOCABULARY, "max_length": MODEL_MAX_LENGTH,
                    "feed_forward_expansion": 4, "activation": "gelu", "norm_eps": ref.NORM_EPS,
                    "ignored_target": ref.IGNORED}


def curve_batch(step):
    """Right-padded rows in which token x is followed by (3 x + 1) mod 11, but one time in five by anything."""
    noise = integers(f"curve.noise.{step}", VOCABULARY, CURVE_BATCH, CURVE_LENGTH + 1)
    surprise = integers(f"curve.surprise.{step}", 5, CURVE_BATCH, CURVE_LENGTH + 1) == 0
    columns = [noise[:, 0]]
    for t in range(1, CURVE_LENGTH + 1):
        columns.append(torch.where(surprise[:, t], noise[:, t], (3 * columns[-1] + 1) % VOCABULARY))
    text = torch.stack(columns, dim=1)
    lengths = CURVE_LENGTH - integers(f"curve.length.{step}", 4, CURVE_BATCH)
    segment_ids = (torch.arange(CURVE_LENGTH) < lengths[:, None]).int()
    labels = torch.where(segment_ids == 1, text[:, 1:], torch.full_like(segment_ids, ref.IGNORED))
    return {"tokens": text[:, :-1] * segment_ids, "segment_ids": segment_ids, "labels": labels.int()}


def loss_curve(params, mixer, batches, is_decayed, dtype=torch.float64):
    """Mean loss per target of each batch, before the AdamW step on it."""
    leaves = {name: value.to(dtype, copy=True).requires_grad_() for name, value in params.items()}
    groups = [{"params": [leaf for name, leaf in leaves.items() if is_decayed(name, leaf) == decayed],
               "weight_decay": WEIGHT_DECAY if decayed else 0.0} for decayed in (True, False)]
    optimizer = torch.optim.AdamW(groups, **ADAMW)
    losses = []
    for tokens, segment_ids, labels in zip(batches["tokens"], batches["segment_ids"], batches["labels"]):
        logits = ref.language_model_logits(leaves, mixer, LAYERS, tokens, segment_ids)
        loss = ref.cross_entropy_sum(logits, labels) / (labels != ref.IGNORED).sum()
        losses.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return torch.tensor(losses, dtype=torch.float64)


def is_matrix(name, tensor):
    return tensor.dim() == 2


def is_matrix_but_not_position(name, tensor):
    return tensor.dim() == 2 and "position" not in name


def curves(params, mixer):
    steps = [curve_batch(step) for step in range(CURVE_STEPS)]
    batches = {key: torch.stack([step[key] for step in steps]) for key in steps[0]}
    found = {"losses": loss_curve(params, mixer, batches, is_matrix),
             "losses_positions_undecayed": loss_curve(params, mixer, batches, is_matrix_but_not_position)}
    in_float = loss_curve(params, mixer, batches, is_matrix, torch.float32)
    drift = ((in_float - found["losses"]).abs().max() / found["losses"].max()).item()
    print(f"loss curve (float32 differs by {drift:.1e}):", *(f"{loss:.3f}" for loss in found["losses"].tolist()))
    checks.require(drift < 2e-5 and found["losses"][-1] < found["losses"][0], "the curve is not fit for a float test")
    return batches | found


def language_model_segments():
    rows = [[1] * 14, [1] * 9 + [0] * 5, [3] * 6 + [5] * 7 + [0]]
    return torch.tensor(rows, dtype=torch.int32)


def next_tokens(tokens, segment_ids):
    """The next token of the same document, IGNORED where there is none."""
    labels = torch.full_like(tokens, ref.IGNORED)
    continues = (segment_ids[:, 1:] == segment_ids[:, :-1]) & (segment_ids[:, 1:] != 0)
    labels[:, :-1] = torch.where(continues, tokens[:, 1:], labels[:, 1:])
    return labels


def make_masked_language_model():
    """A bidirectional stack whose mask token is the last row of embed.weight; labels are the hidden tokens."""
    mixer = Mixer("aft-local", MODEL_WIDTH, causal=False, window=WINDOW, rank=MODEL_RANK)
    params = stack_parameters("masked_language_model", mixer)
    params["embed.weight"] = normal("masked_language_model.embed", VOCABULARY + 1, mixer.width, stddev=MODEL_STDDEV)
    segment_ids = language_model_segments()
    tokens = integers("masked_language_model.tokens", VOCABULARY, *segment_ids.shape) * (segment_ids != 0).int()
    hidden = (integers("masked_language_model.hidden", 3, *segment_ids.shape) == 0) & (segment_ids != 0)
    labels = torch.where(hidden, tokens, torch.full_like(tokens, ref.IGNORED))
    read = torch.where(hidden, torch.full_like(tokens, VOCABULARY), tokens)
    leaves = with_gradients(params)
    logits = ref.language_model_logits(leaves, mixer, LAYERS, read, segment_ids)
    loss = ref.cross_entropy_sum(logits, labels)
    tensors = {"tokens": tokens, "read": read, "segment_ids": segment_ids, "labels": labels,
               "loss_sum": loss.reshape(1), "logits": logits * (segment_ids != 0)[..., None],
               **prefixed("parameter", params), **prefixed("gradient", gradients(loss, leaves))}
    save("masked_language_model", tensors, model_metadata(mixer) | {"targets": int(hidden.sum())})


def make_prefix_language_model():
    """A causal stack that reads the beginning of every document as a whole, by softmax attention with a full mask."""
    params = stack_parameters("prefix_language_model", Mixer("aft-simple", MODEL_WIDTH, causal=True))
    segment_ids = language_model_segments()
    sources = torch.tensor([[1] * 6 + [0] * 8, [1] * 2 + [0] * 12, [3] * 4 + [0] * 2 + [5] * 1 + [0] * 7],
                           dtype=torch.int32)
    tokens = integers("prefix_language_model.tokens", VOCABULARY, *segment_ids.shape) * (segment_ids != 0).int()
    labels = next_tokens(tokens, segment_ids)
    ends = torch.zeros_like(sources, dtype=torch.bool)  # the last token of a source predicts the first of its target
    ends[:, :-1] = (sources[:, :-1] != 0) & (sources[:, 1:] != sources[:, :-1])
    labels = torch.where((sources != 0) & ~ends, torch.full_like(labels, ref.IGNORED), labels)
    leaves = with_gradients(params)
    logits = prefix_logits(leaves, tokens, segment_ids, sources)
    loss = ref.cross_entropy_sum(logits, labels)
    tensors = {"tokens": tokens, "segment_ids": segment_ids, "labels": labels, "sources": sources,
               "loss_sum": loss.reshape(1), "logits": logits * (segment_ids != 0)[..., None],
               **prefixed("parameter", params), **prefixed("gradient", gradients(loss, leaves))}
    save("prefix_language_model", tensors, {"layers": LAYERS, "width": MODEL_WIDTH, "vocabulary": VOCABULARY,
                                            "max_length": MODEL_MAX_LENGTH, "mixer": "aft-simple"})


def prefix_logits(params, tokens, segment_ids, sources):
    """aft-simple with one mask: t sees s if both are in a document and s <= t, or both are in its source."""
    same = (segment_ids[:, :, None] == segment_ids[:, None, :]) & (segment_ids != 0)[:, None, :]
    earlier = torch.ones(same.shape[1:], dtype=torch.bool).tril()
    visible = same & (earlier[None] | ((sources != 0)[:, :, None] & (sources != 0)[:, None, :]))

    def mix(mixer, x, _):
        q, k, v = (x @ mixer["to_qkv.weight"].T).chunk(3, dim=-1)
        seen = visible | ~visible.any(dim=2, keepdim=True)  # padding sees all, and is not read
        logits = k[:, None].expand(-1, len(earlier), -1, -1).masked_fill(~seen[..., None], -torch.inf)
        mixed = torch.einsum("btsc,bsc->btc", torch.softmax(logits, dim=2), v + mixer["value_bias"])
        mixed = torch.sigmoid(q + mixer["query_bias"]) * mixed * (segment_ids != 0)[..., None]
        return ref.linear(mixed, ref.part(mixer, "to_out"))
    return ref.language_model_logits(params, mix, LAYERS, tokens, segment_ids)


def make_language_model():
    mixer = Mixer("aft-local", MODEL_WIDTH, causal=True, window=WINDOW, rank=MODEL_RANK)
    params = stack_parameters("language_model", mixer)
    segment_ids = language_model_segments()
    tokens = integers("language_model.tokens", VOCABULARY, *segment_ids.shape) * (segment_ids != 0).int()
    labels = next_tokens(tokens, segment_ids)
    leaves = with_gradients(params)
    logits = ref.language_model_logits(leaves, mixer, LAYERS, tokens, segment_ids)
    loss = ref.cross_entropy_sum(logits, labels)
    # A token of padding still produces logits; nobody may ask for them, so they are stored as 0.
    tensors = {"tokens": tokens, "segment_ids": segment_ids, "labels": labels, "loss_sum": loss.reshape(1),
               "logits": logits * (segment_ids != 0)[..., None],
               **prefixed("parameter", params), **prefixed("gradient", gradients(loss, leaves)),
               **prefixed("curve", curves(params, mixer))}
    metadata = {"output": "tied", "learning_rate": ADAMW["lr"], "beta1": ADAMW["betas"][0], "beta2": ADAMW["betas"][1],
                "eps": ADAMW["eps"], "weight_decay": WEIGHT_DECAY, "targets": int((labels != ref.IGNORED).sum())}
    save("language_model", tensors, model_metadata(mixer) | metadata)


def make_classifier():
    mixer = Mixer("aft-simple", CLASSIFIER_WIDTH, causal=False)
    params = stack_parameters("classifier", mixer) | linear_parameters("head", CLASSES, CLASSIFIER_WIDTH)
    lengths = (16, 9, 1, 12)
    segment_ids = (torch.arange(MODEL_MAX_LENGTH) < torch.tensor(lengths)[:, None]).int()
    tokens = integers("classifier.tokens", VOCABULARY, *segment_ids.shape) * segment_ids
    labels = torch.tensor([3, 0, 4, 1], dtype=torch.int32)
    leaves = with_gradients(params)
    logits = ref.classifier_logits(leaves, mixer, LAYERS, tokens, segment_ids)
    loss = ref.cross_entropy_sum(logits, labels)
    tensors = {"tokens": tokens, "segment_ids": segment_ids, "labels": labels, "loss_sum": loss.reshape(1),
               "logits": logits, **prefixed("parameter", params), **prefixed("gradient", gradients(loss, leaves))}
    checks.check_padding_of_classifier(params, mixer, LAYERS, tokens, segment_ids, logits.detach())
    save("classifier", tensors, model_metadata(mixer) | {"pooling": "mean", "classes": CLASSES})


def make():
    make_language_model()
    make_masked_language_model()
    make_prefix_language_model()
    make_classifier()
