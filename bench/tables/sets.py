"""The labelled data sets of ../shared/data, and how the programs of this folder read them."""
import collections
import gzip
import os
import random
import re

# name: (training files, test file), or one file whose second column is the fold
SETS = {
    "imdb": (["imdb/train.tsv.gz"], "imdb/test.tsv.gz"),
    "amazon": (["amazon_multidomain/train.tsv.gz"], "amazon_multidomain/test.tsv.gz"),
    "ag_news": (["ag_news/train.tsv"], "ag_news/test.tsv"),
    "dbpedia": (["dbpedia14k/train.tsv.gz"], "dbpedia14k/test.tsv"),
    "r8": (["r8/train.tsv.gz"], "r8/test.tsv"),
    "trec": (["trec/train.tsv"], "trec/test.tsv"),
    "sst1": (["sentence_sets/sst1_train.tsv"], "sentence_sets/sst1_test.tsv"),
    "mr": "sentence_sets/mr.tsv",
    "subj": "sentence_sets/subj.tsv",
    "cr": "sentence_sets/cr.tsv",
    "mpqa": "sentence_sets/mpqa.tsv",
    "year": (["year/train.tsv.gz"], "year/test.tsv.gz"),
    "zh_sentiment": (["unspaced/shopping_zh_sentiment_train.tsv.gz"], "unspaced/shopping_zh_sentiment_test.tsv.gz"),
    "zh_topic": (["unspaced/shopping_zh_topic_train.tsv.gz"], "unspaced/shopping_zh_topic_test.tsv.gz"),
    "th": (["unspaced/wisesight_th_train.tsv.gz"], "unspaced/wisesight_th_test.tsv.gz"),
}


def has_folds(name):
    return isinstance(SETS.get(name), str)


def rows(path):
    opened = gzip.open if path.endswith(".gz") else open
    with opened(path, "rt", encoding="utf-8", newline="\n") as file:
        return [line.rstrip("\n").split("\t") for line in file]


def split(data, name, fold):
    """(training rows, test rows) as pairs of label and text. "mr 1:20" is MR with so few texts of its second class."""
    name, _, ratio = name.partition(" 1:")
    if ratio:
        return rare_class(rows(os.path.join(data, SETS[name])), int(ratio), fold)
    pairs = lambda found: [(row[0], row[-1]) for row in found]
    if has_folds(name):
        all_rows = rows(os.path.join(data, SETS[name]))
        return pairs(r for r in all_rows if int(r[1]) != fold), pairs(r for r in all_rows if int(r[1]) == fold)
    train, test = SETS[name]
    return pairs(r for part in train for r in rows(os.path.join(data, part))), pairs(rows(os.path.join(data, test)))


def rare_class(found, ratio, seed):
    """Half of the texts of the two commonest labels for training; of the second, one for every `ratio` of the first."""
    names = [label for label, _ in collections.Counter(row[0] for row in found).most_common(2)]
    draw = random.Random(f"{seed} {ratio}")
    groups = {called: [row[-1] for row in found if row[0] == label] for called, label in zip(("common", "rare"), names)}
    for texts in groups.values():
        draw.shuffle(texts)
    groups["rare"] = groups["rare"][:len(groups["common"]) // ratio]
    parts = [[(name, text) for name, texts in groups.items() for text in texts[half::2]] for half in (0, 1)]
    for part in parts:
        draw.shuffle(part)
    return parts


def write(path, pairs):
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{label}\t{text}\n" for label, text in pairs)
    return path


def fasttext_tokens(text):
    """Punctuation apart, in lower case, as in fastText's own examples; each character of Thai, kana and Chinese apart."""
    text = re.sub("([\u0e00-\u0e7f\u2e80-\u312f\u3190-\u9fff])", r" \1 ", text.lower())
    return " ".join(re.findall(r"[a-z0-9\x80-\U0010ffff]+|[^\sa-z0-9]", text))


def write_fasttext(path, pairs):
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(f"__label__{label} {fasttext_tokens(text)}\n" for label, text in pairs)
    return path
