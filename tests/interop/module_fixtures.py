"""The mixers of exported models give the outputs and gradients of the equations: the fixtures of tests/parity, in double.

    python tests/interop/module_fixtures.py

Every document of a fixture is a text of its own, since the module has no packed rows. The gradient of to_out.bias is left out: in
the fixtures it also has that of padding. Needs the Python packages torch, transformers and safetensors; says so and skips otherwise.
"""

import importlib
import pathlib
import sys

from exported_run import worst
from sample_run import require

ROOT = pathlib.Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "tests" / "parity" / "fixtures"
MOST = 1e-12


def value(text):
    try:
        return {"true": True, "false": False}[text] if text in ("true", "false") else int(text)
    except ValueError:
        try:
            return float(text)
        except ValueError:
            return text


ROTARY = {"rotary": False, "rotary_base": 10000, "rotary_pairs": "halves"}
DEFAULTS = {"aft": {"inner": 0, "output_projection": True, "position_stddev": 0.0},
            "fastformer": {"logits": "all-features", "value": "shared", "output_projection": True},
            "attention": ROTARY | {"output_projection": True}, "gau": ROTARY, "flash": ROTARY}


def mixer_config(metadata, config):
    """The section `mixer` of a model from a fixture's metadata."""
    options = (option.split("=") for option in metadata[f"{config}.options"].split())
    mixer = metadata[f"{config}.mixer"]
    return DEFAULTS[mixer.split("-")[0]] | {"type": mixer} | {key: value(text) for key, text in options}


def documents(segment_ids):
    """(row, begin, end) of each."""
    for row, ids in enumerate(segment_ids.tolist()):
        begin = 0
        for t in range(1, len(ids) + 1):
            if t == len(ids) or ids[t] != ids[begin]:
                if ids[begin] != 0:
                    yield row, begin, t
                begin = t


def set_rotary_base(mixer, base):
    """The base of the fixtures' angles, which is a constant of models."""
    for owner in list(mixer.modules()):
        for part in (owner, *vars(owner).values()):
            if hasattr(part, "base"):
                part.base = base


def check(module, config, width, longest, causal, tensors, parameters, case, segment_ids):
    """The largest difference of y, dx and the gradients of the parameters."""
    mixer = module.MIXERS[config["type"]](config, width, longest, causal).double()
    set_rotary_base(mixer, config.get("rotary_base"))
    mixer.load_state_dict(parameters)
    found = 0.0
    for row, begin, end in documents(segment_ids):
        x = tensors["x"][row : row + 1, begin:end].clone().requires_grad_()
        texts, _, _ = module.aligned(x)
        y, _ = mixer(x, texts, causal)
        y.backward(tensors["dy"][row : row + 1, begin:end])
        for one, name in ((y[0].detach(), "y"), (x.grad[0], "dx")):
            wanted = tensors[f"{case}.{name}"]
            found = max(found, worst(one, wanted[row, begin:end], of=wanted))
    for name, parameter in mixer.named_parameters():
        wanted = tensors.get(f"{case}.gradient.{name}")
        if wanted is not None and name != "to_out.bias" and wanted.abs().max() > 1e-9:
            found = max(found, worst(parameter.grad, wanted))
    return found


def main():
    safe_open, load = require("safetensors").safe_open, require("safetensors.torch").load_file
    require("transformers")
    sys.path.insert(0, str(ROOT / "run" / "exports"))
    module = importlib.import_module("huggingface.modeling_capstan")
    failed, count = 0, 0
    for system in DEFAULTS:
        file, worst_case = str(FIXTURES / f"{system}.safetensors"), 0.0
        tensors = load(file)
        with safe_open(file, "pt") as opened:
            metadata = opened.metadata()
        for config in metadata["configs"].split():
            if "layer." in metadata[f"{config}.options"]:
                continue  # a whole block
            own = {key: one for key, one in tensors.items() if key in ("x", "dy", "segment_ids")}
            own |= {key[len(config) + 1:]: one for key, one in tensors.items() if key.startswith(config + ".")}
            parameters = {key[len("parameter."):]: one for key, one in own.items() if key.startswith("parameter.")}
            width, longest = (int(metadata[f"{config}.{key}"]) for key in ("width", "max_length"))
            for case in metadata[f"{config}.cases"].split():
                found = check(module, mixer_config(metadata, config), width, longest, case == "causal", own, parameters, case,
                              own["segment_ids"])
                worst_case, count = max(worst_case, found), count + 1
                failed += found > MOST
                if found > MOST:
                    print(f"{system} {config} {case}: {found:.1e} WRONG")
        print(f"{system:12} {worst_case:.1e}")
    print(f"{count} cases, {failed} wrong")
    return failed > 0 or count == 0


if __name__ == "__main__":
    sys.exit(main())
