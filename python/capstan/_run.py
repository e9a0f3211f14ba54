"""Trained models: load(), train() and the Run that both return."""
from __future__ import annotations

import codecs
import copy
import difflib
import html
import json
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Union

import numpy as np

from . import _capstan
from ._capstan import Error
from ._config import config_file, data_keys, key_of, override, plain, set_key
from ._history import History
from ._log import observed, observes
from ._texts import as_texts

_one_training = threading.Lock()  # signals of a process belong to one training
Text = Union[str, "tuple[str, ...]"]  # a tuple: a text of several columns


def load(folder: str | os.PathLike, **overrides: Any) -> Run:
    """Opens a run that capstan trained: its best checkpoint, or else the last.

    `folder` is a run folder or that of one of its checkpoints. `overrides` give keys of its data other values, such as
    data__test=["other.tsv"]. Raises Error when something is missing or damaged.
    """
    return Run(_capstan.Run.open(os.fspath(folder), [override(key_of(key), value) for key, value in overrides.items()]))


def train(config: str | os.PathLike | dict, data: Any = None, *, on_log: Callable[[str, str], None] | None = None,
          callback: Callable[[dict[str, Any]], Any] | None = None, quiet: bool = False, **overrides: Any) -> Run:
    """Trains a run to its end and opens it; a run that was interrupted goes on from its last checkpoint.

    `config` is the name of a recipe ("lm", "classify"), the path of a YAML file, or a dictionary of the same keys.
    `data` names the files of the training data, or is a dictionary of keys below `data`. `overrides` are keys:
    train__steps=500, or **{"train.steps": 500}. Lines of the log go to standard error or, with `on_log`, to
    on_log(level, line).

    `callback` gets each event of Run.history as it is recorded, {"event": "train", "step": 20, "loss": 2.1, ...}. When it returns True, the
    run is saved and train() returns it; the same call then continues it. What it raises is raised when the run is saved.

    The run is in the folder runs/<name>, where the name is that of the recipe unless `name` gives another. A process trains
    one run at a time; other threads wait. Ctrl-C saves the run and raises KeyboardInterrupt; the same call then continues.
    Raises Error for a configuration or data that cannot be used.
    """
    values = {**data_keys(data), **{key_of(key): plain(value) for key, value in overrides.items()}}
    if observes():
        raise Error("train: on_log() cannot train, since the training whose line it got waits for it; train after that one")
    watch = _Watch(callback)
    with _one_training, observed(on_log, quiet):
        if not isinstance(config, dict):
            run = _capstan.train([config_file(config)], [override(*item) for item in values.items()], "", watch.observe)
        else:
            tree = plain(copy.deepcopy(config))
            for key, value in values.items():
                set_key(tree, key, value)
            run = _capstan.train([], [], json.dumps(tree, ensure_ascii=False), watch.observe)
    if watch.raised is not None:
        raise watch.raised
    return Run(run)


class _Watch:
    """Gives the lines of a training to a callback."""

    def __init__(self, callback):
        self._callback, self.raised = callback, None
        self.observe = self._observe if callback else None

    def _observe(self, line):
        if self.raised is not None:
            return True
        try:
            return bool(self._callback(json.loads(line)))
        except BaseException as error:  # train() raises it
            self.raised = error
            return True


def decided(probabilities, rule):
    """The index of the class that each text is given: of the likeliest, or by the rule of the run (docs/labelled.md)."""
    if not len(probabilities):
        return np.zeros(0, int)
    if len(rule) == 0:
        return probabilities.argmax(axis=1)
    rule, p = np.array(rule), probabilities.astype(float)
    return (p * rule).argmax(axis=1) if len(rule) == p.shape[1] else (p @ rule.reshape(p.shape[1], -1)).argmin(axis=1)


class Run:
    """A trained model with its configuration and tokenizer. Threads may use it at the same time."""

    def __init__(self, native: _capstan.Run):
        self._native, self._task = native, native.task

    def __repr__(self) -> str:
        return f"<capstan.Run {self.folder} ({self.task})>"

    @property
    def folder(self) -> str:
        """The run's folder."""
        return self._native.folder

    @property
    def task(self) -> str:
        """What the model predicts: "classes", "hidden_tokens" (a masked model), "next_token" or "pairs"."""
        return self._task

    @property
    def classes(self) -> list[str]:
        """Names of a classifier's classes, in the order of predict_proba()'s columns."""
        return self._native.classes

    @property
    def config(self) -> str:
        """The configuration, as the YAML text that the run was trained with."""
        return self._native.config

    @property
    def history(self) -> History:
        """The figures of the training so far: a list of dictionaries that plots."""
        return History.read(self.folder)

    def _repr_html_(self) -> str:
        """The page of `capstan report`, without what needs the data, for notebooks."""
        try:
            page = _capstan.report_page(self.folder)
        except Error:  # a run that has recorded nothing
            return html.escape(repr(self))
        return f'<iframe srcdoc="{html.escape(page)}" sandbox="allow-scripts" style="width: 100%; height: 640px; border: 0"></iframe>'

    @property
    def rule(self) -> list[float]:
        """Of a classifier's decisions (decided()); empty for the likeliest class."""
        return self._native.rule

    @property
    def thresholds(self) -> list[float]:
        """Where texts have any number of labels, the probability from which they have each."""
        return self._native.thresholds

    def predict(self, texts: Sequence[Text], **options: Any) -> list:
        """What the model says of each text.

        Of a classifier the class, or the list of classes where a text may have several (`threshold`: the probability
        that a class needs; by default the run's). Of a masked model the filled text (see fill()), of a model of pairs the
        completion (see complete()).
        """
        if self.task == "classes":
            return self._labels(self.predict_proba(texts), **options)
        if self.task == "hidden_tokens":
            return [text for text, _ in self.fill(list(map(str, texts)), **options)]
        if self.task == "pairs":
            return [found[0][0] for found in self.complete(texts, **options)]
        raise Error(f"{self.folder}: a language model predicts no labels; use generate(), score() or embed()")

    def _labels(self, probabilities, threshold=None):
        classes = self.classes
        if not self._native.multi_label:
            if threshold is not None:
                raise Error("threshold: only runs with data.multi_label: true have one")
            return [classes[index] for index in decided(probabilities, self.rule)]
        least = self.thresholds if threshold is None else [threshold] * len(classes)
        return [[name for name, p, t in zip(classes, row, least) if p >= t] for row in probabilities]

    def predict_proba(self, texts: Sequence[Text]) -> np.ndarray:
        """Probabilities of the classes: (texts, classes), float32."""
        self._needs("classes")
        return self._native.probabilities(as_texts(texts))

    def decision_function(self, texts: Sequence[Text]) -> np.ndarray:
        """The numbers of which the probabilities are made: (texts, classes), float32."""
        self._needs("classes")
        return self._native.decision_values(as_texts(texts))

    def explain(self, text: Text, label: str | None = None) -> list[tuple[str, float]]:
        """Why a linear classifier says of a text what it says: the n-grams of the text and what each adds to the decision
        value of `label` (by default the likeliest), the largest first. The sum of all is the decision value; the entry "" is
        its constant.

        "^" and "$" are the ends of the text; in n-grams of characters "_" is the edge of a word and "·" where it goes on.
        """
        names, values = self._explained(text)
        if label is not None and label not in self.classes:
            raise Error(f"label: the run has no class {label!r}; it has {', '.join(self.classes)}")
        return by_size(names, values[:, values.sum(axis=0).argmax() if label is None else self.classes.index(label)])

    def _explained(self, text):
        self._needs("classes")
        return self._native.explain(as_texts([text]))

    def embed(self, texts: Sequence[Text]) -> np.ndarray:
        """A vector for each text: (texts, width), float32."""
        return self._native.embed(as_texts(texts))

    def score(self, texts: Sequence[Text]) -> list[tuple[float, int]]:
        """How likely a language model finds each text: the natural logarithm of its probability, and how many tokens it has."""
        return self._native.score(as_texts(texts))

    def fill(self, texts: Sequence[str], *, blank: str = "<mask>",
             top_k: int = 1) -> list[tuple[str, list[list[tuple[str, float]]]]]:
        """Fills the blanks of texts with a masked model: for each text, what it becomes, and for each of its blanks the
        `top_k` likeliest tokens with their probabilities."""
        self._needs("hidden_tokens")
        return [
            (text.decode("utf-8", "replace"), [[(t.decode("utf-8", "replace"), p) for t, p in guesses] for guesses in blanks])
            for text, blanks in self._native.fill(as_texts(texts), blank, top_k)
        ]

    def complete(self, sources: Sequence[Text], *, best: int = 1, beam: int = 1, length_penalty: float = 0.0,
                 max_tokens: int = 0) -> list[list[tuple[str, float]]]:
        """What a model of pairs writes after each source: a list of (text, log probability), the best first."""
        self._needs("pairs")
        found = self._native.complete(as_texts(sources), best, beam, length_penalty, max_tokens)
        return [[(text.decode("utf-8", "replace"), p) for text, p in one] for one in found]

    def generate(self, text: str = "", *, max_tokens: int = 256, stop: str | Sequence[str] = (), bf16: bool = False,
                 **sampling: Any) -> Iterator[str]:
        """Continues a text: an iterator of pieces, as they are written.

        `stop`: texts before which it ends. `sampling`: temperature, top_k, top_p, min_p, repetition_penalty and seed;
        the same seed gives the same text. The pieces together: "".join(run.generate("The ")).
        """
        return (piece for _, piece in self._pieces(text, max_tokens, 1, stop, bf16, _sampling(**sampling)))

    def generate_samples(self, text: str = "", samples: int = 2, *, max_tokens: int = 256, stop: str | Sequence[str] = (),
                         bf16: bool = False, **sampling: Any) -> list[str]:
        """Several continuations of one text, written together."""
        written = [""] * samples
        for sample, piece in self._pieces(text, max_tokens, samples, stop, bf16, _sampling(**sampling)):
            written[sample] += piece
        return written

    def _pieces(self, text, max_tokens, samples, stop, bf16, sampling):
        self._needs("next_token")
        if not isinstance(text, str):
            raise TypeError(f"text: one text is needed, not {type(text).__name__}")
        stop = [stop] if isinstance(stop, str) else list(stop)
        if "" in stop:
            raise ValueError("stop: an empty text would end every text at once")
        return self._written(self._native.generate(text, max_tokens, samples, sampling, stop, bf16), samples)

    @staticmethod
    def _written(native, samples):
        decoders = [codecs.getincrementaldecoder("utf-8")("replace") for _ in range(samples)]
        try:
            while (found := native.next()) is not None:
                sample, piece = found
                if decoded := decoders[sample].decode(piece):
                    yield sample, decoded
            for sample, decoder in enumerate(decoders):
                if rest := decoder.decode(b"", True):
                    yield sample, rest
        finally:
            native.close()

    def slim(self, folder: str | os.PathLike, size: float = 0.2) -> Run:
        """Writes a small copy of the run for prediction alone to a new folder, and opens it. A linear classifier keeps the
        n-grams that decide most, as many as fit in `size` times the size of its weights, with 8 bits per weight; other
        models keep all weights, matrices in bf16. Nothing can train it further."""
        self._native.slim(os.fspath(folder), size)
        return load(folder)

    def export(self, format: str, folder: str | os.PathLike) -> list[str]:
        """Writes the model for another program to a new folder: "huggingface" (transformers), "onnx" (ONNX Runtime) or "gguf"
        (llama.cpp; models of Llama's shape). Returns the paths of the files; docs/export.md says how they are used."""
        return [os.path.join(folder, name) for name in self._native.export(format, os.fspath(folder))]

    def evaluate(self, split: str | None = None) -> dict[str, Any]:
        """Loss, accuracy and further figures on the validation data, or on the split "train", "valid" or "test". Files that
        only other splits need may be missing."""
        return self._native.evaluate(split or "")

    def _needs(self, task):
        if self._task == task:
            return
        names = {"classes": "a classifier", "hidden_tokens": "a masked language model", "pairs": "a model of pairs"}
        raise Error(f"{self.folder}: this needs {names.get(task, 'a language model')}; the run's task is {self.task!r}")


def by_size(names, values):
    """Pairs of a name and a number, that of the largest amount first."""
    return sorted(zip(names, values.tolist()), key=lambda pair: -abs(pair[1]))


_SAMPLING = ("temperature", "top_k", "top_p", "min_p", "repetition_penalty", "seed")


def _sampling(**given):
    for name, value in given.items():
        if name not in _SAMPLING:
            near = difflib.get_close_matches(name, _SAMPLING, 1)
            raise TypeError(f"{name}: no such option" + (f"; did you mean {near[0]}?" if near else f"; there are {', '.join(_SAMPLING)}"))
        if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
            raise TypeError(f"{name}: a number is needed, not {value!r}")
    return _sampling_of(**given)


def _sampling_of(temperature=1.0, top_k=0, top_p=1.0, min_p=0.0, repetition_penalty=1.0, seed=1):
    return _capstan.Sampling(temperature, top_k, top_p, min_p, repetition_penalty, seed)
