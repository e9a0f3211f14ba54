"""A classifier that learns from texts as they come, and the run that it becomes."""
import tempfile
from pathlib import Path

from ._capstan import OnlineRun
from ._config import override
from ._run import load
from ._texts import as_texts


class Online:
    """What Run has of predictions, over a model in memory. Its run is written when it is asked for."""

    def __init__(self, config, keys, names):
        self._take(OnlineRun([config], [override(*item) for item in keys.items()], names), names)

    def _take(self, native, names):
        self._native, self.names = native, names
        self._run = self._folder = None

    @classmethod
    def go_on(cls, run):
        """From a run of a linear classifier."""
        self = cls.__new__(cls)
        self._take(OnlineRun.go_on(run._native), run.classes)
        return self

    @property
    def rule(self):
        """As Run's."""
        return self._native.rule

    @property
    def thresholds(self):
        return [0.5] * len(self.names)

    def learn(self, texts, labels, weights):
        """`labels`: numbers of classes, a list for each text."""
        self._run = None
        self._native.learn(texts, labels, weights or [])

    def predict_proba(self, texts):
        return self._native.probabilities(as_texts(texts))

    def decision_function(self, texts):
        return self._native.decision_values(as_texts(texts))

    def run(self):
        """The model as it is now."""
        if self._run is None:
            folder = tempfile.TemporaryDirectory(prefix="capstan-")
            self._native.write(str(Path(folder.name) / "run"))
            self._run, self._folder = load(Path(folder.name) / "run"), folder
        return self._run
