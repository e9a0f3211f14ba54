"""The package and the program compute the same bits."""
import hashlib
import importlib.metadata
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from conftest import LANGUAGE_MODEL

import capstan

PROGRAM = os.environ.get("CAPSTAN_PROGRAM") or shutil.which("capstan")
BLOCKS = {
    "name": "blocks", "seed": 3,
    "data": {"type": "labelled", "tokenizer": "byte", "max_length": 32},
    "model": {"type": "text-classifier", "width": 32, "layers": [{"mixer": "gau", "repeat": 1}]},
    "train": {"steps": 30, "batch_size": 8},
}
LINEAR = {
    "name": "linear",
    "data": {"type": "labelled", "tokenizer": "byte", "valid_fraction": 0, "max_length": 0},
    "model": {"type": "linear-classifier", "words": [1, 2], "characters": [2, 3], "text_ends": True},
    "train": {"epochs": 1},
}


def weights(folder):
    last = max((Path(folder) / "checkpoints").glob("step-*"), key=lambda path: int(path.name[len("step-"):]))
    state = json.loads((last / "state.json").read_text())["state"]
    best = last if state["best_loss"] is None else last.with_name(f"step-{state['best_step']}")
    return hashlib.sha256((best / "model.safetensors").read_bytes()).hexdigest()


needs_program = pytest.mark.skipif(PROGRAM is None, reason="no program: set CAPSTAN_PROGRAM to the path of capstan of the same build")


@needs_program
def test_the_package_has_the_version_of_the_program():
    said = subprocess.run([PROGRAM, "--version"], check=True, capture_output=True, text=True).stdout
    assert said == f"capstan {capstan.__version__}\n"
    try:
        assert importlib.metadata.version("capstan") == capstan.__version__
    except importlib.metadata.PackageNotFoundError:  # found by PYTHONPATH
        pass


@needs_program
@pytest.mark.parametrize("config", [LANGUAGE_MODEL, BLOCKS, LINEAR], ids=lambda config: config["name"])
def test_training_gives_the_bits_of_the_program(config, book, reviews, tmp_path):
    data = book
    if config is not LANGUAGE_MODEL:
        data = tmp_path / "train.tsv"
        data.write_text("".join(f"{label}\t{text}\n" for text, label in zip(*reviews)))
    run = capstan.train(config, data, quiet=True, folder=tmp_path / "package")
    file = tmp_path / "config.yaml"
    file.write_text(yaml.safe_dump({**config, "folder": str(tmp_path / "program"),
                                    "data": {**config["data"], "train": [str(data)]}}))
    subprocess.run([PROGRAM, "train", "--config", str(file)], check=True, capture_output=True)
    assert weights(run.folder) == weights(tmp_path / "program" / config["name"])
