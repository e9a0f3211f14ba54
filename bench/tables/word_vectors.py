#!/usr/bin/env python3
"""What vectors of words add where few texts have a label: AG News with and without train.init_vectors (docs/warm-start.md).

  bench/tables/word_vectors.py DATA [--sizes 200,2000] [--seeds 1,2,3]

fastText (skip-gram of 100 numbers, 10 epochs) makes the vectors of all training texts, without their labels. A sample of them with labels
trains a block of ag-news without n-grams: as it is, from the vectors with the words of their file, and with these frozen. Beside them
configs/classify.yaml. DATA is a folder with the sets of labelled_sets.py. Needs the built program, and fasttext in the Python that runs
this. One thread.
"""
import argparse
import json
import os
import random
import statistics
import subprocess
import tempfile

from labelled_sets import fasttext_tokens, split, write

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAM = os.path.join(ROOT, "build/release/capstan")
BLOCK = ["model.width=100", "model.ngrams.orders=[]", "train.lr=3e-3", "train.epochs=0", "data.valid_fraction=0", "data.valid=[]"]
STEPS = {200: 200, 2000: 500}


def make_vectors(texts, folder):
    import fasttext
    with open(f"{folder}/texts.txt", "w", encoding="utf-8") as file:
        file.writelines(fasttext_tokens(text) + "\n" for text in texts)
    model = fasttext.train_unsupervised(f"{folder}/texts.txt", model="skipgram", dim=100, epoch=10, thread=1)
    words = model.get_words()
    vector = lambda word: " ".join(f"{value:.5f}" for value in model.get_word_vector(word))
    with open(f"{folder}/words.vec", "w", encoding="utf-8") as file:
        file.write(f"{len(words)} 100\n")
        file.writelines(f"{word} {vector(word)}\n" for word in words)
    with open(f"{folder}/words.txt", "w", encoding="utf-8") as file:
        file.writelines(word + "\n" for word in words)


def accuracy(folder, config, seed, settings):
    command = [PROGRAM, "train", "-q", "--config", os.path.join(ROOT, f"configs/{config}.yaml"), "--set",
               f"folder={folder}", "name=run", f"seed={seed}", "threads=1", f"data.train=[{folder}/train.tsv]",
               f"data.test=[{folder}/test.tsv]", *settings]
    subprocess.run(["rm", "-rf", f"{folder}/run"], check=True)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    said = subprocess.run([PROGRAM, "eval", f"{folder}/run", "--split", "test", "--format", "json"], check=True, capture_output=True)
    return json.loads(said.stdout)["accuracy"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--sizes", default="200,2000")
    parser.add_argument("--seeds", default="1,2,3")
    options = parser.parse_args()
    train, test = split(options.data, "ag_news", 0)
    seeds = [int(seed) for seed in options.seeds.split(",")]
    with tempfile.TemporaryDirectory() as folder:
        make_vectors([text for _, text in train], folder)
        write(f"{folder}/test.tsv", test)
        from_vectors = [f"train.init_vectors={folder}/words.vec", f"data.tokenizer.vocabulary={folder}/words.txt"]
        ways = {"without vectors": ("ag-news", BLOCK), "with vectors": ("ag-news", BLOCK + from_vectors),
                "frozen": ("ag-news", BLOCK + from_vectors + ["train.freeze=[embed.*]"]), "classify": ("classify", [])}
        print("| labelled texts | " + " | ".join(ways) + " |\n" + "|---" * (len(ways) + 1) + "|", flush=True)
        for size in map(int, options.sizes.split(",")):
            found = {way: [] for way in ways}
            for seed in seeds:
                write(f"{folder}/train.tsv", random.Random(seed).sample(train, size))
                for way, (config, settings) in ways.items():
                    steps = [] if config == "classify" else [f"train.steps={STEPS.get(size, 500)}"]
                    found[way].append(accuracy(folder, config, seed, settings + steps))
            print(f"| {size} | " + " | ".join(f"{statistics.mean(values):.4f}" for values in found.values()) + " |", flush=True)


if __name__ == "__main__":
    main()
