"""The mixers of all systems: a table of configurations for each, and what is made of every one: parameters, outputs, gradients.

A fixture has x, dy and segment_ids: a full row, padding on one or both sides, packed documents. Its metadata lists `configs`; each has
<config>.mixer and <config>.options as Capstan's configuration has them, .width, .max_length, .cases (directions), .parameter.<name>, and
for each case .<case>.y, .dx and .gradient.<name>. A published module (published.py) has also <config>.x, .dy and .segment_ids.
"""

import torch

import checks
import mixers
import published
import tools

AFT = {"bias": True, "output_projection": False}
FACTORISED, DENSE = {"position_bias": "factorised", "rank": 4}, {"position_bias": "dense"}
FAST = {"bias": False, "output_projection": False}
ATTENTION = {"heads": 3, "rotary": False, "rotary_base": 100.0, "rotary_pairs": "halves", "bias": False, "output_projection": True}
ROTARY, INTERLEAVED = {"rotary": True}, {"rotary": True, "rotary_pairs": "interleaved"}
GAU = {"kernel": "squared-relu", "logits": "key-dim", "normaliser": "counted", "position_bias": "none", "rotary": False,
       "rotary_base": 100.0, "rotary_pairs": "halves", "bias": False, "key_dim": 6, "expansion": 1.5, "paper_length": 20}
FLASH = {key: value for key, value in GAU.items() if key != "paper_length"} | {"chunk": 5, "local": True, "global": True}
TOEPLITZ, ROTARY_BIAS, BIASES = {"position_bias": "toeplitz"}, {"position_bias": "rotary"}, {"bias": True}
LENGTH, LAPLACE = {"logits": "length"}, {"kernel": "laplace"}
SOFTMAX, DOCUMENT = {"kernel": "softmax"}, {"normaliser": "document"}
PAPER = LENGTH | {"normaliser": "paper"}

# name: (type, the options that all of its kind have, its own)
SYSTEMS = {
    "aft": (35, 29, 31, {
        "full_factorised": ("aft-full", AFT, FACTORISED),
        "full_dense": ("aft-full", AFT, DENSE | {"output_projection": True}),
        "local_factorised": ("aft-local", AFT, FACTORISED | {"window": 5, "output_projection": True}),
        "local_dense": ("aft-local", AFT, DENSE | {"window": 5}),
        "simple": ("aft-simple", AFT, {"output_projection": True}),
        "inner": ("aft-simple", AFT, {"inner": 20, "output_projection": True, "bias": False}),
        "conv": ("aft-conv", AFT, {"window": 5, "heads": 5})}),
    "fastformer": (12, 13, 13, {
        "all_features": ("fastformer", FAST, BIASES | {"heads": 4, "output_projection": True}),
        "per_head": ("fastformer", FAST, {"heads": 3, "logits": "per-head"}),
        "one_head": ("fastformer", FAST, BIASES | {"heads": 1}),
        "own_values": ("fastformer", FAST, BIASES | {"heads": 3, "value": "own", "output_projection": True})}),
    "attention": (12, 13, 13, {
        "plain": ("attention", ATTENTION, {}),
        "biases": ("attention", ATTENTION, BIASES),
        "interleaved": ("attention", ATTENTION, INTERLEAVED | BIASES),
        "halves": ("attention", ATTENTION, ROTARY | BIASES),
        "bare": ("attention", ATTENTION, ROTARY | {"output_projection": False})}),
    "gau": (9, 13, 15, {
        "body": ("gau", GAU, ROTARY | ROTARY_BIAS),
        "appendix": ("gau", GAU, PAPER | ROTARY | TOEPLITZ | BIASES),
        "mega": ("gau", GAU, LAPLACE | LENGTH | TOEPLITZ),
        "laplace_paper": ("gau", GAU, LAPLACE | PAPER | ROTARY_BIAS | INTERLEAVED | BIASES),
        "softmax": ("gau", GAU, SOFTMAX | ROTARY_BIAS | INTERLEAVED),
        "softmax_plain": ("gau", GAU, SOFTMAX | ROTARY)}),
    "flash": (9, 19, 19, {
        "counted": ("flash", FLASH, ROTARY | TOEPLITZ),
        "paper": ("flash", FLASH, PAPER | ROTARY | TOEPLITZ | BIASES),
        "laplace": ("flash", FLASH, LAPLACE | LENGTH | ROTARY_BIAS | INTERLEAVED),
        "laplace_paper": ("flash", FLASH, LAPLACE | {"normaliser": "paper", "chunk": 7} | TOEPLITZ | BIASES),
        "softmax": ("flash", FLASH, SOFTMAX | ROTARY | ROTARY_BIAS),
        "local": ("flash", FLASH, ROTARY | ROTARY_BIAS | {"global": False}),
        "global": ("flash", FLASH, ROTARY | BIASES | {"local": False}),
        "single": ("flash", FLASH, ROTARY | TOEPLITZ | {"chunk": 1}),
        "document": ("flash", FLASH, DOCUMENT),  # relu(q k)^2 / (n s), without b and rotary positions
        "document_biased": ("flash", FLASH, DOCUMENT | ROTARY | TOEPLITZ | BIASES | {"chunk": 7}),
        "document_laplace": ("flash", FLASH, DOCUMENT | LAPLACE | LENGTH | ROTARY_BIAS),
        "document_softmax": ("flash", FLASH, DOCUMENT | SOFTMAX | INTERLEAVED)}),
}


def segments(length):
    """A full row; padding on both sides; a document of one token, a longer one and padding; two long ones."""
    short, long = length // 3, length // 2
    rows = [[1] * length, [0] * 2 + [4] * (length - 5) + [0] * 3, [3] + [7] * (length - short) + [0] * (short - 1),
            [2] * long + [7] * (length - long)]
    return torch.tensor(rows, dtype=torch.int32)


def option_text(options):
    return " ".join(f"{key}={str(value).lower() if isinstance(value, bool) else value}" for key, value in options.items())


def case(mixer, params, options, tensors, causal):
    """y, dx and the gradient of every parameter."""
    leaves = tools.with_gradients(params) | {"x": tensors["x"].clone().requires_grad_()}
    ids = tensors["segment_ids"]
    y = mixers.mix(mixer, leaves, options, leaves["x"], ids, causal)
    found = tools.gradients((y * tensors["dy"]).sum(), leaves)
    checks.require(bool((found["x"][ids == 0] == 0).all()), f"{mixer}: padding has a gradient")
    if causal:
        checks.check_causality(lambda x: mixers.mix(mixer, params, options, x, ids, True), tensors["x"])
    return {"y": y, "dx": found.pop("x"), **tools.prefixed("gradient", found)}


def make_system(system, width, length, longest, configs):
    ids = segments(length)
    inputs = {name: tools.normal(f"{system}.{name}", len(ids), length, width) for name in ("x", "dy")} | {"segment_ids": ids}
    tensors, metadata, names = dict(inputs), {}, []

    def describe(config, mixer, options, cases, width, longest):
        described = {"mixer": mixer, "options": option_text(options), "cases": " ".join(cases), "width": width, "max_length": longest}
        metadata.update(tools.prefixed(config, described))
        names.append(config)

    for name, (mixer, common, own) in configs.items():
        options = common | own
        for directions in ([["causal"], ["bidirectional"]] if mixer == "aft-conv" else [["causal", "bidirectional"]]):
            config = name if len(directions) == 2 else f"{name}_{directions[0]}"  # the number of taps depends on the direction
            params = {key: tools.normal(f"{system}.{config}.{key}", *shape, stddev=0.5, mean=float(key == "gain"))
                      for key, shape in mixers.shapes_of(mixer, options, width, longest, directions[0] == "causal").items()}
            checks.check_mixer(mixer, params, options, inputs)
            tensors |= tools.prefixed(f"{config}.parameter", params)
            for direction in directions:
                tensors |= tools.prefixed(f"{config}.{direction}", case(mixer, params, options, inputs, direction == "causal"))
            describe(config, mixer, options, directions, width, longest)
    for config, module in published.of_system(system).items():
        tensors |= tools.prefixed(config, module.tensors())
        describe(config, module.mixer, module.options, module.cases, published.WIDTH, published.LENGTH)
    tools.save(system, tensors, metadata | {"configs": " ".join(names)})


def make():
    for system, (width, length, longest, configs) in SYSTEMS.items():
        make_system(system, width, length, longest, configs)
