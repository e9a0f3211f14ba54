#!/usr/bin/env python3
"""Capstan beside PyTorch: checks that both compute the same, times them in turns, writes JSON and Markdown.

  bench/run.py steps     whole training steps of the small and base models (T = 512, B = 8)
  bench/run.py decode    time per generated token, batch 1
  bench/run.py length    blocks, forward and forward and backward, T = 256 ... 16384 at B T = 16384
  bench/run.py memory    peak memory of a training step, whole batch and micro-batches

Needs build/release/bin/bench_models (cmake -DCAPSTAN_BENCH=ON) and a Python with PyTorch; without that, Capstan's columns alone
are filled. Results: bench/results/TABLE.json and TABLE.md, not under version control.
"""

import argparse
import json
import os
import shlex
import sys
from pathlib import Path

from harness import machine, report
from harness.rounds import Case, measure

FOLDER = Path(__file__).resolve().parent
SYSTEMS = ("aft-simple", "aft-local", "aft-conv", "aft-full", "fastformer", "gau", "flash", "attention")
FORMS = ("eager", "tuned", "compile", "bf16", "compile-bf16")
SIZES = {"small": (256, 4), "base": (512, 6)}  # width, layers of a Transformer
LENGTHS = (256, 1024, 4096, 16384)
BLOCK_TOKENS, BLOCK_WIDTH = 16384, 512
DECODE_POSITION, DECODE_ROUND = 256, 256  # tokens before the timed ones; per round: a chunk of flash
MICRO_BATCH = 1024


def step_cases(options):
    return [Case(system, "step", *SIZES[size], options.batch, options.length, size=size, weights="bf16" if options.bf16 else "float32")
            for size in options.sizes for system in options.systems]


def decode_cases(options):
    return [Case(system, "decode", *SIZES[size], 1, DECODE_POSITION, size=size, round_units=DECODE_ROUND,
                 max_length=DECODE_POSITION + DECODE_ROUND, weights=weights)
            for size in options.sizes for system in options.systems for weights in ("float32", "bf16")]


def length_cases(options):
    return [Case(system, work, BLOCK_WIDTH, 1, BLOCK_TOKENS // length, length, size=f"width {BLOCK_WIDTH}")
            for system in options.systems for work in ("forward", "both") for length in options.lengths]


def memory_cases(options):
    return [Case(system, "step", *SIZES[size], options.batch, options.length, micro=micro, size=size)
            for size in options.sizes for system in options.systems for micro in (0, MICRO_BATCH)]


# Cases, forms of PyTorch, rounds; peaks of memory need no second round.
TABLES = {"steps": (step_cases, FORMS, 11), "decode": (decode_cases, ("eager", "compile"), 11),
          "length": (length_cases, ("eager",), 11), "memory": (memory_cases, ("eager",), 1)}


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", choices=TABLES)
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=SYSTEMS, metavar="SYSTEM")
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=tuple(SIZES), metavar="SIZE")
    parser.add_argument("--forms", nargs="*", choices=FORMS, default=None, metavar="FORM", help="of PyTorch; none: Capstan alone")
    parser.add_argument("--lengths", nargs="+", type=int, default=LENGTHS, help="of the table length")
    parser.add_argument("--batch", type=int, default=8, help="of training steps")
    parser.add_argument("--length", type=int, default=512, help="of training steps")
    parser.add_argument("--bf16", action="store_true", help="Capstan's training steps in bf16")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="of both sides")
    parser.add_argument("--program", type=Path, default=FOLDER.parent / "build/release/bin/bench_models")
    parser.add_argument("--python", default="/opt/venv/bin/python", help="the interpreter that has PyTorch")
    parser.add_argument("--out", type=Path, default=FOLDER / "results")
    parser.add_argument("--name", help="of the result's files; the table's when left out")
    options = parser.parse_args()
    options.name = options.name or options.table
    if not options.program.exists():
        parser.error(f"{options.program} is not there: build the target bench_models with -DCAPSTAN_BENCH=ON")
    return options


def write(options, facts, results, forms):
    """After every case, so that what was measured survives whatever comes later."""
    options.out.mkdir(parents=True, exist_ok=True)
    command = shlex.join(["bench/run.py", *sys.argv[1:]])
    content = {"table": options.table, "command": command, "machine": facts, "rounds": options.rounds,
               "threads": options.threads, "results": results}
    (options.out / f"{options.name}.json").write_text(json.dumps(content, indent=1) + "\n")
    text = report.markdown(options.table, facts, command, results, forms)
    (options.out / f"{options.name}.md").write_text(text)
    return text


def main():
    options = parse()
    make_cases, default_forms, default_rounds = TABLES[options.table]
    forms = default_forms if options.forms is None else tuple(options.forms)
    options.rounds = options.rounds or default_rounds
    facts, results, text = machine.machine(), [], ""
    for case in make_cases(options):
        print(f"{case.system} {case.work} {case.size} T = {case.length} {case.weights}", file=sys.stderr)
        results.append(measure(case, forms, options))
        text = write(options, facts, results, forms)
    print(text)
    return 1 if "DISAGREES" in text else 0


if __name__ == "__main__":
    sys.exit(main())
