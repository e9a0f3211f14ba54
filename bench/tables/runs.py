"""Training runs for the scripts of this folder: several at a time, each on one thread; the same command goes on."""
import concurrent.futures
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import threading
import time


ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAM = os.environ.get("CAPSTAN_PROGRAM", os.path.join(ROOT, "build/release/capstan"))
RECORDS = os.path.join(ROOT, "bench/tables/records")  # the results that docs/results.md shows
SYSTEMS = ["aft-simple", "aft-local", "aft-full", "aft-conv", "fastformer", "attention", "gau", "flash"]


def read_results(path):
    return [json.loads(line) for line in open(path)] if os.path.exists(path) else []


def add_result(path, results, result):
    """Appends a result to the list and, as a line of JSON, to the file."""
    results.append(result)
    with open(path, "a") as file:
        file.write(json.dumps(result) + "\n")
    print(json.dumps(result), file=sys.stderr)


def config(name):
    return os.path.join(ROOT, "configs", name)


def origin():
    """What a result is measured with: the commit, and name, family and model of the CPU."""
    said = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    with open("/proc/cpuinfo") as file:
        first = dict(map(str.strip, line.split(":", 1)) for line in file.read().split("\n\n")[0].splitlines() if ":" in line)
    cpu = f"{first['model name']} {first['cpu family']}/{first['model']}" if "cpu family" in first else first.get("model name", "")
    return {"commit": said.stdout.strip(), "cpu": cpu}


def figures(folder, split):
    said = subprocess.run([PROGRAM, "eval", folder, "--split", split, "--format", "json"], check=True, capture_output=True)
    return {name: value for name, value in json.loads(said.stdout).items() if not isinstance(value, list)}  # no table of classes


def best_weights(folder):
    """The file of a run's best weights; None where it has no checkpoint."""
    last = max(pathlib.Path(folder, "checkpoints").glob("step-*"), key=lambda path: int(path.name[5:]), default=None)
    if last:
        state = json.loads((last / "state.json").read_text())["state"]
        return (last if state["best_loss"] is None else last.with_name(f"step-{state['best_step']}")) / "model.safetensors"


def weights_hash(folder):
    """SHA-256 of names, shapes and bits of the best weights of a run: not of the file, whose header names the version."""
    with open(best_weights(folder), "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        begin = file.tell()
        found = hashlib.sha256()
        for name, tensor in sorted(header.items()):
            if name != "__metadata__":
                first, end = tensor["data_offsets"]
                file.seek(begin + first)
                found.update(f"{name} {tensor['dtype']} {tensor['shape']} ".encode() + file.read(end - first))
    return found.hexdigest()


def train(files, settings, folder, splits=("valid", "test"), keep=False):
    """Trains a run in `folder`, which is removed afterwards unless `keep`. Returns its figures per split, seconds and memory."""
    shutil.rmtree(folder, ignore_errors=True)
    command = [PROGRAM, "train", "--config", *files, "--set", f"folder={os.path.dirname(folder)}",
               f"name={os.path.basename(folder)}", "threads=1", "train.save_every=0", *settings]
    before = time.monotonic()
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}\n{done.stderr[-2000:]}")
    result = {"seconds": time.monotonic() - before}
    with open(f"{folder}/metrics.jsonl") as metrics:
        lines = [json.loads(line) for line in metrics]
    result["rss_mb"] = max(line.get("peak_rss_bytes", 0) for line in lines) / 1e6
    result["steps"] = max(line.get("step", 0) for line in lines)
    for split in splits:
        result[split] = figures(folder, split)
    if not keep:
        shutil.rmtree(folder)
    return result


class Grid:
    """Cases are dictionaries; what is in the file of results is not run again."""

    def __init__(self, out, work, jobs):
        self.out, self.work, self.jobs = os.path.abspath(out), os.path.abspath(work), jobs
        self.results = read_results(self.out)
        self.lock = threading.Lock()
        os.makedirs(self.work, exist_ok=True)

    def find(self, case):
        """The result of a case, or None."""
        for result in self.results:
            if all(result.get(name) == value for name, value in case.items()):
                return result
        return None

    def run(self, case, files, settings, **options):
        """Runs a case unless it has a result, which is returned in any case."""
        found = self.find(case)
        if found is None:
            folder = os.path.join(self.work, "-".join(str(value).replace("/", "_") for value in case.values()))
            found = {**case, **train(files, settings, folder, **options), **origin()}
            with self.lock:
                add_result(self.out, self.results, found)
        return found

    def each(self, function, items):
        """function(item) for all items, `jobs` at a time; the first error ends it."""
        with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
            return list(pool.map(function, items))


def add_grid_options(parser, out):
    parser.add_argument("--out", default=os.path.join(RECORDS, out),
                        help="file of results, a line of JSON each; a new file measures anew")
    parser.add_argument("--work", default="runs/tables", help="folder for the runs")
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time, each with one thread")


def print_table(head, rows):
    print("| " + " | ".join(head) + " |")
    print("|---" * len(head) + "|")
    for row in rows:
        print("| " + " | ".join(str(cell) for cell in row) + " |")
