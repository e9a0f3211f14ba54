"""The language model around the mixers, parameter for parameter Capstan's LanguageModel: learned positions, pre-norm blocks,
tied output."""

import torch
from torch import nn
from torch.nn import functional as F

from aft import AftConv, AftFull, AftLocal, AftSimple
from attention import Attention
from fastformer import Fastformer
from gated import Flash, Gau
from layers import FeedForward, Norm

VOCABULARY = 256
MIXERS = {"aft-simple": AftSimple, "aft-local": AftLocal, "aft-conv": AftConv, "aft-full": AftFull,
          "fastformer": Fastformer, "gau": Gau, "flash": Flash, "attention": Attention}
GATED_UNITS = ("gau", "flash")  # two of them, without feed-forward network, are a Transformer layer


class Block(nn.Module):
    def __init__(self, system, width, max_length):
        super().__init__()
        self.mixer_norm = Norm(width)
        self.mixer = MIXERS[system](width, max_length)
        if system not in GATED_UNITS:
            self.feed_forward_norm = Norm(width)
            self.feed_forward = FeedForward(width)

    def forward(self, x):
        x = x + self.mixer(self.mixer_norm(x))
        return x + self.feed_forward(self.feed_forward_norm(x)) if hasattr(self, "feed_forward") else x


class LanguageModel(nn.Module):
    def __init__(self, system, width, layers, max_length):
        super().__init__()
        count = 2 * layers if system in GATED_UNITS else layers
        self.embed = nn.Embedding(VOCABULARY, width)
        self.positions = nn.Embedding(max_length, width)
        self.blocks = nn.ModuleList(Block(system, width, max_length) for _ in range(count))
        self.final_norm = Norm(width)

    def run_blocks(self, x):
        for block in self.blocks:
            x = block(x)
        return x

    def forward(self, tokens, labels):
        """Mean loss in nats per token."""
        x = self.embed(tokens) + self.positions.weight[:tokens.shape[1]]
        logits = F.linear(self.final_norm(self.run_blocks(x)), self.embed.weight)
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten())


@torch.no_grad()
def randomise(model, seed):
    """Weights that hide no error: no parameter is 0 or 1 throughout, every matrix keeps the size of what it is applied to."""
    random = torch.Generator().manual_seed(seed)
    for name, parameter in model.named_parameters():
        noise = torch.randn(parameter.shape, generator=random)
        if name.endswith(".gain"):
            parameter.copy_(1 + 0.1 * noise)
        elif name.startswith("blocks.") and name.endswith(".weight"):
            parameter.copy_(noise / parameter.shape[1] ** 0.5)
        elif name.endswith(".kernel"):
            parameter.copy_(noise)
        else:
            parameter.copy_(0.1 * noise)


def decayed(name, parameter):
    """Does weight decay apply? To matrices, not to biases, gains and what belongs to positions."""
    return name.endswith(".weight") and parameter.dim() == 2 and not name.startswith("positions.")
