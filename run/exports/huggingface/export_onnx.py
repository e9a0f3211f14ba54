"""ONNX files of a model that `capstan export --format onnx` has written:

    python export_onnx.py [FOLDER]

    model.onnx   input_ids, attention_mask (B, T) -> logits: whole texts, any number of them and of any length, with padding on
                 the left or on the right, not between tokens. A model with `prefix: bidirectional` also reads prefix_lengths
                 (B), the tokens of each prompt; it has no step.onnx, since steps do not see what follows
    step.onnx    of language models: input_ids (B, 1) and a state -> logits of the next token and the state after it
    state.npz    the state before the first token, of one text; for B texts, repeat its rows

The state is the inputs `lengths` and `past.<layer>.<name>`; the outputs `lengths_out` and `present.<layer>.<name>` are those of
the next step. Needs the packages torch, transformers, onnx and onnxscript.
"""

import pathlib
import sys

import numpy as np
import torch
import transformers
from torch import nn


class Whole(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, attention_mask, prefix_lengths=None):
        prefix = {} if prefix_lengths is None else {"prefix_lengths": prefix_lengths}
        return self.model(input_ids=input_ids, attention_mask=attention_mask, use_cache=False, **prefix).logits


class Step(nn.Module):
    """The tensors of a state are given and returned one by one, in the order of `names`."""

    def __init__(self, model, names):
        super().__init__()
        self.model, self.names = model, names
        self.state_class = type(empty_state(model))

    def forward(self, input_ids, tensors):
        state = self.state_class()
        state.columns, state.layers = 1, [{} for _ in range(len(self.model.blocks))]
        for (layer, name), tensor in zip(self.names, tensors):
            if layer is None:
                setattr(state, name, tensor)
            else:
                state.layers[layer][name] = tensor
        logits = self.model(input_ids=input_ids, past_key_values=state).logits
        return logits, [tensor for _, tensor in tensors_of(state)]


def tensors_of(state):
    """((layer, name), tensor) of a state; lengths and recent tokens belong to no layer."""
    found = [((None, name), getattr(state, name)) for name in ("lengths", "recent") if getattr(state, name) is not None]
    return found + [((layer, name), tensor) for layer, tensors in enumerate(state.layers)
                    for name, tensor in sorted(tensors.items())]


def empty_state(model, batch=1):
    """A state that has read padding only."""
    nothing = torch.zeros(batch, 1, dtype=torch.long)
    with torch.no_grad():
        output = model(input_ids=nothing, attention_mask=nothing, use_cache=True)
    return output.cache or output.past_key_values  # transformers 5.24 and later, and earlier ones


def reads_prefix(model):
    return model.config.model.get("prefix") == "bidirectional"


def example_length(model):
    """(an example, the longest text). The example has more than one tile and chunk: sizes of 1 would be taken for constants."""
    config = model.config
    layers = [layer["mixer"] for layer in config.model["layers"]]
    wanted = max([134] + [2 * mixer.get("chunk", 0) + 7 for mixer in layers])
    longest = config.longest if model.has_position_limit() else 1 << 16
    return min(wanted, longest), longest


def export_whole(model, file):
    length, longest = example_length(model)
    batch, axis = torch.export.Dim("batch"), torch.export.Dim("length", min=2, max=longest)
    axes = {0: batch, 1: axis}
    ids = torch.zeros(2, length, dtype=torch.long)
    given, shapes = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}, {"input_ids": axes, "attention_mask": axes}
    if reads_prefix(model):
        given["prefix_lengths"], shapes["prefix_lengths"] = torch.full((2,), length // 2), {0: batch}
    program = torch.onnx.export(Whole(model).eval(), kwargs=given, dynamo=True, verbose=False, input_names=list(given),
                                output_names=["logits"], dynamic_shapes=shapes)
    program.save(str(file))


def export_step(model, folder):
    named = tensors_of(empty_state(model))
    start = {input_name(name): tensor.numpy() for name, tensor in named}
    np.savez(folder / "state.npz", **start)
    state = empty_state(model, batch=2)
    before = [tensor.shape for _, tensor in tensors_of(state)]
    for _ in range(3):
        with torch.no_grad():
            model(input_ids=torch.zeros(2, 1, dtype=torch.long), past_key_values=state)
    names, tensors = zip(*tensors_of(state))
    batch, tokens = torch.export.Dim("batch"), torch.export.Dim("tokens", min=2, max=1 << 16)
    grown = [any(a != b for a, b in zip(old, tensor.shape)) for old, tensor in zip(before, tensors)]
    axes = [{0: batch, 1: tokens} if grows else {0: batch} for grows in grown]
    program = torch.onnx.export(
        Step(model, names).eval(), (torch.zeros(2, 1, dtype=torch.long), list(tensors)), dynamo=True, verbose=False,
        input_names=["input_ids"] + [input_name(name) for name in names],
        output_names=["logits"] + [input_name(name).replace("past.", "present.") + "_out" * (name[0] is None)
                                   for name in names],
        dynamic_shapes={"input_ids": {0: batch}, "tensors": axes})
    program.save(str(folder / "step.onnx"))


def input_name(name):
    layer, part = name
    return part if layer is None else f"past.{layer}.{part}"


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent)
    config = transformers.AutoConfig.from_pretrained(folder, trust_remote_code=True)
    opened_by = next(name for name in config.auto_map if name.startswith("AutoModelFor"))
    if config.model["type"] == "linear-classifier":
        sys.exit("a linear classifier reads texts, which ONNX does not have")
    model = getattr(transformers, opened_by).from_pretrained(folder, trust_remote_code=True).eval()
    export_whole(model, folder / "model.onnx")
    if opened_by == "AutoModelForCausalLM" and not reads_prefix(model):
        export_step(model, folder)


if __name__ == "__main__":
    main()
