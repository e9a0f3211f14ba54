"""Classifier: the interface of scikit-learn over a run of capstan."""
from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ._capstan import Error, check_keys
from ._config import config_file, key_of, override, plain
from ._run import Text, by_size, decided, load, train
from ._texts import as_texts

try:
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.exceptions import NotFittedError
except ImportError as missing:
    raise ImportError("capstan.Classifier needs scikit-learn: pip install scikit-learn (capstan.train and capstan.load "
                      "do without)") from missing

LABELS = "labels.json"  # in a saved run folder: of what type the labels were in Python


class Classifier(ClassifierMixin, BaseEstimator):
    """A text classifier that is trained by a recipe of capstan.

    recipe: the name of a recipe or the path of a YAML file; "classify" is a linear classifier over n-grams, whose settings
        are chosen by cross-validation.
    class_weight: as in scikit-learn: None, "balanced", or a dictionary of a weight for each label (others have 1). Texts count so many
        times as much in training, and predict() gives the class with the largest product of weight and probability.
    verbose: print the log of the training.
    options: any keys of the configuration with their values, train__steps=500 or **{"model.words": [1]}.

    Texts are strings or, for pairs of texts, tuples of strings. Labels are strings, integers or booleans; for any number of
    labels per text, a list of them for each text, or a matrix of zeros and ones.

    After fit(): `classes_`, the labels in the order of predict_proba()'s columns, and `run_`, the capstan.Run.
    """

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
        if options:
            check_keys([config_file(params.get("recipe", self.recipe))], [override(key_of(key), keys[key]) for key in keys])
        self.recipe = params.get("recipe", self.recipe)
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

    def fit(self, X: Sequence[Text], y: Any, sample_weight: Any = None) -> Classifier:
        """Trains on the texts X with the labels y; `sample_weight`: a number from 0 for each text, by which its loss is multiplied."""
        texts = as_texts(X)
        targets = _Targets(y)
        if len(texts) != len(targets.rows):
            raise ValueError(f"Classifier.fit: {len(texts)} texts, but {len(targets.rows)} labels")
        if not texts:
            raise ValueError("Classifier.fit: there are no texts")
        folder = tempfile.TemporaryDirectory(prefix="capstan-")
        data = Path(folder.name) / "train.jsonl"
        weights = _weights(sample_weight, len(texts))
        columns = _write_rows(data, texts, targets, weights)
        keys = {
            "name": "run", "folder": folder.name,
            "data.type": "labelled", "data.format": "jsonl", "data.valid": [], "data.test": [], "data.classes": [],
            "data.first_label": 0, "data.train": [str(data)], "data.label_column": "labels", "data.text_columns": columns,
            "data.multi_label": targets.multi_label, "data.unique_labels": True, "data.skip_empty": True,
            "data.max_file_mb": 1 + data.stat().st_size // 1_000_000,
        }
        if weights is not None:
            keys["data.weight_column"] = "weight"
        if self.class_weight is not None:
            keys.update(self._class_weights(targets))
        if targets.multi_label:
            keys["data.label_separator"] = "\x1f"
        keys.update({key_of(key): value for key, value in self._options.items()})
        try:
            run = train(config_file(self.recipe), quiet=not self.verbose, **keys)
        except Error as error:
            raise Error(_of_texts(str(error), str(data))) from None
        run._needs("classes")
        data.unlink()
        if getattr(self, "_folder", None) is not None:
            self._folder.cleanup()
        self._take(run, folder, targets.kind, targets.form)
        return self

    def _class_weights(self, targets):
        """The keys of class_weight; listed weights have the order of the classes, which is then that of the labels here."""
        if self.class_weight == "balanced":
            return {"model.class_weights": "balanced"}
        if not isinstance(self.class_weight, dict):
            raise ValueError(f'class_weight must be None, "balanced" or a dictionary, not {self.class_weight!r}')
        names = sorted({label for row in targets.rows for label in (row if targets.multi_label else [row])})
        given = {str(label): float(weight) for label, weight in self.class_weight.items()}
        if unknown := sorted(given.keys() - set(names)):
            raise ValueError(f"class_weight: {', '.join(unknown)}: no text has such a label")
        weights = [given.get(name, 1.0) for name in names]
        return {"data.classes": names, "model.class_weights": {"type": "listed", "weights": weights}}

    def _take(self, run, folder, kind, form):
        names = run.classes
        labels = _array_of([_KINDS[kind](name) for name in names])
        order = np.argsort(labels, kind="stable")
        self.run_, self._folder = run, folder
        self._kind, self._form = kind, form
        self.classes_ = labels[order]
        self._order = order

    def _fitted(self):
        if not hasattr(self, "run_"):
            raise NotFittedError("This Classifier is not fitted yet: call fit(texts, labels), or Classifier.load(folder)")
        return self.run_

    def __sklearn_is_fitted__(self):
        return hasattr(self, "run_")

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
        run, chosen = self._fitted(), None
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
        probabilities = self.predict_proba(X)
        if self._form == "single":
            inverse = np.argsort(self._order)  # the rule has the order of the run
            return self.classes_[inverse[decided(probabilities[:, inverse], self.run_._native.rule)]]
        chosen = probabilities >= np.array(self.run_._native.thresholds, np.float32)[self._order]
        if self._form == "matrix":
            return chosen.astype(int)
        return [self.classes_[row].tolist() for row in chosen]

    def score(self, X: Sequence[Text], y: Any) -> float:
        """Accuracy: the share of texts whose label, or set of labels, is right."""
        predicted, wanted = _Targets(self.predict(X)).rows, _Targets(y).rows
        if len(predicted) != len(wanted):
            raise ValueError(f"Classifier.score: {len(predicted)} texts, but {len(wanted)} labels")
        return float(np.mean([a == b for a, b in zip(predicted, wanted)]))

    def predict_log_proba(self, X: Sequence[Text]) -> np.ndarray:
        """Logarithms of predict_proba()."""
        return np.log(self.predict_proba(X))

    def slim(self, size: float | None = None, texts: Sequence[Text] | None = None) -> Classifier:
        """A classifier that predicts like this one, nearly, and takes less memory on disk: `size` times as much or, with
        `texts`, as little as changes their probabilities by at most 0.01 on average; else all n-grams stay (Run.slim). save()
        or pickle it."""
        folder = tempfile.TemporaryDirectory(prefix="capstan-")
        slim = type(self)(**self.get_params())
        slim._take(self._fitted().slim(Path(folder.name) / "run", size, texts), folder, self._kind, self._form)
        return slim

    def save(self, folder: str | os.PathLike, overwrite: bool = False) -> None:
        """Writes the run to `folder`; the program reads it as well as Classifier.load(). With `overwrite`, another run that
        is there goes."""
        run, folder = self._fitted(), Path(folder)
        if folder.exists() and not (overwrite and (folder / "config.yaml").is_file()):
            raise Error(f"{folder}: it exists; give the name of a new folder" + ("" if overwrite else ", or overwrite=True"))
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
                              if path.is_file() and not path.is_symlink()}
            state["links"] = {str(path.relative_to(top)): os.readlink(path) for path in top.rglob("*") if path.is_symlink()}
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
        for name, target in state["links"].items():
            (top / name).symlink_to(target)
        self._take(load(top), folder, *state["labels"])


def _of_texts(message, path):
    """An error of the file that fit() wrote, as one of the texts it had: its line 3 is texts[2]."""
    return re.sub(re.escape(path) + r"(:(\d+))?", lambda found: f"texts[{int(found[2]) - 1}]" if found[2] else "the texts", message)


_KINDS = {"str": str, "int": int, "bool": lambda name: name == "True"}
_TYPES = {"bool": (bool, np.bool_), "int": (int, np.integer), "str": (str,)}


def _array_of(labels):
    """An array with the values of the labels. NumPy alone makes floats of integers that neither int64 nor uint64 has all of."""
    if not all(isinstance(label, int) for label in labels) or all(isinstance(label, bool) for label in labels):
        return np.array(labels)
    for kind in (np.int64, np.uint64):
        if all(np.iinfo(kind).min <= label <= np.iinfo(kind).max for label in labels):
            return np.array(labels, kind)
    return np.array(labels, object)


def _hint(label):
    """What makes a label of a type that is taken from one that is not."""
    if isinstance(label, (bytes, np.bytes_)):
        return "; decode bytes, such as by .astype(str)"
    if isinstance(label, (float, np.floating)) and label == label:
        return "; use .astype(int)" if float(label).is_integer() else ""
    return "; leave out texts without a label" if label is None or str(label) in ("nan", "<NA>", "NaT") else ""


def _kind_of(labels):
    """The type of all labels; booleans are no integers here."""
    kinds = [next((kind for kind, types in _TYPES.items() if isinstance(label, types)), None) for label in labels]
    for index, (label, kind) in enumerate(zip(labels, kinds)):
        if kind is None or kind != kinds[0]:
            first = f", labels[0] is {labels[0]!r}" if index > 0 else ""
            raise ValueError("labels must be all strings, all integers or all booleans; "
                             f"labels[{index}] is {label!r}{first}{_hint(label)}")
        if kind == "str" and (label != label.strip() or not label.isprintable() or not label):
            raise ValueError(f"labels[{index}]: {label!r} is empty, or has blanks at its ends or control characters, which a file "
                             "of labels cannot hold; rename it")
    return kinds[0] if kinds else "str"


class _Targets:
    """Labels as rows of names."""

    def __init__(self, y):
        self.form = "single"
        if hasattr(y, "toarray"):  # sparse
            y = y.toarray()
        if hasattr(y, "to_numpy"):  # pandas
            y = y.to_numpy()
        if isinstance(y, np.ndarray) and y.ndim == 2 and y.shape[1] == 1:
            y = y[:, 0]
        if isinstance(y, np.ndarray) and y.ndim == 2:
            if not np.isin(y, (0, 1)).all():
                raise ValueError("labels: a matrix of labels has zeros and ones only")
            y = y.astype(int)
        else:
            y = y.tolist() if isinstance(y, np.ndarray) else list(y)
            y = np.array(y) if _is_matrix(y) else y
        if isinstance(y, np.ndarray):
            self.form, self.kind = "matrix", "int"
            self.rows = [[str(column) for column in np.flatnonzero(row)] for row in y]
        else:
            if y and all(isinstance(labels, (list, tuple, set, frozenset)) for labels in y):
                self.form = "lists"
                self.kind = _kind_of([label for labels in y for label in labels])
                self.rows = [sorted({str(label) for label in labels}) for labels in y]
            else:
                self.kind = _kind_of(y)
                self.rows = [str(label) for label in y]
        self.multi_label = self.form != "single"


def _is_matrix(rows):
    """Rows of one length with zeros and ones, some of which repeat: no lists of labels."""
    return (len(rows) > 0 and all(isinstance(row, (list, tuple)) and len(row) == len(rows[0]) for row in rows)
            and all(value in (0, 1) and not isinstance(value, str) for row in rows for value in row)
            and any(len(set(row)) < len(row) for row in rows))


def _weights(given, count):
    if given is None:
        return None
    weights = [float(weight) for weight in given]
    if len(weights) != count:
        raise ValueError(f"sample_weight has {len(weights)} numbers for {count} texts")
    if not all(0 <= weight < float("inf") for weight in weights):
        raise ValueError("sample_weight must be finite numbers from 0")
    return weights


def _write_rows(path, texts, targets, weights):
    """Writes the training data; returns the names of the columns of the text."""
    most = max(len(text) if isinstance(text, tuple) else 1 for text in texts)
    columns = ["text"] if most == 1 else [f"text{column}" for column in range(most)]
    with open(path, "w", encoding="utf-8") as out:
        for index, (text, labels) in enumerate(zip(texts, targets.rows)):
            parts = text if isinstance(text, tuple) else (text,)
            if len(parts) != most:
                raise ValueError(f"texts[{index}] has {len(parts)} columns, another text has {most}")
            row = {"labels": labels, **dict(zip(columns, parts)), **({"weight": weights[index]} if weights else {})}
            out.write(json.dumps(row, ensure_ascii=False) + "\n")
    return columns
