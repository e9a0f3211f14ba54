"""What people see of a training, and how they stop it."""
import html
import re
from pathlib import Path

import pytest
from conftest import LANGUAGE_MODEL

import capstan

EXAMPLES = Path(__file__).parents[2] / "examples"


def train(book, tmp_path, **keys):
    return capstan.train(LANGUAGE_MODEL, book, quiet=True, folder=tmp_path, train__log_every=10, **keys)


def test_a_callback_gets_what_the_history_has_and_stops_a_training_that_the_same_call_continues(book, tmp_path):
    seen = []

    def stop_at_50(event):
        seen.append(event)
        return event["event"] == "train" and event["step"] >= 50

    run = train(book, tmp_path, callback=stop_at_50)
    assert run.history == seen and seen[-1]["step"] in (50, 51) and run.score(["The dog"])
    assert {"event", "step", "loss", "lr", "tokens_per_second"} <= set(seen[0])
    whole = train(book, tmp_path, callback=lambda event: None)
    assert whole.history[-1]["step"] == 200
    assert whole.score(["The dog"]) == train(book, tmp_path / "other").score(["The dog"])


def test_what_a_callback_raises_is_raised_once_the_run_is_saved(book, tmp_path):
    def fail(event):
        if event["step"] >= 20:
            raise KeyError("no more")

    with pytest.raises(KeyError, match="no more"):
        train(book, tmp_path, callback=fail)
    assert capstan.load(tmp_path / "lm").history[-1]["step"] < 200


def test_a_history_plots_and_is_a_table(language_model):
    pytest.importorskip("matplotlib")
    history = language_model.history
    axes = history.plot()
    assert axes.get_ylabel() == "loss" and [line.get_label() for line in axes.lines] == ["train", "valid"]
    assert history._repr_html_().startswith("<svg")
    with pytest.raises(ValueError, match="nothing is recorded of 'accurcy'; there are .*loss"):
        history.plot("accurcy")
    table = pytest.importorskip("pandas") and history.to_pandas()
    assert len(table) == len(history) and table["loss"].notna().any()


def test_a_run_is_a_page_in_a_notebook(language_model, reviews):
    page = html.unescape(re.search(r'srcdoc="([^"]*)"', language_model._repr_html_())[1])
    assert page.startswith("<!doctype html>") or page.startswith("<!DOCTYPE html>")
    assert "loss" in page
    online = capstan.Classifier(model__buckets=1 << 12).partial_fit(*reviews, classes=["bad", "good"])
    assert "capstan.Run" in online.run_._repr_html_()


def test_the_notebook_runs(tmp_path, book):
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    pytest.importorskip("matplotlib")
    notebook = nbformat.read(EXAMPLES / "notebook" / "capstan.ipynb", as_version=4)
    nbclient.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = [output.get("data", {}) for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    written = "".join(output.get("text", "") for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs)
    pages = "".join(data.get("text/html", "") for data in shown)
    assert "<svg" in pages and "<iframe" in pages
    assert "'good'" in written + "".join(data.get("text/plain", "") for data in shown)
