"""Texts of different lengths in one batch, with padding.

Every text is first moved to the left of its row (`aligned`): position t of a row is token t of the text, and padding comes
last, where causal layers do not see it."""

from dataclasses import dataclass

import torch
from torch.nn import functional as F


@dataclass
class Texts:
    """Where the texts of a batch are: text b is tokens 0 to lengths[b] - 1 of row b."""

    lengths: torch.Tensor  # (B)
    valid: torch.Tensor  # (B, T): not padding

    @property
    def positions(self):
        return torch.arange(self.valid.shape[1], device=self.valid.device)

    def keep(self, lengths):  # the beginnings of the texts, as texts
        return Texts(lengths, self.positions < lengths[:, None])


def aligned(x, mask=None):
    """(Texts, gather, back) for texts with padding on one side or both: x[b, gather[b]] has the text of row b first,
    and y[b, back[b]] is in the places of x, each (B, T). x: the input (B, T, ...). mask: (B, T), 0 for padding."""
    mask = torch.ones(x.shape[:2], dtype=torch.bool, device=x.device) if mask is None else mask != 0
    if mask.shape != x.shape[:2] or mask.numel() == 0:
        raise ValueError(f"the input is {tuple(x.shape[:2])}, attention_mask {tuple(mask.shape)}: give equal shapes, not empty")
    if not torch.compiler.is_exporting() and bool(((mask & ~later(mask, 1, False)).sum(dim=1) > 1).any()):
        raise ValueError("attention_mask has a 0 between two 1s: remove the tokens instead, so that a text is one piece")
    length, first = mask.shape[1], mask.int().argmax(dim=1)[:, None]
    places = torch.arange(length, device=mask.device)
    gather, back = places + first, places - first
    texts = Texts(mask.sum(dim=1), places < mask.sum(dim=1)[:, None])
    return texts, torch.where(gather < length, gather, gather - length), torch.where(back < 0, back + length, back)


def rows_at(x, index, fill=0.0):
    """x (B, T, ...) at index (B, J), of which places outside of [0, T) give `fill`: (B, J, ...)."""
    inside = (index >= 0) & (index < x.shape[1])
    rows = x[torch.arange(x.shape[0], device=x.device)[:, None], index.clamp(0, x.shape[1] - 1)]
    return torch.where(inside.view(*inside.shape, *[1] * (x.dim() - 2)), rows, fill)


def later(x, steps, fill=0.0):
    """x (B, T, ...) moved `steps` tokens towards the end, with `fill` before it."""
    return F.pad(x, (0, 0) * (x.dim() - 2) + (steps, 0), value=fill)[:, :x.shape[1]]
