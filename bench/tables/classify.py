#!/usr/bin/env python3
"""configs/classify.yaml beside strong baselines, on labelled data sets: TF-IDF of words with logistic regression, TF-IDF of words and
characters with a linear SVM, and fastText.

  bench/tables/classify.py DATA [--out results.jsonl] [--sets mr,trec] [--seeds 1,2,3] [--folds 10] [--sizes all,500,2000]

DATA is a folder with the sets of labelled_sets.py (rows of columns divided by tabs: label first, text last). Needs the built
program. The baselines need scikit-learn and fasttext in the Python that runs this; without them they are left out, and
this is said. Every result is appended to --out as a line of JSON; what is there already is not run again. The table of
all results in --out is printed at the end. A set with --sizes N is a sample of N training texts, tested on all of the
test set (of fold 0 where there are folds). Sets in scripts without blanks: --sets zh_sentiment,zh_topic,th; they also have TF-IDF
of one to three characters.

  bench/tables/classify.py DATA --out bench/tables/records/classify.jsonl --replay N [--draw SEED] [--threads T]

trains N random ones of the results of classify.yaml in --out again, and compares weights and figures, bit for bit. The exit code is 1
if something differs. The bits are the same on every CPU and with any number of threads.
"""
import argparse
import json
import math
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time

from labelled_sets import SETS, UNSPACED, add_result, fasttext_accuracy, read_results, split, write, write_fasttext
from runs import PROGRAM, config, origin, weights_hash


def calibration(probabilities, labels):
    """Mean log loss, and the expected calibration error of the likeliest class in 15 bins of equal width."""
    loss, bins = 0, [[0, 0] for _ in range(15)]
    for found, label in zip(probabilities, labels):
        loss -= math.log(max(found.get(label, 0), 1e-15)) / len(labels)
        best = max(found, key=found.get)
        of_bin = bins[min(14, int(15 * found[best]))]
        of_bin[0] += found[best]
        of_bin[1] += best == label
    return loss, sum(abs(sure - right) for sure, right in bins) / len(labels)


def capstan(train, test, seed, folder, threads=0):
    """The recipe, unchanged."""
    write(f"{folder}/train.tsv", train)
    write(f"{folder}/test.tsv", test)
    before = time.monotonic()
    command = [PROGRAM, "train", "--config", config("classify.yaml"), "--set", f"seed={seed}", f"threads={threads}"]
    command += [f"folder={folder}", f"data.train=[{folder}/train.tsv]", f"data.test=[{folder}/test.tsv]"]
    # By a shell that forks: the peak of a process that Python starts itself counts Python's own memory.
    process = subprocess.Popen(["/bin/sh", "-c", '"$@"; exit $?', "sh", *command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    errors = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        raise RuntimeError(errors.decode()[-2000:])
    seconds = time.monotonic() - before
    with open(f"{folder}/classify/metrics.jsonl") as metrics:
        peak = max(json.loads(line).get("peak_rss_bytes", 0) for line in metrics)
    said = subprocess.run([PROGRAM, "eval", f"{folder}/classify", "--split", "test"], check=True, capture_output=True)
    accuracy = float(re.search(rb"^accuracy ([\d.]+)", said.stdout, re.M).group(1))
    rows = subprocess.run([PROGRAM, "predict", f"{folder}/classify", f"{folder}/test.tsv", "--format", "jsonl"], check=True,
                          capture_output=True).stdout.splitlines()
    loss, error = calibration([json.loads(row)["probabilities"] for row in rows], [label for label, _ in test])
    return {"accuracy": accuracy, "log_loss": loss, "calibration_error": error, "seconds": seconds, "cpu_seconds": usage.ru_utime, "rss_mb": peak / 1e6,
            "weights": weights_hash(f"{folder}/classify"), **origin()}


def logistic_regression(train, test, seed, folder, **ngrams):
    """Words and pairs of words, or other n-grams; sublinear TF-IDF; C = 10. One seed: it has no random part."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    before = time.process_time()
    vectorizer = TfidfVectorizer(**(ngrams or {"ngram_range": (1, 2)}), sublinear_tf=True)
    features = vectorizer.fit_transform([text for _, text in train])
    model = LogisticRegression(C=10, max_iter=1000).fit(features, [label for label, _ in train])
    found = model.predict(vectorizer.transform([text for _, text in test]))
    right = sum(a == b for a, (b, _) in zip(found, test))
    return {"accuracy": right / len(test), "cpu_seconds": time.process_time() - before}


def characters(train, test, seed, folder):
    return logistic_regression(train, test, seed, folder, analyzer="char", ngram_range=(1, 3))


def words_and_characters(train, test, seed, folder):
    """Words, pairs of words, and two to five characters within words; sublinear TF-IDF; LinearSVC with C = 1. One seed."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.pipeline import make_pipeline, make_union
    from sklearn.svm import LinearSVC
    before = time.process_time()
    features = make_union(TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True),
                          TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5), sublinear_tf=True))
    model = make_pipeline(features, LinearSVC()).fit([text for _, text in train], [label for label, _ in train])
    found = model.predict([text for _, text in test])
    right = sum(a == b for a, (b, _) in zip(found, test))
    return {"accuracy": right / len(test), "cpu_seconds": time.process_time() - before}


def fasttext(train, test, seed, folder):
    """Words and pairs of words, 10 epochs, learning rate 0.5, width 100; punctuation apart, in lower case."""
    import fasttext as library
    texts = write_fasttext(f"{folder}/train.txt", train)
    before = time.process_time()
    model = library.train_supervised(texts, lr=0.5, epoch=10, wordNgrams=2, dim=100, thread=1, verbose=0,
                                     seed=seed)
    return {"accuracy": fasttext_accuracy(model, test), "cpu_seconds": time.process_time() - before}


def methods(characters_too):
    found = {"classify.yaml": capstan}
    known = [("TF-IDF + LR", "sklearn", logistic_regression), ("words, characters + SVM", "sklearn", words_and_characters),
             ("fastText", "fasttext", fasttext)]
    for name, module, method in known + ([("characters + LR", "sklearn", characters)] if characters_too else []):
        try:
            __import__(module)
            found[name] = method
        except ImportError:
            print(f"classify.py: {name} is left out: there is no {module} in {sys.executable}", file=sys.stderr)
    return found


def table(results):
    """One line per set and size: the mean over folds and seeds."""
    cells = {}
    for r in results:
        cells.setdefault((r["set"], r["size"]), {}).setdefault(r["method"], []).append(r)
    names = ["classify.yaml", "TF-IDF + LR", "words, characters + SVM", "characters + LR", "fastText"]
    names = [name for name in names if any(r["method"] == name for r in results)]
    print("| data set | training texts | runs | " + " | ".join(names) + " | ahead | CPU s | MB |")
    print("|---" * (len(names) + 6) + "|")
    leads = []
    for (name, size), found in sorted(cells.items(), key=lambda cell: (cell[0][1] != "all", str(cell[0][1]), cell[0][0])):
        # Folds that all methods have been run on.
        folds = set.intersection(*({r["fold"] for r in runs} for runs in found.values()))
        kept = {method: [r for r in runs if r["fold"] in folds] for method, runs in found.items()}
        mean = {method: statistics.mean(r["accuracy"] for r in runs) for method, runs in kept.items() if runs}
        if "classify.yaml" not in mean:
            continue
        ours = kept["classify.yaml"]
        others = [value for method, value in mean.items() if method != "classify.yaml"]
        lead = mean["classify.yaml"] - max(others) if others else None
        if lead is not None:
            leads.append(lead)
        shown = [f"{mean[method]:.4f}" if method in mean else "" for method in names]
        print(f"| {name} | {ours[0]['train']} | {len(ours)} | " + " | ".join(shown) +
              f" | {'' if lead is None else f'{100 * lead:+.2f}'} | {max(r['cpu_seconds'] for r in ours):.0f} |"
              f" {max(r['rss_mb'] for r in ours):.0f} |")
    if leads:
        print(f"\nahead on average: {100 * statistics.mean(leads):+.2f} points over {len(leads)} sets")


def chosen_texts(train, size, seed):
    return train if size == "all" else random.Random(seed).sample(train, int(size))


def replay(options, results):
    """How many of the drawn results have other bits when they are made again."""
    known = [r for r in results if "weights" in r]
    drawn = random.Random(options.draw).sample(known, min(options.replay, len(known)))
    different = 0
    for r in drawn:
        train, test = split(options.data, r["set"], r["fold"])
        with tempfile.TemporaryDirectory() as folder:
            again = capstan(chosen_texts(train, r["size"], r["seed"]), test, r["seed"], folder, options.threads)
        names = [name for name in ("weights", "accuracy", "log_loss", "calibration_error") if again[name] != r[name]]
        different += bool(names)
        print(f"{r['set']}, {r['size']} texts, fold {r['fold']}, seed {r['seed']}, of commit {r['commit']}: " +
              ("; ".join(f"{name} is {again[name]}, was {r[name]}" for name in names) or "the same bits"), flush=True)
    print(f"{len(drawn)} results of {len(known)} made again, {different} different")
    return different


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--out", default="classify.jsonl")
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--sizes", default="all")
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--folds", type=int, default=10, help="of the sets that have folds, the first ones")
    parser.add_argument("--replay", type=int, metavar="N", help="make N random results of classify.yaml again, and compare")
    parser.add_argument("--draw", type=int, default=1, help="for --replay: seed of the choice")
    parser.add_argument("--threads", type=int, default=0, help="for --replay: threads of the program; 0 = all cores")
    options = parser.parse_args()
    results = read_results(options.out)
    if options.replay is not None:
        sys.exit(1 if replay(options, results) else 0)
    done = {(r["set"], str(r["size"]), r["method"], r["seed"], r["fold"]) for r in results}
    for size in options.sizes.split(","):
        for name in options.sets.split(","):
            for fold in range(options.folds if isinstance(SETS.get(name), str) and size == "all" else 1):
                train = test = None
                for method, run in methods(name in UNSPACED).items():
                    for seed in [int(s) for s in options.seeds.split(",")]:
                        if method.endswith(("LR", "SVM")) and seed != int(options.seeds.split(",")[0]) and size == "all":
                            continue
                        if (name, size, method, seed, fold) in done:
                            continue
                        train, test = (train, test) if train else split(options.data, name, fold)
                        chosen = chosen_texts(train, size, seed)
                        with tempfile.TemporaryDirectory() as folder:
                            result = run(chosen, test, seed, folder)
                        result.update({"set": name, "size": size, "method": method, "seed": seed, "fold": fold,
                                       "train": len(chosen), "test": len(test)})
                        add_result(options.out, results, result)
    table(results)


if __name__ == "__main__":
    main()
