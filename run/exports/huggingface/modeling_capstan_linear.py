"""Capstan's linear classifier over hashed n-grams in PyTorch, for the transformers library (4.57 and 5.x).

`config.model` is the section `model:` of a Capstan configuration. Weights have the names that Capstan gives them.
"""

from collections import Counter
from typing import TYPE_CHECKING
from unicodedata import category, normalize

import torch
from torch import nn
from torch.nn import functional as F
from transformers import PreTrainedModel
from transformers.modeling_outputs import SequenceClassifierOutput
from xxhash import xxh3_64_intdigest

from .capstan_tables import StoredTables
from .configuration_capstan import CapstanConfig

if TYPE_CHECKING:  # save_pretrained copies files that this one names, and the configuration names this one
    from .pipeline_capstan import CapstanTextClassificationPipeline  # noqa: F401

GOLDEN = 0x9E3779B97F4A7C15


def mixed_bits(h):
    """The finaliser of SplitMix64 (Steele et al. 2014) of the low 64 bits: every bit depends on every bit of h."""
    h %= 1 << 64
    h = (h ^ (h >> 30)) * 0xBF58476D1CE4E5B9 % (1 << 64)
    h = (h ^ (h >> 27)) * 0x94D049BB133111EB % (1 << 64)
    return h ^ (h >> 31)


def hashed(text):
    return xxh3_64_intdigest(text.encode("utf-8", "surrogateescape"))


def text_ngrams(text, model, bits):
    """The n-grams of a text, of words and of the characters within words: two counters by bucket.

    A run of letters, digits and characters beyond ASCII is a word, and so is every other character that is not blank. With
    `unicode` letters and blanks are Unicode's, and in scripts that are written without blanks each character is a word.
    """
    runs, words, counts = [], [], (Counter(), Counter())
    for c in "".join(folded(c, model["unicode"]) for c in text):
        kind = character_kind(c, model["unicode"])
        if runs and runs[-1][0] == kind != "other":
            runs[-1][1].append(c)
        else:
            runs.append((kind, [c]))
    for kind, run in runs:
        if kind == "blank":
            continue
        words += [hashed(word) for word in (run if kind == "alone" else ["".join(run)])]
        marked = ["\x02", *run, "\x03"]
        for order in model["characters"]:
            for i in range(len(marked) - order + 1):
                counts[1][mixed_bits(hashed("".join(marked[i:i + order])) + GOLDEN) >> (64 - bits)] += 1
    ends = model["text_ends"] and bool(words)
    words = [hashed("\x02"), *words, hashed("\x03")] if ends else words
    for order in model["words"]:
        inner = words[1:-1] if ends and order == 1 else words
        for i in range(len(inner) - order + 1):
            h = mixed_bits(order)
            for word in inner[i:i + order]:
                h = mixed_bits(h * GOLDEN + word)
            counts[0][h >> (64 - bits)] += 1
    return counts


NO_BLANKS = ((0xE00, 0x109F), (0x1780, 0x17FF), (0x1950, 0x1AAF), (0x2E80, 0x312F), (0x3190, 0xA4CF), (0xA980, 0xA9FF),
             (0xAA60, 0xAADF), (0xF900, 0xFAFF), (0xFF66, 0xFF9F), (0x16FE0, 0x1B2FF), (0x20000, 0x3FFFF))


def folded(c, unicode):
    """A character in the case and the width that stand for all."""
    if c < "\x80" or not unicode:
        return c.lower() if c < "\x80" else c
    c = normalize("NFKC" if "\uff00" <= c <= "\uffef" else "NFC", c)
    return normalize("NFC", normalize("NFD", c.casefold()))


def character_kind(c, unicode):
    if c in " \t\n\v\f\r":
        return "blank"
    if c < "\x80" or not unicode:
        return "word" if c >= "\x80" or c.isalnum() else "other"
    kind = category(c)
    if kind[0] == "Z":
        return "blank"
    if kind[0] not in "LMN" and kind not in ("Cf", "Cs"):
        return "other"
    return "alone" if any(low <= ord(c) <= high for low, high in NO_BLANKS) else "word"


def text_of(ids):
    """ids: bytes, and the token between two columns, which are read as two lines."""
    return bytes(i if i < 256 else ord("\n") for i in ids).decode("utf-8", "surrogateescape")


class LinearWeights(nn.Module):
    """scale and weight of every bucket, and the bias; with any number of labels per text, the thresholds."""

    def __init__(self, buckets, classes, thresholds):
        super().__init__()
        self.scale, self.weight, self.bias = (
            nn.Parameter(torch.zeros(*shape)) for shape in ((buckets,), (buckets, classes), (classes,)))
        if thresholds:
            self.threshold = nn.Parameter(torch.zeros(classes))


class CapstanLinearForSequenceClassification(StoredTables, PreTrainedModel):
    """y = b + sum over blocks of x W,   x_f = (1 + ln count of f) scale_f, divided by |x| of the block.

    A text has two blocks: its n-grams of words, and those of the characters within words. input_ids are its bytes.
    """

    config_class = CapstanConfig
    base_model_prefix = ""

    def __init__(self, config, as_stored=False):
        super().__init__(config)
        thresholds = config.problem_type == "multi_label_classification"
        self.linear = LinearWeights(max(16, config.model["buckets"]), config.num_labels, thresholds)
        if as_stored:
            self.shrink_tables()
        self.post_init()

    def text_logits(self, text):
        weights = self.linear
        total = weights.bias.double()
        for block in text_ngrams(text, self.config.model, len(weights.scale).bit_length() - 1):
            buckets = torch.tensor(list(block), dtype=torch.long, device=total.device)
            counts = torch.tensor(list(block.values()), dtype=torch.float64, device=total.device).clamp(max=255)
            x = (1 + counts.log()).float().double() * weights.scale[buckets].double()
            norm = x.norm()
            total = total + (x / norm) @ weights.weight[buckets].double() if norm > 0 else total
        return total.float()

    def forward(self, input_ids=None, attention_mask=None, labels=None, **kwargs):
        mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        texts = [text_of(ids[kept].tolist()) for ids, kept in zip(input_ids, mask != 0)]
        logits = torch.stack([self.text_logits(text) for text in texts])
        loss = None
        if labels is not None and self.config.problem_type == "multi_label_classification":
            loss = F.binary_cross_entropy_with_logits(logits, labels.to(logits.dtype), reduction="none").sum(-1).mean()
        elif labels is not None:
            loss = F.cross_entropy(logits, labels)
        return SequenceClassifierOutput(loss=loss, logits=logits)
