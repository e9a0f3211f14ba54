#!/usr/bin/env python3
"""Programs that do the same work take turns; prints the first one's time, and that of the others over it, round by round.

  bench/timing.py step [SIDE ...]           whole training steps of a language model of bytes (T = 512, B = 8)
  bench/timing.py decode [SIDE ...]         a token after 256 others, of --batch sequences
  bench/timing.py forward|both [SIDE ...]   a block of width 512, forward, or forward and backward: 16,384 tokens in texts of --lengths
  bench/timing.py start [PROGRAM ...]       what a run's first step takes beyond a steady one
  bench/timing.py label RUN [PROGRAM ...]   a text's label by `capstan predict RUN`; --cold: after the system has forgotten all files

A SIDE is NAME[,OPTION...]. NAME: capstan (build/release/bin/bench_models), the path of another bench_models, or torch
(bench/pytorch). Options of Capstan: bf16, int8, portable (train.kernels), micro=TOKENS, lanes=N, cpu=LEVEL (such as x86-64-v3, of a
portable build). Options of torch: tuned, compile, bf16 or compile-bf16. Without sides: capstan and torch. The same side twice measures the noise.

All sides must have the first one's loss and gradient norm (1e-4 relative, 2e-2 in bf16); beside torch, they have its weights and data.
Prints Markdown: medians [lowest, highest]. --out adds a line of JSON per case. Needs the target bench_models (cmake -DCAPSTAN_BENCH=ON).
"""
import argparse
import json
import math
import os
import platform
import shlex
import statistics
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from workers import KEEP_MEMORY, ROOT, Label, Start, Worker, WorkerFailed, environment

SYSTEMS = ("aft-simple", "aft-local", "aft-conv", "aft-full", "fastformer", "gau", "flash", "attention")
SIZES = {"small": (256, 4), "base": (512, 6), "block": (512, 1)}  # width, layers of a Transformer
BLOCK_TOKENS, BLOCK_LENGTHS = 16384, (256, 1024, 4096, 16384)
DECODE_POSITION, DECODE_ROUND = 256, 256  # tokens before the timed ones; per round: a chunk of flash
TOLERANCE, TOLERANCE_UPDATED, TOLERANCE_BF16 = 1e-4, 1e-3, 2e-2  # updated: rounding may turn the sign of a gradient next to 0
WARM_UP_UNITS, SHORTEST_ROUND = 2, 0.25  # seconds: shorter units are repeated


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", choices=("step", "decode", "forward", "both", "start", "label"))
    parser.add_argument("sides", nargs="*")
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=SYSTEMS, metavar="SYSTEM")
    parser.add_argument("--sizes", nargs="+", choices=SIZES, help="small and base; of blocks: block")
    parser.add_argument("--lengths", nargs="+", type=int)
    parser.add_argument("--batch", type=int, help="8; of decoding: 1")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--cpu-time", action="store_true", help="of the process: other programs on the machine disturb it less")
    parser.add_argument("--cold", action="store_true")
    parser.add_argument("--python", default="/opt/venv/bin/python", help="the interpreter that has PyTorch")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    is_block = options.work in ("forward", "both")
    options.sizes = options.sizes or (("block",) if is_block else ("small", "base"))
    options.lengths = options.lengths or (BLOCK_LENGTHS if is_block else (DECODE_POSITION,) if options.work == "decode" else (512,))
    options.batch = options.batch or (1 if options.work == "decode" else 8)
    return options


def cases(options):
    for size in options.sizes:
        for system in options.systems:
            for length in options.lengths:
                width, layers = SIZES[size]
                batch = BLOCK_TOKENS // length if options.work in ("forward", "both") else options.batch
                yield {"system": system, "work": options.work, "width": width, "layers": layers, "batch": batch, "length": length,
                       "max_length": length + DECODE_ROUND if options.work == "decode" else 0}


def start(side, case, options, files):
    """The worker of a side."""
    name, *settings = side.split(",")
    words = [word for key, value in case.items() for word in (f"--{key.replace('_', '-')}", value)] + ["--threads", options.threads]
    if name == "torch":
        form = settings[0] if settings else "eager"
        command = [options.python, ROOT / "bench/pytorch/worker.py", "--form", form, *words]
        return Worker(command, environment(options.threads, **(KEEP_MEMORY if form == "tuned" else {})))
    program = ROOT / "build/release/bin/bench_models" if name == "capstan" else name
    levels = {"CAPSTAN_CPU": setting[4:] for setting in settings if setting.startswith("cpu=")}
    words += [word for setting in settings if not setting.startswith("cpu=") for word in f"--{setting}".split("=")]
    words += ["--weights", files[0], "--data", files[1]] if files else []
    return Worker([program, *words], environment(options.threads, **levels))


def same(first, other, tolerance):
    """Raises WorkerFailed where two outcomes differ."""
    for key in ("loss", "grad_norm"):
        scale = max(abs(first[key]), abs(other[key]), 1e-30)
        if not abs(first[key] - other[key]) <= tolerance * scale:  # not: a NaN disagrees with everything
            raise WorkerFailed(f"DISAGREES, {key}: {first[key]:.8g}, here {other[key]:.8g}")


class Side:
    """A worker of a case, and what it measured."""

    def __init__(self, name, case, worker, cpu_time):
        self.worker, self.times, self.rates, self.cpu_time = worker, [], [], cpu_time
        self.tolerances = [TOLERANCE_BF16] * 2 if "bf16" in name else [TOLERANCE, TOLERANCE_UPDATED]
        self.units = DECODE_ROUND if case["work"] == "decode" else WARM_UP_UNITS
        self.outcomes = [worker.ask("check")]
        worker.ask("memory")
        self.take(self.units)
        seconds = self.take(self.units) if case["work"] != "decode" else 0  # the first ones fill caches and compile
        self.peak = worker.ask("memory")["peak_bytes"]
        if case["work"] != "decode":
            self.units = max(1, math.ceil(SHORTEST_ROUND * self.units / seconds))
        self.outcomes.append(worker.ask("check") if case["work"] == "step" else self.outcomes[0])
        self.info = worker.ask("info")

    def take(self, units):
        before = self.worker.cpu_seconds()
        seconds = self.worker.seconds(units)
        return self.worker.cpu_seconds() - before if self.cpu_time else seconds

    def round(self, with_rate):
        if with_rate:
            self.rates.append(self.worker.ask("sgemm")["flops_per_second"])
        self.times.append(self.take(self.units) / self.units)


def measure(case, options):
    """{name of a side: Side, or why it cannot be measured}"""
    found = {}
    names = [f"{name} ({i})" if name in options.sides[:i] else name for i, name in enumerate(options.sides)]
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        files = None
        if any(side.startswith("torch") for side in options.sides):
            files = [f"{folder}/weights.safetensors", f"{folder}/data.safetensors"]
            with start("torch", case, options, None) as twin:
                twin.ask("save", *files)
        for name, side in zip(names, options.sides):
            try:
                found[name] = Side(side, case, stack.enter_context(start(side, case, options, files)), options.cpu_time)
                first = found[names[0]]
                for mine, theirs, *tolerance in zip(first.outcomes, found[name].outcomes, first.tolerances, found[name].tolerances):
                    same(mine, theirs, max(tolerance))
            except WorkerFailed as failure:
                if name == names[0]:
                    raise
                found[name] = failure
        for turn in range(options.rounds):
            sides = [side for side in found.values() if isinstance(side, Side)]
            for i, side in enumerate(sides[turn % len(sides):] + sides[:turn % len(sides)]):
                side.round(with_rate=side is sides[0])
    return found


def spread(values, scale=1.0, digits=2):
    return f"{scale * statistics.median(values):.{digits}f} [{scale * min(values):.{digits}f}, {scale * max(values):.{digits}f}]"


def row(case, found):
    first, *others = found.values()
    info, seconds = first.info, statistics.median(first.times)
    cells = [case["system"], f"{case['width']} x {case['layers']}", case["batch"], case["length"], spread(first.times, 1e3, 3 if seconds < 0.01 else 1),
             f"{info['unit_tokens'] / seconds:,.0f}"]
    if case["work"] == "decode":
        cells.append(f"{seconds / info['weights_read_seconds']:.2f}" if "weights_read_seconds" in info else "")
    else:
        cells.append("" if first.cpu_time else spread([info["unit_flops"] / time / rate for time, rate in zip(first.times, first.rates)]))
    cells.append(f"{first.peak / 1e6:.0f}")
    for other in others:
        if isinstance(other, Side):
            cells += [spread([mine / time for mine, time in zip(other.times, first.times)]), f"{other.peak / first.peak:.2f}"]
        else:
            cells += [str(other), ""]
    return cells


def machine():
    def output_of(*command):
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout.strip()
    fields = dict(map(str.strip, line.split(":", 1)) for line in Path("/proc/cpuinfo").read_text().split("\n\n")[0].splitlines() if ":" in line)
    changed = " with changes" if output_of("git", "status", "--porcelain", "--untracked-files=no") else ""
    return (f"{fields.get('model name', platform.machine())}, family {fields.get('cpu family')} model {fields.get('model')}, "
            f"{len(os.sched_getaffinity(0))} CPUs, commit {output_of('git', 'rev-parse', '--short', 'HEAD')}{changed}, load {os.getloadavg()[0]:.1f}")


def print_row(cells):
    print("| " + " | ".join(str(cell) for cell in cells) + " |", flush=True)


def time_commands(options):
    """`start` and `label`: whole commands."""
    run = options.sides.pop(0) if options.work == "label" else ""
    programs = options.sides or [str(ROOT / "build/release/capstan")]
    sides = [Label(program, run, options.cold) if run else Start(program) for program in programs]
    times = [[] for _ in sides]
    for _ in range(options.rounds):
        for side, found in zip(sides, times):
            before = side.cpu_seconds()
            seconds = side.seconds(1)
            found.append((seconds, side.cpu_seconds() - before))
    print_row(["program", "ms", "CPU ms", "over the first"])
    print_row(["---"] * 4)
    for program, found in zip(programs, times):
        elapsed, cpu = zip(*found)
        print_row([program, spread(elapsed, 1e3, 1), spread(cpu, 1e3, 1), spread([a / b for a, (b, _) in zip(elapsed, times[0])])])


def main():
    options = parse()
    print(f"{machine()}\n\n`{shlex.join(['bench/timing.py', *sys.argv[1:]])}`\n")
    if options.work in ("start", "label"):
        return time_commands(options)
    options.sides = options.sides or ["capstan", "torch"]
    head = ["system", "width x layers", "batch", "T", "ms", "tokens/s", "÷ reading the weights once" if options.work == "decode" else "share of sgemm", "MB"]
    head += [cell for side in options.sides[1:] for cell in (f"{side} ÷ {options.sides[0]}", "MB ÷")]
    print_row(head)
    print_row(["---"] * len(head))
    for case in cases(options):
        found = measure(case, options)
        print_row(row(case, found))
        if options.out:
            with open(options.out, "a") as file:
                file.write(json.dumps({"case": case, "sides": {name: side.times for name, side in found.items() if isinstance(side, Side)},
                                       "tokens": next(iter(found.values())).info["unit_tokens"]}) + "\n")
    return None


if __name__ == "__main__":
    try:
        sys.exit(main())
    except WorkerFailed as failure:
        sys.exit(f"timing.py: {failure}")
