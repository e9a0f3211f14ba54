"""ONNX Runtime computes what transformers does, at other lengths and numbers of texts than those exported; language models also
token by token.

    python tests/interop/onnx_runtime.py [SYSTEM,...]

Needs the Python packages torch, transformers, onnx, onnxscript and onnxruntime and a built program; says so and skips otherwise.
"""

import os
import runpy
import sys

os.environ["HF_HUB_OFFLINE"] = "1"

from exported_run import SYSTEMS, Place
from sample_run import require
from transformers_models import opened, padded

MOST = 1e-4


def export_onnx(folder):
    """Runs the program that is in the folder, in this process, which has torch already."""
    arguments, sys.argv = sys.argv, [str(folder / "export_onnx.py")]
    try:
        runpy.run_path(sys.argv[0], run_name="__main__")
    finally:
        sys.argv = arguments


def check_whole(runtime, folder, net, ids, mask):
    torch, numpy = require("torch"), require("numpy")
    with torch.no_grad():
        wanted = net(input_ids=ids, attention_mask=mask, use_cache=False).logits.numpy()
    session = runtime.InferenceSession(str(folder / "model.onnx"))
    found = session.run(None, {"input_ids": ids.numpy(), "attention_mask": mask.numpy()})[0]
    rows = mask.numpy() == 1 if found.ndim == 3 else slice(None)
    return float(numpy.abs(found - wanted)[rows].max() / numpy.abs(wanted).max())


def check_steps(runtime, folder, net, ids):
    torch, numpy = require("torch"), require("numpy")
    with torch.no_grad():
        wanted = net(input_ids=ids, use_cache=False).logits.numpy()
    session = runtime.InferenceSession(str(folder / "step.onnx"))
    state = {name: numpy.repeat(rows, len(ids), 0) for name, rows in numpy.load(folder / "state.npz").items()}
    worst = 0.0
    for t in range(ids.shape[1]):
        logits, *after = session.run(None, {"input_ids": ids[:, t : t + 1].numpy(), **state})
        worst = max(worst, float(numpy.abs(logits[:, 0] - wanted[:, t]).max() / numpy.abs(wanted).max()))
        state = {given.name: tensor for given, tensor in zip(session.get_inputs()[1:], after)}
    return worst


def main():
    torch, runtime = require("torch"), require("onnxruntime")
    require("onnxscript")
    require("transformers").logging.set_verbosity_error()
    torch.set_num_threads(1)
    place, failed = Place(), 0
    for system in sys.argv[1].split(",") if len(sys.argv) > 1 else SYSTEMS:
        for task in ("language-model", "masked-language-model", "text-classifier"):
            name = f"{system}-{task}"
            run = place.random_run(name, system, task, 0)
            folder = place.export(run, f"export-{name}", "onnx")
            export_onnx(folder)
            net = opened(folder, task)
            ids, mask = padded([torch.randint(0, 256, (length,)) for length in (31, 17, 4)], 36, left=True)
            found = check_whole(runtime, folder, net, ids * mask, mask)
            if task == "language-model":
                found = max(found, check_steps(runtime, folder, net, ids[:, -4:].repeat(1, 5)))
            failed += found > MOST
            print(f"{name:34} {found:.1e}{'' if found <= MOST else ' WRONG'}", flush=True)
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
