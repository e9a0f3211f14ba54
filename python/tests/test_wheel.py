import os
import subprocess
import sys

import pytest

WHEEL = os.environ.get("CAPSTAN_WHEEL", "")


@pytest.mark.skipif(not WHEEL, reason="CAPSTAN_WHEEL names the wheel; python/test.sh builds one")
def test_a_wheel_imports_in_an_empty_environment(tmp_path):
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "empty"], check=True)
    python = tmp_path / "empty" / "bin" / "python"
    # With PYTHONPATH, pip would take a package that is there for installed.
    installed = subprocess.run([python, "-m", "pip", "install", "--quiet", WHEEL], capture_output=True, text=True,
                               env={**os.environ, "PYTHONPATH": ""})
    if installed.returncode != 0 and "numpy" in installed.stderr:
        pytest.skip("NumPy cannot be installed here")
    assert installed.returncode == 0, installed.stderr
    program = """
import capstan
from pathlib import Path
Path("train.tsv").write_text("good\\tfine film\\nbad\\tdull film\\n" * 20)
print(capstan.train("classify", "train.tsv", quiet=True).predict(["a fine film"]))
"""
    said = subprocess.run([python, "-c", program], capture_output=True, text=True, cwd=tmp_path, env={"PATH": os.environ["PATH"]})
    assert said.stdout == "['good']\n", said.stderr
