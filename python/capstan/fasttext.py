"""The interface of fastText's Python module over capstan's classifier, so that a program changes one import:

    import capstan.fasttext as fasttext

    model = fasttext.train_supervised(input="train.txt")
    model.predict("which dish is best?", k=2)

Lines are "__label__name text". What has no counterpart (.bin files, word vectors) raises capstan.Error.
"""
from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any, NoReturn, Union

import numpy as np

from ._capstan import Error
from ._run import load, train

_PREFIX = "__label__"
_Path = Union[str, "os.PathLike[str]"]

# Arguments of train_supervised(): those of _AUTOTUNE are errors, those of _FOUND are not used (see below).
_AUTOTUNE = {"autotuneValidationFile", "autotuneMetric", "autotuneDuration", "autotuneModelSize", "autotunePredictions"}
_FOUND = {"lr", "dim", "ws", "epoch", "neg", "loss", "bucket", "lrUpdateRate", "t", "thread", "verbose", "seed", "minCount",
          "minCountLabel"}


def train_supervised(input: _Path, wordNgrams: int | None = None, minn: int | None = None, maxn: int | None = None,
                     label: str = _PREFIX, pretrainedVectors: str = "", **others: Any) -> _Model:
    """Trains the classifier of configs/classify.yaml on a file in fastText's format.

    wordNgrams, minn and maxn choose the n-grams; without them they are the recipe's. Rates, epochs and sizes (lr, epoch,
    dim, bucket, loss, ...) are accepted and not used: the weights are solved for, and strengths found by cross-validation.
    """
    if label != _PREFIX:
        raise Error(f"label={label!r}: labels begin with {_PREFIX}")
    if pretrainedVectors:
        raise Error("pretrainedVectors: this classifier counts n-grams and has no word vectors: leave it out, or train a network that "
                    "starts from them, capstan.train(\"ag-news\", data={\"train\": FILE, \"test\": [], \"format\": \"fasttext\"}, "
                    "model__width=THEIR_WIDTH, train__init_vectors=VECTORS)")
    if _AUTOTUNE & set(others):
        raise Error(f"{min(_AUTOTUNE & set(others))}: settings are found by cross-validation on the training data; leave it out, or "
                    "search further with the command capstan autotune")
    unknown = set(others) - _FOUND
    if unknown:
        raise TypeError(f"train_supervised() got an unexpected keyword argument {sorted(unknown)[0]!r}")
    keys: dict[str, Any] = {}
    if wordNgrams is not None:
        keys["model.words"] = list(range(1, wordNgrams + 1))
    if minn is not None or maxn is not None:
        keys["model.characters"] = list(range(max(1, minn or 0), (maxn or 0) + 1))
    folder = tempfile.TemporaryDirectory(prefix="capstan-")
    if not Path(input).is_file():
        raise Error(f"{input}: no such file")
    with open(input, encoding="utf-8", errors="replace") as lines:
        several = any(sum(word.startswith(_PREFIX) for word in line.split()) != 1 for line in lines)
    run = train("classify", data={"train": os.fspath(input), "format": "fasttext", "multi_label": several}, quiet=others.get("verbose", 2) < 2,
                name="run", folder=folder.name, **keys)
    return _Model(run, folder)


def load_model(path: _Path) -> _Model:
    """Opens a folder that save_model() wrote, or any run folder of a classifier."""
    if not Path(path).exists():
        raise Error(f"{path}: no such file or folder")
    if Path(path).is_file():
        raise Error(f"{path}: capstan reads run folders, not fastText's files; train on the same data with "
                    "capstan.fasttext.train_supervised()")
    return _Model(load(path), None)


def train_unsupervised(*_: Any, **__: Any) -> NoReturn:
    """Raises Error: capstan learns no word vectors."""
    raise Error("train_unsupervised: capstan has no word vectors; train a masked model (recipe \"masked-lm\") and use "
                "Run.embed()")


def tokenize(text: str) -> list[str]:
    """The words of a text, as fastText divides it."""
    return text.split()


def _ratio(part, whole):
    return part / whole if whole else float("nan")


class _Model:
    def __init__(self, run, folder):
        run._needs("classes")
        self._take(run, folder, slim=False)

    def _take(self, run, folder, slim):
        self._run, self._folder, self._slim = run, folder, slim
        self._labels = [_PREFIX + name for name in run.classes]

    def predict(self, text: Any, k: int = 1, threshold: float = 0.0, on_unicode_error: str = "strict") -> tuple[Any, Any]:
        """The k likeliest labels of a text, and their probabilities; of a list of texts, lists of both."""
        texts = [text] if isinstance(text, str) else text
        if any("\n" in one for one in texts):
            raise ValueError("predict processes one line at a time (remove '\\n')")
        rows = self._run.predict_proba(texts)
        k = len(self._labels) if k == -1 else min(k, len(self._labels))
        if k == 1 and len(rows) == 1:  # as most calls are: to sort the classes of one text takes as long as its prediction
            likeliest = int(rows[0].argmax())
            certain = rows[0, likeliest:likeliest + 1].astype(float)
            some = [self._labels[likeliest]] if certain[0] >= threshold else []
            return (tuple(some), certain[:len(some)]) if isinstance(text, str) else ([some], [certain[:len(some)]])
        best = np.argsort(-rows, axis=1, kind="stable")[:, :k]
        found = rows[np.arange(len(rows))[:, None], best]
        labels = [[self._labels[index] for index in row] for row in best.tolist()]
        probabilities = list(found.astype(float))
        if threshold > 0:
            counts = (found >= threshold).sum(axis=1)
            labels, probabilities = ([row[:count] for row, count in zip(both, counts)] for both in (labels, probabilities))
        return (tuple(labels[0]), probabilities[0]) if isinstance(text, str) else (labels, probabilities)

    def test(self, path: _Path, k: int = 1, threshold: float = 0.0) -> tuple[int, float, float]:
        """The number of texts with labels in a file, precision at k and recall at k."""
        found, truth = self._found(path, k, threshold)
        right = sum(len(a & b) for a, b in zip(found, truth))
        return len(truth), _ratio(right, sum(map(len, found))), _ratio(right, sum(map(len, truth)))

    def test_label(self, path: _Path, k: int = 1, threshold: float = 0.0) -> dict[str, dict[str, float]]:
        """Precision, recall and their harmonic mean of each label in a file: {label: {"precision", "recall", "f1score"}}."""
        found, truth = self._found(path, k, threshold)
        figures = {}
        for label in sorted(set().union(*truth, *found)):
            right = sum(label in a and label in b for a, b in zip(found, truth))
            predicted, true = sum(label in a for a in found), sum(label in b for b in truth)
            figures[label] = {"precision": _ratio(right, predicted), "recall": _ratio(right, true),
                              "f1score": _ratio(2 * right, predicted + true)}
        return figures

    def _found(self, path, k, threshold):
        """Of each text with labels in a file, those that are predicted and those it has."""
        texts, truth = [], []
        with open(path, encoding="utf-8") as lines:
            for line in lines:
                words = line.split()
                labels = {word for word in words if word.startswith(_PREFIX)}
                if labels:
                    truth.append(labels)
                    texts.append(" ".join(word for word in words if not word.startswith(_PREFIX)))
        return [set(labels) for labels in self.predict(texts, k, threshold)[0]] if texts else [], truth

    def get_labels(self, include_freq: bool = False, on_unicode_error: str = "strict") -> list[str]:
        """The labels, with their prefix."""
        if include_freq:
            raise Error("get_labels: a run does not keep how often labels occurred; count them in the training data")
        return list(self._labels)

    @property
    def labels(self) -> list[str]:
        return self.get_labels()

    def save_model(self, path: _Path) -> None:
        """Writes the run to the folder `path`, which must not exist: capstan predict reads it, too."""
        if Path(path).exists():
            raise Error(f"{path}: it exists; give the name of a new folder")
        shutil.copytree(self._run.folder, path)

    def quantize(self, input: Any = None, qout: bool = False, cutoff: int = 0, retrain: bool = False,
                 size: float | None = None, **others: Any) -> None:
        """Makes the model slim, for prediction alone: `size` times its size or, with `input`, a file of texts, as small as
        changes their probabilities by at most 0.01 on average; else all n-grams stay (Run.slim). fastText's settings are
        accepted and not used."""
        if unknown := set(others) - _FOUND - {"dsub", "qnorm"}:
            raise TypeError(f"quantize() got an unexpected keyword argument {sorted(unknown)[0]!r}")
        folder = tempfile.TemporaryDirectory(prefix="capstan-")
        texts = None
        if input is not None and size is None:
            with open(input, encoding="utf-8") as lines:
                words = [line.split() for _, line in zip(range(1000), lines)]
            texts = [" ".join(word for word in line if not word.startswith(_PREFIX)) for line in words]
        self._take(self._run.slim(Path(folder.name) / "run", size, texts), folder, slim=True)

    def is_quantized(self) -> bool:
        """Whether quantize() was called."""
        return self._slim

    def __getattr__(self, name: str) -> NoReturn:
        if name in ("get_word_vector", "get_sentence_vector", "get_nearest_neighbors", "get_analogies", "get_words", "words",
                    "get_input_matrix", "get_output_matrix", "get_subwords", "get_word_id", "get_subword_id", "get_dimension",
                    "get_input_vector", "get_line"):
            raise Error(f"{name}: capstan's classifier is linear over n-grams and has no vectors of words; "
                        "train_supervised(), predict(), test(), get_labels() and save_model() are what it shares with fastText")
        raise AttributeError(f"capstan.fasttext model has no attribute {name!r}")
