#!/usr/bin/env python3
"""Perplexity of interpolated modified Kneser-Ney n-grams, the strong simple baseline of language models of words.

  bench/tables/kneser_ney.py TRAIN TEST [--order 5] [--words 10000] [--lower] [--cache 2000 --weight 0.1]

Chen and Goodman 1999, section 4.1.6: each order has three discounts, estimated from its own counts of counts; lower orders count
the different words in front; the lowest is mixed with a uniform distribution. As Capstan counts: words are divided by blanks, each
line ends with a token of its own, and sentences follow each other as one text. --words keeps the most frequent ones of TRAIN, <unk> and
the end of a line included. With --cache, the shares of the last N words, mixed in with the weight (Kuhn and De Mori 1990); choose it
on validation data. Needs nothing but Python, and about 200 bytes for each different n-gram.
"""
import argparse
import collections
import math


def read(path, lower):
    with open(path, encoding="utf-8") as file:
        for line in file:
            yield from (line.lower() if lower else line).split()
            yield "<eos>"


class KneserNey:
    def __init__(self, tokens, order, vocabulary):
        self.vocabulary = vocabulary
        counts = collections.Counter(tuple(tokens[i - order + 1:i + 1]) for i in range(order - 1, len(tokens)))
        # The begin of the text has no words in front of it.
        self.levels = [self.level(counts)]
        for _ in range(order - 1):
            lower = collections.Counter(ngram[1:] for ngram in counts)
            counts = lower
            self.levels.append(self.level(counts))
        self.levels.reverse()

    @staticmethod
    def level(counts):
        """(counts, discounts, counts of each history, discounted mass of each history)."""
        of_counts = collections.Counter(counts.values())
        n1, n2, n3, n4 = (of_counts[i] for i in (1, 2, 3, 4))
        y = n1 / (n1 + 2 * n2) if n1 else 0
        discounts = [0, 1 - 2 * y * n2 / n1 if n1 else 0, 2 - 3 * y * n3 / n2 if n2 else 0, 3 - 4 * y * n4 / n3 if n3 else 0]
        totals, mass = collections.Counter(), collections.defaultdict(float)
        for ngram, count in counts.items():
            totals[ngram[:-1]] += count
            mass[ngram[:-1]] += discounts[min(count, 3)]
        return counts, discounts, totals, mass

    def probability(self, history, word):
        p = 1 / self.vocabulary
        for length, (counts, discounts, totals, mass) in enumerate(self.levels):
            context = history[len(history) - length:]
            total = totals.get(context)
            if length > len(history) or not total:
                break
            count = counts.get(context + (word,), 0)
            p = max(count - discounts[min(count, 3)], 0) / total + mass[context] / total * p
        return p


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("train")
    parser.add_argument("test")
    parser.add_argument("--order", type=int, default=5)
    parser.add_argument("--words", type=int, default=0, help="size of the vocabulary; 0: all words of TRAIN")
    parser.add_argument("--lower", action="store_true")
    parser.add_argument("--cache", type=int, default=0, help="so many of the last words")
    parser.add_argument("--weight", type=float, nargs="+", default=[0.1], help="of the cache; several are all tried")
    options = parser.parse_args()
    words = list(read(options.train, options.lower))
    frequent = collections.Counter(words)
    for special in ("<unk>", "<eos>"):
        frequent.pop(special, None)
    kept = [word for word, _ in frequent.most_common(options.words - 2 if options.words else None)]
    ids = {word: i for i, word in enumerate(["<unk>", "<eos>"] + kept)}
    train = [ids.get(word, 0) for word in words]
    test = [ids.get(word, 0) for word in read(options.test, options.lower)]
    model = KneserNey(train, options.order, len(ids))
    weights = options.weight if options.cache else [0.0]
    losses, recent = [0.0] * len(weights), collections.Counter()
    for i, word in enumerate(test):
        p = model.probability(tuple(test[max(0, i - options.order + 1):i]), word)
        share = recent[word] / min(i, options.cache) if i and options.cache else p
        for k, weight in enumerate(weights):
            losses[k] -= math.log((1 - weight) * p + weight * share)
        if options.cache:
            recent[word] += 1
            if i >= options.cache:
                recent[test[i - options.cache]] -= 1
    for weight, loss in zip(weights, losses):
        print(f"order {options.order}, {len(ids)} words, {len(train)} training tokens, {len(test)} test tokens, cache {options.cache}, "
              f"weight {weight}: perplexity {math.exp(loss / len(test)):.2f}")


if __name__ == "__main__":
    main()
