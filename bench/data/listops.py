#!/usr/bin/env python3
"""ListOps (Nangia and Bowman 2018; the form of Long Range Arena, Tay et al. 2021): nested expressions and their values, for classifiers.

  bench/data/listops.py [--out datasets/listops-small] [--train 20000] [--valid 1000] [--test 1000] [--min-length 4] [--max-length 64]

Writes train.jsonl, valid.jsonl and test.jsonl, with lines such as {"label": "9", "text": "[MAX 2 9 [MIN 4 7 ] 0 ]"}. MED is the
median, of an even number the mean of the two in the middle, truncated; SM is the sum modulo 10. No two expressions are equal.
The defaults are those of configs/classifier-*.yaml. Those of Long Range Arena: --train 96000 --valid 2000 --test 2000 --min-length 500
--max-length 2000 --max-depth 10 --max-arguments 10.
"""
import argparse
import json
import pathlib
import random
import statistics

OPERATORS = {"[MIN": min, "[MAX": max, "[MED": lambda values: int(statistics.median(values)), "[SM": lambda values: sum(values) % 10}
PATIENCE = 200000  # draws without a new expression; Long Range Arena's setting keeps one in twelve


def expression(draw, options, tokens, depth=1):
    """Appends a random expression to the tokens and returns its value; stops early, with any value, once there are too many."""
    if len(tokens) >= options.max_length:
        return 0
    if depth >= options.max_depth or draw.random() >= options.operator_probability:
        digit = int(draw.random() * 10)
        tokens.append(str(digit))
        return digit
    operator = list(OPERATORS)[int(draw.random() * 4)]
    tokens.append(operator)
    arguments = 2 + int(draw.random() * (options.max_arguments - 1))
    values = [expression(draw, options, tokens, depth + 1) for _ in range(arguments)]
    tokens.append("]")
    return OPERATORS[operator](values)


def split(name, count, options, seen):
    draw = random.Random(f"{options.seed}/{name}")
    without = 0
    while count > 0:
        tokens = []
        value = expression(draw, options, tokens)
        text = " ".join(tokens)
        without += 1
        if without > PATIENCE:
            raise SystemExit(f"listops.py: too few different expressions for {name}: widen the lengths, or ask for fewer")
        if options.min_length < len(tokens) < options.max_length and text not in seen:
            seen.add(text)
            count, without = count - 1, 0
            yield {"label": str(value), "text": text}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, default="datasets/listops-small")
    parser.add_argument("--train", type=int, default=20000)
    parser.add_argument("--valid", type=int, default=1000)
    parser.add_argument("--test", type=int, default=1000)
    parser.add_argument("--min-length", type=int, default=4, help="expressions have more tokens than this")
    parser.add_argument("--max-length", type=int, default=64, help="expressions have fewer tokens than this")
    parser.add_argument("--max-depth", type=int, default=4, help="the root has depth 1; at the largest depth there are only digits")
    parser.add_argument("--max-arguments", type=int, default=5, help="an operator has from 2 to this many")
    parser.add_argument("--operator-probability", type=float, default=0.25, help="instead of a digit")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    seen = set()
    for name, count in (("test", options.test), ("valid", options.valid), ("train", options.train)):
        with open(options.out / f"{name}.jsonl", "w") as file:
            for row in split(name, count, options, seen):
                file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
