"""The labelled data sets of ../shared/data, for the scripts of this folder."""
import gzip
import json
import os
import re
import sys

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
}
# In scripts without blanks between words; scripts take them by name only.
UNSPACED = {
    name: ([f"unspaced/{file}_train.tsv.gz"], f"unspaced/{file}_test.tsv.gz")
    for name, file in (("zh_sentiment", "shopping_zh_sentiment"), ("zh_topic", "shopping_zh_topic"), ("th", "wisesight_th"))
}


def rows(path):
    opened = gzip.open if path.endswith(".gz") else open
    with opened(path, "rt", encoding="utf-8", newline="\n") as file:
        return [line.rstrip("\n").split("\t") for line in file]


def split(data, name, fold):
    """(training rows, test rows) as pairs of label and text."""
    pairs = lambda found: [(row[0], row[-1]) for row in found]
    if isinstance(SETS.get(name), str):
        all_rows = rows(os.path.join(data, SETS[name]))
        return (pairs(r for r in all_rows if int(r[1]) != fold), pairs(r for r in all_rows if int(r[1]) == fold))
    train, test = {**SETS, **UNSPACED}[name]
    return pairs(r for part in train for r in rows(os.path.join(data, part))), pairs(rows(os.path.join(data, test)))


def read_results(path):
    return [json.loads(line) for line in open(path)] if os.path.exists(path) else []


def add_result(path, results, result):
    """Appends a result to the list and, as a line of JSON, to the file."""
    results.append(result)
    with open(path, "a") as file:
        file.write(json.dumps(result) + "\n")
    print(json.dumps(result), file=sys.stderr)


def fasttext_tokens(text):
    """Punctuation apart, in lower case, as in fastText's own examples; each character of Thai, kana and Chinese apart."""
    text = re.sub("([\u0e00-\u0e7f\u2e80-\u312f\u3190-\u9fff])", r" \1 ", text.lower())
    return " ".join(re.findall(r"[a-z0-9\x80-\U0010ffff]+|[^\sa-z0-9]", text))


def fasttext_accuracy(model, test):
    # Not model.predict(): it does not work with NumPy 2.
    found = [model.f.predict(fasttext_tokens(text) + "\n", 1, 0.0, "strict")[0][1] for _, text in test]
    return sum(a == "__label__" + b for a, (b, _) in zip(found, test)) / len(test)


def write_fasttext(path, pairs):
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(f"__label__{label} {fasttext_tokens(text)}\n" for label, text in pairs)
    return path


def write(path, pairs):
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{label}\t{text}\n" for label, text in pairs)
