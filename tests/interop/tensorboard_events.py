"""TensorBoard's own reader finds what metrics.jsonl says in the event files that scripts/tensorboard.py writes.

    python tests/interop/tensorboard_events.py

Needs the Python packages tensorboard and tensorboardX and a built program; says so and skips otherwise.
"""

import pathlib
import struct
import subprocess
import sys

from sample_run import SampleRun, require

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "tensorboard.py"
TAGS = ["train/loss", "train/lr", "train/grad_norm", "train/tokens_per_second", "valid/loss", "valid/bits", "valid/accuracy"]


def as_float32(number):
    return struct.unpack("f", struct.pack("f", number))[0]


def check(run, accumulator_class):
    events = run.place / "events"
    subprocess.run([sys.executable, str(SCRIPT), str(run.folder), "--output", str(events)], check=True)
    accumulator = accumulator_class(str(events / run.folder.name), size_guidance={"scalars": 0})
    accumulator.Reload()
    compared = 0
    for tag in TAGS:
        event, key = tag.split("/")
        told = [(line["step"], as_float32(line[key])) for line in run.metrics() if line["event"] == event]
        read = [(scalar.step, scalar.value) for scalar in accumulator.Scalars(tag)]
        assert told and read == told, f"{tag}: {read} where metrics.jsonl has {told}"
        times = [scalar.wall_time for scalar in accumulator.Scalars(tag)]
        assert times == sorted(times) and times[0] > 1.6e9, f"{tag}: wall times {times}"
        compared += len(read)
    return compared


def main():
    reader = require("tensorboard.backend.event_processing.event_accumulator").EventAccumulator
    require("tensorboardX")
    run = SampleRun()
    run.train()
    first = check(run, reader)
    assert check(run, reader) == first  # the files are written anew
    run.train("train.steps=9")
    second = check(run, reader)
    print(f"TensorBoard reads what metrics.jsonl says: {first} numbers of a run, {second} after it went on")


if __name__ == "__main__":
    sys.exit(main())
