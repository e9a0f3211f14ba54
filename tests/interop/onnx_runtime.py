"""ONNX Runtime computes what transformers does, at other lengths and numbers of texts than those exported; language models also
token by token.

    python tests/interop/onnx_runtime.py [SYSTEM,... [TASK,...]]

Needs the Python packages torch, transformers, onnx, onnxscript and onnxruntime and a built program; says so and skips otherwise.
"""

import os
import runpy
import sys

os.environ["HF_HUB_OFFLINE"] = "1"

from exported_run import SYSTEMS, TASKS, Place
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
    given = {"input_ids": ids, "attention_mask": mask}
    if net.config.model.get("prefix") == "bidirectional":
        given["prefix_lengths"] = mask.sum(dim=1) // 2
    with torch.no_grad():
        wanted = net(**given, use_cache=False).logits.numpy()
    session = runtime.InferenceSession(str(folder / "model.onnx"))
    found = session.run(None, {name: tensor.numpy() for name, tensor in given.items()})[0]
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
        for task in sys.argv[2].split(",") if len(sys.argv) > 2 else TASKS:
            name = f"{system}-{task}"
            run = place.random_run(name, system, task, 0)
            folder = place.export(run, f"export-{name}", "onnx")
            export_onnx(folder)
            net = opened(folder, task)
            found = 0.0
            for lengths in ((1, 1), (2, 1, 2), (3, 4), (8,), (31, 17, 4), (48, 20)):  # shorter and longer than chunks and windows
                ids, mask = padded([torch.randint(0, 256, (length,)) for length in lengths], min(48, max(lengths) + 5), left=True)
                found = max(found, check_whole(runtime, folder, net, ids * mask, mask))
                ids, mask = padded([torch.randint(0, 256, (length,)) for length in lengths], max(lengths), left=False)
                found = max(found, check_whole(runtime, folder, net, ids * mask, mask))
            if (folder / "step.onnx").exists():
                found = max(found, check_steps(runtime, folder, net, torch.randint(0, 256, (2, 20))))
            failed += found > MOST
            print(f"{name:34} {found:.1e}{'' if found <= MOST else ' WRONG'}", flush=True)
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
