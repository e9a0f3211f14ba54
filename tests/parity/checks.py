"""What must hold of the reference itself before its numbers are worth comparing with."""

import math

import torch
import torch.nn.functional as F

import mixers
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
    torch.testing.assert_close(mixers.rotary(x, positions, 100, True), interleaved, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(mixers.rotary(x, positions, 100, False), torch.cat([split.real, split.imag], dim=1),
                               rtol=1e-12, atol=1e-12)


def check_aft(params, options, x, y, causal):
    """Sampled outputs against the paper's formula: plain exponentials of numbers, summed over one document."""
    width = x.shape[1]
    packed = (x @ params["to_qkv.weight"].T).tolist()
    bias = mixers.aft_bias(params, options, len(x), causal)[..., 0].tolist()
    for t, c in [(0, 0), (3, 20), (len(x) - 1, 34)]:
        numerator = denominator = 0.0
        for s in range(t + 1 if causal else len(x)):
            weight = math.exp(packed[s][width + c] + bias[t][s])
            numerator += weight * (packed[s][2 * width + c] + params["value_bias"][c].item())
            denominator += weight
        gate = 1 / (1 + math.exp(-(packed[t][c] + params["query_bias"][c].item())))
        require(abs(y[t, c].item() - gate * numerator / denominator) < 1e-11, f"aft: y[{t},{c}] is not the paper's sum")


def check_attention(params, options, x, y, causal):
    """Without positions: PyTorch's own attention."""
    width = x.shape[1]
    parts = (x @ params["to_qkv.weight"].T).split(width, dim=1)
    q, k, v = ((part + params.get(f"{name}_bias", 0)).unflatten(1, (options["heads"], -1)).transpose(0, 1)
               for part, name in zip(parts, ("query", "key", "value")))
    theirs = F.scaled_dot_product_attention(q, k, v, is_causal=causal).transpose(0, 1).flatten(1)
    torch.testing.assert_close(y, theirs, rtol=1e-12, atol=1e-12)


def check_flash(params, options, x, y, causal):
    """A bidirectional text of n tokens by the formula that divides both parts by the text's length, and s = key_dim:
    o_i = u_i * (sum over the chunk of relu(q_i k_j)^2 / (n s) v_j + sum over the text of (q'_i k'_j) / n v_j)."""
    u, v, (q, k, linear_q, linear_k) = mixers.gated_unit(params, options, x)
    n = len(x)
    for i in (0, 4, 5, 11, n - 1):
        mixed = sum((q[i] @ k[j]).clamp(min=0) ** 2 / (n * options["key_dim"]) * v[j]
                    for j in range(n) if j // options["chunk"] == i // options["chunk"])
        mixed = mixed + sum(linear_q[i] @ linear_k[j] / n * v[j] for j in range(n))
        require(torch.allclose(y[i], u[i] * mixed, rtol=1e-12, atol=1e-12), "flash: not the published formula")


def check_mixer(mixer, params, options, inputs):
    """The formula of one document, which the fixtures are made with, against one that is written in another way."""
    x, kind = inputs["x"][0], mixer.split("-")[0]
    formula = mixers.FORMULAS[kind][0]
    for causal in (False, True):
        if mixer == "aft-conv" and params["kernel"].shape[1] != (options["window"] if causal else 2 * options["window"] - 1):
            continue
        y = formula(params, options, x, causal)
        if kind == "aft" and mixer != "aft-conv" and options["bias"]:
            check_aft(params, options, x, y, causal)
        if kind == "attention" and not options["rotary"]:
            check_attention(params, options, x, y, causal)
        if options.get("normaliser") == "document" and options["position_bias"] == "none" and not options["rotary"] and not causal:
            check_flash(params, options, x, y, causal)


def check_causality(mix, x):
    """Later tokens, also ones of 10^4, change no earlier output."""
    y = mix(x)
    for cut, size in [(1, 1.0), (8, 100.0), (x.shape[1] - 1, 1e4)]:
        changed = x.clone()
        changed[:, cut:] = size * changed[:, cut:].flip(1)
        difference = (mix(changed) - y)[:, :cut].abs().max().item()
        require(difference < 1e-12, f"later tokens move earlier outputs by {difference}")


def check_padding_of_classifier(params, mixer, layers, tokens, segment_ids, logits):
    """Every row gives the logits it gives alone, without its padding."""
    for row, length in enumerate((segment_ids != 0).sum(dim=1).tolist()):
        cut = slice(row, row + 1), slice(0, length)
        alone = ref.classifier_logits(params, mixer, layers, tokens[cut], segment_ids[cut])
        torch.testing.assert_close(alone[0], logits[row], rtol=1e-11, atol=1e-11)
