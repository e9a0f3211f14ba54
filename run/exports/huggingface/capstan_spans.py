"""Averages of tokens that are weighted by exponentials, as AFT and Fastformer compute them.

A span of tokens is three tensors (m, n, r): the largest key m, n = sum of e^(k_s - m), and the average
r = sum of e^(k_s) v_s / sum of e^(k_s). A token is the span (k, 1, v); the empty span is (LOWEST, 0, 0). No exponent is
positive, so nothing overflows, and n >= 1, so no division needs an epsilon. Keys are (..., G, 1 or C) and values
(..., G, C): G groups of C channels, each channel with a key of its own, or all of a group with one."""

import torch

from .capstan_texts import later, rows_at

LOWEST = -1e30  # the key of a token that is not seen: finite, so that no difference is NaN
SMALLEST_SUM = 1e-25  # below it a sum of exponentials has lost terms to underflow


def wide(x):
    """x in single precision at least: sums of exponentials and of squares are beyond half precision."""
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


def token_spans(keys, values):
    """(k, 1, v). m cancels in every result, so the gradient of the key goes through n = e^(k - m), whose value is 1."""
    m = keys.detach()
    return m, torch.exp(keys - m), values


def merge(a, b):
    """The span of two neighbouring spans."""
    (m_a, n_a, r_a), (m_b, n_b, r_b) = a, b
    m = torch.maximum(m_a, m_b)
    n_a, n_b = n_a * torch.exp(m_a - m), n_b * torch.exp(m_b - m)
    n = n_a + n_b
    return m, n, r_a + n_b / n * (r_b - r_a)


def running_spans(keys, values):
    """For every t the span of tokens 0 to t, along axis 1, by a parallel scan (Hillis and Steele 1986): after `level` merges
    a span has 2^level tokens, and the next merge adds as many from before it."""
    spans, length = token_spans(keys, values), keys.shape[1]
    levels = (length - 1).bit_length() if isinstance(length, int) else 16  # exported for any length: up to 2^16 tokens
    for level in range(levels):
        m, n, r = spans
        before = later(m, 1 << level, LOWEST), later(n, 1 << level), later(r, 1 << level)
        spans = merge(before, spans)
    return spans


def whole_average(keys, values, valid):
    """r of all tokens of a text, (B, 1, ...): a softmax of the keys, for each group or channel."""
    weights = torch.softmax(keys.masked_fill(~valid[..., None, None], LOWEST), dim=1)
    return (weights * values).sum(dim=1, keepdim=True)


def biased_average(spans, bias):
    """r_t = sum_s e^(k_s + w_ts) v_s / sum_s e^(k_s + w_ts), as two products of matrices: e^w with e^k v, and with e^k.

    spans: sources (B, N, S, G, 1 or C) of N tiles of targets. bias: w, (N or 1, G, L, S), -inf where t does not see s, the
    same for all texts. Result: (B, N, L, G, C).

    The largest k of the tile and the largest w of t are subtracted, which cancels. t need not see that key: where the sum
    that is left is too small, the row is computed again by itself.
    """
    if torch.is_autocast_enabled(bias.device.type):  # would make the products in half precision
        with torch.autocast(bias.device.type, enabled=False):
            return biased_average(spans, bias)
    m, n, r = spans
    bias = wide(bias)
    e = n * torch.exp(m - m.amax(dim=2, keepdim=True))
    weights = torch.exp(bias - bias.detach().amax(dim=-1, keepdim=True))
    above = torch.einsum("ngls,bnsgc->bnlgc", weights.expand(e.shape[1], -1, -1, -1), e * r)
    below = torch.einsum("ngls,bnsgc->bnlgc", weights.expand(e.shape[1], -1, -1, -1), e)
    average = above / below.clamp(min=SMALLEST_SUM)
    if torch.compiler.is_exporting() or not bool((below < SMALLEST_SUM).any()):
        return average
    text, tile, target = (below < SMALLEST_SUM).flatten(3).any(dim=-1).nonzero(as_tuple=True)
    logits = m[text, tile] + bias.expand(e.shape[1], -1, -1, -1)[tile, :, target].transpose(1, 2)[..., None]
    e = n[text, tile] * torch.exp(logits - logits.detach().amax(dim=1, keepdim=True))
    exact = (e * r[text, tile]).sum(dim=1) / e.sum(dim=1)
    return average.index_put((text, tile, target), exact)


def spans_at(spans, index):
    """Spans at index (B, J); before the first token the empty span."""
    return [rows_at(x, index, fill) for x, fill in zip(spans, (LOWEST, 0.0, 0.0))]
