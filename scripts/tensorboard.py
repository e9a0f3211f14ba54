"""Shows the metrics of runs in TensorBoard: writes event files from their metrics.jsonl.

    pip install tensorboardX tensorboard
    python scripts/tensorboard.py runs/mine runs/other --output events
    tensorboard --logdir events

Every number of a line becomes a scalar, such as train/loss and valid/accuracy, at the line's step. Repeating the command writes
the files of a run anew.
"""

import argparse
import json
import math
import pathlib
import sys


def lines_of(metrics):
    """The lines that are complete; the last one may be half written."""
    for line in metrics.read_text(encoding="utf-8").splitlines():
        try:
            yield json.loads(line)
        except json.JSONDecodeError:
            continue


def convert(run, folder, writer_class):
    metrics = run / "metrics.jsonl"
    lines = list(lines_of(metrics))
    if not lines:
        return 0
    for earlier in folder.glob("events.out.tfevents.*"):
        earlier.unlink()
    # The lines say how long training took; that the last one is as old as the file gives the time of the others.
    begun = metrics.stat().st_mtime - lines[-1].get("seconds", 0)
    with writer_class(str(folder)) as writer:
        for line in lines:
            for name, value in line.items():
                if name in ("event", "step") or isinstance(value, bool) or not isinstance(value, (int, float)):
                    continue
                if math.isfinite(value):
                    writer.add_scalar(f"{line['event']}/{name}", value, line["step"], begun + line.get("seconds", 0))
    return len(lines)


def main():
    parser = argparse.ArgumentParser(description="Writes TensorBoard's event files from the metrics.jsonl of runs.")
    parser.add_argument("runs", nargs="+", type=pathlib.Path, help="run folders")
    parser.add_argument("--output", required=True, type=pathlib.Path, help="folder for `tensorboard --logdir`")
    arguments = parser.parse_args()
    try:
        from tensorboardX import SummaryWriter
    except ImportError:
        sys.exit("tensorboard.py: the package tensorboardX is missing: pip install tensorboardX")
    for run in arguments.runs:
        if not (run / "metrics.jsonl").is_file():
            sys.exit(f"tensorboard.py: {run}: no metrics.jsonl: give the folder of a run")
        print(f"{run}: {convert(run, arguments.output / run.name, SummaryWriter)} lines written")


if __name__ == "__main__":
    main()
