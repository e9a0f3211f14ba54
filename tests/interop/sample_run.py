"""A small run of capstan for the scripts beside this one, and how they skip."""

import importlib
import json
import pathlib
import re
import subprocess
import sys
import tempfile

PROGRAM = pathlib.Path(__file__).resolve().parents[2] / "build" / "release" / "capstan"

CONFIG = """name: sample
data: {type: text, train: [text], sequence_length: 32, tokenizer: char}
model:
  type: language-model
  width: 16
  max_length: 32
  positions: learned
  layers:
    - {mixer: {type: aft-local, window: 4, rank: 4}, feed_forward: {type: gelu, expansion: 2}}
    - {mixer: {type: attention, heads: 2}, feed_forward: {type: swiglu, expansion: 2}}
train: {steps: 6, batch_size: 4, valid_every: 3, log_every: 1, save_every: 2, keep_last: 3, progress: none}
"""


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(0)


def require(module):
    """The Python module, or the end of the script."""
    try:
        return importlib.import_module(module)
    except ImportError:
        skip(f"the Python package {module.split('.')[0]} is not there: pip install {module.split('.')[0]}")


def serving(*arguments):
    """A server with these arguments on a free port, and its address."""
    process = subprocess.Popen([str(PROGRAM), "serve", *map(str, arguments), "--port", "0"], stderr=subprocess.PIPE, text=True)
    for line in process.stderr:
        if "this build has no server" in line:
            skip("the program was built without the headers of Boost")
        if found := re.search(r"http://\S+:\d+/", line):
            return process, found[0]
    raise SystemExit("the server did not start")


def last_checkpoint(run):
    """The folder of a run's last checkpoint."""
    return max((run / "checkpoints").glob("step-*"), key=lambda path: int(path.name[len("step-") :]))


class SampleRun:
    """A folder with the run runs/sample; train() trains it, or goes on with it."""

    def __init__(self):
        if not PROGRAM.exists():
            skip(f"{PROGRAM} is not there: build it first")
        self._folder = tempfile.TemporaryDirectory()
        self.place = pathlib.Path(self._folder.name)
        self.folder = self.place / "runs" / "sample"
        (self.place / "text").mkdir()
        words = "the tape turns a drum and wire runs out slow ship of rope pulls home".split()
        text = " ".join(words[(i * i + i // 3) % len(words)] for i in range(4000))
        (self.place / "text" / "a.txt").write_text(text)
        (self.place / "run.yaml").write_text(CONFIG)

    def train(self, *overrides):
        command = [str(PROGRAM), "train", "--config", "run.yaml"]
        if overrides:
            command += ["--set", *overrides]
        subprocess.run(command, cwd=self.place, check=True)

    def metrics(self):
        return [json.loads(line) for line in (self.folder / "metrics.jsonl").read_text().splitlines()]
