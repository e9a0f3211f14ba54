#!/usr/bin/env python3
"""Multi-query associative recall (MQAR; Arora et al. 2023, arXiv 2312.04927): keys with their values, then every key again.

  bench/data/recall.py [--out datasets/recall-4] [--length 64] [--pairs 4] [--vocabulary 256] [--train 100000] ...

Sequences are drawn as in the paper: k1 v1 k2 v2 0 0 k2 0 k1 0 0 0. Keys are distinct tokens of the lower half of the vocabulary,
values of the upper half, 0 is the filler. The places after the pairs are every other token; place g = 1, 2, ... is asked with a
probability proportional to g^(power - 1).

Each question becomes one line of train.jsonl, valid.jsonl or test.jsonl: {"text": "k1 v1 k2 v2 0 0 k2", "label": "v2"}, the sequence up to
the key that is asked. A causal classifier that reads the last token (model.causal, pooling: last) predicts exactly what a language model
predicts at this place: the same prefix, the same value.
"""
import argparse
import json
import pathlib
import random


def sequence(draw, options):
    """Tokens, and the place and value of every question."""
    half = options.vocabulary // 2
    keys = draw.sample(range(1, half), options.pairs)
    values = draw.sample(range(half, options.vocabulary), options.pairs)
    begin = 2 * options.pairs * options.passes
    places = range(begin, options.length, 2)
    # Drawn without replacement in proportion to weights: the order of exponential waiting times (Efraimidis and Spirakis 2006).
    waits = {place: draw.expovariate((1 + (place - begin) // 2) ** (options.power - 1)) for place in places}
    asked = sorted(places, key=waits.get)[:options.pairs]
    tokens = [0] * options.length
    tokens[:begin] = [token for pair in zip(keys, values) for token in pair] * options.passes
    for key, place in zip(keys, asked):
        tokens[place] = key
    if options.random_filler:
        tokens = [token or draw.randrange(options.vocabulary) for token in tokens]
    return tokens, list(zip(asked, values))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, default="datasets/recall-4")
    parser.add_argument("--vocabulary", type=int, default=256)
    parser.add_argument("--length", type=int, default=64, help="tokens per sequence; even, and below the vocabulary")
    parser.add_argument("--pairs", type=int, default=4, help="keys per sequence, each asked once")
    parser.add_argument("--passes", type=int, default=1, help="how often the pairs are listed before the questions")
    parser.add_argument("--random-filler", action="store_true", help="random tokens of the whole vocabulary in place of 0")
    parser.add_argument("--train", type=int, default=100000, help="sequences")
    parser.add_argument("--valid", type=int, default=1000)
    parser.add_argument("--test", type=int, default=3000)
    parser.add_argument("--power", type=float, default=0.01, help="below 1, most questions come early")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if options.length % 2 or 2 * options.pairs * (options.passes + 1) > options.length or options.vocabulary <= options.length:
        parser.error("the length must be even, at least 2 * pairs * (passes + 1), and below the vocabulary")
    options.out.mkdir(parents=True, exist_ok=True)
    for split, count in (("train", options.train), ("valid", options.valid), ("test", options.test)):
        draw = random.Random(f"{options.seed}/{split}")
        with open(options.out / f"{split}.jsonl", "w") as file:
            for _ in range(count):
                tokens, questions = sequence(draw, options)
                for place, value in questions:
                    file.write(json.dumps({"text": " ".join(map(str, tokens[:place + 1])), "label": str(value)}) + "\n")


if __name__ == "__main__":
    main()
