"""TensorBoard's own reader loads the event files of a run that was broken off, and finds what metrics.jsonl says.

    python tests/interop/tensorboard_events.py

Needs the Python package tensorboard and a built program; says so and skips otherwise.
"""

import shutil
import struct
import sys

from sample_run import SampleRun, require

TAGS = {
    "train/loss": ("train", "loss"),
    "train/learning_rate": ("train", "lr"),
    "train/gradient_norm": ("train", "grad_norm"),
    "train/tokens_per_second": ("train", "tokens_per_second"),
    "valid/loss": ("valid", "loss"),
    "valid/bits": ("valid", "bits"),
    "valid/accuracy": ("valid", "accuracy"),
}


def as_float32(number):
    return struct.unpack("f", struct.pack("f", number))[0]


def check(run, accumulator_class):
    accumulator = accumulator_class(str(run.folder), size_guidance={"scalars": 0})
    accumulator.Reload()
    tags = set(accumulator.Tags()["scalars"])
    assert tags == set(TAGS), f"tags differ: {tags ^ set(TAGS)}"
    compared = 0
    for tag, (event, key) in TAGS.items():
        told = [(line["step"], as_float32(line[key])) for line in run.metrics() if line["event"] == event]
        read = [(scalar.step, scalar.value) for scalar in accumulator.Scalars(tag)]
        assert read == told, f"{tag}: {read} where metrics.jsonl has {told}"
        times = [scalar.wall_time for scalar in accumulator.Scalars(tag)]
        assert times == sorted(times) and times[0] > 1.6e9, f"{tag}: wall times {times}"
        compared += len(read)
    return compared


def main():
    reader = require("tensorboard.backend.event_processing.event_accumulator").EventAccumulator
    run = SampleRun()
    run.train()
    first = check(run, reader)
    # What a kill leaves behind: lines later than the checkpoint that the next session begins with, and half a record.
    shutil.rmtree(run.folder / "checkpoints" / "step-6")
    (run.folder / "checkpoints" / "last").unlink()
    (run.folder / "checkpoints" / "last").symlink_to("step-4")
    (run.folder / "checkpoints" / "best").unlink()
    for file in run.folder.glob("*tfevents*"):
        with file.open("ab") as out:
            out.write(b"\x1a\x00\x00")
    run.train("train.steps=9")
    second = check(run, reader)
    files = len(list(run.folder.glob("*tfevents*")))
    assert files == 2, f"{files} event files after one resumption"
    print(f"TensorBoard reads what metrics.jsonl says: {first} numbers of a run, {second} after it went on, {files} files")


if __name__ == "__main__":
    sys.exit(main())
