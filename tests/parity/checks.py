"""What must hold of the reference itself before its numbers are worth comparing with."""

import math

import torch
import torch.nn.functional as F

import reference as ref


def require(condition, message):
    if not condition:
        raise SystemExit(f"make_fixtures: {message}")


def check_formulas():
    """The written-out formulas against PyTorch's own functions."""
    x = torch.randn(5, 37, generator=torch.Generator().manual_seed(1), dtype=torch.float64) * 2
    gain, bias = torch.linspace(0.5, 2, 37, dtype=x.dtype), torch.linspace(-1, 1, 37, dtype=x.dtype)
    targets = torch.tensor([0, 36, ref.IGNORED, 5, 5])
    for ours, theirs in [
        (ref.layer_norm(x, {"gain": gain, "bias": bias}), F.layer_norm(x, (37,), gain, bias, ref.NORM_EPS)),
        (ref.rms_norm(x, gain), F.rms_norm(x, (37,), gain, ref.NORM_EPS)),
        (ref.gelu(x), F.gelu(x)),
        (ref.silu(x), F.silu(x)),
        (ref.cross_entropy_sum(x, targets), F.cross_entropy(x, targets, ignore_index=ref.IGNORED, reduction="sum")),
    ]:
        torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-12)


def check_rotary():
    """A turned pair is a product of complex numbers."""
    x = torch.randn(3, 8, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    positions = torch.tensor([0, 3, 100])
    angle = positions[:, None] / 100.0 ** (torch.arange(4, dtype=torch.float64) / 4)
    turn = torch.polar(torch.ones_like(angle), angle)
    interleaved = torch.view_as_real(torch.view_as_complex(x.reshape(3, 4, 2)) * turn).flatten(1)
    split = torch.complex(x[:, :4], x[:, 4:]) * turn
    torch.testing.assert_close(ref.rotary(x, positions, 100, True), interleaved, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(ref.rotary(x, positions, 100, False), torch.cat([split.real, split.imag], dim=1),
                               rtol=1e-12, atol=1e-12)


def scalar_bias(params, config, t, s, channel):
    """w_ts of one pair of positions within a document, written again without tensors."""
    if config.variant == "simple" or (config.variant == "local" and abs(t - s) >= config.window):
        return 0.0
    if config.variant == "conv":
        tap = t - s if config.causal else t - s + config.window - 1
        if not 0 <= tap < config.taps():
            return 0.0
        head = channel * config.heads // config.width
        taps = params["kernel"][head].tolist()
        mean = sum(taps) / len(taps)
        std = math.sqrt(sum((w - mean) ** 2 for w in taps) / len(taps) + ref.KERNEL_EPS)
        return params["kernel_gain"][head].item() * (taps[tap] - mean) / std + params["kernel_bias"][head].item()
    if config.dense:
        return params["position_bias"][t, s].item()
    return sum((params["position_u"][t] * params["position_v"][s]).tolist())


def check_against_scalar_sums(params, config, x, segment_ids, y):
    """Sampled outputs against the paper's formula: plain exponentials summed over one document cut out of its row."""
    if config.output_projection:
        y = ref.aft(params, plain(config), x, segment_ids)
    projected = x @ params["to_qkv.weight"].T
    rows = segment_ids.tolist()
    for b, t, c in [(0, 0, 0), (0, 17, 34), (1, 3, 20), (1, 28, 7), (2, 10, 33), (2, 11, 1), (2, 25, 13), (2, 28, 5)]:
        if rows[b][t] == 0:
            require(bool((y[b, t] == 0).all()), "a token of padding has an output")
            continue
        first = rows[b].index(rows[b][t])
        key = config.width + (c * config.heads // config.width if config.variant == "conv" else c)
        value = config.width + config.key_width() + c
        numerator = denominator = 0.0
        for s in range(len(rows[b])):
            if rows[b][s] != rows[b][t] or (config.causal and s > t):
                continue
            weight = math.exp(projected[b, s, key].item() + scalar_bias(params, config, t - first, s - first, c))
            numerator += weight * (projected[b, s, value].item() + params["value_bias"][c].item())
            denominator += weight
        gate = 1 / (1 + math.exp(-(projected[b, t, c].item() + params["query_bias"][c].item())))
        expected = gate * numerator / denominator
        require(abs(y[b, t, c].item() - expected) < 1e-11, f"{config.variant}: y[{b},{t},{c}] is not the paper's sum")


def plain(config):
    """The same mixer without its output projection."""
    return type(config)(**{**vars(config), "output_projection": False})


def check_causality(params, config, x, segment_ids, y):
    """Later tokens, also ones that drive keys to 10^4, change no earlier output."""
    for cut, size in [(1, 1.0), (14, 100.0), (28, 1e4)]:
        changed = x.clone()
        changed[:, cut:] = size * changed[:, cut:].flip(1)
        difference = (ref.aft(params, config, changed, segment_ids) - y)[:, :cut].abs().max().item()
        require(difference < 1e-12, f"{config.variant}: later tokens move earlier outputs by {difference}")


def check_extreme_keys(params, config, x, segment_ids):
    """Keys of +-10^4 give finite outputs and gradients."""
    leaves = {name: value.clone() for name, value in params.items()}
    leaves["to_qkv.weight"][config.width:config.width + config.key_width()] *= 4000
    leaves = {name: value.requires_grad_() for name, value in leaves.items()}
    y = ref.aft(leaves, config, x, segment_ids)
    gradients = torch.autograd.grad(y.square().sum(), list(leaves.values()))
    finite = all(bool(tensor.isfinite().all()) for tensor in (y, *gradients))
    require(finite, f"{config.variant}: extreme keys overflow")


def check_cancellation_case():
    """w = -25 beside keys (0, 0, 20): the denominator is 2 + exp(-5), where the (e^w - 1) form finds 0 in float32."""
    k = torch.tensor([0.0, 0.0, 20.0], dtype=torch.float64).view(1, 3, 1)
    v = torch.tensor([1.0, 2.0, 4.0], dtype=torch.float64).view(1, 3, 1)
    w = torch.zeros(1, 3, 3, 1, dtype=torch.float64)
    w[0, 2, 2] = -25
    r = ref.aft_core(k, v, w, ref.visibility(torch.ones(1, 3, dtype=torch.int32), causal=True))[0, 2, 0].item()
    expected = (3 + 4 * math.exp(-5)) / (2 + math.exp(-5))
    require(abs(r - expected) < 1e-14, f"the cancellation case gives {r} instead of {expected}")


def check_public_module(state, x, y, config, names, bias_name):
    """A public module is our mixer with its projections stacked; its key bias cancels in the average."""
    query, key, value = names
    params = {"to_qkv.weight": torch.cat([state[f"{name}.weight"] for name in names]),
              "query_bias": state[f"{query}.bias"], "value_bias": state[f"{value}.bias"],
              "position_bias": state[bias_name]}
    if config.output_projection:
        params |= {f"to_out.{part}": state[f"output.{part}"] for part in ("weight", "bias")}
    require(bool((state[f"{key}.bias"] != 0).any()), "a key bias of 0 shows nothing")
    ones = torch.ones(x.shape[:2], dtype=torch.int32)
    torch.testing.assert_close(ref.aft(params, config, x, ones), y, rtol=1e-11, atol=1e-11)


def check_padding_of_classifier(params, config, layers, tokens, segment_ids, logits):
    """Every row gives the logits it gives alone, without its padding."""
    for row, length in enumerate((segment_ids != 0).sum(dim=1).tolist()):
        cut = slice(row, row + 1), slice(0, length)
        alone = ref.classifier_logits(params, config, layers, tokens[cut], segment_ids[cut])
        torch.testing.assert_close(alone[0], logits[row], rtol=1e-11, atol=1e-11)
