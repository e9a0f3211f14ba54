#!/usr/bin/env python3
"""Classes of very different sizes: what class weights and rules of decision do, beside LinearSVC with class_weight="balanced".

  bench/imbalance.py --capstan build/release/capstan --set mr=mr.tsv [--set NAME=FILE]... [--ratios 5 20 100] [--seeds 3]

FILE: TSV, the label first and the text last. The commonest two labels are taken; of the second, so many texts are left out that there is one for every
RATIO of the first. Half of the texts, drawn by the seed, are for training. Prints a table in Markdown: means over seeds of macro-F1, F1
and recall of the rare class, log loss and calibration error (15 bins). Needs scikit-learn.
"""
import argparse
import collections
import json
import pathlib
import random
import statistics
import subprocess
import tempfile

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import f1_score, recall_score
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_union
from sklearn.svm import LinearSVC

WAYS = {
    "as it is": [],
    "class_weights: balanced": ["model.class_weights=balanced"],
    "monitor: macro-f1": ["train.monitor=macro-f1"],
    "balanced, monitor: macro-f1": ["model.class_weights=balanced", "train.monitor=macro-f1"],
}


def halves(path, ratio, seed):
    """Training and test texts, as (label, text) with the label rare or common."""
    rows = [(fields[0], fields[-1]) for fields in (line.rstrip("\n").split("\t") for line in open(path, encoding="utf-8"))]
    common, rare = [label for label, _ in collections.Counter(label for label, _ in rows).most_common(2)]
    draw = random.Random(f"{seed} {ratio}")
    groups = {name: [text for label, text in rows if label == wanted] for name, wanted in (("common", common), ("rare", rare))}
    for texts in groups.values():
        draw.shuffle(texts)
    groups["rare"] = groups["rare"][:len(groups["common"]) // ratio]
    parts = ([], [])
    for name, texts in groups.items():
        for i, text in enumerate(texts):
            parts[i % 2].append((name, text))
    for part in parts:
        draw.shuffle(part)
    return parts


def of_capstan(program, folder, settings, seed):
    command = [program, "train", "-q", "--config", "classify", "--set", f"data.train=[{folder}/train.tsv]", f"data.test=[{folder}/test.tsv]",
               "data.valid_fraction=0", f"seed={seed}", f"folder={folder}", "name=run", "data.header=false", *settings]
    subprocess.run(["rm", "-rf", f"{folder}/run"], check=True)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    report = json.loads(subprocess.run([program, "eval", f"{folder}/run", "--split", "test", "--format", "json"], check=True,
                                       capture_output=True, text=True).stdout)
    rare = next(one for one in report["classes"] if one["class"] == "rare")
    return [report["macro_f1"], rare["f1"], rare["recall"], report["loss"], report["calibration_error"]]


def of_svc(train, test, threshold):
    features = make_union(TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True),
                          TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5), sublinear_tf=True))
    x, y = features.fit_transform([text for _, text in train]), np.array([label == "rare" for label, _ in train])
    truth = np.array([label == "rare" for label, _ in test])
    model = LinearSVC(class_weight="balanced")
    cut = 0.0
    if threshold:
        scores = cross_val_predict(model, x, y, cv=5, method="decision_function")
        cut = max(np.quantile(scores, np.linspace(0, 1, 400)), key=lambda at: f1_score(y, scores >= at, average="macro"))
    given = model.fit(x, y).decision_function(features.transform([text for _, text in test])) >= cut
    return [f1_score(truth, given, average="macro"), f1_score(truth, given), recall_score(truth, given)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--capstan", required=True)
    parser.add_argument("--set", action="append", required=True, dest="sets", metavar="NAME=FILE")
    parser.add_argument("--ratios", type=int, nargs="+", default=[5, 20, 100])
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    print("| set | ratio | rare texts | way | macro-F1 | F1 rare | recall rare | log loss | ECE |\n|---|---|---|---|---|---|---|---|---|")
    for one in options.sets:
        name, path = one.split("=", 1)
        for ratio in options.ratios:
            found = collections.defaultdict(list)
            for seed in range(1, options.seeds + 1):
                with tempfile.TemporaryDirectory() as folder:
                    train, test = halves(path, ratio, seed)
                    for part, rows in (("train", train), ("test", test)):
                        pathlib.Path(folder, f"{part}.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in rows), encoding="utf-8")
                    for way, settings in WAYS.items():
                        found[way].append(of_capstan(options.capstan, folder, settings, seed))
                    found["LinearSVC balanced"].append(of_svc(train, test, False))
                    found["LinearSVC balanced, cut by cross-validation"].append(of_svc(train, test, True))
            rare = sum(label == "rare" for label, _ in train)
            for way, rows in found.items():
                figures = [statistics.mean(column) for column in zip(*rows)]
                cells = [f"{100 * value:.1f}" for value in figures[:3]] + [f"{value:.4f}" for value in figures[3:]] or []
                print(f"| {name} | 1:{ratio} | {rare} | {way} | " + " | ".join(cells + ["-"] * (5 - len(cells))) + " |", flush=True)


if __name__ == "__main__":
    main()
