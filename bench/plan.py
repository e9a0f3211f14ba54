#!/usr/bin/env python3
"""How many steps a plan has that begins beside busy processes, and one that does not.

  bench/plan.py [--busy 2] [--seconds 120] capstan train --config ... --minutes 30

Runs the command, with --set name=plan-quiet and name=plan-busy in front, until it has looked at its plan again, and ends it. Beside the
second run, processes that do nothing but compute end after --seconds. Prints the steps that were planned and those that were found,
from config.yaml. Give the sizes of the model: a busy machine plans a narrower one.
"""
import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading


def found(command, name, folder):
    """(planned, step of the look, corrected) of one run, which is ended then."""
    at = command.index("train") + 1
    with subprocess.Popen(command[:at] + ["--set", f"name={name}", f"folder={folder}", "train.progress=plain"] + command[at:],
                          stderr=subprocess.PIPE, text=True) as run:
        for line in run.stderr:
            if "plan" in line:
                print(line.rstrip(), flush=True)
            if "plan looked at again" in line:
                break
        run.kill()
    text = (pathlib.Path(folder) / name / "config.yaml").read_text()
    numbers = re.search(r"^  steps: (\d+).*?^  corrected:\n    step: (\d+)\n    steps: (\d+)", text, re.S | re.M)
    if numbers is None or numbers[3] == "0":
        sys.exit(f"{name}: the run ended without a second look at its plan; is its command right?")
    return tuple(int(number) for number in numbers.groups())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--busy", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="capstan-plan-")
    results = {}
    try:
        for name in ("quiet", "busy"):
            beside = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(options.busy if name == "busy" else 0)]
            end = threading.Timer(options.seconds, lambda: [process.kill() for process in beside])
            end.start()
            results[name] = found(options.command, f"plan-{name}", folder)
            end.cancel()
            for process in beside:
                process.kill()
                process.wait()
    finally:
        shutil.rmtree(folder)
    print("run    planned  looked at step  steps")
    for name, (planned, step, steps) in results.items():
        print(f"{name:5}  {planned:7}  {step:14}  {steps:5}")
    print(f"busy / quiet: planned {results['busy'][0] / results['quiet'][0]:.3f}, corrected {results['busy'][2] / results['quiet'][2]:.3f}")


if __name__ == "__main__":
    main()
