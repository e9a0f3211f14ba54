"""Token by token, with constant-size states: the algorithms of Capstan's decode states, as tensor operations on (B, ...)."""

import torch
from torch.nn import functional as F

from layers import rotate

# A state is a dictionary of tensors that a step updates in place. Places are taken by narrow() rather than by an index, which
# torch.compile would compile anew for every place.


class AftSimpleDecoder:
    """State (m, D, R): running maximum of the keys, sum of e^(K - m), weighted average of the values."""

    def __init__(self, mixer):
        self.mixer = mixer

    def start(self, batch):
        shape = (batch, self.mixer.width)
        return {"maximum": torch.full(shape, -torch.inf), "weight": torch.zeros(shape), "average": torch.zeros(shape)}

    def step(self, x, position, state):
        q, k, v = self.mixer.to_qkv(x).chunk(3, dim=-1)
        maximum = torch.maximum(state["maximum"], k)
        e = (k - maximum).exp()
        weight = (state["maximum"] - maximum).exp() * state["weight"] + e
        average = torch.lerp(state["average"], v, e / weight)
        state.update(maximum=maximum, weight=weight, average=average)
        return self.mixer.to_out(torch.sigmoid(q) * average)


class FlashDecoder:
    """State: sum of K_lin^T V over the chunks that are complete, and keys and values of the chunk that is not."""

    def __init__(self, mixer):
        self.mixer = mixer
        chunk = mixer.chunk
        # Biases of a query on the keys 0, 1, ... of its chunk are a row of this.
        self.bias = mixer.relative_bias(mixer.cos[:chunk], mixer.sin[:chunk]).detach()

    def start(self, batch):
        mixer = self.mixer
        keys, values = (batch, mixer.chunk, mixer.key_dim), (batch, mixer.chunk, mixer.inner)
        return {"earlier": torch.zeros(batch, mixer.key_dim, mixer.inner), "quad_keys": torch.zeros(keys),
                "lin_keys": torch.zeros(keys), "values": torch.zeros(values)}

    def step(self, x, position, state):
        mixer, place = self.mixer, position % self.mixer.chunk
        u, v, z = F.silu(mixer.to_uvz(x)).split([mixer.inner, mixer.inner, mixer.key_dim], dim=-1)
        views = rotate(z[:, None] * mixer.gain + mixer.offset, mixer.cos[position], mixer.sin[position])
        quad_q, quad_k, lin_q, lin_k = views.unbind(dim=1)
        if place == 0 and position > 0:
            state["earlier"] += state["lin_keys"].transpose(1, 2) @ state["values"]
        for name, row in (("quad_keys", quad_k), ("lin_keys", lin_k), ("values", v)):
            state[name].narrow(1, place, 1).copy_(row[:, None])
        logits = (state["quad_keys"][:, :place + 1] @ quad_q[..., None])[..., 0] * mixer.key_dim**-0.5
        bias = self.bias.narrow(0, place, 1).narrow(1, 0, place + 1)
        weights = F.relu(logits + bias).square() / (place + 1)
        mixed = (weights[:, None] @ state["values"][:, :place + 1])[:, 0]
        if position >= mixer.chunk:
            mixed = mixed + (lin_q[:, None] @ state["earlier"])[:, 0] / (position - place)
        return mixer.to_out(u * mixed)


DECODERS = {"aft-simple": AftSimpleDecoder, "flash": FlashDecoder}


def copied(states):
    return [{name: tensor.clone() for name, tensor in state.items()} for state in states]


class Decoder:
    """The whole model; a state is a list with one dictionary per block."""

    def __init__(self, model, system, compiled):
        self.model = model
        self.mixers = [DECODERS[system](block.mixer) for block in model.blocks]
        self.step = compiled(self.step)

    def start(self, batch):
        return [mixer.start(batch) for mixer in self.mixers]

    def step(self, tokens, position, states):
        """tokens: (B) -> logits of their successors, (B, V)."""
        model = self.model
        x = model.embed(tokens) + model.positions.weight[position]
        for block, mixer, state in zip(model.blocks, self.mixers, states):
            x = x + mixer.step(block.mixer_norm(x), position, state)
            if hasattr(block, "feed_forward"):
                x = x + block.feed_forward(block.feed_forward_norm(x))
        return F.linear(model.final_norm(x), model.embed.weight)
