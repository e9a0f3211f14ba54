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


def rotary(given):
    return {"rotary": given["rotary_dims"] > 0, "rotary_base": given["rotary_base"], "attention_dropout": 0.0,
            "compat": {"rotary_dims": given["rotary_dims"], "key_bias": given.get("key_bias", False),
                       "rotary_pairs": "interleaved" if given["interleaved"] else "halves"}}


def gated(system, given):
    config = {"type": system, "kernel": given["kernel"], "logits": given["logits"].replace("whole-", ""),
              "normaliser": given["normaliser"], "position_bias": given["position_bias"], "bias": given["bias"],
              "key_dim": given["key_dim"], "expansion": given["expansion"]} | rotary(given)
    config["compat"] |= {"whole_length": given["logits"] == "whole-length", "t5_scale": given["t5_scale"]}
    if system == "gau":
        config["compat"]["paper_length"] = given["paper_length"]
        return config
    return config | {"chunk": given["chunk"], "local": given["local_part"], "global": given["global_part"]}


def mixer_config(name, given):
    """The section `mixer` of a model from a fixture's metadata."""
    if name in ("gau", "flash"):
        return gated(name, given)
    if name == "attention":
        return {"type": name, "heads": given["heads"], "bias": given["bias"],
                "output_projection": given["output_projection"]} | rotary(given)
    if name.startswith("fastformer"):
        return {"type": "fastformer", "heads": given["heads"], "bias": given["bias"],
                "logits": "per-head" if given["per_head"] else "all-features", "value": "own" if given["own_values"] else "shared",
                "output_projection": given["output_projection"], "compat": {"logit_bias": given["logit_bias"]}}
    return {"type": f"aft-{given['variant']}", "inner": 0, "window": given["window"], "heads": given["heads"], "rank": given["rank"],
            "position_bias": "dense" if given["dense"] else "factorised", "position_stddev": 0.0, "bias": True,
            "output_projection": given["output_projection"], "compat": {"kernel_eps": given["kernel_eps"]}}


def documents(segment_ids):
    """(row, begin, end) of each."""
    for row, ids in enumerate(segment_ids.tolist()):
        begin = 0
        for t in range(1, len(ids) + 1):
            if t == len(ids) or ids[t] != ids[begin]:
                if ids[begin] != 0:
                    yield row, begin, t
                begin = t


def check(module, config, width, longest, causal, tensors, parameters, case, segment_ids):
    """The largest difference of y, dx and the gradients of the parameters."""
    mixer = module.MIXERS[config["type"]](config, width, longest, causal).double()
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


def cases(name, metadata, tensors):
    """(case, its metadata, the prefix of its parameters, the name of its segment ids)"""
    given = {key: value(text) for key, text in metadata.items()}
    if "configs" in metadata:
        for config in metadata["configs"].split():
            own = given | {key.split(".", 1)[1]: one for key, one in given.items() if key.startswith(config + ".")}
            for direction in ("causal", "bidirectional"):
                yield f"{config}.{direction}", own, f"{config}.parameter.", "segment_ids"
    else:
        for case in metadata["cases"].split():
            yield case, given, "parameter.", "segment_ids." + case.split(".")[1]


def main():
    safe_open, load = require("safetensors").safe_open, require("safetensors.torch").load_file
    require("transformers")
    sys.path.insert(0, str(ROOT / "run" / "exports"))
    module = importlib.import_module("huggingface.modeling_capstan")
    files = [file for pattern in ("aft_[!i]*", "fastformer_*", "attention", "gau", "flash")
             for file in sorted(FIXTURES.glob(pattern + ".safetensors"))]
    failed, count = 0, 0
    for file in files:
        tensors, worst_case = load(str(file)), 0.0
        if file.stem.startswith("aft_"):
            tensors |= load(str(FIXTURES / "aft_inputs.safetensors"))
        with safe_open(str(file), "pt") as opened:
            metadata = opened.metadata()
        for case, given, prefix, segments in cases(file.stem, metadata, tensors):
            parameters = {key[len(prefix) :]: one for key, one in tensors.items() if key.startswith(prefix)}
            found = check(module, mixer_config(file.stem, given), given["width"], given.get("max_length", 0), "causal" in case,
                          tensors, parameters, case, tensors[segments])
            worst_case, count = max(worst_case, found), count + 1
            failed += found > MOST
            if found > MOST:
                print(f"{file.stem} {case}: {found:.1e} WRONG")
        print(f"{file.stem:26} {worst_case:.1e}")
    print(f"{count} cases, {failed} wrong")
    return failed > 0 or count == 0


if __name__ == "__main__":
    sys.exit(main())
