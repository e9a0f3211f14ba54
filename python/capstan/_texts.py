"""Texts with their labels and weights, as lists or as they come."""
import itertools
import json
import os
from pathlib import Path

import numpy as np

from ._labels import Targets, column_of

_END = object()


def texts_of(texts):
    """Yields strings or, for texts of several columns, tuples of strings."""
    return (_as_text(text, index) for index, text in enumerate(column_of(texts, "texts")))


def as_texts(texts):
    """All of them."""
    if type(texts) is list and all(type(text) is str and text.isascii() for text in texts):
        return texts  # as most are: to look closer takes as long as a prediction
    return list(texts_of(texts))


def _as_text(text, index):
    if isinstance(text, str):
        return _encodable(text, index)
    if isinstance(text, (tuple, list)) and text and all(isinstance(column, str) for column in text):
        return tuple(_encodable(column, index) for column in text)
    raise TypeError(f"texts[{index}]: a string (or a tuple of strings, for several columns) is needed, not {text!r:.60}")


def _encodable(text, index):
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"texts[{index}]: {error.reason} at character {error.start}; use text.encode(errors='replace').decode()") \
            from None
    return text


def is_file(data):
    """Whether it names a file rather than being texts."""
    return isinstance(data, (str, os.PathLike))


def weights_of(given, count=None):
    """A list of floats, or None."""
    if given is None:
        return None
    weights = list(column_of(given, "weights"))
    if weights and isinstance(weights[0], (list, tuple, np.ndarray)):
        raise ValueError("sample_weight must be one number for each text, not several: Sample weights must be 1D array or scalar")
    weights = [float(weight) for weight in weights]
    if count is not None and len(weights) != count:
        raise ValueError(f"sample_weight has {len(weights)} numbers for {count} texts")
    if not all(0 <= weight < float("inf") for weight in weights):
        raise ValueError("sample_weight must be finite numbers from 0")
    if count and not any(weights):
        raise ValueError("sample_weight: all weights are zero, so that no text counts")
    return weights


def pairs_of(X, y):
    """Yields texts with their labels, from two iterables or, where y is None, from one of pairs."""
    if y is None:
        for index, pair in enumerate(column_of(X, "texts")):
            if not isinstance(pair, (tuple, list)) or len(pair) != 2:
                raise ValueError("requires y to be passed, but the target y is None; without y, the first argument is the path of a file, "
                                 f"or pairs of a text and its label, not {pair!r:.60}")
            yield _as_text(pair[0], index), pair[1]
        return
    for count, (text, label) in enumerate(itertools.zip_longest(texts_of(X), column_of(y, "labels"), fillvalue=_END)):
        if text is _END or label is _END:
            raise ValueError(f"there are {'labels' if text is _END else 'texts'} left after {count} "
                             f"{'texts' if text is _END else 'labels'}")
        yield text, label


def batches_of(X, y, sample_weight, size):
    """Yields lists of up to `size` texts, of their labels, and of their weights or None. No more texts are held."""
    if hasattr(X, "__len__") and hasattr(y, "__len__"):
        _same_length(X, y)
    if y is not None and _has_columns(y):  # rows of a matrix of labels
        y = iter(np.asarray(y.toarray() if hasattr(y, "toarray") else y))
    weights = None if sample_weight is None else iter(column_of(sample_weight, "weights"))
    rows = pairs_of(X, y)
    while batch := list(itertools.islice(rows, size)):
        some = None if weights is None else weights_of(list(itertools.islice(weights, len(batch))))
        yield [text for text, _ in batch], [label for _, label in batch], some


def _has_columns(y):
    return hasattr(y, "toarray") or (len(getattr(y, "shape", ())) == 2 and y.shape[1] != 1)


def _same_length(X, y):
    size = X.shape[0] if hasattr(X, "shape") else len(X)
    if size != (y.shape[0] if hasattr(y, "shape") else len(y)):
        raise ValueError(f"{size} texts, but {y.shape[0] if hasattr(y, 'shape') else len(y)} labels")


def write_rows(path, X, y, sample_weight):
    """Writes texts with labels and weights as a file of training data; no more than one text is held. Returns the names of the
    columns of the text, and the Targets."""
    if y is not None and hasattr(y, "__len__"):
        texts = texts_of(X)
        if hasattr(X, "__len__"):
            _same_length(X, y)
        targets = Targets(y)
        return _write(path, texts, targets, sample_weight), targets
    spool, labels = Path(f"{path}.texts"), []  # what the labels are is known when all have come
    with open(spool, "w", encoding="utf-8") as out:
        for text, label in pairs_of(X, y):
            out.write(json.dumps(text, ensure_ascii=False) + "\n")
            labels.append(label)
    targets = Targets(labels)
    with open(spool, encoding="utf-8") as lines:
        texts = (tuple(text) if isinstance(text, list) else text for text in map(json.loads, lines))
        columns = _write(path, texts, targets, sample_weight)
    spool.unlink()
    return columns, targets


def columns_of(text):
    """The names of the columns of a text."""
    return [f"text{column}" for column in range(len(text))] if isinstance(text, tuple) and len(text) > 1 else ["text"]


def _write(path, texts, targets, sample_weight):
    weights, labels = weights_of(sample_weight, len(targets.rows)), targets.rows
    columns, count = None, 0
    with open(path, "w", encoding="utf-8") as out:
        for text in texts:
            parts = text if isinstance(text, tuple) else (text,)
            columns = columns or columns_of(parts)
            if len(parts) != len(columns):
                raise ValueError(f"texts[{count}] has {len(parts)} columns, texts[0] has {len(columns)}")
            if count < len(labels):
                row = {"labels": labels[count], **dict(zip(columns, parts)), **({"weight": weights[count]} if weights else {})}
                out.write(json.dumps(row, ensure_ascii=False) + "\n")
            count += 1
    if count != len(labels):
        raise ValueError(f"{count} texts, but {len(labels)} labels")
    if columns is None:
        raise ValueError("there are no texts: found array with 0 sample(s) while a minimum of 1 is required")
    return columns
