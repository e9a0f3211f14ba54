"""Train, open and use text models: classifiers, language models, masked models and models of pairs.

    import capstan

    classifier = capstan.Classifier().fit(texts, labels)      # scikit-learn's interface
    classifier.predict(["a fine film"])
    classifier = capstan.train_supervised("train.txt")        # lines as fastText has them, or a table

    run = capstan.train("lm", data="book.txt")                # any recipe or configuration of the program
    for piece in run.generate("The "):
        print(piece, end="")

    run = capstan.load("runs/lm")                             # what the program trained

Everything is computed on threads of the package, never on those of Python. docs/python.md is the guide.
"""
from __future__ import annotations

import os as _os
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any


def _load():
    """Imports the extension; its OpenMP reads how long idle threads spin when it is loaded, and never again."""
    name = "GOMP_SPINCOUNT"
    set_here = name not in _os.environ and "OMP_WAIT_POLICY" not in _os.environ
    if set_here:
        _os.environ[name] = "5000"  # as the program: about 20 microseconds
    try:
        from . import _capstan
    finally:
        if set_here:
            del _os.environ[name]
    return _capstan


_native = _load()

from ._capstan import Error  # noqa: E402

Error.__module__ = __name__  # as people see it in a traceback
from ._run import Run, load, train  # noqa: E402

if _TYPE_CHECKING:
    from ._classifier import Classifier, train_supervised

__version__: str = _native.__version__
__all__ = ["Classifier", "Error", "Run", "load", "train", "train_supervised"]


def __getattr__(name: str) -> _Any:
    if name in ("Classifier", "train_supervised"):  # imports scikit-learn, which takes a second
        from . import _classifier

        return getattr(_classifier, name)
    raise AttributeError(f"module 'capstan' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), "Classifier", "train_supervised"])
