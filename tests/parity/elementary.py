"""Single functions and one optimizer, each with its gradients or steps.

For each function: x, further inputs, y, dy, and d<input> for each input. cross_entropy has logits, targets (-1 =
ignored), loss_sum, dlogits. adamw.initial.matrix|vector, then adamw.stepN.gradient.* and .value.* for N = 1 to 5; the
matrix is decayed by 0.1.
"""

import torch

import mixers
import reference as ref
from tools import ADAMW, WEIGHT_DECAY, gradients, normal, prefixed, save, with_gradients

ROTARY_BASE = 10000
VOCABULARY = 11


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
        tensors |= elementary_case(f"rotary.{form}", lambda x: mixers.rotary(x, positions, ROTARY_BASE, interleaved), x=x)
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


def make():
    tensors = norm_cases() | activation_cases() | cross_entropy_case() | rotary_cases() | adamw_case()
    save("elementary", tensors, {"norm_eps": ref.NORM_EPS, "ignored_target": ref.IGNORED, "rotary_base": ROTARY_BASE,
                                 "learning_rate": ADAMW["lr"], "beta1": ADAMW["betas"][0], "beta2": ADAMW["betas"][1],
                                 "eps": ADAMW["eps"], "weight_decay": WEIGHT_DECAY})
