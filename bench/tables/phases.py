#!/usr/bin/env python3
"""Seconds of a recipe by phase: bench/tables/phases.py [--program build/release/capstan] [--seconds 20] RECIPE [KEY=VALUE...]

Prints a row of bench/tables/records/phases.md. The recipe is trained for so many seconds, evaluated and saved. Its steps, evaluations and
checkpoints then count as often as all of it has them, and as many best ones as evaluations. Reading is what a run takes until it says what
it has read, with bytes for tokens; the recipe's own tokens and plan are what it takes beyond that."""
import argparse
import json
import math
import os
import re
import statistics
import subprocess
import tempfile
import time


def run(program, config, settings, folder, first_line_only=False):
    """The seconds until each line that a training writes."""
    command = [program, "train", "--config", config, "--set", f"folder={folder}", "train.progress=plain", "train.log_every=1", *settings]
    begin, lines = time.perf_counter(), []
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as process:
        for line in process.stderr:
            lines.append((time.perf_counter() - begin, line))
            if first_line_only and "model:" in line:
                process.kill()
                return lines
    if process.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: exit code {process.returncode}\n{lines[-1][1]}")
    return lines


def start(program, config, settings, folder):
    return run(program, config, settings, folder, first_line_only=True)[-1][0]


def value(config, key):
    """Of a run's config.yaml, where the keys of `train` are one a line."""
    found = re.search(rf"^  {key}: (\S+)", config, re.MULTILINE)
    return 0 if found is None or found.group(1) == "null" else float(found.group(1))


def measure(program, recipe, settings, seconds, folder):
    minutes = seconds / 60
    lines = run(program, recipe, [*settings, f"train.max_minutes={minutes}", "name=all"], folder)
    until = [at for at, line in lines if "model:" in line][0]
    with open(f"{folder}/all/config.yaml") as file:
        config = file.read()
    ready = tokens = until
    if value(config, "minutes") > 0:
        ready = tokens = start(program, f"{folder}/all/config.yaml", ["name=planned"], folder)
    if "type: byte" not in config and re.search("data:\n  type: (text|labelled)", config):
        tokens = start(program, f"{folder}/all/config.yaml", ["name=bytes", "data.tokenizer={type: byte}"], folder)
    with open(f"{folder}/all/metrics.jsonl") as file:
        records = [json.loads(line) for line in file]
    train = [record for record in records if record["event"] == "train"]
    ends = {record["step"]: record["seconds"] for record in train}
    valid = [record for record in records if record["event"] == "valid"]
    evaluated = {record["step"] for record in valid}
    # The mean: texts are of unequal lengths. Neither the first step, which touches the memory, nor one after an evaluation or a checkpoint.
    aside = evaluated | {number for number in ends if value(config, "save_every") > 0 and number % value(config, "save_every") == 0}
    step = statistics.mean(b["seconds"] - a["seconds"] for a, b in zip(train[1:], train[2:])
                           if b["step"] == a["step"] + 1 and a["step"] not in aside)
    evaluation = valid[-1]["seconds"] - ends[valid[-1]["step"]]
    said = [at for at, line in lines if "Valid" in line][-1]
    save = lines[-1][0] - said
    steps = int(re.search(r"Step \d+/(\d+)", "".join(line for _, line in lines)).group(1))
    every = value(config, "valid_every")
    evaluations = math.ceil(steps / every) if every > 0 else 1
    saves = evaluations + (math.floor(steps / value(config, "save_every")) if value(config, "save_every") > 0 else 1)
    return tokens, ready - tokens, until - ready, steps, step, evaluations, evaluation, save * saves, valid[-1]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/release/capstan")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("recipe")
    parser.add_argument("settings", nargs="*")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        read, tokenise, plan, steps, step, evaluations, evaluation, save, valid = measure(
            options.program, options.recipe, options.settings, options.seconds, folder)
    train = steps * step
    share = 100 * evaluations * evaluation / (train + evaluations * evaluation)
    error = valid.get("loss_standard_error")
    print(f"| {os.path.basename(options.recipe)[:-5]} | {read:.1f} | {tokenise:.1f} | {plan:.1f} | {steps} × {step:.3f} | "
          f"{evaluations} × {evaluation:.2f} | {save:.1f} | {share:.1f} % | {valid['targets']} | "
          f"{'' if error is None else f'{error:.4f}'} |", flush=True)


if __name__ == "__main__":
    main()
