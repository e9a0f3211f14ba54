#!/usr/bin/env python3
"""Replays random pieces of runs of every system and task, and changes single bits of what a run saved.

  scripts/attack/replay.py [SEGMENTS] [CHANGES] [SEED]

SEGMENTS pieces (20) are computed again on 1 to 3 threads or ranks: all bits must be the same. Then for each of weights, optimizer,
data, log and configuration CHANGES copies of a run (10) have one bit, byte, figure or key changed: `capstan verify --replay` must end with
exit code 1 or 2 and name what was changed. Half of the changed tensors have a right checksum. Ranks are left out without mpirun.
CAPSTAN_PROGRAM names another build of the program. What fails is printed; the exit code is 0 when nothing failed.
"""
import json
import os
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile

here = os.getcwd()
program = os.path.realpath(os.environ.get("CAPSTAN_PROGRAM", "build/release/capstan"))
systems = ["aft-simple", "aft-full", "aft-local", "aft-conv", "fastformer", "attention", "gau", "flash"]
saves, last = 6, 30
steps = [f"train.steps={last}", "train.epochs=0", f"train.save_every={saves}", "train.keep_last=99", "train.keep_optimizer=true",
         "train.log_every=2", "train.valid_every=10", "train.batch_size=6"]
text = ["data.train=[text.txt]", "data.include=[]", "data.exclude=[]", "data.split=tail", "model.width=32"]
rows = ["data.train=[rows.tsv]", "data.test=[]", "data.valid_fraction=0.2"]
runs = {f"lm-{system}": [*text, *steps, "data.sequence_length=64", "data.overlap=0"] for system in systems}
runs.update({f"classifier-{system}": ["data.train=100", "data.valid=20", "data.test=0", *steps] for system in systems})
runs["masked-lm"] = [*text, *steps]
runs["pairs"] = ["data.train=[pairs.tsv]", "data.test=[]", "data.valid_fraction=0.2", "model.width=32", *steps]
runs["trec"] = ["data.train=[rows.tsv]", "data.valid=[]", "data.test=[]", "data.valid_fraction=0.2", *steps]
runs["classify"] = ["data.train=[rows.tsv]", "data.test=[]"]


def write_inputs():
    draw = random.Random(1)
    words = ["".join(draw.choices("etaoinshrdlu", k=draw.randint(2, 8))) for _ in range(300)]
    lines = [" ".join(draw.choices(words, k=9)) for _ in range(2000)]
    for name, write in {"text.txt": lambda line: line, "rows.tsv": lambda line: f"{'yes' if line < 'm' else 'no'}\t{line}",
                        "pairs.tsv": lambda line: f"{line[:20]}\t{line[:20][::-1]}"}.items():
        with open(name, "w") as out:
            out.writelines(write(line) + "\n" for line in lines)


def capstan(*words, ranks=1):
    command = [program, *words]
    if ranks > 1:
        command = ["mpirun", "-n", str(ranks), *command]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def steps_of(run):
    return sorted(int(name[5:]) for name in os.listdir(f"runs/{run}/checkpoints") if re.fullmatch(r"step-\d+", name))


def piece(run, draw):
    """The options of a random piece of a run, and its last checkpoint."""
    known = steps_of(run)
    if run == "classify":
        return [], f"runs/{run}/checkpoints/step-{known[-1]}"
    begin, end = sorted(draw.sample([0, *(step for step in known if step % saves == 0)], 2))
    return ["--steps", f"{begin}..{end}"], f"runs/{run}/checkpoints/step-{end}"


def change_tensor(path, draw):
    """Flips a bit of the numbers; in every second case the file then has no checksum that would tell. The tensor, or the file."""
    content = bytearray(open(path, "rb").read())
    size, = struct.unpack("<Q", content[:8])
    header = json.loads(content[8:8 + size])
    told = draw.random() < 0.5
    names = [name for name in header if name != "__metadata__" and header[name]["data_offsets"][1] > header[name]["data_offsets"][0]]
    name = draw.choice(names)
    begin, end = header[name]["data_offsets"]
    content[8 + size + draw.randrange(begin, end)] ^= 1 << draw.randrange(8)
    if not told:
        header["__metadata__"].pop("xxh3_128", None)
        shorter = json.dumps(header, separators=(",", ":")).encode()
        content[8:8 + size] = shorter.ljust(size)
    open(path, "wb").write(content)
    return os.path.basename(path)


def change_line(path, pattern, draw):
    """Another digit in a random place that the pattern finds (its group 1); the line's text before it."""
    content = open(path).read()
    found = draw.choice(list(re.finditer(pattern, content, re.M)))
    at = draw.randrange(*found.span(1))
    other = draw.choice([digit for digit in "123456789" if digit != content[at]])
    open(path, "w").write(content[:at] + other + content[at + 1:])
    return found.group(0)


def changed(what, run, draw):
    """Makes the change in copies of the run and its inputs. What replay is to name: any of these words."""
    options, checkpoint = piece(run, draw)
    if what == "weights":
        return options, [change_tensor(f"{checkpoint}/model.safetensors", draw)]
    if what == "optimizer":
        return options, [change_tensor(f"{checkpoint}/optimizer.safetensors", draw)]
    if what == "data":
        path = next(part[12:-1] for part in runs[run] if part.startswith("data.train=["))
        content = bytearray(open(path, "rb").read())
        at = draw.choice([i for i, byte in enumerate(content) if chr(byte).isalpha() and (i < 3 or content[i - 3:i] != b"yes")])
        content[at] = ord("x") if content[at] != ord("x") else ord("y")
        open(path, "wb").write(content)
        return options, ["data", "tokenizer"]
    if what == "log":
        begin, end = map(int, options[1].split("..")) if options else (0, last)
        line = rf'"loss":\d+\.(\d{{2,5}})\d*.*"step":(?:{"|".join(str(s) for s in range(begin + 1, end + 1))})\b'
        change_line(f"runs/{run}/metrics.jsonl", line, draw)
        return options, ["metrics.jsonl"]
    # A key of the model or the data makes it another one; those of training are named.
    key = draw.choice(["lr", "batch_size", "seed", "log_every", "valid_every", "dropout", "max_length"])
    pattern = rf"^ +{key}: [\d.]*?(\d)$"
    if not re.search(pattern, open(f"runs/{run}/config.yaml").read(), re.M):
        key, pattern = "lr", r"^ +lr: [\d.]*?(\d)(?:e-?\d+)?$"
    change_line(f"runs/{run}/config.yaml", pattern, draw)
    return options, [key, "of the run: another one"]


def segments(count, draw, max_ranks):
    failed = 0
    order = [*runs, *draw.choices(list(runs), k=max(count - len(runs), 0))]
    draw.shuffle(order)
    for run in order[:count]:
        options, _ = piece(run, draw)
        ranks = draw.randint(1, max_ranks) if run != "classify" else 1
        threads = draw.randint(1, 3)
        code, said = capstan("verify", "--replay", f"runs/{run}", *options, "--set", f"threads={threads}", ranks=ranks)
        good = code == 0 and "the same\n" in said and "different" not in said
        failed += not good
        print(f"{run} {' '.join(options) or 'whole'}, {threads} threads, {ranks} ranks: {'the same' if good else 'FAILED'}", flush=True)
        if not good:
            print(said)
    return failed


def changes(what, count, draw):
    failed = 0
    able = [run for run in runs if (what in ("weights", "configuration") or run != "classify")
            and (what != "data" or any(part.startswith("data.train=[") for part in runs[run]))]
    with tempfile.TemporaryDirectory() as kept:
        for run in (draw.choice(able) for _ in range(count)):
            for name in (f"runs/{run}", "text.txt", "rows.tsv", "pairs.tsv"):
                (shutil.copytree if os.path.isdir(name) else shutil.copy)(name, os.path.join(kept, os.path.basename(name)))
            options, named = changed(what, run, draw)
            code, said = capstan("verify", "--replay", f"runs/{run}", *options)
            good = code in (1, 2) and any(word in said for word in named)
            failed += not good
            told = next((line.strip() for line in said.splitlines() if "different:" in line or "error:" in line), "nothing said")
            print(f"{what} of {run}: {'' if good else 'FAILED: '}{told[:150]}", flush=True)
            shutil.rmtree(f"runs/{run}")
            shutil.move(os.path.join(kept, run), "runs")
            for name in ("text.txt", "rows.tsv", "pairs.tsv"):
                shutil.move(os.path.join(kept, name), name)
    return failed


def main():
    count, times, seed = (int(word) for word in (sys.argv[1:] + ["20", "10", "1"][len(sys.argv) - 1:]))
    draw = random.Random(seed)
    os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_rmaps_base_oversubscribe="1",
                      OMPI_MCA_hwloc_base_binding_policy="none")
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        write_inputs()
        for run, settings in runs.items():
            code, said = capstan("train", "--config", f"{here}/configs/{run}.yaml", "--set", f"name={run}", *settings)
            if code != 0:
                sys.exit(f"replay.py: {run} was not trained:\n{said}")
        failed = segments(count, draw, 3 if shutil.which("mpirun") else 1)
        for what in ("weights", "optimizer", "data", "log", "configuration"):
            failed += changes(what, times, draw)
        os.chdir(here)
    print(f"{count} pieces, {5 * times} changes, {failed} failures")
    sys.exit(failed > 0)


main()
