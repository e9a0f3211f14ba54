"""The mixers of the Attention Free Transformer (Zhai et al. 2021), and the two public modules that are imported.

aft_inputs has x, dy (3, 29, 35), segment_ids.full (one document per row) and segment_ids.ragged (right padding; left
padding; two packed documents followed by padding). Each variant has a file; aft_conv has two, because the kernel's
size depends on the direction. The tensor to_qkv.weight has rows q, k, v; k has D rows, or one per head for conv. What
the equations leave open:

- w_ts = u_t . v_s, or position_bias[t, s], with t the target;
- local: w_ts for |t - s| < window, 0 beyond, where the keys stay visible;
- conv, causal: tap j is the source j places back, window taps; bidirectional: tap j has t - s = j - (window - 1), 2
  window - 1 taps; w = gain (kernel - mean) / sqrt(variance + 1e-5) + bias per head, population variance over all taps
  of the head, and 0 outside the window; channel c belongs to head floor(c heads / D).
"""

import torch

import checks
import reference as ref
from reference import AftConfig
from tools import gradients, normal, prefixed, save, with_gradients

BATCH, LENGTH, WIDTH = 3, 29, 35
MAX_LENGTH, WINDOW, RANK, HEADS = 31, 5, 4, 5


def parameters(config, seed_name, stddev):
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
        params = parameters(config, name, stddev=0.5)
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


def make():
    make_mixers()
    make_public_modules()
