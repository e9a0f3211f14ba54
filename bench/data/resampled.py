#!/usr/bin/env python3
"""More labelled texts than a set has: their words are drawn again, with replacement, from the texts of the same class.

  bench/data/resampled.py DATA/year/train.tsv.gz 10000000 [PARTS] > train.tsv

A new text has a label of the file, in its proportions, the number of words of one of that label's texts, and words of any of them. With
PARTS, the texts of each label are divided into so many labels of their own: 46 of the 22 years give 1,012 classes.
"""
import gzip
import random
import sys


def main():
    file, count, parts = sys.argv[1], int(sys.argv[2]), int((sys.argv[3:] or ["1"])[0])
    sizes, words = {}, {}
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        for number, line in enumerate(lines):
            label, text = line.rstrip("\n").split("\t")[:2]
            name = label if parts == 1 else f"{label}-{number % parts + 1}"
            sizes.setdefault(name, []).append(max(1, len(text.split())))
            words.setdefault(name, []).extend(text.split())
    draw = random.Random(1)
    for label in draw.choices(list(sizes), [len(of) for of in sizes.values()], k=count):
        print(label, " ".join(draw.choices(words[label], k=draw.choice(sizes[label]))), sep="\t")


main()
