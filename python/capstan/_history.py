"""What a training has recorded."""
from __future__ import annotations

import html
import json
from pathlib import Path
from typing import Any

from ._capstan import Error


class History(list):
    """The lines of a run's metrics.jsonl, a dictionary for each: of "event" "train" with "step", "loss", "lr", ..., of "valid" with
    what validation found. A notebook shows it as curves where matplotlib is installed, else as a table."""

    @classmethod
    def read(cls, folder: str) -> History:
        path = Path(folder) / "metrics.jsonl"
        if not path.is_file():
            raise Error(f"{path}: no such file; the run has recorded nothing")
        with open(path, encoding="utf-8") as lines:
            return cls(json.loads(line) for line in lines)

    def to_pandas(self) -> Any:
        """A pandas.DataFrame with a row for each line."""
        import pandas

        return pandas.DataFrame(list(self))

    def plot(self, metric: str = "loss", ax: Any = None) -> Any:
        """Draws a metric over the steps, of training and of validation; returns the axes of matplotlib."""
        curves = {event: [(row["step"], row[metric]) for row in self if row["event"] == event and row.get(metric) is not None]
                  for event in ("train", "valid")}
        if not any(curves.values()):
            known = sorted({name for row in self for name, value in row.items() if isinstance(value, float)})
            raise ValueError(f"metric: nothing is recorded of {metric!r}; there are {', '.join(known)}")
        if ax is None:
            from matplotlib.figure import Figure

            ax = Figure(figsize=(6, 3.5)).subplots()  # without the state of pyplot, so that a notebook shows it once
        for event, points in curves.items():
            if points:
                ax.plot(*zip(*points), label=event, marker="o" if len(points) < 20 else None)
        ax.set_xlabel("step")
        ax.set_ylabel(metric)
        ax.legend()
        return ax

    def _repr_html_(self) -> str:
        try:
            return _svg_of(self.plot().figure)
        except (ImportError, ValueError):
            names = list(dict.fromkeys(name for row in self for name in row))
            cells = [names, *([row.get(name, "") for name in names] for row in self[-20:])]
            return "<table>" + "".join(
                "<tr>" + "".join(f"<td>{html.escape(str(cell))}</td>" for cell in row) + "</tr>" for row in cells) + "</table>"


def _svg_of(figure):
    import io

    file = io.StringIO()
    figure.savefig(file, format="svg", bbox_inches="tight")
    return file.getvalue()[file.getvalue().index("<svg"):]
