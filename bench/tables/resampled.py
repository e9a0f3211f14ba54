#!/usr/bin/env python3
"""More labelled texts than a set has: their words are drawn again, with replacement, from the texts of the same class.

  bench/tables/resampled.py DATA/year/train.tsv.gz 10000000 [--parts P] [--seed S] > train.tsv

The file has a label, a tab and a text in each line. Each new text has a label of the file, in its proportions, the number of words of one of
that label's texts, and words of any of them. With --parts P, the texts of each label are divided into P parts that are labels of their own,
label-1 to label-P: 46 of the 22 years give 1,012 classes. The same seed gives the same bytes. Writes about 40 MB a second.
"""
import argparse
import gzip
import sys

import numpy as np

CHUNK = 100_000  # texts that are made at a time


def read(path, parts):
    """{label: texts as lists of words}, all bytes."""
    found = {}
    with gzip.open(path, "rb") as file:
        for number, line in enumerate(file):
            label, text = line.rstrip(b"\n").split(b"\t")[:2]
            name = label if parts == 1 else b"%s-%d" % (label, number % parts + 1)
            found.setdefault(name, []).append(text.split())
    return found


def make(found, texts, draw, out):
    pieces, number_of = [], {}  # what lines consist of: a label with its tab, a word with its blank

    def piece(written):
        if written not in number_of:
            number_of[written] = len(pieces)
            pieces.append(written)
        return number_of[written]

    labels = np.array([piece(label + b"\t") for label in found])
    words = [np.array([piece(word + b" ") for text in of for word in text]) for of in found.values()]
    sizes = [np.array([max(1, len(text)) for text in of]) for of in found.values()]
    shares = np.array([len(of) for of in found.values()], dtype=float)
    length = np.array([len(written) for written in pieces])
    begin = np.cumsum(length) - length
    all_bytes = np.frombuffer(b"".join(pieces), dtype=np.uint8)
    for first in range(0, texts, CHUNK):
        classes = draw.choice(len(labels), size=min(CHUNK, texts - first), p=shares / shares.sum())
        counts = np.empty(len(classes), dtype=np.int64)
        for which in range(len(labels)):
            rows = np.flatnonzero(classes == which)
            counts[rows] = sizes[which][draw.integers(len(sizes[which]), size=len(rows))]
        chosen = np.empty(int(counts.sum()) + len(classes), dtype=np.int64)
        at = np.cumsum(counts + 1) - counts - 1  # of the labels
        chosen[at] = labels[classes]
        of = np.repeat(classes, counts)
        is_word = np.ones(len(chosen), dtype=bool)
        is_word[at] = False
        drawn = np.empty(len(of), dtype=np.int64)
        for which in range(len(labels)):
            places = np.flatnonzero(of == which)
            drawn[places] = words[which][draw.integers(len(words[which]), size=len(places))]
        chosen[is_word] = drawn
        lengths = length[chosen]
        end = np.cumsum(lengths)
        line = all_bytes[np.repeat(begin[chosen] - end + lengths, lengths) + np.arange(end[-1])]
        line[end[at + counts] - 1] = ord("\n")
        out.write(line.tobytes())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("texts", type=int)
    parser.add_argument("--parts", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    make(read(chosen.file, chosen.parts), chosen.texts, np.random.default_rng(chosen.seed), sys.stdout.buffer)


main()
