"""What type checkers read."""
import ast
import subprocess
import sys
from pathlib import Path

import pytest

import capstan
from capstan import _capstan

FOLDER = Path(capstan.__file__).parent


def names_of(thing):
    return {name for name in vars(thing) if not name.startswith("_")}


def test_the_stub_names_what_the_module_has():
    stub = ast.parse((FOLDER / "_capstan.pyi").read_text())
    classes = {node.name: node for node in stub.body if isinstance(node, ast.ClassDef)}
    functions = {node.name for node in stub.body if isinstance(node, ast.FunctionDef)}
    assert classes.keys() | functions == names_of(_capstan)
    for name, node in classes.items():
        methods = {entry.name for entry in node.body if isinstance(entry, ast.FunctionDef) and not entry.name.startswith("_")}
        assert methods == names_of(getattr(_capstan, name)), name


def test_a_type_checker_knows_what_the_package_returns(tmp_path):
    pytest.importorskip("mypy")
    program = tmp_path / "program.py"
    program.write_text("""
import capstan

reveal_type(capstan.Classifier().fit(["a"], ["b"]).explain("a"))
reveal_type(capstan.load("run").score(["a"]))
reveal_type(capstan.train_supervised("train.txt").slim().explain("a"))
capstan.load("run").generate(3)
""")
    command = [sys.executable, "-m", "mypy", "--ignore-missing-imports", "--cache-dir", tmp_path, program]
    said = subprocess.run(command, capture_output=True, text=True)
    revealed = [line.partition("Revealed type is ")[2] for line in said.stdout.splitlines() if "note:" in line]
    assert revealed == ['"list[tuple[str, float]]"', '"list[tuple[float, int]]"', '"list[tuple[str, float]]"'], said.stdout + said.stderr
    assert said.stdout.count(" error: ") == 1 and 'program.py:7: error: Argument 1 to "generate"' in said.stdout, said.stdout
