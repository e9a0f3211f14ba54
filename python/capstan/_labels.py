"""Columns as people have them, and labels as the names of classes."""
import numpy as np


def column_of(values, what):
    """An iterable of the values of a list, an iterator, an array of NumPy, a Series or a table of one column of pandas or polars, or
    a column of datasets. An iterator stays one."""
    if isinstance(values, (str, bytes)):
        raise TypeError(f"{what}: a list of {what} is needed, not one; write [{what[:-1]}]")
    if hasattr(values, "toarray"):
        raise TypeError(f"{what}: a sparse matrix of numbers is not supported")
    if not hasattr(values, "__iter__") and hasattr(values, "__array__"):
        values = np.asarray(values)
    if isinstance(values, dict) or not hasattr(values, "__iter__"):
        raise TypeError(f"{what}: a list of {what} is needed, not {type(values).__name__}")
    names = getattr(values, "column_names", None) or getattr(values, "columns", None)
    if names is not None and not callable(names):  # tables of datasets, pandas and polars
        if len(names) != 1:
            raise TypeError(f"{what}: a table of {len(names)} columns; give one of them, such as table[{list(names)[-1]!r}]")
        values = values[list(names)[0]]
    for method in ("to_list", "tolist"):  # of pandas and polars; of NumPy
        if hasattr(values, method):
            return getattr(values, method)()
    return values


KINDS = {"str": str, "int": int, "bool": lambda name: name == "True"}
_TYPES = {"bool": (bool, np.bool_), "int": (int, np.integer), "str": (str,)}


def array_of(labels):
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
        return "; use .astype(int)" if float(label).is_integer() else "; Unknown label type: continuous"
    return "; leave out texts without a label" if label is None or str(label) in ("nan", "<NA>", "NaT") else ""


def kind_of(labels):
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


class Targets:
    """Labels as rows of names."""

    def __init__(self, y):
        self.form = "single"
        if hasattr(y, "toarray"):  # sparse
            y = y.toarray()
        if len(getattr(y, "shape", ())) == 2 and y.shape[1] != 1:  # an array or a table
            y = np.asarray(y)
            if not np.isin(y, (0, 1)).all():
                raise ValueError("labels: a matrix of labels has zeros and ones only")
            y = y.astype(int)
        else:
            y = list(column_of(y.ravel() if isinstance(y, np.ndarray) else y, "labels"))
            y = np.array(y) if _is_matrix(y) or (y and all(isinstance(row, np.ndarray) for row in y)) else y
        if isinstance(y, np.ndarray):
            self.form, self.kind = "matrix", "int"
            self.rows = [[str(column) for column in np.flatnonzero(row)] for row in y]
        else:
            if y and all(isinstance(labels, (list, tuple, set, frozenset)) for labels in y):
                self.form = "lists"
                self.kind = kind_of([label for labels in y for label in labels])
                self.rows = [sorted({str(label) for label in labels}) for labels in y]
            else:
                self.kind = kind_of(y)
                self.rows = [str(label) for label in y]
        self.multi_label = self.form != "single"


def _is_matrix(rows):
    """Rows of one length with zeros and ones, some of which repeat: no lists of labels."""
    return (len(rows) > 0 and all(isinstance(row, (list, tuple)) and len(row) == len(rows[0]) for row in rows)
            and all(value in (0, 1) and not isinstance(value, str) for row in rows for value in row)
            and any(len(set(row)) < len(row) for row in rows))
