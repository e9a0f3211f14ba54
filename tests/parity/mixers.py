"""The five systems from their equations, as plainly as PyTorch can say it: one document at a time, every pair of tokens written out.

Each function has the parameters p of a mixer under Capstan's names, its options o under the names of their keys, and x (L, D) of one
document; the result is what the output projection reads. What the papers' equations leave open:

- aft: w_ts = u_t . v_s, or position_bias[t, s], with t the target; local: 0 for |t - s| >= window, where the keys stay visible; conv,
  causal: tap j is the source j places back; bidirectional: tap j has t - s = j - (window - 1); w = gain (kernel - mean) /
  sqrt(variance + 1e-5) + bias per head, 0 outside the window; channel c belongs to head floor(c heads / D).
- fastformer, causal: every prefix is pooled anew; p of a token is made with the query pooled up to it.
- gau, flash: rows of to_uvz are u, v, z; the rotary position bias turns all features, with the base and pairs of the views.
- flash: rows of gain and offset are query and key of the local part, then of the global part. Chunks begin at position 0 of every
  document. The causal global part reads the chunks before the query's own, the bidirectional one the whole document; it is divided by
  the number of tokens it reads or, with normaliser paper, by the chunk's length times the number of chunks.
"""

import math

import torch

KERNEL_EPS = 1e-5


def linear(x, p, name):
    return x @ p[f"{name}.weight"].T + p.get(f"{name}.bias", 0)


def softmax(logits, visible):
    return torch.softmax(logits.masked_fill(~visible, -torch.inf), dim=1)


def pairs(length, causal):
    """(L, L): does target t see source s?"""
    seen = torch.ones(length, length, dtype=torch.bool)
    return seen.tril() if causal else seen


def distances(length):
    at = torch.arange(length)
    return at[:, None] - at[None, :]


def rotary(x, positions, base, interleaved):
    """x: (T, D). Pair i turns by position * base^(-2i/D); it is (2i, 2i + 1) when interleaved, else (i, i + D/2)."""
    half = x.shape[-1] // 2
    angle = positions[:, None] * base ** (-2 * torch.arange(half, dtype=torch.float64) / x.shape[-1])
    first, second = (x[:, 0::2], x[:, 1::2]) if interleaved else (x[:, :half], x[:, half:])
    turned = (first * angle.cos() - second * angle.sin(), first * angle.sin() + second * angle.cos())
    return torch.stack(turned, dim=-1).flatten(1) if interleaved else torch.cat(turned, dim=-1)


def turned(x, o):
    return rotary(x, torch.arange(len(x)), o["rotary_base"], o["rotary_pairs"] == "interleaved")


def kernel(name, logits, visible):
    if name == "softmax":
        return softmax(logits, visible)
    if name == "squared-relu":
        return torch.relu(logits) ** 2 * visible
    deviation = math.sqrt(1 / (4 * math.pi))
    return (1 + torch.erf((logits - math.sqrt(0.5)) / (deviation * math.sqrt(2)))) / 2 * visible


# --- Attention Free Transformer (Zhai et al. 2021) --------------------------------------------------------------------


def aft_bias(p, o, length, causal):
    """w, (L, L, 1 or H)"""
    distance = distances(length)
    if "kernel" in p:
        centred = p["kernel"] - p["kernel"].mean(dim=1, keepdim=True)
        deviation = torch.sqrt((centred**2).mean(dim=1, keepdim=True) + KERNEL_EPS)
        taps = p["kernel_gain"][:, None] * centred / deviation + p["kernel_bias"][:, None]
        tap = distance if causal else distance + o["window"] - 1
        inside = (tap >= 0) & (tap < taps.shape[1])
        return taps[:, tap.clamp(0, taps.shape[1] - 1)].permute(1, 2, 0) * inside[..., None]
    if "position_bias" not in p and "position_u" not in p:
        return torch.zeros(length, length, 1, dtype=torch.float64)
    table = p["position_bias"] if "position_bias" in p else p["position_u"] @ p["position_v"].T
    near = distance.abs() < o.get("window", length)
    return (table[:length, :length] * near)[..., None]


def aft(p, o, x, causal):
    heads, inner = o.get("heads", 0), o.get("inner", 0) or x.shape[1]
    packed = x @ p["to_qkv.weight"].T
    q, k, v = packed.split([inner, heads or inner, inner], dim=-1)
    q, v = q + p.get("query_bias", 0), v + p.get("value_bias", 0)
    logits = k[None] + aft_bias(p, o, len(x), causal)
    if heads:
        logits = logits.repeat_interleave(inner // heads, dim=-1)
    weights = softmax(logits, pairs(len(x), causal)[..., None])
    return torch.sigmoid(q) * (weights * v[None]).sum(dim=1)


def aft_shapes(o, width, length, causal):
    heads, inner = o.get("heads", 0), o.get("inner", 0) or width
    shapes = {"to_qkv.weight": (2 * inner + (heads or inner), width)}
    if o["bias"]:
        shapes |= {"query_bias": (inner,), "value_bias": (inner,)}
    if heads:
        taps = o["window"] if causal else 2 * o["window"] - 1
        shapes |= {"kernel": (heads, taps), "kernel_gain": (heads,), "kernel_bias": (heads,)}
    elif o.get("position_bias") == "dense":
        shapes |= {"position_bias": (length, length)}
    elif "rank" in o:
        shapes |= {"position_u": (length, o["rank"]), "position_v": (length, o["rank"])}
    return shapes | output_shapes(o, width, inner)


def output_shapes(o, width, inner):
    if not o.get("output_projection", True):
        return {}
    return {"to_out.weight": (width, inner)} | ({"to_out.bias": (width,)} if o["bias"] else {})


# --- Fastformer (Wu et al. 2021) --------------------------------------------------------------------------------------


def pooled(rows, logits, causal):
    """(L, D): per head, the average of its features with weights softmax(logits) over the tokens; causal, over each prefix."""
    head_width = rows.shape[1] // logits.shape[1]

    def pool(end):
        weights = torch.softmax(logits[:end] / head_width**0.5, dim=0).repeat_interleave(head_width, dim=1)
        return (weights * rows[:end]).sum(dim=0)
    return torch.stack([pool(t + 1) for t in range(len(rows))]) if causal else pool(len(rows)).expand_as(rows)


def fastformer(p, o, x, causal):
    width, own_values = x.shape[1], o.get("value") == "own"
    q, k, *v = linear(x, p, "to_qkv" if own_values else "to_qk").split(width, dim=-1)

    def logits(rows, name):
        weight = p[f"{name}.weight"]
        if o.get("logits") == "per-head":
            return torch.einsum("lhd,hd->lh", rows.unflatten(1, (o["heads"], -1)), weight)
        return rows @ weight.T
    products = pooled(q, logits(q, "query_logits"), causal) * k
    u = pooled(products, logits(products, "key_logits"), causal) * (v[0] if own_values else q)
    return linear(u, p, "to_r") + q


def fastformer_shapes(o, width, length, causal):
    logits = (o["heads"], width // o["heads"] if o.get("logits") == "per-head" else width)
    packed, parts = ("to_qkv", 3) if o.get("value") == "own" else ("to_qk", 2)
    shapes = {f"{packed}.weight": (parts * width, width), "to_r.weight": (width, width), "query_logits.weight": logits,
              "key_logits.weight": logits}
    if o["bias"]:
        shapes |= {f"{packed}.bias": (parts * width,), "to_r.bias": (width,)}
    return shapes | output_shapes(o, width, width)


# --- Multi-head attention (Vaswani et al. 2017) -----------------------------------------------------------------------


def attention(p, o, x, causal):
    parts = linear(x, p, "to_qkv").split(x.shape[1], dim=-1)
    biased = [part + p.get(f"{name}_bias", 0) for part, name in zip(parts, ("query", "key", "value"))]
    mixed = []
    for q, k, v in zip(*(part.chunk(o["heads"], dim=-1) for part in biased)):
        if o["rotary"]:
            q, k = turned(q, o), turned(k, o)
        mixed.append(softmax(q @ k.T / math.sqrt(q.shape[1]), pairs(len(x), causal)) @ v)
    return torch.cat(mixed, dim=1)


def attention_shapes(o, width, length, causal):
    biases = {"query_bias": (width,), "value_bias": (width,)} if o["bias"] else {}
    return {"to_qkv.weight": (3 * width, width)} | biases | output_shapes(o, width, width)


# --- The gated attention unit and FLASH (Hua et al. 2022) -------------------------------------------------------------


def relative_bias(p, o, length):
    """b_(i-j), (L, L)"""
    if o["position_bias"] == "toeplitz":
        table = p["relative_bias.table"]
        return table[distances(length) + len(table) // 2]
    if o["position_bias"] == "rotary":
        a, c = (turned(p[f"relative_bias.{name}"].expand(length, -1), o) for name in ("a", "c"))
        return a @ c.T
    return torch.zeros(length, length, dtype=torch.float64)


def gated_weights(o, products, bias, visible, n, constant):
    """(L, L): what each visible key weighs. n: (L, 1)"""
    if o["normaliser"] == "paper":
        n = torch.full_like(n, constant)
    if o["logits"] == "length":
        return kernel(o["kernel"], products / n + bias, visible)
    weights = kernel(o["kernel"], products / math.sqrt(o["key_dim"]) + bias, visible)
    return weights if o["kernel"] == "softmax" else weights / n


def gated_unit(p, o, x):
    """u, v and the views of z."""
    packed = linear(x, p, "to_uvz")
    hidden = (packed.shape[1] - o["key_dim"]) // 2
    u, v, z = (packed / (1 + torch.exp(-packed))).split([hidden, hidden, o["key_dim"]], dim=-1)
    views = [z * gain + offset for gain, offset in zip(p["gain"], p["offset"])]
    return u, v, [turned(view, o) for view in views] if o["rotary"] else views


def counts(visible):
    return visible.sum(dim=1, keepdim=True).double()


def gau(p, o, x, causal):
    u, v, (q, k) = gated_unit(p, o, x)
    visible = pairs(len(x), causal)
    return u * (gated_weights(o, q @ k.T, relative_bias(p, o, len(x)), visible, counts(visible), o["paper_length"]) @ v)


def flash_local(p, o, q, k, v, chunk, causal):
    length, visible = len(q), pairs(chunk.stop - chunk.start, causal)
    n = counts(visible)
    if o["normaliser"] == "document":
        n = n + chunk.start if causal else torch.full_like(n, length)
    bias = relative_bias(p, o, len(visible))
    return gated_weights(o, q[chunk] @ k[chunk].T, bias, visible, n, o["chunk"]) @ v[chunk]


def flash_global(o, q, k, v, chunks, index, causal):
    """Q' times the mean of k'^T v over the tokens of the chunks it sees."""
    seen = chunks[:index] if causal else chunks
    if not seen:
        return torch.zeros(len(q[chunks[index]]), v.shape[1], dtype=v.dtype)
    n = o["chunk"] * len(seen) if o["normaliser"] == "paper" else sum(len(k[chunk]) for chunk in seen)
    state = sum(torch.outer(k[t], v[t]) for chunk in seen for t in range(chunk.start, chunk.stop))
    return q[chunks[index]] @ state / n


def flash(p, o, x, causal):
    u, v, views = gated_unit(p, o, x)
    chunks = [slice(begin, min(begin + o["chunk"], len(x))) for begin in range(0, len(x), o["chunk"])]
    mixed = []
    for index, chunk in enumerate(chunks):
        total = 0
        if o["local"]:
            total = total + flash_local(p, o, views[0], views[1], v, chunk, causal)
        if o["global"]:
            total = total + flash_global(o, views[-2], views[-1], v, chunks, index, causal)
        mixed.append(total)
    return u * torch.cat(mixed)


def gated_shapes(o, width, length, causal):
    hidden, key_dim = math.floor(o["expansion"] * width + 0.5), o["key_dim"]
    views = 2 * (o.get("local", True) + o.get("global", False))
    table = 2 * o.get("chunk", length) - 1
    shapes = {"to_uvz.weight": (2 * hidden + key_dim, width), "gain": (views, key_dim), "offset": (views, key_dim)}
    shapes |= {"none": {}, "toeplitz": {"relative_bias.table": (table,)},
               "rotary": {"relative_bias.a": (key_dim,), "relative_bias.c": (key_dim,)}}[o["position_bias"]]
    if o["bias"]:
        shapes |= {"to_uvz.bias": (2 * hidden + key_dim,)}
    return shapes | output_shapes(o, width, hidden)


FORMULAS = {"aft": (aft, aft_shapes), "fastformer": (fastformer, fastformer_shapes), "attention": (attention, attention_shapes),
            "gau": (gau, gated_shapes), "flash": (flash, gated_shapes)}


def shapes_of(mixer, o, width, length, causal):
    return FORMULAS[mixer.split("-")[0]][1](o, width, length, causal)


def mix(mixer, p, o, x, segment_ids, causal):
    """x: (B, T, D) -> (B, T, D), document by document; 0 before the output projection for padding."""
    formula = FORMULAS[mixer.split("-")[0]][0]
    rows = []
    for row, ids in zip(x, segment_ids.tolist()):
        starts = [t for t in range(len(ids)) if t == 0 or ids[t] != ids[t - 1]]
        documents = [slice(begin, end) for begin, end in zip(starts, starts[1:] + [len(ids)])]
        mixed = [formula(p, o, row[document], causal) for document in documents]
        rows.append(torch.cat([y if ids[document.start] else torch.zeros_like(y) for y, document in zip(mixed, documents)]))
    y = torch.stack(rows)
    return linear(y, p, "to_out") if "to_out.weight" in p else y
