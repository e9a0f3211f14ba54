#!/usr/bin/env python3
"""A program written for fastText, with fastText's module and with capstan.fasttext: accuracy, seconds, texts per second, before and
after quantize().

  bench/tables/beside_fasttext.py DATA [--sets trec ag_news imdb dbpedia14k] [--rounds 3]

Needs the packages capstan, fasttext-wheel and scikit-learn. Each works on one thread; loading and predicting are timed in turn, in
rounds, of which the medians are shown. fastText has the settings of its README for such data (word pairs, 25 epochs, rate 0.5), and
for quantize() retrain=True, cutoff=100000; TF-IDF of words and pairs with LogisticRegression(C=10) is beside them.
"""
import argparse
import gzip
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--sets", nargs="+", default=["trec", "ag_news", "imdb", "dbpedia14k"])
    parser.add_argument("--rounds", type=int, default=3)
    return parser.parse_args()


def rows(folder, split):
    path = folder / f"{split}.tsv"
    opened = open(path, encoding="utf-8") if path.exists() else gzip.open(f"{path}.gz", "rt", encoding="utf-8")
    with opened as lines:
        for line in lines:
            fields = line.rstrip("\n").split("\t")
            label, text = fields[0], fields[-1]  # of TREC, a finer label is between them
            yield label, " ".join(text.split())


def timed(work):
    started = time.perf_counter()
    result = work()
    return result, time.perf_counter() - started


def megabytes(path):
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file() and not file.is_symlink()]
    return sum(file.stat().st_size for file in files) / 1e6


def main():
    options = parse()
    import fasttext as theirs
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    import capstan.fasttext as ours

    theirs.FastText.eprint = lambda *_: None
    print("| set | model | MB | accuracy | train, s | load, s | texts/s, of a list | texts/s, one by one |\n|---|---|---|---|---|---|---|---|")
    for name in options.sets:
        with tempfile.TemporaryDirectory() as work:
            train, test = list(rows(options.data / name, "train")), list(rows(options.data / name, "test"))
            file = Path(work) / "train.txt"
            file.write_text("".join(f"__label__{label} {text}\n" for label, text in train), encoding="utf-8")
            labels, texts = zip(*test)
            wanted = [f"__label__{label}" for label in labels]
            models, figures = {}, {}
            for title, module, settings, small in (
                    ("capstan", ours, {}, {}),
                    ("fastText", theirs, {"wordNgrams": 2, "epoch": 25, "lr": 0.5}, {"retrain": True, "cutoff": 100000, "thread": 1})):
                made, seconds = timed(lambda: module.train_supervised(input=str(file), verbose=0, **({"thread": 1} | settings)))
                made.save_model(str(Path(work) / title))
                figures[title] = [seconds, [], [], []]
                _, seconds = timed(lambda: made.quantize(input=str(file), **small))
                made.save_model(str(Path(work) / f"{title}, small"))
                figures[f"{title}, small"] = [seconds, [], [], []]
                models |= {title: module, f"{title}, small": module}
            pipeline = make_pipeline(TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True), LogisticRegression(C=10, max_iter=1000))
            _, seconds = timed(lambda: pipeline.fit([text for _, text in train], [f"__label__{label}" for label, _ in train]))
            figures["TF-IDF + LR"] = [seconds, [], [], []]
            found = {}
            some = list(texts[:2000])
            for _ in range(options.rounds):
                for title, module in models.items():
                    model, seconds = timed(lambda: module.load_model(str(Path(work) / title)))
                    figures[title][1].append(seconds)
                    (said, _), seconds = timed(lambda: model.predict(list(texts)))
                    found[title] = [one[0] for one in said]
                    figures[title][2].append(len(texts) / seconds)
                    _, seconds = timed(lambda: [model.predict([text]) for text in some])  # fastText alone fails on a str with NumPy 2
                    figures[title][3].append(len(some) / seconds)
                said, seconds = timed(lambda: pipeline.predict(texts))
                found["TF-IDF + LR"] = said
                figures["TF-IDF + LR"][2].append(len(texts) / seconds)
            for title, (seconds, loads, many, single) in figures.items():
                right = sum(a == b for a, b in zip(found[title], wanted)) / len(wanted)
                size, load, alone = "", "", ""
                if title in models:
                    size, load = f"{megabytes(Path(work) / title):.2f}", f"{statistics.median(loads):.3f}"
                    alone = f"{statistics.median(single):,.0f}"
                print(f"| {name} | {title} | {size} | {right:.4f} | {seconds:.1f} | {load} | {statistics.median(many):,.0f} | {alone} |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
