#!/usr/bin/env python3
"""What programs that take turns need before they do anything: medians of rounds, [lowest, highest].

bench/start.py PROGRAM...                how much longer than a steady step a run takes from its start to the end of its first
                                         step, in seconds: aft-simple, width 256, 4 layers, T = 512, B = 8, on generated text
bench/start.py --predict RUN PROGRAM...  milliseconds until `capstan predict RUN` has labelled one text, and those of CPU; for
                                         root also cold: after the system has forgotten all files"""

import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROUNDS, STEPS, TEXT_BYTES = 5, 8, 1_000_000
PREDICT_ROUNDS, DROP_CACHES = {False: 25, True: 7}, Path("/proc/sys/vm/drop_caches")  # by whether they are cold
LAYER = "{mixer: {type: aft-simple}, feed_forward: {type: gelu, expansion: 4}, repeat: 4}"
SETTINGS = ["data.split=tail", "data.valid_fraction=0.05", "data.sequence_length=512", "data.tokenizer={type: byte}",
            "model.width=256", "model.max_length=512", "model.dropout=0", f"model.layers=[{LAYER}]", "train.batch_size=8",
            f"train.steps={STEPS}", "train.log_every=1", "train.valid_every=1000", "train.save_every=0", "train.progress=plain"]
CONFIG = Path(__file__).resolve().parent.parent / "configs/lm-aft-simple.yaml"


def run(program, folder, number):
    """Seconds of the first step beyond a steady one."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("OPENBLAS_")}
    command = [program, "train", "--config", CONFIG, "--set", f"folder={folder}", f"name=run{number}",
               f"data.train=[{folder}/text]", "data.include=[]", *SETTINGS]
    begin, ends = time.perf_counter(), []
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment) as process:
        for line in process.stdout:
            if "] Step " in line:
                ends.append(time.perf_counter() - begin)
    if process.returncode != 0 or len(ends) < STEPS:
        sys.exit(f"{program}: exit code {process.returncode} after {len(ends)} steps; last line: {line}")
    return ends[0] - statistics.median(b - a for a, b in zip(ends[1:STEPS], ends[2:STEPS]))


def label(program, run, cold):
    """Milliseconds, and those of CPU, until a text has its label."""
    if cold:
        os.sync()
        DROP_CACHES.write_text("3")
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run([program, "predict", run], input="where is the highest mountain\n", capture_output=True, text=True)
    seconds, after = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        sys.exit(f"{program}: {done.stderr}")
    return 1e3 * seconds, 1e3 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def predict(run, programs):
    for cold in [False, True] if os.access(DROP_CACHES, os.W_OK) else [False]:
        times = {program: [] for program in programs}
        for number in range(PREDICT_ROUNDS[cold] * len(programs)):
            program = programs[number % len(programs)]
            times[program].append(label(program, run, cold))
        for program, values in times.items():
            for what, row in zip(("elapsed", "CPU"), zip(*values)):
                print(f"{program}, {'cold' if cold else 'warm'}, {what}: {statistics.median(row):.1f} ms [{min(row):.1f}, {max(row):.1f}]")


def main():
    if sys.argv[1:2] == ["--predict"] and len(sys.argv) > 3:
        return predict(sys.argv[2], sys.argv[3:])
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    programs = sys.argv[1:]
    seconds = {program: [] for program in programs}
    with tempfile.TemporaryDirectory() as folder:
        letters = random.Random(1).choices("etaoin shrdlu\n", k=TEXT_BYTES)
        (Path(folder) / "text").write_text("".join(letters), encoding="utf-8")
        for number in range(ROUNDS * len(programs)):
            program = programs[number % len(programs)]
            seconds[program].append(run(program, folder, number))
    for program, values in seconds.items():
        print(f"{program}: {statistics.median(values):.3f} [{min(values):.3f}, {max(values):.3f}]")


if __name__ == "__main__":
    main()
