"""A residual block: a mixer, which may follow a short convolution, and a feed-forward network."""

from torch import nn
from transformers.modeling_layers import GradientCheckpointingLayer

from .capstan_layers import FeedForward, Norm, ShortConv, parameter


class Block(GradientCheckpointingLayer):
    """pre: x + drop(mixer(norm(x))), then x + drop(feed_forward(norm(x))); post: norm(x + drop(f(x)))."""

    def __init__(self, config, model, mixer):
        super().__init__()
        width = model["width"]
        self.post = config["norm_placement"] == "post"
        self.mixer_norm = Norm(config["norm"], width)
        self.mixer = mixer
        if config["short_conv"]:
            self.short_conv = ShortConv(width, config["short_conv"])
        if config["feed_forward"]["type"] != "none":
            self.feed_forward_norm = Norm(config["norm"], width)
            self.feed_forward = FeedForward(config["feed_forward"], width)
        self.dropout = nn.Dropout(model["dropout"])
        if model["ngram_embedding"]["orders"] and model["ngram_embedding"].get("every_block"):
            self.ngram_gain = parameter(width)

    def enter(self, x, ngrams):
        return x + self.ngram_gain * ngrams if hasattr(self, "ngram_gain") else x

    def residual(self, x, norm, branch):
        return norm(x + self.dropout(branch(x))) if self.post else x + self.dropout(branch(norm(x)))

    def finish(self, x):
        return self.residual(x, self.feed_forward_norm, self.feed_forward) if hasattr(self, "feed_forward") else x

    def forward(self, x, texts, causal, prompts=None, keeps=False):
        state = {}

        def mix(h):
            if hasattr(self, "short_conv"):
                state.update(self.short_conv.state(h, texts) if keeps else {})
                h = self.short_conv(h)
            y, of_mixer = self.mixer(h, texts, causal, prompts, keeps)
            state.update(of_mixer)
            return y
        return self.finish(self.residual(x, self.mixer_norm, mix)), state

    def one(self, x, state, position):
        def mix(h):
            h = self.short_conv.step(h, state) if hasattr(self, "short_conv") else h
            return self.mixer.one(h, state, position)
        return self.finish(self.residual(x, self.mixer_norm, mix))
