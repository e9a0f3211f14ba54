#!/usr/bin/env python3
"""Published figures whose runs anybody can compute again, bit for bit; those of `train.kernels: portable`, on any CPU with AVX2 or on ARM64.

  bench/records/record.py DATA --list                 the runs that can be recorded, and which have a record
  bench/records/record.py DATA --make WORD            trains the runs whose name has WORD and that have no record, and records them
  bench/records/record.py DATA --keep NAME RUN COMMIT
                                                      records a run that was trained by the program of COMMIT, with whatever kernels it took
  bench/records/record.py DATA --table WORD           what is recorded of them
  bench/records/record.py DATA --replay N [--draw SEED] [--steps MOST] [--threads T]
                                                      computes the first steps of N random records again, and compares (a spot check)
  bench/records/record.py DATA --whole WORD [--threads T]
                                                      computes the runs whose name has WORD again from beginning to end, and compares
                                                      weights and figures; only this verifies a figure (TREC: seconds, enwiki: an hour)

DATA is a folder with the texts that a record names (its "texts", below DATA; their hashes are compared first). The program is
build/release/capstan of this checkout; a later commit computes the same unless CHANGELOG.md names a change of rounding.
A record is a line of records.jsonl: the configuration with all that was chosen when the run began, the hashes of its texts, commit and CPU,
loss and norm of the gradient at each logged step, the hash of the weights, and the figures of `capstan eval`. A segment is what comes before a
random logged step, of at most MOST (200): since the loss of a step depends on all bits of the weights, losses that agree are as good as
weights. A run that ends before that is compared as a whole. A run of hours may be recorded with the default kernels; it is
compared where the program takes the same ones, and left out elsewhere, with a line. The exit code is 1 if something differs or nothing
could be compared.
"""
import argparse
import gzip
import hashlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tables"))
from runs import PROGRAM, SYSTEMS, add_result, config, figures, origin, print_table, read_results, weights_hash  # noqa: E402

RECORDS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "records.jsonl")
CUT = tempfile.TemporaryDirectory()  # texts that are a part of others
SHOWN = ("loss", "accuracy", "bits_per_byte", "word_perplexity")  # of the figures, in tables
LABELLED = {
    "ag_news": {"train": ["ag_news/train.tsv"], "valid": ["ag_news/valid.tsv"], "test": ["ag_news/test.tsv"]},
    "dbpedia": {"train": ["dbpedia14k/train.tsv.gz"], "test": ["dbpedia14k/test.tsv"]},
    "r8": {"train": ["r8/train.tsv.gz"], "test": ["r8/test.tsv"]},
    "trec": {"train": ["trec/train.tsv"], "test": ["trec/test.tsv"]},
    "imdb": {"train": ["imdb/train.tsv.gz"], "test": ["imdb/test.tsv.gz"]},
    "amazon": {"train": ["amazon_multidomain/train.tsv.gz"], "test": ["amazon_multidomain/test.tsv.gz"]},
}
SETTINGS = {"amazon": ["data.valid_fraction=0"]}  # what a set needs beside its recipe: Amazon's figures are of all its training texts
WIKITEXT = {"train": ["wikitext-2/wiki.train.tokens.gz"], "valid": ["wikitext-2/wiki.valid.tokens"], "test": ["wikitext-2/wiki.test.tokens"]}
PTB_SIZE = {split: [f"{files[0]}#{words}"] for (split, files), words in zip(WIKITEXT.items(), (929589, 73760, 82430))}


class LeftOut(Exception):
    """A record cannot be compared on this machine."""


def known_runs():
    """{name: (configuration files, settings, {split: files below DATA}, split of the figure)}"""
    found = {
        "tinyshakespeare": (["lm.yaml"], ["data.valid_fraction=0.1", "data.test_fraction=0", "data.tokenizer=char", "train.minutes=9.5"],
                            {"train": ["tinyshakespeare/input.txt"]}, "valid"),
        "wikitext-2": (["lm-words.yaml"], ["train.epochs=5"], WIKITEXT, "test"),
        "ptb-size": (["lm-words.yaml"], ["train.minutes=60", "data.tokenizer.lower_case=true", "data.tokenizer.max_size=10000"], PTB_SIZE, "test"),
        "enwiki": (["lm.yaml"], ["train.minutes=60"], {"train": ["enwiki_xml/enwiki_head_2016.xml.gz"]}, "test"),
    }
    for name, texts in LABELLED.items():
        for system in SYSTEMS:
            files = [f"{name.replace('_', '-')}.yaml"] + ([] if system == "aft-simple" else [f"compare/block-{system}.yaml"])
            found[f"{name} {system}"] = (files, SETTINGS.get(name, []), texts, "test")
    return found


def sha256(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def losses(folder):
    """{step: [loss, norm of the gradient]} of the logged steps of training."""
    with open(f"{folder}/metrics.jsonl") as file:
        lines = [json.loads(line) for line in file if line.endswith("\n")]
    return {line["step"]: [line["loss"], line["grad_norm"]] for line in lines if "grad_norm" in line}


def first_words(path, most):
    """The lines of a text that have words, up to MOST words and line ends."""
    opened = gzip.open(path, "rt", encoding="utf-8") if path.endswith(".gz") else open(path, encoding="utf-8")
    with opened as file:
        words = 0
        for line in file:
            words += len(line.split()) + 1 if line.split() else 0
            if words > most:
                return
            if line.split():
                yield line


def on_disk(data, file):
    """The path of a text; NAME#WORDS is the first words of NAME, in a file that is made at its first use."""
    name, _, most = file.partition("#")
    if not most:
        return os.path.join(data, name)
    path = os.path.join(CUT.name, file.replace("/", "-") + ".txt")
    if not os.path.exists(path):
        with open(path, "w", encoding="utf-8") as cut:
            cut.writelines(first_words(os.path.join(data, name), int(most)))
    return path


def paths(data, texts):
    return [f"data.{split}=[" + ", ".join(on_disk(data, file) for file in files) + "]" for split, files in texts.items()]


def kernels_of(folder):
    """What computes in a run that is not portable, as its log says; threads change no bit."""
    with open(f"{folder}/train.log") as file:
        return next(line.split("threads, ", 1)[1].strip() for line in file if "machine:" in line)


def record_of(name, folder, texts, split, data):
    """A record of a finished run, without commit, CPU, threads and seconds."""
    with open(f"{folder}/config.yaml") as file:
        chosen = file.read()
    chosen = re.sub(r"^name: .*", "name: run", re.sub(r"^folder: .*", "folder: runs", chosen, flags=re.M), flags=re.M)
    for part, files in texts.items():
        chosen = re.sub(rf"^  {part}: \[.*\]", f"  {part}: [{', '.join(files)}]", chosen, count=1, flags=re.M)
    return {"name": name, "split": split, "figures": figures(folder, split), "weights": weights_hash(folder), "losses": losses(folder),
            "texts": texts, "hashes": {file: sha256(on_disk(data, file)) for part in texts.values() for file in part}, "config": chosen}


def keep(name, folder, commit, data):
    _, _, texts, split = known_runs()[name]
    with open(f"{folder}/metrics.jsonl") as file:
        seconds = max(json.loads(line).get("seconds", 0) for line in file)
    return {**record_of(name, folder, texts, split, data), "seconds": round(seconds), **origin(), "commit": commit, "kernels": kernels_of(folder)}


def make(name, data, threads):
    files, settings, texts, split = known_runs()[name]
    with tempfile.TemporaryDirectory() as work:
        command = [PROGRAM, "train", "--config", *map(config, files), "--set", f"folder={work}", "name=run", f"threads={threads}",
                   "train.kernels=portable", "train.precision=float32", "train.progress=none", *settings, *paths(data, texts)]
        before = time.monotonic()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        seconds = time.monotonic() - before
        return {**record_of(name, f"{work}/run", texts, split, data), "seconds": round(seconds), "threads": threads, **origin()}


def compare(record, data, until, threads):
    """What differs first when the record's steps up to `until` are computed again; all of it without `until`. Empty: nothing does."""
    for file, known in record["hashes"].items():
        if not os.path.exists(os.path.join(data, file.partition("#")[0])):
            return f"{os.path.join(data, file.partition('#')[0])}: no such file; DATA is the folder that has it"
        if sha256(on_disk(data, file)) != known:
            return f"{file} has other bytes than the record's"
    with tempfile.TemporaryDirectory() as work:
        with open(f"{work}/record.yaml", "w", encoding="utf-8") as file:
            file.write(record["config"])
        command = [PROGRAM, "train", "--config", f"{work}/record.yaml", "--set", f"folder={work}", "name=run", f"threads={threads}",
                   "train.progress=none", *paths(data, record["texts"])]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        run = f"{work}/run"
        while process.poll() is None:
            time.sleep(0.2)
            if "kernels" in record and os.path.exists(f"{run}/metrics.jsonl") and kernels_of(run) != record["kernels"]:
                process.send_signal(signal.SIGTERM)
                process.wait()
                raise LeftOut(f"it was computed by {record['kernels']}; here are {kernels_of(run)}")
            if until and os.path.exists(f"{run}/metrics.jsonl") and until in losses(run):
                process.send_signal(signal.SIGTERM)
                process.wait()
        if process.returncode not in (0, 75):
            return process.stderr.read().decode()[-2000:]
        again, known = losses(run), {int(step): found for step, found in record["losses"].items()}
        for step in sorted(known):
            if until and step > until:
                break
            if again.get(step) != known[step]:
                return f"step {step}: loss and norm of the gradient are {again.get(step)}, were {known[step]}"
        if until is None:
            if weights_hash(run) != record["weights"]:
                return "the weights differ"
            found = figures(run, record["split"])
            return "; ".join(f"{key} is {found.get(key)}, was {value}" for key, value in record["figures"].items() if found.get(key) != value)
    return ""


def replay(chosen, data, most, draw, threads):
    different, compared = 0, 0
    for record in chosen:
        steps = sorted(map(int, record["losses"]))
        until = None if most is None else draw.choice([step for step in steps if 1 < step <= most] or steps[:1])
        if until == steps[-1]:
            until = None
        try:
            said = compare(record, data, until, threads)
        except LeftOut as reason:
            print(f"{record['name']}: left out, since {reason}", flush=True)
            continue
        compared += 1
        different += bool(said)
        part = "all steps, weights, figures" if until is None else f"steps 1 to {until}"
        print(f"{record['name']}, of commit {record['commit']} and {record['cpu']}, {part}: {said or 'the same bits'}", flush=True)
    print(f"{compared} records, {different} different, {len(chosen) - compared} left out")
    return 1 if different or not compared else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--list", action="store_true")
    what.add_argument("--make", metavar="WORD")
    what.add_argument("--keep", nargs=3, metavar=("NAME", "RUN", "COMMIT"))
    what.add_argument("--table", metavar="WORD")
    what.add_argument("--replay", type=int, metavar="N")
    what.add_argument("--whole", metavar="WORD")
    parser.add_argument("--draw", type=int, default=1, help="seed of the choice of records and segments")
    parser.add_argument("--steps", type=int, default=200, help="the last step of a segment at most")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    if not (options.list or options.table) and not os.path.exists(PROGRAM):
        parser.error(f"{PROGRAM} is missing: cmake --preset release && cmake --build --preset release")
    data, records = os.path.abspath(options.data), read_results(RECORDS)
    named = lambda word: [record for record in records if word in record["name"]]
    if options.replay is not None:
        draw = random.Random(options.draw)
        sys.exit(replay(draw.sample(records, min(options.replay, len(records))), data, options.steps, draw, options.threads))
    if options.whole is not None:
        if not named(options.whole):
            parser.error(f"--whole {options.whole}: no record has this in its name; --list shows them")
        sys.exit(replay(named(options.whole), data, None, None, options.threads))
    if options.keep:
        name, folder, commit = options.keep
        if name not in known_runs():
            parser.error(f"--keep {name}: no such run; --list shows them")
        add_result(RECORDS, records, keep(name, folder, commit, data))
        options.table = name
    if options.make is not None:
        for name in known_runs():
            if options.make in name and not any(record["name"] == name for record in records):
                add_result(RECORDS, records, make(name, data, options.threads))
                print(f"{name}: recorded", file=sys.stderr)
    if options.list:
        for name in known_runs():
            print(f"{name}: " + ("recorded" if any(record["name"] == name for record in records) else "no record"))
        return
    print_table(["run", "split", "figures", "seconds", "threads", "commit", "CPU"],
                [[r["name"], r["split"], ", ".join(f"{key} {value:.4f}" for key, value in r["figures"].items() if key in SHOWN), r["seconds"],
                  r.get("threads", ""), r["commit"], r["cpu"]] for r in named(options.make or options.table)])


if __name__ == "__main__":
    main()
