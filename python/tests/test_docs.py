"""The programs of docs/python.md, as they are written there."""
import re
from pathlib import Path

import pytest

import capstan

GUIDE = Path(__file__).parents[2] / "docs" / "python.md"


def run(beginning):
    """Runs the program with this line; returns its variables."""
    found = [program for program in re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL) if beginning in program]
    assert len(found) == 1, beginning
    variables = {}
    exec(found[0], variables)
    return variables


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_the_guide_trains_a_classifier_that_a_web_service_answers_with(here):
    said = run("capstan.Classifier().fit(")
    assert said["classifier"].predict(["a fine film"]).tolist() == ["good"]
    assert capstan.Classifier.load("runs/small").predict(["a fine film"]).tolist() == ["good"]

    pytest.importorskip("fastapi")
    assert run("FastAPI()")["classify"](["a fine film"]) == ["good"]


def test_the_guide_learns_from_texts_as_they_come(here):
    said = run("def rows()")
    assert said["classifier"].predict(["a lovely film"]).tolist() == ["good"]
    assert capstan.Classifier.load("runs/stream").partial_fit(["dull"], ["bad"]).predict(["dull"]).tolist() == ["bad"]


def test_the_guide_trains_on_lines_of_fasttext(here):
    lines = "".join(f"__label__{label} a {text} dish\n" for label, text in [("good", "tasty"), ("bad", "burnt")] * 10)
    Path("train.txt").write_text(lines)
    run("train_supervised(")
    assert capstan.Classifier.load("runs/model").predict(["a tasty dish"]).tolist() == ["good"]
