#!/usr/bin/env python3
"""Accuracy over training time on many labelled texts, for every kind of classifier: a table and a picture.

  bench/tables/many_texts.py DATA [--set year] [--out FILE] [--only WORD] [--picture docs/pictures/many-texts.svg]

DATA is a folder with the set's train.tsv.gz and test.tsv.gz (label, tab, text). Everything works on one thread, in a process of its
own, whose processor seconds count from the reading of the texts to the finished model. fastText's autotune gets a tenth of the
training texts to choose on. What --out has already is not run again; --only runs the methods whose name has this word. Needs the
built program; for the baselines the packages scikit-learn and fasttext-wheel.
"""
import argparse
import gzip
import json
import math
import os
import resource
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from picture import chart  # noqa: E402
from labelled_sets import add_result, fasttext_accuracy, read_results, write_fasttext
from runs import PROGRAM, RECORDS, config, figures, origin, print_table

BLOCK = ["data.valid_fraction=0.01", "data.max_length=48", "model.max_length=48", "train.batch_size=256", "train.epochs=2", "train.lr=2e-3",
         "model.sparse_embedding=true"]


def linear(*settings):
    return lambda data, work: capstan("classify.yaml", settings, data, work)


def block(*settings):
    return lambda data, work: capstan("ag-news.yaml", [*BLOCK, *settings], data, work)


def capstan(recipe, settings, data, work):
    command = [PROGRAM, "train", "--config", config(recipe), "--set", f"folder={work}", "name=run", "threads=1", f"data.train=[{data}/train.tsv.gz]",
               f"data.test=[{data}/test.tsv.gz]", *settings]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr[-2000:])
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {"cpu_seconds": used.ru_utime + used.ru_stime, "rss_mb": used.ru_maxrss / 1e3, "accuracy": figures(f"{work}/run", "test")["accuracy"]}


def rows(data, split):
    with gzip.open(f"{data}/{split}.tsv.gz", "rt", encoding="utf-8", newline="\n") as file:
        return [tuple(line.rstrip("\n").split("\t")[:2]) for line in file]


def used_here():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return {"cpu_seconds": used.ru_utime + used.ru_stime, "rss_mb": used.ru_maxrss / 1e3}


def fasttext(**settings):
    def run(data, work):
        import fasttext as library
        train = rows(data, "train")
        if "autotuneDuration" in settings:
            settings["autotuneValidationFile"] = write_fasttext(f"{work}/valid.txt", train[::10])
            train = [row for i, row in enumerate(train) if i % 10 != 0]
        texts = write_fasttext(f"{work}/train.txt", train)
        model = library.train_supervised(texts, thread=1, verbose=0, seed=1, **settings)
        return {**used_here(), "accuracy": fasttext_accuracy(model, rows(data, "test"))}
    return run


def sklearn(with_characters, classifier):
    def run(data, work):
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.linear_model import SGDClassifier
        from sklearn.pipeline import make_pipeline, make_union
        from sklearn.svm import LinearSVC
        parts = [TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True)]
        if with_characters:
            parts.append(TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5), sublinear_tf=True))
        labels, texts = zip(*rows(data, "train"))
        found = {"SGD": SGDClassifier(loss="log_loss", alpha=1e-6, max_iter=10, tol=None, random_state=1), "SVM": LinearSVC()}[classifier]
        model = make_pipeline(make_union(*parts), found).fit(texts, labels)
        used = used_here()
        wanted, texts = zip(*rows(data, "test"))
        return {**used, "accuracy": sum(a == b for a, b in zip(model.predict(texts), wanted)) / len(wanted)}
    return run


METHODS = {
    "words": linear("model.words=[1]", "model.characters=[]"),
    "words 1, 2": linear("model.words=[1, 2]", "model.characters=[]"),
    "words 1 to 3": linear("model.characters=[]"),
    "classify.yaml": linear(),
    "no layers, n-grams 1, 2": block("model.layers=[]"),
    "aft-simple, n-grams 1, 2": block(),
    "flash, n-grams 1, 2": block("model.layers=[{mixer: {type: flash}, feed_forward: {type: none}}]"),
    "aft-simple, 4 epochs": block("train.epochs=4"),
    "fastText words": fasttext(epoch=5),
    "fastText words 1, 2, best of six settings": fasttext(wordNgrams=2, epoch=2, lr=0.5),
    "fastText words 1, 2": fasttext(wordNgrams=2, epoch=5),
    "fastText words 1, 2, subwords": fasttext(wordNgrams=2, minn=2, maxn=5, epoch=2, lr=0.5),
    "fastText autotune, 5 minutes": fasttext(autotuneDuration=300),
    "fastText autotune, 15 minutes": fasttext(autotuneDuration=900),
    "SGD words 1, 2": sklearn(False, "SGD"),
    "SGD words 1, 2, characters": sklearn(True, "SGD"),
    "SVM words 1, 2": sklearn(False, "SVM"),
    "SVM words 1, 2, characters": sklearn(True, "SVM"),
}

def curves(of_set):
    """{kind: [(seconds, accuracy), ...]}: what a kind of model gives for more time."""
    lines = {}
    for method, found in of_set.items():
        kind = method.split()[0]
        kind = {"words": "linear", "classify.yaml": "linear"}.get(kind, kind if kind in ("fastText", "SGD", "SVM") else "blocks")
        lines.setdefault(kind, []).append((found["cpu_seconds"], found["accuracy"]))
    return {kind: sorted(points) for kind, points in lines.items()}


def run_alone(options, method):
    """In a process of its own, whose memory and processor time are those of the method."""
    with tempfile.TemporaryDirectory() as work:
        command = [sys.executable, os.path.abspath(__file__), options.data, "--set", options.set, "--run", method, "--work", work]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    return json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--set", default="year")
    parser.add_argument("--out", default=os.path.join(RECORDS, "many_texts.jsonl"))
    parser.add_argument("--only", default="")
    parser.add_argument("--picture")
    parser.add_argument("--run", help=argparse.SUPPRESS)
    parser.add_argument("--work", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        print(json.dumps(METHODS[options.run](os.path.join(options.data, options.set), options.work)))
        return
    results = read_results(options.out)
    for method in METHODS:
        if options.only not in method or any(r["set"] == options.set and r["method"] == method for r in results):
            continue
        found = run_alone(options, method)
        if found is None:
            print(f"many_texts.py: {method} failed", file=sys.stderr)
            continue
        add_result(options.out, results, {"set": options.set, "method": method, **found, **origin()})
    of_set = {r["method"]: r for r in results if r["set"] == options.set}
    print_table(["method", "processor s", "MB", "accuracy"],
                [[method, f"{of_set[method]['cpu_seconds']:.0f}", f"{of_set[method]['rss_mb']:.0f}", f"{of_set[method]['accuracy']:.4f}"]
                 for method in METHODS if method in of_set])
    if options.picture:
        with open(options.picture, "w", encoding="utf-8") as file:
            file.write(chart(f"Accuracy on {options.set} over training time", "processor seconds", curves(of_set), logarithmic="x"))


if __name__ == "__main__":
    main()
