#!/usr/bin/env python3
"""A training step, or decoding, of the portable build, at every level of x86-64 that this CPU has, beside the native build.

  bench/builds.py [--systems SYSTEM ...] [--size small] [--work step] [--rounds 11]
  bench/builds.py --kernels     the native build alone: the default beside train.kernels: portable

Both builds need the target bench_models (cmake --preset release -DCAPSTAN_BENCH=ON, cmake --preset portable -DCAPSTAN_BENCH=ON). All are
given the same BLAS and oneDNN; they must have the same loss and gradient norm (1e-4 relative), then take turns. Time is CPU time of
the process, which other programs on the machine disturb less. Ratios, native over each, are taken within a round.
"""

import argparse
import os
import sys
from contextlib import ExitStack
from pathlib import Path

from harness.rounds import TOLERANCE, WARM_UP_UNITS, Case, spread
from harness.workers import Worker, WorkerFailed, case_arguments, environment
from run import DECODE_POSITION, DECODE_ROUND, FOLDER, SIZES, SYSTEMS

LEVELS = ("x86-64-v4", "x86-64-v3", "x86-64-v2")


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=SYSTEMS, metavar="SYSTEM")
    parser.add_argument("--size", choices=SIZES, default="small")
    parser.add_argument("--work", choices=("step", "decode"), default="step")
    parser.add_argument("--kernels", action="store_true")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--units", type=int, default=2, help="steps per round; tokens are as many as run.py decode has")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--native", type=Path, default=FOLDER.parent / "build/release/bin/bench_models")
    parser.add_argument("--portable", type=Path, default=FOLDER.parent / "build/portable/bin/bench_models")
    parser.add_argument("--levels", nargs="+", choices=LEVELS, default=LEVELS, help="of the portable build")
    options = parser.parse_args()
    if options.kernels:
        options.levels = ("portable kernels",)
    return options


def cpu_seconds(process):
    """Of all threads, in nanoseconds' resolution: a round of decoding is shorter than ten of the clock's ticks."""
    return sum(int(thread.read_text().split()[0]) for thread in Path(f"/proc/{process.pid}/task").glob("*/schedstat")) / 1e9


def start(program, case, options, stack, *more, **settings):
    """A warm worker and its outcome. Raises WorkerFailed, also for a level that this CPU does not have."""
    command = [program, *more, "serve", *case_arguments(case, options.threads)]
    worker = stack.enter_context(Worker(program, command, environment(options.threads, **settings)))
    outcome = worker.ask("check") if case.work == "step" else {}
    worker.ask("round", WARM_UP_UNITS)
    return worker, outcome


def measure(case, options):
    """CPU seconds per step of each build, round by round."""
    with ExitStack() as stack:
        started = {"native": start(options.native, case, options, stack)}
        for level in options.levels:
            if options.kernels:
                started[level] = start(options.native, case, options, stack, "--portable")
            else:
                started[level] = start(options.portable, case, options, stack, CAPSTAN_CPU=level)
            for key, value in started["native"][1].items():
                if not abs(started[level][1][key] - value) <= TOLERANCE * abs(value):
                    raise WorkerFailed(f"{case.system}, {level}: {key} is {started[level][1][key]}, of the native build {value}")
        seconds = {name: [] for name in started}
        for _ in range(options.rounds):
            for name, (worker, _) in started.items():
                before = cpu_seconds(worker.process)
                worker.ask("round", options.units)
                seconds[name].append((cpu_seconds(worker.process) - before) / options.units)
        return seconds


def cell(numbers, digits=3):
    found = spread(numbers)
    return f"{found['median']:.{digits}f} [{found['low']:.{digits}f}, {found['high']:.{digits}f}]"


def main():
    options = parse()
    print("| system | native, CPU ms per unit | " + " | ".join(f"native over {level}" for level in options.levels) + " |")
    print("|---" * (2 + len(options.levels)) + "|")
    if options.work == "decode":
        options.units = DECODE_ROUND
    for system in options.systems:
        if options.work == "decode":
            case = Case(system, "decode", *SIZES[options.size], 1, DECODE_POSITION, size=options.size,
                        max_length=DECODE_POSITION + DECODE_ROUND)
        else:
            case = Case(system, options.work, *SIZES[options.size], 8, 512, size=options.size)
        seconds = measure(case, options)
        ratios = [cell([native / mine for native, mine in zip(seconds["native"], seconds[level])]) for level in options.levels]
        print(f"| {system} | {cell([1e3 * each for each in seconds['native']], 3 if options.work == 'decode' else 0)} | " + " | ".join(ratios) + " |", flush=True)


if __name__ == "__main__":
    try:
        main()
    except WorkerFailed as failure:
        sys.exit(f"builds.py: {failure}")
