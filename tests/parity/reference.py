"""What whole models are made of beside their mixers (mixers.py), as plainly as PyTorch can say it.

Nothing here is an algorithm of Capstan. Shapes: B batch, T tokens, D width. Parameters are dictionaries from name to tensor.
"""

import torch

NORM_EPS = 1e-5
IGNORED = -1


def part(params, prefix):
    """The parameters below `prefix.`, without it."""
    return {name[len(prefix) + 1:]: value for name, value in params.items() if name.startswith(prefix + ".")}


def document_positions(segment_ids):
    """(B, T): position of each token within its document; 0 for padding."""
    positions = torch.zeros_like(segment_ids, dtype=torch.long)
    for row, ids in enumerate(segment_ids.tolist()):
        for t, segment in enumerate(ids):
            positions[row, t] = t - ids.index(segment) if segment != 0 else 0
    return positions


def linear(x, params):
    return x @ params["weight"].T + params["bias"]


def layer_norm(x, params):
    centred = x - x.mean(dim=-1, keepdim=True)
    return centred / torch.sqrt((centred**2).mean(dim=-1, keepdim=True) + NORM_EPS) * params["gain"] + params["bias"]


def rms_norm(x, gain):
    """Also ScaleNorm when the gain is one number."""
    return x / torch.sqrt((x**2).mean(dim=-1, keepdim=True) + NORM_EPS) * gain


def gelu(x):
    return 0.5 * x * (1 + torch.erf(x / 2**0.5))


def silu(x):
    return x / (1 + torch.exp(-x))


def cross_entropy_sum(logits, targets):
    """Sum over the targets that are not IGNORED of logsumexp(logits) - logits[target]."""
    counted = targets != IGNORED
    rows = logits[counted]
    return (torch.logsumexp(rows, dim=-1) - rows.gather(1, targets[counted].long()[:, None])[:, 0]).sum()


def hidden_states(params, mixer, layers, tokens, segment_ids):
    """Embeddings, learned positions, pre-norm blocks, final norm: (B, T) -> (B, T, D). mixer(its parameters, x, segment_ids)."""
    x = params["embed.weight"][tokens.long()] + params["positions.weight"][document_positions(segment_ids)]
    for layer in range(layers):
        block = part(params, f"blocks.{layer}")
        x = x + mixer(part(block, "mixer"), layer_norm(x, part(block, "mixer_norm")), segment_ids)
        feed_forward = part(block, "feed_forward")
        inner = gelu(linear(layer_norm(x, part(block, "feed_forward_norm")), part(feed_forward, "up")))
        x = x + linear(inner, part(feed_forward, "down"))
    return layer_norm(x, part(params, "final_norm"))


def language_model_logits(params, mixer, layers, tokens, segment_ids):
    """(B, T) -> (B, T, V), the output sharing embed.weight."""
    return hidden_states(params, mixer, layers, tokens, segment_ids) @ params["embed.weight"].T


def classifier_logits(params, mixer, layers, tokens, segment_ids):
    """(B, T) -> (B, classes): mean of the final states over the tokens that are not padding, then the head."""
    valid = (segment_ids != 0)[..., None]
    states = hidden_states(params, mixer, layers, tokens, segment_ids) * valid
    return linear(states.sum(dim=1) / valid.sum(dim=1), part(params, "head"))
