#!/usr/bin/env python3
"""The same work by two builds of bench_models, in turn: how much slower or faster is the second?

  bench/before_after.py BEFORE AFTER [--sizes small base] [--work step] [--batch 8] [--length 512] [--systems SYSTEM ...] [--rounds 11]
  bench/before_after.py BEFORE AFTER --disturb 0     beside a process that never rests on core 0, and without it

Both must have the same loss and gradient norm (1e-4 relative, 2e-2 in bf16). Prints AFTER over BEFORE, the median of rounds with
quartiles, the ratio of the shortest times, BEFORE over itself as a measure of the noise, the share of sgemm, and peak memory.
"""
import argparse
import os
import signal
import statistics
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

from harness.rounds import TOLERANCE, TOLERANCE_BF16, WARM_UP_UNITS, Case
from harness.workers import Worker, WorkerFailed, case_arguments, environment
from run import SIZES, SYSTEMS


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=["small"])
    parser.add_argument("--work", choices=("step", "decode"), default="step")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--length", type=int, default=512)
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=SYSTEMS, metavar="SYSTEM")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--units", type=int, default=1, help="steps or tokens per round")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--lanes", type=int, default=None, help="train.lanes of AFTER")
    parser.add_argument("--bf16", action="store_true", help="steps in bf16; tokens with weights in bf16")
    parser.add_argument("--disturb", type=int, default=None, metavar="CORE")
    return parser.parse_args()


def start(program, case, options, stack, *more):
    command = [program, *more, "serve", *case_arguments(case, options.threads), *(["--bf16"] if options.bf16 else [])]
    worker = stack.enter_context(Worker(str(program), command, environment(options.threads)))
    outcome = worker.ask("check") if case.work == "step" else {}
    worker.ask("memory")
    worker.ask("round", WARM_UP_UNITS)
    return worker, outcome, worker.ask("memory")["peak_bytes"], worker.ask("info")


def quartiles(values):
    values = sorted(values)
    return f"{statistics.median(values):.3f} [{values[len(values) // 4]:.3f}, {values[-1 - len(values) // 4]:.3f}]"


class Disturbance:
    """A process that never rests on one core; it is stopped while not wanted."""

    def __init__(self, core):
        self.process = subprocess.Popen(["taskset", "-c", str(core), sys.executable, "-c", "while True: pass"])
        self.want(False)

    def want(self, wanted):
        self.process.send_signal(signal.SIGCONT if wanted else signal.SIGSTOP)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def measure(case, options):
    with ExitStack() as stack:
        # Two of the first: their ratio is the noise.
        lanes = ["--lanes", options.lanes] if options.lanes is not None else []
        found = {"before": start(options.before, case, options, stack), "again": start(options.before, case, options, stack),
                 "after": start(options.after, case, options, stack, *lanes)}
        for key, value in found["before"][1].items():
            if not abs(found["after"][1][key] - value) <= (TOLERANCE_BF16 if options.bf16 else TOLERANCE) * abs(value):
                raise WorkerFailed(f"{case.system}: {key} is {value} before and {found['after'][1][key]} after")
        seconds, disturbed, rates = ({name: [] for name in found} for _ in range(3))
        disturbance = stack.enter_context(Disturbance(options.disturb)) if options.disturb is not None else None
        for turn in range(options.rounds):
            order = list(found)[turn % 3:] + list(found)[:turn % 3]
            for name in order:
                worker = found[name][0]
                if case.work == "step" and turn in (0, options.rounds - 1):
                    rates[name].append(worker.ask("sgemm")["flops_per_second"])
                seconds[name].append(worker.ask("round", options.units)["seconds"])
                if disturbance:
                    disturbance.want(True)
                    disturbed[name].append(worker.ask("round", options.units)["seconds"])
                    disturbance.want(False)
        ratio = lambda a, b: quartiles([x / y for x, y in zip(seconds[a], seconds[b])])
        line = (f"| {case.system} | {1e3 * statistics.median(seconds['after']):.1f} | {ratio('after', 'before')} | "
                f"{min(seconds['after']) / min(min(seconds['before']), min(seconds['again'])):.3f} | {ratio('again', 'before')} |")
        if case.work == "step":
            share = lambda name: (found[name][3]["unit_flops"] * options.units / statistics.median(seconds[name])
                                  / statistics.mean(rates[name]))
            line += (f" {share('before'):.2f}, {share('after'):.2f} | {found['before'][2] / 1e6:.0f}, {found['after'][2] / 1e6:.0f} |")
        if disturbance:
            slower = lambda name: quartiles([b / a for a, b in zip(seconds[name], disturbed[name])])
            line += f" {slower('before')} | {slower('after')} |"
        print(line, flush=True)


def main():
    options = parse()
    for size in options.sizes:
        print(f"\n{size}, {options.work}, batch {options.batch}, length {options.length}, {options.threads} threads; load {os.getloadavg()[0]:.1f}\n")
        heads = ["system", "after, ms", "after/before", "of the shortest", "before/before"]
        heads += ["share of sgemm before, after", "peak MB before, after"] if options.work == "step" else []
        heads += ["disturbed/undisturbed before", "after"] if options.disturb is not None else []
        print("| " + " | ".join(heads) + " |\n" + "|---" * len(heads) + "|")
        for system in options.systems:
            longest = options.length + (options.rounds + 1) * options.units + WARM_UP_UNITS if options.work == "decode" else 0
            try:
                measure(Case(system, options.work, *SIZES[size], options.batch, options.length, longest, size=size), options)
            except WorkerFailed as error:
                sys.exit(f"{system}, {size}: {error}")


main()
