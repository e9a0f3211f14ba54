"""Classifier: the interface of scikit-learn over a run of capstan."""
from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ._capstan import Error, check_keys
from ._config import config_file, data_keys, key_of, override, plain
from ._labels import KINDS, Targets, array_of, column_of
from ._log import renamed
from ._online import Online
from ._run import Run, Text, by_size, decided, load, train
from ._texts import batches_of, columns_of, is_file, write_rows

try:
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.exceptions import NotFittedError
except ImportError as missing:
    raise ImportError("capstan.Classifier needs scikit-learn: pip install scikit-learn (capstan.train and capstan.load "
                      "do without)") from missing

LABELS = "labels.json"  # in a saved run folder: of what type the labels were in Python
OF_RUN = {"checkpoints", "config.yaml", "tokenizer.json", "classes.txt", "metrics.jsonl", "train.log", ".lock", LABELS}


class Classifier(ClassifierMixin, BaseEstimator):
    """A text classifier that is trained by a recipe of capstan.

    recipe: the name of a recipe or the path of a YAML file; "classify" is a linear classifier over n-grams, whose settings
        are chosen by cross-validation.
    class_weight: given as in scikit-learn: None, "balanced", or a dictionary of a weight for each label (others have 1). Texts count so
        many times as much in training. Probabilities stay those of the data, and predict() gives the class with the largest product of
        weight and probability, which for some texts is not the one whose score in a weighted LinearSVC is the largest.
    verbose: print the log of the training.
    options: any keys of the configuration with their values, train__steps=500 or **{"model.words": [1]}.

    Texts are strings or, for pairs of texts, tuples of strings. Labels are strings, integers or booleans; for any number of
    labels per text, a list of them for each text, or a matrix of zeros and ones.

    After fit(): `classes_`, the labels in the order of predict_proba()'s columns, and `run_`, the capstan.Run.
    """

    _run = _online = _folder = None  # the run or, after partial_fit(), what learns; the folder that goes with the classifier

    def __init__(self, recipe: str = "classify", *, class_weight: Any = None, verbose: bool = False, **options: Any):
        self.recipe = recipe
        self.class_weight = class_weight
        self.verbose = verbose
        self._options = options

    # Parameters: BaseEstimator finds those of __init__; the keys of the configuration are added to them.

    @classmethod
    def _get_param_names(cls):
        return ["recipe", "class_weight", "verbose"]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """All parameters with their values, those of `options` among them."""
        return {"recipe": self.recipe, "class_weight": self.class_weight, "verbose": self.verbose, **self._options}

    def set_params(self, **params: Any) -> Classifier:
        """Sets parameters; each may be any key of the configuration. Raises Error for a key that the recipe does not have,
        and for a value that it does not take."""
        options = {name: value for name, value in params.items() if name not in ("recipe", "class_weight", "verbose")}
        keys = {**self._options, **options}
        recipe = params.get("recipe", self.recipe)
        if options and is_file(recipe):
            check_keys([config_file(recipe)], [override(key_of(key), keys[key]) for key in keys])
        self.recipe = recipe
        self.class_weight = params.get("class_weight", self.class_weight)
        self.verbose = params.get("verbose", self.verbose)
        self._options = keys
        return self

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        tags.input_tags.one_d_array = True
        tags.target_tags.required = True
        tags.classifier_tags.multi_label = True
        tags.no_validation = True  # of arrays of numbers
        return tags

    def fit(self, X: Iterable[Any] | str | os.PathLike, y: Any = None, sample_weight: Any = None, *,
            callback: Callable[[dict[str, Any]], Any] | None = None) -> Classifier:
        """Trains on the texts X with the labels y, and finds all settings; `sample_weight`: a number from 0 for each text, by which
        its loss is multiplied.

        X and y: lists, iterators, arrays of NumPy, columns of pandas, polars or datasets. Without y, X yields pairs of a text and
        its label, or is the path of a file that the program reads (.tsv, .csv, .jsonl, ...). Texts of an iterator are not held.

        callback: as that of train(): it gets each event of the training, and ends it by returning True.
        """
        folder = tempfile.TemporaryDirectory(prefix="capstan-")
        data = Path(folder.name) / "train.jsonl"
        if y is None and is_file(X):
            keys, kind, form = self._keys_of_file(X, sample_weight), "str", None
        else:
            columns, targets = write_rows(data, X, y, sample_weight)
            if len(names := {name for row in targets.rows for name in (row if targets.multi_label else [row])}) < 2:
                raise ValueError(f"labels: there is only one class, {next(iter(names), None)!r}; two or more are needed")
            kind, form = targets.kind, targets.form
            keys = {
                **_keys_of_texts(columns, targets.multi_label), "data.train": [str(data)],
                **({} if sample_weight is None else {"data.weight_column": "weight"}), **self._class_weights(sorted(names)),
            }
        keys = {"name": "run", "folder": folder.name, **keys, **{key_of(key): value for key, value in self._options.items()}}
        given = _name_of(X)
        try:
            with renamed(lambda line: _of_texts(line, str(data), given)):
                run = train(config_file(self.recipe), callback=callback, quiet=not self.verbose, **keys)
        except Error as error:
            raise Error(_of_texts(str(error), str(data), given)) from None
        run._needs("classes")
        data.unlink(missing_ok=True)
        if self._folder is not None:
            self._folder.cleanup()
        self._take(run, folder, kind, form or ("lists" if run._native.multi_label else "single"))
        return self

    def _keys_of_file(self, path, sample_weight):
        if sample_weight is not None:
            raise ValueError("sample_weight: name the column of the file instead, data__weight_column")
        if isinstance(self.class_weight, dict):
            raise ValueError("class_weight: of a file, give data__classes and model__class_weights instead of a dictionary")
        return {**data_keys(path), "data.valid": [], "data.test": [], **self._class_weights([])}

    def partial_fit(self, X: Iterable[Any], y: Any = None, classes: Any = None, sample_weight: Any = None) -> Classifier:
        """Learns from some texts more, each once, in the order in which they come. Texts are not held, and the memory is the same for
        any number of them. X, y and sample_weight are as those of fit(), but no file.

        classes: all labels that there will be; the first call needs them. After fit(), or load() of a linear classifier, it goes on
        from there.
        """
        if y is None and is_file(X):
            raise ValueError("partial_fit: a file is for fit(); give its texts and labels")
        if self.__sklearn_is_fitted__():
            self._check_classes(classes)
        elif classes is None:
            raise ValueError("classes must be passed on the first call to partial_fit.")
        for texts, labels, weights in batches_of(X, y, sample_weight, 1000):
            targets = Targets(labels)
            if self._online is None:
                self._begin(texts[0], targets, classes)
            self._online.learn(texts, self._numbers_of(targets), weights)
        return self

    def _check_classes(self, classes):
        if classes is not None and not np.array_equal(np.unique(np.asarray(classes)), self.classes_):
            raise ValueError(f"`classes={list(classes)!r}` is not the same as on last call to partial_fit, was: {self.classes_.tolist()!r}")

    def _begin(self, text, targets, classes):
        """A model for partial_fit(): of the run or, without one, new."""
        if self._run is not None:
            self._online, self._run = Online.go_on(self._run), None
            return
        given = Targets(list(column_of(classes, "classes")))
        self._name_classes(sorted(set(given.rows)), given.kind, targets.form)
        names = [str(label) for label in self.classes_.tolist()]
        keys = {"name": "run", **_keys_of_texts(columns_of(text), targets.multi_label), "data.train": ["texts"], **self._class_weights(names),
                **{key_of(key): value for key, value in self._options.items()}}
        self._online = Online(config_file(self.recipe), keys, names)

    def _numbers_of(self, targets):
        """The classes of each text, by their numbers in the model."""
        if targets.form != self._form or (targets.kind != self._kind and any(targets.rows)):
            raise ValueError(f"labels are {targets.form} of type {targets.kind}, but were {self._form} of type {self._kind} before")
        numbers = {name: number for number, name in enumerate(self._online.names)}
        rows = [sorted({numbers.get(name, -1) for name in (row if targets.multi_label else [row])}) for row in targets.rows]
        for index, row in enumerate(rows):
            if row[:1] == [-1]:
                raise ValueError(f"labels[{index}]: {targets.rows[index]!r} is none of classes, {self.classes_.tolist()}; the first call "
                                 "names all that there will be")
        return rows

    def _class_weights(self, names):
        """The keys of class_weight; listed weights have the order of the classes."""
        if self.class_weight is None:
            return {}
        if isinstance(self.class_weight, str) and self.class_weight == "balanced":
            return {"model.class_weights": "balanced"}
        if not isinstance(self.class_weight, dict):
            raise ValueError(f'class_weight must be None, "balanced" or a dictionary, not {self.class_weight!r}')
        if unknown := sorted({str(label) for label in self.class_weight} - set(names)):
            raise ValueError(f"class_weight: {', '.join(unknown)}: no text has such a label")
        weights = {str(label): float(weight) for label, weight in self.class_weight.items()}
        return {"data.classes": names,
                "model.class_weights": {"type": "listed", "weights": [weights.get(name, 1.0) for name in names]}}
    def _take(self, run, folder, kind, form):
        self._run, self._online, self._folder = run, None, folder
        self._name_classes(run.classes, kind, form)

    def _name_classes(self, names, kind, form):
        labels = array_of([KINDS[kind](name) for name in names])
        order = np.argsort(labels, kind="stable")
        self._kind, self._form, self._order = kind, form, order
        self._labels = labels  # in the order of the run
        self.classes_ = labels[order]

    @property
    def run_(self) -> Run:
        """The capstan.Run; after partial_fit(), of the model as it is now."""
        return self._online.run() if self._online is not None else self._fitted()

    def _fitted(self):
        """What predicts."""
        if not self.__sklearn_is_fitted__():
            raise NotFittedError("This Classifier is not fitted yet: call fit(texts, labels), or Classifier.load(folder)")
        return self._online or self._run

    def __sklearn_is_fitted__(self):
        return self._online is not None or self._run is not None

    def predict_proba(self, X: Sequence[Text]) -> np.ndarray:
        """Probabilities of `classes_`: (texts, classes), float32."""
        return self._fitted().predict_proba(X)[:, self._order]

    def decision_function(self, X: Sequence[Text]) -> np.ndarray:
        """The numbers of which the probabilities are made: (texts, classes), of two classes (texts,)."""
        values = self._fitted().decision_function(X)[:, self._order]
        if len(self.classes_) == 2 and self._form == "single":
            return values[:, 1] - values[:, 0]
        return values

    def explain(self, text: Text, label: Any = None) -> list[tuple[str, float]]:
        """The n-grams of a text and what each adds to decision_function() of `label`, the largest first; a linear classifier
        has it. The entry "" is a constant.

        Without `label`, that is the decision value of the likeliest class or, of two classes, the one number that
        decision_function() gives: what speaks for `classes_[1]` is positive.
        """
        run, chosen = self.run_, None
        if label is not None:
            found = np.flatnonzero(self.classes_ == label)
            if len(found) != 1:
                raise ValueError(f"label: {label!r} is none of classes_, {self.classes_.tolist()}")
            chosen = int(found[0])
        names, values = run._explained(text)
        values = values[:, self._order]
        if len(self.classes_) == 2 and self._form == "single":
            chosen = 1 if chosen is None else chosen
            return by_size(names, values[:, chosen] - values[:, 1 - chosen])
        return by_size(names, values[:, values.sum(axis=0).argmax() if chosen is None else chosen])

    def predict(self, X: Sequence[Text]) -> Any:
        """The label of each text; where texts have any number of labels, in the form in which fit() had them."""
        model = self._fitted()
        if self._form == "single":
            return self._labels[decided(model.predict_proba(X), model.rule)]
        chosen = model.predict_proba(X)[:, self._order] >= np.array(model.thresholds, np.float32)[self._order]
        if self._form == "matrix":
            return chosen.astype(int)
        return [self.classes_[row].tolist() for row in chosen]

    def score(self, X: Sequence[Text], y: Any) -> float:
        """Accuracy: the share of texts whose label, or set of labels, is right."""
        predicted, wanted = Targets(self.predict(X)).rows, Targets(y).rows
        if len(predicted) != len(wanted):
            raise ValueError(f"Classifier.score: {len(predicted)} texts, but {len(wanted)} labels")
        return float(np.mean([a == b for a, b in zip(predicted, wanted)]))

    def predict_log_proba(self, X: Sequence[Text]) -> np.ndarray:
        """Logarithms of predict_proba()."""
        return np.log(self.predict_proba(X))

    def slim(self, size: float = 0.2) -> Classifier:
        """A classifier that predicts like this one, nearly, and takes less memory on disk, at most `size` times as much
        (Run.slim). save() or pickle it."""
        folder = tempfile.TemporaryDirectory(prefix="capstan-")
        slim = type(self)(**self.get_params())
        slim._take(self.run_.slim(Path(folder.name) / "run", size), folder, self._kind, self._form)
        return slim

    def save(self, folder: str | os.PathLike, overwrite: bool = False) -> None:
        """Writes the run to `folder`; the program reads it as well as Classifier.load(). With `overwrite`, another run that
        is there goes."""
        run, folder = self.run_, Path(folder)
        if folder.exists() and not (overwrite and (folder / "config.yaml").is_file()):
            raise Error(f"{folder}: it exists; give the name of a new folder" + ("" if overwrite else ", or overwrite=True"))
        others = sorted(set(os.listdir(folder)) - OF_RUN) if folder.exists() else []
        if others or (folder.exists() and not (folder / "checkpoints").is_dir()):
            raise Error(f"{folder}: it has other files than those of a run ({', '.join(others) or 'no checkpoints'}), which "
                        "would go with it; give the name of a new folder")
        part = folder.with_name(f".{folder.name}.{os.getpid()}")
        shutil.copytree(run.folder, part)
        (part / LABELS).write_text(json.dumps({"kind": self._kind, "form": self._form, "parameters": plain(self.get_params())}))
        if folder.exists():
            shutil.rmtree(folder)
        part.rename(folder)

    @classmethod
    def load(cls, folder: str | os.PathLike) -> Classifier:
        """A fitted classifier from a run folder: one that save() wrote, or of any classifier that the program trained."""
        run = load(folder)
        run._needs("classes")
        labels = Path(run.folder) / LABELS
        saved = json.loads(labels.read_text()) if labels.is_file() else {}
        self = cls(**saved.get("parameters", {}))
        usual = "lists" if run._native.multi_label else "single"
        self._take(run, None, saved.get("kind", "str"), saved.get("form", usual))
        return self

    # A pickle holds the files of the run.

    def __getstate__(self):
        state = {"recipe": self.recipe, "class_weight": self.class_weight, "verbose": self.verbose, "options": self._options}
        if self.__sklearn_is_fitted__():
            top = Path(self.run_.folder)
            state["files"] = {str(path.relative_to(top)): path.read_bytes() for path in sorted(top.rglob("*"))
                              if path.is_file()}
            state["labels"] = (self._kind, self._form)
        return state

    def __setstate__(self, state):
        self.recipe, self.verbose, self._options = state["recipe"], state["verbose"], state["options"]
        self.class_weight = state.get("class_weight")
        if "files" not in state:
            return
        folder = tempfile.TemporaryDirectory(prefix="capstan-")
        top = Path(folder.name) / "run"
        for name, content in state["files"].items():
            path = top / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        self._take(load(top), folder, *state["labels"])


def train_supervised(input: str | os.PathLike, recipe: str = "classify", **options: Any) -> Classifier:
    """Trains a classifier on a file: lines of text whose words `__label__NAME` are their labels, as for fastText's function of this
    name, or a table. `recipe` and `options` are those of Classifier."""
    if not Path(input).is_file():
        raise Error(f"{input}: no such file")
    with open(input, encoding="utf-8", errors="replace") as lines:
        counts = {sum(word.startswith("__label__") for word in line.split()) for line in lines}
    if max(counts, default=0) > 0:
        options = {"data.format": "fasttext", "data.multi_label": counts != {1}, **options}
    return Classifier(recipe, **options).fit(input)


def _name_of(texts):
    """What messages call the texts: a column of pandas or polars by its name, "review.iloc" or "review"."""
    columns = getattr(texts, "columns", ())
    name = columns[0] if len(columns) == 1 else getattr(texts, "name", None)
    if not isinstance(name, str) or not name:
        return "texts"
    return f"{name}.iloc" if hasattr(texts, "iloc") else name


def _of_texts(message, path, name):
    """A line on the file that fit() wrote, as one on the texts it had: its line 3 is texts[2]."""
    return re.sub(re.escape(path) + r"(:(\d+))?",
                  lambda found: f"{name}[{int(found[2]) - 1}]" if found[2] else name.removesuffix(".iloc"), message)


def _keys_of_texts(columns, multi_label):
    """The keys of the data of texts with labels."""
    return {
        "data.type": "labelled", "data.format": "jsonl", "data.valid": [], "data.test": [], "data.classes": [],
        "data.label_column": "labels", "data.text_columns": columns, "data.multi_label": multi_label,
        "data.on_error": "skip", **({"data.label_separator": "\x1f"} if multi_label else {}),
    }
