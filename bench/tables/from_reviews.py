#!/usr/bin/env python3
"""configs/classify.yaml on the sentence sets of Kim 2014, alone and starting from a classifier of reviews (train.init_from).

  bench/tables/from_reviews.py DATA [--sets mr,cr,mpqa,subj,sst1,trec] [--sizes all,500] [--folds 10] [--out FILE] [--work runs/tables]

The classifier of reviews is classify.yaml, too: it tells good reviews from bad ones, by the sentences of the training texts of
IMDB and Amazon, each with the label of its review. Reviews that share eight words in a row with a text of the sets are
left out. Mean and deviation over folds; SST-1 and TREC: their test sets. A size is a sample of so many training texts, another one
in each fold. One thread.
"""
import argparse
import os
import random
import re
import statistics

from labelled_sets import SETS, rows, split, write
from runs import Grid, add_grid_options, config, print_table, train
from sentence_sets import KIM

SHARED_WORDS = 8


def shingles(text):
    words = re.findall(r"[a-z0-9\x80-\U0010ffff]+", text.lower())
    return (" ".join(words[i:i + SHARED_WORDS]) for i in range(len(words) - SHARED_WORDS + 1))


def sentences(text):
    parts = re.split(r"(?<=[.!?])\s+", text.replace("<br />", " . "))
    return [part for part in parts if len(part.split()) >= 4]


def write_sentences(data, path):
    known = {shingle for name in KIM for part in split(data, name, 0) for _, text in part for shingle in shingles(text)}
    known.update(shingle for row in rows(f"{data}/sentence_sets/sst1_valid.tsv") for shingle in shingles(row[-1]))
    found, reviews, left_out = [], 0, 0
    for name in ("imdb", "amazon"):
        for label, text in split(data, name, 0)[0]:
            reviews += 1
            if any(shingle in known for shingle in shingles(text)):
                left_out += 1
            else:
                found += [(label, sentence) for sentence in sentences(text)]
    random.Random(1).shuffle(found)
    write(path + ".part", found)
    os.rename(path + ".part", path)
    print(f"{len(found)} sentences of {reviews - left_out} reviews; {left_out} reviews left out", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--sets", default=",".join(KIM))
    parser.add_argument("--sizes", default="all,500")
    parser.add_argument("--folds", type=int, default=10)
    add_grid_options(parser, "from_reviews.jsonl")
    options = parser.parse_args()
    grid = Grid(options.out, options.work, options.jobs)
    base = f"{grid.work}/sentences-of-reviews"
    if not os.path.exists(base + ".tsv"):
        write_sentences(options.data, base + ".tsv")
    if not os.path.exists(base + "/checkpoints/best"):
        result = train([config("classify.yaml")], [f"data.train=[{base}.tsv]"], base, splits=(), keep=True)
        print(f"the classifier of reviews took {result['seconds']:.0f} s and {result['rss_mb']:.0f} MB", flush=True)

    def run(cell):
        name, size, fold, start = cell
        case = {"table": "from reviews", "set": name, "size": size, "fold": fold, "start": start}
        if found := grid.find(case):
            return found
        learnt, tested = split(options.data, name, fold)
        if size != "all":
            learnt = random.Random(fold).sample(learnt, int(size))
        files = [f"{grid.work}/{name}-{size}-{fold}-{start}-{part}.tsv" for part in ("train", "test")]
        for path, pairs in zip(files, (learnt, tested)):
            write(path, pairs)
        result = grid.run(case, [config("classify.yaml")],
                          [f"data.train=[{files[0]}]", f"data.test=[{files[1]}]"] + ([f"train.init_from={base}"] if start == "reviews" else []),
                          splits=("test",))
        for path in files:
            os.remove(path)
        return result

    names, sizes = options.sets.split(","), options.sizes.split(",")
    cells = [(name, size, fold, start) for size in sizes for name in names
             for fold in range(options.folds if isinstance(SETS[name], str) else 1) for start in ("alone", "reviews")]
    found = dict(zip(cells, grid.each(run, cells)))
    table = []
    for size in sizes:
        for name in names:
            runs = {start: [found[c] for c in cells if c[:2] == (name, size) and c[3] == start] for start in ("alone", "reviews")}
            accuracy = {start: [result["test"]["accuracy"] for result in results] for start, results in runs.items()}
            gains = [100 * (b - a) for a, b in zip(accuracy["alone"], accuracy["reviews"])]
            shown = lambda values, digits: f"{statistics.mean(values):.{digits}f}" + (f" ± {statistics.stdev(values):.{digits}f}" if len(values) > 1 else "")
            table.append([name, size, shown(accuracy["alone"], 4), shown(accuracy["reviews"], 4), shown(gains, 2),
                          *(KIM[name] if size == "all" else ("", "")), f"{max(r['seconds'] for r in runs['reviews']):.0f}",
                          f"{max(r['rss_mb'] for r in runs['reviews']):.0f}"])
    print_table(["data set", "training texts", "alone", "from reviews", "gain, points", "Kim, rand", "Kim, non-static", "longest run, s", "MB"], table)


if __name__ == "__main__":
    main()
