"""Makes the fixtures beside this file that the C++ tests are compared with. See README.md.

Run: /path/to/python-with-torch tests/parity/make_fixtures.py
"""

import zlib
from pathlib import Path

import torch

import checks
import reference as ref
import safetensors_file
from reference import AftConfig

FOLDER = Path(__file__).parent / "fixtures"
BATCH, LENGTH, WIDTH = 3, 29, 35
MAX_LENGTH, WINDOW, RANK, HEADS = 31, 5, 4, 5
LAYERS, MODEL_WIDTH, MODEL_RANK, VOCABULARY, MODEL_MAX_LENGTH = 2, 24, 4, 11, 16
CURVE_STEPS, CURVE_BATCH, CURVE_LENGTH = 20, 4, 12
CLASSES, CLASSIFIER_WIDTH = 5, 20
ADAMW = {"lr": 1e-2, "betas": (0.9, 0.999), "eps": 1e-8}
WEIGHT_DECAY = 0.1
MODEL_STDDEV = 0.3
ROTARY_BASE = 10000


def generator(name):
    """Every tensor draws from a stream of its own, so that adding one changes no other."""
    return torch.Generator().manual_seed(zlib.crc32(name.encode()))


def normal(name, *shape, stddev=1.0, mean=0.0):
    """Doubles that are also floats: a float test that reads them computes the same function of the same numbers."""
    values = mean + stddev * torch.randn(*shape, generator=generator(name), dtype=torch.float64)
    return values.float().double()


def integers(name, high, *shape):
    return torch.randint(0, high, shape, generator=generator(name), dtype=torch.int32)


def prefixed(prefix, tensors):
    return {f"{prefix}.{name}": value for name, value in tensors.items()}


def with_gradients(params):
    return {name: value.clone().requires_grad_() for name, value in params.items()}


def gradients(scalar, leaves):
    """By name; zero for a leaf that the scalar does not depend on."""
    values = torch.autograd.grad(scalar, list(leaves.values()), allow_unused=True)
    return {name: torch.zeros_like(leaf) if value is None else value
            for (name, leaf), value in zip(leaves.items(), values)}


def save(name, tensors, metadata):
    FOLDER.mkdir(exist_ok=True)
    path = FOLDER / f"{name}.safetensors"
    safetensors_file.save(path, tensors, metadata)
    stored, _ = safetensors_file.load(path)
    same = all(torch.equal(stored[key], value.detach()) for key, value in tensors.items())
    checks.require(same, f"{path} reads back wrongly")
    print(f"{path.name:44} {path.stat().st_size:8} bytes, {len(tensors)} tensors")


# --- 1. the mixer -----------------------------------------------------------------------------------------------------


def aft_parameters(config, seed_name, stddev):
    """Initial values of one AFT mixer, in the order of the C++ module's names."""
    width = config.width
    shapes = {"to_qkv.weight": (2 * width + config.key_width(), width), "query_bias": (width,), "value_bias": (width,)}
    if config.variant == "conv":
        heads = config.heads
        shapes |= {"kernel": (heads, config.taps()), "kernel_gain": (heads,), "kernel_bias": (heads,)}
    elif config.variant != "simple" and config.dense:
        shapes |= {"position_bias": (config.max_length, config.max_length)}
    elif config.variant != "simple":
        shapes |= {"position_u": (config.max_length, config.rank), "position_v": (config.max_length, config.rank)}
    if config.output_projection:
        shapes |= {"to_out.weight": (width, width), "to_out.bias": (width,)}
    return {name: normal(f"{seed_name}.{name}", *shape, stddev=stddev) for name, shape in shapes.items()}


def ragged_segments():
    """Right padding; left padding; two packed documents and padding."""
    rows = [[1] * 23 + [0] * 6, [0] * 3 + [4] * 26, [2] * 11 + [7] * 15 + [0] * 3]
    return torch.tensor(rows, dtype=torch.int32)


def mixer_inputs():
    return {"x": normal("aft.x", BATCH, LENGTH, WIDTH), "dy": normal("aft.dy", BATCH, LENGTH, WIDTH),
            "segment_ids.full": torch.ones(BATCH, LENGTH, dtype=torch.int32), "segment_ids.ragged": ragged_segments()}


def mixer_case(params, config, inputs, layout):
    """y, dx and the gradient of every parameter for one direction and one layout of documents."""
    segment_ids = inputs[f"segment_ids.{layout}"]
    leaves = with_gradients(params)
    x = inputs["x"].clone().requires_grad_()
    y = ref.aft(leaves, config, x, segment_ids)
    found = gradients((y * inputs["dy"]).sum(), {"x": x, **leaves})
    dx = found.pop("x")
    checks.check_against_scalar_sums(params, config, inputs["x"], segment_ids, y.detach())
    checks.check_extreme_keys(params, config, inputs["x"], segment_ids)
    checks.require(bool((dx[segment_ids == 0] == 0).all()), "padding has a gradient")
    if config.causal:
        checks.check_causality(params, config, inputs["x"], segment_ids, y.detach())
    return {"y": y, "dx": dx, **prefixed("gradient", found)}


def mixer_fixture(name, directions, inputs, **options):
    """One file: the parameters, then `<direction>.<layout>.y|dx|gradient.<parameter>`."""
    tensors, cases = {}, []
    for direction in directions:
        config = AftConfig(width=WIDTH, causal=direction == "causal", **options)
        params = aft_parameters(config, name, stddev=0.5)
        tensors |= prefixed("parameter", params)
        for layout in ("full", "ragged"):
            cases.append(f"{direction}.{layout}")
            tensors |= prefixed(cases[-1], mixer_case(params, config, inputs, layout))
    metadata = {key: value for key, value in vars(config).items() if key != "causal"}
    save(name, tensors, metadata | {"cases": " ".join(cases), "kernel_eps": ref.KERNEL_EPS})


def make_mixers():
    inputs = mixer_inputs()
    save("aft_inputs", inputs, {"batch": BATCH, "length": LENGTH, "width": WIDTH})
    both = ("bidirectional", "causal")
    factorised = {"rank": RANK, "max_length": MAX_LENGTH}
    dense = {"dense": True, "max_length": MAX_LENGTH}
    mixer_fixture("aft_full_factorised", both, inputs, variant="full", **factorised)
    mixer_fixture("aft_full_dense", both, inputs, variant="full", output_projection=True, **dense)
    local = {"variant": "local", "window": WINDOW}
    mixer_fixture("aft_local_factorised", both, inputs, output_projection=True, **local, **factorised)
    mixer_fixture("aft_local_dense", both, inputs, **local, **dense)
    mixer_fixture("aft_simple", both, inputs, variant="simple", output_projection=True)
    for direction in both:  # a file each: the kernel's taps depend on the direction
        mixer_fixture(f"aft_conv_{direction}", (direction,), inputs, variant="conv", window=WINDOW, heads=HEADS)


# --- 2. whole models --------------------------------------------------------------------------------------------------


def norm_parameters(name, width):
    return {f"{name}.gain": normal(f"{name}.gain", width, stddev=0.2, mean=1),
            f"{name}.bias": normal(f"{name}.bias", width, stddev=0.2)}


def linear_parameters(name, outputs, inputs):
    return {f"{name}.weight": normal(f"{name}.weight", outputs, inputs, stddev=MODEL_STDDEV),
            f"{name}.bias": normal(f"{name}.bias", outputs, stddev=MODEL_STDDEV)}


def stack_parameters(model, config):
    """Embeddings, positions, LAYERS pre-norm blocks, final norm. `model` only keys the random streams."""
    width = config.width
    params = {"embed.weight": normal(f"{model}.embed", VOCABULARY, width, stddev=MODEL_STDDEV),
              "positions.weight": normal(f"{model}.positions", MODEL_MAX_LENGTH, width, stddev=MODEL_STDDEV)}
    for layer in range(LAYERS):
        block = f"blocks.{layer}"
        params |= norm_parameters(f"{block}.mixer_norm", width)
        params |= prefixed(f"{block}.mixer", aft_parameters(config, f"{model}.{block}.mixer", MODEL_STDDEV))
        params |= norm_parameters(f"{block}.feed_forward_norm", width)
        params |= linear_parameters(f"{block}.feed_forward.up", 4 * width, width)
        params |= linear_parameters(f"{block}.feed_forward.down", width, 4 * width)
    return params | norm_parameters("final_norm", width)


def model_metadata(config):
    mixer = {f"mixer.{key}": value for key, value in vars(config).items()}
    return mixer | {"layers": LAYERS, "width": config.width, "vocabulary": VOCABULARY, "max_length": MODEL_MAX_LENGTH,
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


def loss_curve(params, config, batches, is_decayed, dtype=torch.float64):
    """Mean loss per target of each batch, before the AdamW step on it."""
    leaves = {name: value.to(dtype, copy=True).requires_grad_() for name, value in params.items()}
    groups = [{"params": [leaf for name, leaf in leaves.items() if is_decayed(name, leaf) == decayed],
               "weight_decay": WEIGHT_DECAY if decayed else 0.0} for decayed in (True, False)]
    optimizer = torch.optim.AdamW(groups, **ADAMW)
    losses = []
    for tokens, segment_ids, labels in zip(batches["tokens"], batches["segment_ids"], batches["labels"]):
        logits = ref.language_model_logits(leaves, config, LAYERS, tokens, segment_ids)
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


def curves(params, config):
    steps = [curve_batch(step) for step in range(CURVE_STEPS)]
    batches = {key: torch.stack([step[key] for step in steps]) for key in steps[0]}
    found = {"losses": loss_curve(params, config, batches, is_matrix),
             "losses_positions_undecayed": loss_curve(params, config, batches, is_matrix_but_not_position)}
    in_float = loss_curve(params, config, batches, is_matrix, torch.float32)
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
    config = AftConfig(variant="local", width=MODEL_WIDTH, causal=False, window=WINDOW, rank=MODEL_RANK,
                       max_length=MODEL_MAX_LENGTH, output_projection=True)
    params = stack_parameters("masked_language_model", config)
    params["embed.weight"] = normal("masked_language_model.embed", VOCABULARY + 1, config.width, stddev=MODEL_STDDEV)
    segment_ids = language_model_segments()
    tokens = integers("masked_language_model.tokens", VOCABULARY, *segment_ids.shape) * (segment_ids != 0).int()
    hidden = (integers("masked_language_model.hidden", 3, *segment_ids.shape) == 0) & (segment_ids != 0)
    labels = torch.where(hidden, tokens, torch.full_like(tokens, ref.IGNORED))
    read = torch.where(hidden, torch.full_like(tokens, VOCABULARY), tokens)
    leaves = with_gradients(params)
    logits = ref.language_model_logits(leaves, config, LAYERS, read, segment_ids)
    loss = ref.cross_entropy_sum(logits, labels)
    tensors = {"tokens": tokens, "read": read, "segment_ids": segment_ids, "labels": labels,
               "loss_sum": loss.reshape(1), "logits": logits * (segment_ids != 0)[..., None],
               **prefixed("parameter", params), **prefixed("gradient", gradients(loss, leaves))}
    save("masked_language_model", tensors, model_metadata(config) | {"targets": int(hidden.sum())})


def make_prefix_language_model():
    """A causal stack that reads the beginning of every document as a whole, by softmax attention with a full mask."""
    params = stack_parameters("prefix_language_model", AftConfig(variant="simple", width=MODEL_WIDTH, causal=True,
                              window=0, rank=0, max_length=MODEL_MAX_LENGTH, output_projection=True))
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
    length = tokens.shape[1]
    earlier = torch.arange(length)[None, :] <= torch.arange(length)[:, None]
    visible = same & (earlier[None] | ((sources != 0)[:, :, None] & (sources != 0)[:, None, :]))
    x = params["embed.weight"][tokens.long()] + params["positions.weight"][ref.document_positions(segment_ids)]
    for layer in range(LAYERS):
        block = ref.part(params, f"blocks.{layer}")
        mixer = ref.part(block, "mixer")
        normed = ref.layer_norm(x, ref.part(block, "mixer_norm"))
        q, k, v = (normed @ mixer["to_qkv.weight"].T).chunk(3, dim=-1)
        if "query_bias" in mixer:
            q, v = q + mixer["query_bias"], v + mixer["value_bias"]
        weights = ref.softmax_over_visible(k[:, None].expand(-1, length, -1, -1), visible[..., None])
        mixed = torch.sigmoid(q) * torch.einsum("btsc,bsc->btc", weights, v)
        x = x + ref.linear(mixed, ref.part(mixer, "to_out"))
        feed_forward = ref.part(block, "feed_forward")
        inner = ref.gelu(ref.linear(ref.layer_norm(x, ref.part(block, "feed_forward_norm")),
                                    ref.part(feed_forward, "up")))
        x = x + ref.linear(inner, ref.part(feed_forward, "down"))
    return ref.layer_norm(x, ref.part(params, "final_norm")) @ params["embed.weight"].T


def make_language_model():
    config = AftConfig(variant="local", width=MODEL_WIDTH, causal=True, window=WINDOW, rank=MODEL_RANK,
                       max_length=MODEL_MAX_LENGTH, output_projection=True)
    params = stack_parameters("language_model", config)
    segment_ids = language_model_segments()
    tokens = integers("language_model.tokens", VOCABULARY, *segment_ids.shape) * (segment_ids != 0).int()
    labels = next_tokens(tokens, segment_ids)
    leaves = with_gradients(params)
    logits = ref.language_model_logits(leaves, config, LAYERS, tokens, segment_ids)
    loss = ref.cross_entropy_sum(logits, labels)
    # A token of padding still produces logits; nobody may ask for them, so they are stored as 0.
    tensors = {"tokens": tokens, "segment_ids": segment_ids, "labels": labels, "loss_sum": loss.reshape(1),
               "logits": logits * (segment_ids != 0)[..., None],
               **prefixed("parameter", params), **prefixed("gradient", gradients(loss, leaves)),
               **prefixed("curve", curves(params, config))}
    metadata = {"output": "tied", "learning_rate": ADAMW["lr"], "beta1": ADAMW["betas"][0], "beta2": ADAMW["betas"][1],
                "eps": ADAMW["eps"], "weight_decay": WEIGHT_DECAY, "targets": int((labels != ref.IGNORED).sum())}
    save("language_model", tensors, model_metadata(config) | metadata)


def make_classifier():
    config = AftConfig(variant="simple", width=CLASSIFIER_WIDTH, causal=False, output_projection=True)
    params = stack_parameters("classifier", config) | linear_parameters("head", CLASSES, CLASSIFIER_WIDTH)
    lengths = (16, 9, 1, 12)
    segment_ids = (torch.arange(MODEL_MAX_LENGTH) < torch.tensor(lengths)[:, None]).int()
    tokens = integers("classifier.tokens", VOCABULARY, *segment_ids.shape) * segment_ids
    labels = torch.tensor([3, 0, 4, 1], dtype=torch.int32)
    leaves = with_gradients(params)
    logits = ref.classifier_logits(leaves, config, LAYERS, tokens, segment_ids)
    loss = ref.cross_entropy_sum(logits, labels)
    tensors = {"tokens": tokens, "segment_ids": segment_ids, "labels": labels, "loss_sum": loss.reshape(1),
               "logits": logits, **prefixed("parameter", params), **prefixed("gradient", gradients(loss, leaves))}
    checks.check_padding_of_classifier(params, config, LAYERS, tokens, segment_ids, logits.detach())
    save("classifier", tensors, model_metadata(config) | {"pooling": "mean", "classes": CLASSES})


# --- 3. public modules ------------------------------------------------------------------------------------------------


def public_module(name, module, x):
    """Weights as users have them, in float32; (state dict, output computed from it in double)."""
    with torch.no_grad():
        for key, value in module.named_parameters():
            if value.is_floating_point():
                value.copy_(normal(f"{name}.{key}", *value.shape, stddev=0.3))
        state = {key: value.clone() for key, value in module.state_dict().items()}
        return state, module.double()(x)


def make_public_modules():
    """Two files each: the state dict alone, as it would be imported, and input and output."""
    length, batch = 23, 3
    x = normal("public.x", batch, length, WIDTH)

    state, y = public_module("public_aft_full", ref.AFT_FULL(WIDTH, length), x)
    config = AftConfig("full", WIDTH, causal=False, dense=True, max_length=length)
    doubles = {key: value.double() for key, value in state.items()}
    checks.check_public_module(doubles, x, y, config, ("fc_q", "fc_k", "fc_v"), "position_biases")
    save("public_aft_full", state, {"format": "pt"})
    save("public_aft_full_io", {"x": x, "y": y}, {"layout": "batch, time, width", "causal": False})

    time_first = x.transpose(0, 1).contiguous()
    state, y = public_module("public_aft_local", ref.AFTLocal(WIDTH, length, WINDOW), time_first)
    config = AftConfig("local", WIDTH, causal=True, dense=True, window=WINDOW, max_length=length,
                       output_projection=True)
    doubles = {key: value.double() for key, value in state.items()}
    checks.check_public_module(doubles, x, y.transpose(0, 1), config, ("query", "key", "value"), "pos_bias")
    save("public_aft_local", state, {"format": "pt"})
    save("public_aft_local_io", {"x": time_first, "y": y},
         {"layout": "time, batch, width", "causal": True, "window": WINDOW})


# --- 4. elementary ops ------------------------------------------------------------------------------------------------


def elementary_case(name, function, **inputs):
    """Inputs, y, dy and the gradient of every input of one function."""
    leaves = with_gradients(inputs)
    y = function(**leaves)
    dy = normal(f"{name}.dy", *y.shape)
    found = {f"d{key}": value for key, value in gradients((y * dy).sum(), leaves).items()}
    return prefixed(name, {**inputs, "y": y, "dy": dy, **found})


def norm_cases():
    x = normal("norm.x", 5, 37, stddev=2, mean=0.5)
    gain, bias = normal("norm.gain", 37, stddev=0.5, mean=1), normal("norm.bias", 37)
    return (elementary_case("layer_norm", lambda x, **params: ref.layer_norm(x, params), x=x, gain=gain, bias=bias)
            | elementary_case("rms_norm", ref.rms_norm, x=x, gain=gain)
            | elementary_case("scale_norm", ref.rms_norm, x=x, gain=gain[:1]))


def activation_cases():
    x = torch.cat([torch.linspace(-8, 8, 65, dtype=torch.float64), normal("activation.x", 8)])
    return elementary_case("gelu", ref.gelu, x=x) | elementary_case("silu", ref.silu, x=x)


def cross_entropy_case():
    logits = normal("cross_entropy.logits", 9, VOCABULARY, stddev=3)
    targets = torch.tensor([0, 10, ref.IGNORED, 4, 4, ref.IGNORED, 7, 1, 9], dtype=torch.int32)
    leaves = with_gradients({"logits": logits})
    loss = ref.cross_entropy_sum(leaves["logits"], targets)
    return prefixed("cross_entropy", {"logits": logits, "targets": targets, "loss_sum": loss.reshape(1),
                                      "dlogits": gradients(loss, leaves)["logits"]})


def rotary_cases():
    positions = torch.tensor([0, 1, 2, 5, 63, 1000], dtype=torch.int32)
    x = normal("rotary.x", len(positions), 36)
    tensors = {"rotary.positions": positions}
    for form in ("interleaved", "half_split"):
        interleaved = form == "interleaved"
        tensors |= elementary_case(f"rotary.{form}", lambda x: ref.rotary(x, positions, ROTARY_BASE, interleaved), x=x)
    return tensors


def adamw_case():
    """Five steps on given gradients: a decayed matrix and an undecayed vector."""
    leaves = with_gradients({"matrix": normal("adamw.matrix", 5, 7), "vector": normal("adamw.vector", 7)})
    tensors = {f"initial.{name}": leaf.detach().clone() for name, leaf in leaves.items()}
    optimizer = torch.optim.AdamW([{"params": [leaves["matrix"]], "weight_decay": WEIGHT_DECAY},
                                   {"params": [leaves["vector"]], "weight_decay": 0.0}], **ADAMW)
    for step in range(1, 6):
        for name, leaf in leaves.items():
            leaf.grad = normal(f"adamw.gradient.{step}.{name}", *leaf.shape, stddev=10.0 ** (step - 3))
            tensors[f"step{step}.gradient.{name}"] = leaf.grad.clone()
        optimizer.step()
        tensors |= {f"step{step}.value.{name}": leaf.detach().clone() for name, leaf in leaves.items()}
    return prefixed("adamw", tensors)


def make_elementary():
    tensors = norm_cases() | activation_cases() | cross_entropy_case() | rotary_cases() | adamw_case()
    save("elementary", tensors, {"norm_eps": ref.NORM_EPS, "ignored_target": ref.IGNORED, "rotary_base": ROTARY_BASE,
                                 "learning_rate": ADAMW["lr"], "beta1": ADAMW["betas"][0], "beta2": ADAMW["betas"][1],
                                 "eps": ADAMW["eps"], "weight_decay": WEIGHT_DECAY})


def main():
    torch.set_num_threads(1)
    checks.check_formulas()
    checks.check_rotary()
    checks.check_cancellation_case()
    make_mixers()
    make_language_model()
    make_masked_language_model()
    make_prefix_language_model()
    make_classifier()
    make_public_modules()
    make_elementary()

    from systems import attention, fastformer, flash, gau, public_gated, public_models, public_modules  # here, because they use the functions above
    for system in (attention, fastformer, flash, gau, public_gated, public_models, public_modules):
        system.make()


if __name__ == "__main__":
    main()
