import pytest

import capstan

GOOD = ["a fine film", "lovely and warm", "the best of the year", "great fun", "what a joy", "superb acting"]
BAD = ["a dull film", "cold and boring", "the worst of the year", "no fun", "what a bore", "poor acting"]


@pytest.fixture(scope="session")
def reviews():
    texts = [f"{text} {i}" for i in range(10) for text in GOOD + BAD]
    return texts, ["good" if any(text.startswith(start) for start in GOOD) else "bad" for text in texts]


@pytest.fixture(scope="session")
def book(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "book.txt"
    path.write_text("The quick brown fox jumps over the lazy dog. " * 400)
    return path


LANGUAGE_MODEL = {
    "name": "lm", "seed": 1,
    "data": {"type": "text", "tokenizer": "byte", "sequence_length": 32},
    "model": {"type": "language-model", "width": 32, "layers": [{"mixer": "aft-simple", "repeat": 1}]},
    "train": {"steps": 200, "batch_size": 8, "lr": 0.01},
}


@pytest.fixture(scope="session")
def language_model(book, tmp_path_factory):
    return capstan.train(LANGUAGE_MODEL, book, quiet=True, folder=tmp_path_factory.mktemp("runs"))
