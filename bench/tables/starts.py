"""What the systems of classifiers.py start from: a classifier of reviews, pretrained language models, vectors of words. Each is made once."""
import gzip
import os
import random
import re

from runs import best_weights, config, train
from sets import fasttext_tokens, has_folds, rows, split, write

SHARED_WORDS = 8
TESTED = ("trec", "mr", "cr", "subj", "sst1", "mpqa")
TESTED_FOLDS = (0, 1, 2)  # of pretraining
WIKIPEDIA_CHARACTERS = 8_000_000
# Shares of the windows: small sets are read several times.
SHARES = {"imdb": 50, "amazon": 12, "wikipedia": 12, "ag_news": 6, "mr": 6, "subj": 6, "cr": 3, "trec": 5}


def shingles(text):
    words = re.findall(r"[a-z0-9\x80-\U0010ffff]+", text.lower())
    return (" ".join(words[i:i + SHARED_WORDS]) for i in range(len(words) - SHARED_WORDS + 1))


def sentences(text):
    parts = re.split(r"(?<=[.!?])\s+", text.replace("<br />", " . "))
    return [part for part in parts if len(part.split()) >= 4]


def train_on_reviews(data, work):
    """classify.yaml on the sentences of IMDB's and Amazon's training texts, each with the label of its review. Reviews that share eight
    words in a row with a text of the sets are left out."""
    if best_weights(f"{work}/reviews"):
        return
    known = {shingle for name in TESTED for part in split(data, name, 0) for _, text in part for shingle in shingles(text)}
    known.update(shingle for row in rows(f"{data}/sentence_sets/sst1_valid.tsv") for shingle in shingles(row[-1]))
    reviews = [review for name in ("imdb", "amazon") for review in split(data, name, 0)[0]]
    kept = [(label, text) for label, text in reviews if not any(shingle in known for shingle in shingles(text))]
    found = [(label, sentence) for label, text in kept for sentence in sentences(text)]
    random.Random(1).shuffle(found)
    print(f"{len(found)} sentences of {len(kept)} reviews; {len(reviews) - len(kept)} reviews left out", flush=True)
    train([config("classify.yaml")], [f"data.train=[{write(f'{work}/reviews.tsv', found)}]"], f"{work}/reviews", splits=(), keep=True)


def unlabelled(data, name):
    """Training texts only; none that is tested on."""
    if name == "wikipedia":
        with gzip.open(f"{data}/enwiki_plain/train.txt.gz", "rt", encoding="utf-8") as file:
            return [line for line in file.read(WIKIPEDIA_CHARACTERS).split("\n") if len(line.split()) > 8]
    if has_folds(name):
        return [text for fold in range(10) if fold not in TESTED_FOLDS for _, text in split(data, name, fold)[1]]
    return [text for _, text in split(data, name, 0)[0]]


def pretrain(data, work):
    """A masked and a causal language model (configs/pretraining) of about 20 million tokens: IMDB, Amazon, AG News, TREC and folds 3 to
    9 of MR, CR and Subj, without labels, and 8 MB of Wikipedia. Texts that are equal to a test text are left out."""
    tested = {text.lower() for name in ("trec", "mr", "cr", "subj") for fold in TESTED_FOLDS for _, text in split(data, name, fold)[1]}
    for name in SHARES:
        if not os.path.exists(f"{work}/{name}.txt"):
            kept = [text for text in unlabelled(data, name) if text.lower() not in tested]
            random.Random(1).shuffle(kept)
            with open(f"{work}/{name}.txt.part", "w", encoding="utf-8", newline="\n") as file:
                file.writelines(text + "\n" for text in kept)
            os.rename(f"{work}/{name}.txt.part", f"{work}/{name}.txt")
    files = [f"data.train=[{', '.join(f'{work}/{name}.txt' for name in SHARES)}]", f"data.weights=[{', '.join(map(str, SHARES.values()))}]"]
    for kind in ("masked", "causal"):
        if not best_weights(f"{work}/{kind}"):
            train([config(f"pretraining/{kind}.yaml")], [*files, f"data.cache={work}/cache"], f"{work}/{kind}", splits=(), keep=True)


def make_vectors(data, work):
    """fastText's vectors of the words of AG News' training texts, without their labels: skip-gram, width 100, 10 epochs."""
    if os.path.exists(f"{work}/words.vec"):
        return
    import fasttext
    with open(f"{work}/texts.txt", "w", encoding="utf-8") as file:
        file.writelines(fasttext_tokens(text) + "\n" for _, text in split(data, "ag_news", 0)[0])
    model = fasttext.train_unsupervised(f"{work}/texts.txt", model="skipgram", dim=100, epoch=10, thread=1)
    words = model.get_words()
    with open(f"{work}/words.vec.part", "w", encoding="utf-8") as file:
        file.write(f"{len(words)} 100\n")
        file.writelines(f"{word} {' '.join(f'{value:.5f}' for value in model.get_word_vector(word))}\n" for word in words)
    os.rename(f"{work}/words.vec.part", f"{work}/words.vec")
