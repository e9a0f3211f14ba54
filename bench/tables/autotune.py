#!/usr/bin/env python3
"""capstan autotune with configs/classify.yaml beside fastText's -autotune, in equal time on equal cores.

  bench/tables/autotune.py DATA [--out autotune.jsonl] [--sets mr,trec] [--minutes 5] [--threads 2] [--seed 1]

DATA is a folder with the sets of labelled_sets.py; where there are folds, the first one is the test set. fastText tunes on a
fifth of the training texts; the model that is tested is then trained with its choice on all of them, which -autotune alone
would not do. Needs the built program and fasttext in the Python that runs this. Every result is appended to --out as a line
of JSON; what is there already is not run again. The table is printed at the end.
"""
import argparse
import contextlib
import json
import os
import random
import re
import subprocess
import tempfile
import time

from labelled_sets import SETS, add_result, fasttext_accuracy, read_results, split, write, write_fasttext

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAM = os.path.join(ROOT, "build/release/capstan")


def run(*command):
    done = subprocess.run([PROGRAM, *command], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr[-2000:])
    return done.stdout


def test_accuracy(run_folder):
    return float(re.search(r"^accuracy ([\d.]+)", run("eval", run_folder, "--split", "test"), re.M).group(1))


def held_out_accuracy(run_folder):
    with open(f"{run_folder}/metrics.jsonl") as metrics:
        return [line["accuracy"] for line in map(json.loads, metrics) if line.get("event") == "valid"][-1]


def capstan(train, test, options, folder):
    write(f"{folder}/train.tsv", train)
    write(f"{folder}/test.tsv", test)
    before = time.monotonic()
    run("autotune", "--config", os.path.join(ROOT, "configs/classify.yaml"), "--minutes", str(options.minutes), "--set",
        f"seed={options.seed}", f"threads={options.threads}", f"folder={folder}", f"data.train=[{folder}/train.tsv]",
        f"data.test=[{folder}/test.tsv]")
    seconds = time.monotonic() - before
    search = f"{folder}/classify"
    return {"accuracy": test_accuracy(f"{search}/best"), "default": test_accuracy(f"{search}/default"),
            "held_out": held_out_accuracy(f"{search}/best"), "default_held_out": held_out_accuracy(f"{search}/default"),
            "chosen": os.readlink(f"{search}/best"), "seconds": seconds}


@contextlib.contextmanager
def silence():
    """Without what the process writes to stderr: the progress of fastText's search, which verbose=0 does not suppress."""
    before, nothing = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 2)
    try:
        yield
    finally:
        os.dup2(before, 2)
        os.close(before)
        os.close(nothing)


def fasttext(train, test, options, folder):
    import fasttext as library
    shuffled = random.Random(options.seed).sample(train, len(train))
    fifth = len(train) // 5
    valid = write_fasttext(f"{folder}/valid.txt", shuffled[:fifth])
    rest = write_fasttext(f"{folder}/rest.txt", shuffled[fifth:])
    everything = write_fasttext(f"{folder}/all.txt", train)
    before = time.monotonic()
    with silence():
        tuned = library.train_supervised(rest, autotuneValidationFile=valid, autotuneDuration=int(options.minutes * 60),
                                         thread=options.threads, verbose=0, seed=options.seed)
    seconds = time.monotonic() - before
    held_out = tuned.test(valid)[1]
    found = tuned.f.getArgs()
    chosen = {"lr": found.lr, "dim": found.dim, "epoch": found.epoch, "wordNgrams": found.wordNgrams, "minn": found.minn,
              "maxn": found.maxn, "bucket": found.bucket, "minCount": found.minCount}
    loss = str(found.loss).split(".")[-1]
    model = library.train_supervised(everything, thread=options.threads, verbose=0, seed=options.seed, loss=loss, **chosen)
    return {"accuracy": fasttext_accuracy(model, test), "held_out": held_out, "chosen": chosen, "seconds": seconds}


METHODS = {"autotune": capstan, "fastText -autotune": fasttext}


def table(results):
    print("| data set | classify.yaml | autotune | fastText -autotune | ahead | chosen |\n|---|---|---|---|---|---|")
    by_set = {}
    for r in results:
        by_set.setdefault(r["set"], {})[r["method"]] = r
    for name, found in by_set.items():
        ours, other = found.get("autotune"), found.get("fastText -autotune")
        if ours and other:
            print(f"| {name} | {ours['default']:.4f} | {ours['accuracy']:.4f} | {other['accuracy']:.4f} |"
                  f" {100 * (ours['accuracy'] - other['accuracy']):+.2f} | {ours['chosen']} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--out", default="autotune.jsonl")
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    results = read_results(options.out)
    done = {(r["set"], r["method"], r["minutes"], r["seed"]) for r in results}
    for name in options.sets.split(","):
        for method, search in METHODS.items():
            if (name, method, options.minutes, options.seed) in done:
                continue
            train, test = split(options.data, name, 0)
            with tempfile.TemporaryDirectory() as folder:
                result = search(train, test, options, folder)
            result.update({"set": name, "method": method, "minutes": options.minutes, "seed": options.seed})
            add_result(options.out, results, result)
    table(results)


if __name__ == "__main__":
    main()
