#!/usr/bin/env python3
"""What pretraining is worth: classifiers of TREC, MR, CR and Subj from scratch, from a masked and from a causal language model.

  bench/tables/pretraining.py DATA WORK [--seeds 1,2,3] [--sets trec,mr,cr,subj] [--sizes all,500] [--jobs 2] [--set key=value ...]
  bench/tables/pretraining.py DATA WORK --validate [--set key=value ...]     settings: tested on held-out training texts

The models are those of configs/pretraining. Both are pretrained once, on the training texts of IMDB, Amazon, AG News, TREC
and folds 3 to 9 of MR, CR and Subj, without labels, and on 8 MB of Wikipedia; texts that are equal to a test text are left out.
Classifiers are tested on folds 0 to 2 and trained on the other nine (TREC: its own test set), or on 500 of their texts,
all with equal numbers of steps; the end of training counts. --validate trains on folds 3 to 8 and tests on fold 9 (TREC: the
first four fifths and the last).
Everything is in WORK: the same command goes on where it stopped. Needs the built program; prints the table at the end.
"""
import argparse
import concurrent.futures
import gzip
import json
import os
import random
import re
import statistics
import subprocess
import tempfile
import threading
import time

from labelled_sets import SETS, rows, split, write

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAM = os.path.join(ROOT, "build/release/capstan")
TESTED_FOLDS = (0, 1, 2)
WIKIPEDIA_CHARACTERS = 8_000_000
# Shares of the windows: small sets are read several times.
SHARES = {"imdb": 50, "amazon": 12, "wikipedia": 12, "ag_news": 6, "mr": 6, "subj": 6, "cr": 3, "trec": 5}
STARTS = {
    "scratch": [],
    "masked": ["train.init_from={work}/masked"],
    "causal, scratch": ["model.causal=true"],
    "causal": ["model.causal=true", "train.init_from={work}/causal"],
}


def texts_without_labels(data, name):
    """Training texts only; none that is tested on."""
    if name == "wikipedia":
        with gzip.open(f"{data}/enwiki_plain/train.txt.gz", "rt", encoding="utf-8") as file:
            return [line for line in file.read(WIKIPEDIA_CHARACTERS).split("\n") if len(line.split()) > 8]
    if isinstance(SETS[name], str):
        return [row[-1] for row in rows(os.path.join(data, SETS[name])) if int(row[1]) not in TESTED_FOLDS]
    return [text for _, text in split(data, name, 0)[0]]


def write_texts(data, work):
    tested = {text.lower() for name in ("trec", "mr", "cr", "subj") for fold in TESTED_FOLDS for _, text in split(data, name, fold)[1]}
    os.makedirs(f"{work}/texts", exist_ok=True)
    for name in SHARES:
        path = f"{work}/texts/{name}.txt"
        if os.path.exists(path):
            continue
        texts = texts_without_labels(data, name)
        kept = [text for text in texts if text.lower() not in tested]
        random.Random(1).shuffle(kept)
        with open(path + ".part", "w", encoding="utf-8", newline="\n") as file:
            file.writelines(text + "\n" for text in kept)
        os.rename(path + ".part", path)
        print(f"{name}: {len(kept)} texts, {sum(len(text.split()) for text in kept)} words, "
              f"{len(texts) - len(kept)} left out because they are tested", flush=True)


def pretrain(work, kind, precision):
    """About 20 million tokens; goes on where it stopped, and returns at once if the run has ended."""
    files = ", ".join(f"{work}/texts/{name}.txt" for name in SHARES)
    weights = ", ".join(str(share) for share in SHARES.values())
    subprocess.run([PROGRAM, "train", "--config", f"{ROOT}/configs/pretraining/{kind}.yaml", "--set", f"name={kind}", f"folder={work}",
                    f"data.train=[{files}]", f"data.weights=[{weights}]", f"data.cache={work}/cache", f"train.precision={precision}",
                    "threads=1", "train.progress=plain"], check=True, stdout=subprocess.DEVNULL)


def cases(options):
    for name in options.sets.split(","):
        for size in options.sizes.split(","):
            for fold in TESTED_FOLDS if isinstance(SETS[name], str) and not options.validate else (0,):
                for start in STARTS:
                    for seed in options.seeds.split(","):
                        yield {"set": name, "size": size, "fold": fold, "start": start, "seed": int(seed),
                               "settings": " ".join(options.set), "validate": options.validate}


def texts_of(data, case):
    name = case["set"]
    if not case["validate"]:
        train, test = split(data, name, case["fold"])
    elif isinstance(SETS[name], str):
        found = rows(os.path.join(data, SETS[name]))
        train, test = ([(row[0], row[-1]) for row in found if int(row[1]) in folds] for folds in (range(3, 9), (9,)))
    else:
        found = split(data, name, 0)[0]
        train, test = found[:len(found) * 4 // 5], found[len(found) * 4 // 5:]
    return (train if case["size"] == "all" else random.Random(case["seed"]).sample(train, int(case["size"]))), test


def classify(data, work, case, precision):
    """The case with its accuracy and its processor seconds."""
    train, test = texts_of(data, case)
    steps = [] if case["size"] == "all" else ["train.steps=300"]
    starts = [setting.format(work=work) for setting in STARTS[case["start"]]]
    with tempfile.TemporaryDirectory() as folder:
        write(f"{folder}/train.tsv", train)
        write(f"{folder}/test.tsv", test)
        process = subprocess.Popen(
            [PROGRAM, "train", "--config", f"{ROOT}/configs/pretraining/classify.yaml", "--set", f"folder={folder}", f"seed={case['seed']}",
             "threads=1", f"train.precision={precision}", f"data.train=[{folder}/train.tsv]", f"data.test=[{folder}/test.tsv]",
             f"data.tokenizer.file={work}/masked/tokenizer.json", *starts, *steps, *case["settings"].split()],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        errors = process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        if status != 0:
            raise RuntimeError(f"{case}: {errors.decode()[-2000:]}")
        said = subprocess.run([PROGRAM, "eval", f"{folder}/classify", "--split", "test"], check=True, capture_output=True)
    accuracy = float(re.search(rb"^accuracy ([\d.]+)", said.stdout, re.M).group(1))
    return {**case, "accuracy": accuracy, "cpu_seconds": usage.ru_utime, "train": len(train), "test": len(test)}


def table(results):
    """Means over folds and seeds; the deviation is that of the seeds' means over folds."""
    print("| data set | training texts | " + " | ".join(STARTS) + " | masked − scratch | causal − causal scratch |")
    print("|---" * (len(STARTS) + 4) + "|")
    cells = {}
    for result in results:
        cells.setdefault((result["set"], result["size"], result["settings"]), {}).setdefault(
            result["start"], {}).setdefault(result["seed"], []).append(result)
    for (name, size, settings), starts in sorted(cells.items(), key=lambda cell: (cell[0][2], cell[0][1] != "all", cell[0][0])):
        means = {start: [statistics.mean(run["accuracy"] for run in runs) for runs in seeds.values()] for start, seeds in starts.items()}
        shown = [f"{statistics.mean(found):.4f}" + (f" ± {statistics.stdev(found):.4f}" if len(found) > 1 else "")
                 for found in (means.get(start, []) for start in STARTS) if found]
        gain = lambda start, other: (f"{100 * (statistics.mean(means[start]) - statistics.mean(means[other])):+.1f}"
                                     if start in means and other in means else "")
        count = next(iter(next(iter(starts.values())).values()))[0]["train"]
        print(f"| {f'{name} {settings}'.strip()} | {count} | " + " | ".join(shown) +
              f" | {gain('masked', 'scratch')} | {gain('causal', 'causal, scratch')} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("work")
    parser.add_argument("--sets", default="trec,mr,cr,subj")
    parser.add_argument("--sizes", default="all,500")
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time, each with one thread")
    parser.add_argument("--set", nargs="*", default=[], help="settings of the classifiers, to be compared with others")
    parser.add_argument("--starts", default=None, help="these only, divided by semicolons: " + "; ".join(STARTS))
    parser.add_argument("--precision", default="bf16" if "avx512_bf16" in open("/proc/cpuinfo").read() else "float32")
    parser.add_argument("--validate", action="store_true")
    options = parser.parse_args()
    work = os.path.abspath(options.work)
    write_texts(options.data, work)
    starts = options.starts.split(";") if options.starts else list(STARTS)
    kinds = ["masked", "causal"] if "causal" in starts else ["masked"]  # whose tokenizer all have
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(lambda kind: pretrain(work, kind, options.precision), kinds))
    records = f"{work}/{'validation' if options.validate else 'results'}.jsonl"
    results = [json.loads(line) for line in open(records)] if os.path.exists(records) else []
    key = lambda case: tuple(case[name] for name in ("set", "size", "fold", "start", "seed", "settings"))
    done = {key(result) for result in results}
    left = [case for case in cases(options) if key(case) not in done and case["start"] in starts]
    lock = threading.Lock()

    def run(case):
        result = classify(options.data, work, case, options.precision)
        with lock, open(records, "a") as file:
            file.write(json.dumps(result) + "\n")
            results.append(result)

    start = time.time()
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(run, left))
    print(f"{len(left)} classifiers in {time.time() - start:.0f} s\n")
    table(results)


if __name__ == "__main__":
    main()
