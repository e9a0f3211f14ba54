"""Python's safetensors loads a checkpoint: the names and shapes of docs/experiments.md, and the numbers of the file.

    python tests/interop/safetensors_checkpoint.py

Needs the Python packages safetensors and numpy and a built program; says so and skips otherwise.
"""

import struct
import sys

from sample_run import SampleRun, last_checkpoint, require

WIDTH, RANK, HIDDEN, LENGTH = 16, 4, 32, 32


def expected(vocabulary):
    """The parameters of sample_run.CONFIG; matrices are (out, in)."""
    shapes = {
        "embed.weight": (vocabulary, WIDTH),
        "positions.weight": (LENGTH, WIDTH),
        "final_norm.gain": (WIDTH,),
        "final_norm.bias": (WIDTH,),
        "blocks.0.mixer.position_u": (LENGTH, RANK),
        "blocks.0.mixer.position_v": (LENGTH, RANK),
    }
    for block, up in (("blocks.0.", HIDDEN), ("blocks.1.", 2 * HIDDEN)):  # gelu, swiglu
        for norm in ("mixer_norm", "feed_forward_norm"):
            shapes[block + norm + ".gain"] = shapes[block + norm + ".bias"] = (WIDTH,)
        shapes[block + "mixer.to_qkv.weight"] = (3 * WIDTH, WIDTH)
        shapes[block + "mixer.to_out.weight"] = (WIDTH, WIDTH)
        shapes[block + "feed_forward.up.weight"] = (up, WIDTH)
        shapes[block + "feed_forward.up.bias"] = (up,)
        shapes[block + "feed_forward.down.weight"] = (WIDTH, HIDDEN)
        shapes[block + "feed_forward.down.bias"] = (WIDTH,)
    return shapes


def first_number(file, name):
    """Read without the package: 8 bytes of length, a JSON header with offsets, data."""
    import json

    data = file.read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    begin, _ = json.loads(data[8 : 8 + size])[name]["data_offsets"]
    return struct.unpack("<f", data[8 + size + begin : 8 + size + begin + 4])[0]


def main():
    load_file = require("safetensors.numpy").load_file
    run = SampleRun()
    run.train("train.steps=2", "train.keep_optimizer=true")
    file = last_checkpoint(run.folder) / "model.safetensors"
    tensors = load_file(str(file))
    shapes = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
    wanted = expected(shapes["embed.weight"][0])
    assert shapes == wanted, f"differ: {sorted(set(shapes.items()) ^ set(wanted.items()))}"
    for name, tensor in tensors.items():
        assert str(tensor.dtype) == "float32", f"{name}: {tensor.dtype}"
        assert float(tensor.flat[0]) == first_number(file, name), name
    optimizer = load_file(str(file.parent / "optimizer.safetensors"))
    print(f"safetensors loads {len(tensors)} tensors of the model under their names, {len(optimizer)} of the optimizer")


if __name__ == "__main__":
    sys.exit(main())
