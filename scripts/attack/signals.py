#!/usr/bin/env python3
"""Sends SIGINT or SIGTERM at a random moment of each long phase of each command and measures the time to the end.

  scripts/attack/signals.py [ROUNDS] [SEED] [PHASE ...]     ROUNDS signals per phase (3); PHASE: only those with this beginning

A phase is a command, what it prints when the phase begins (nothing: its start), and the seconds within which the signal comes.
Each command must end within LIMIT seconds (2; CAPSTAN_SIGNAL_LIMIT) of the signal, with exit code 75 or by the signal. CAPSTAN_PROGRAM
names another build of the program. The exit code is 0 when nothing failed.
"""
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

program = os.path.realpath(os.environ.get("CAPSTAN_PROGRAM", "build/release/capstan"))
limit = float(os.environ.get("CAPSTAN_SIGNAL_LIMIT", "2"))

lm = """
name: run
data: {type: text, train: [text.txt], sequence_length: 64, tokenizer: char}
model: {type: language-model, width: 64, max_length: 64, layers: [{mixer: {type: aft-local, window: 16, rank: 4}}]}
train: {steps: 100000, batch_size: 8, progress: plain, log_every: 1, valid_every: 0, save_every: 0}
"""
attention = lm.replace("aft-local, window: 16, rank: 4", "attention, heads: 4, rotary: true").replace("width: 64", "positions: none, width: 64")
classifier = """
name: run
data: {type: labelled, train: [rows.tsv], tokenizer: word, max_length: 512}
model: {type: text-classifier, width: 64, max_length: 512, layers: [{mixer: {type: fastformer, heads: 4}}]}
train: {steps: 100000, batch_size: 8, progress: plain, log_every: 1, valid_every: 0, save_every: 0}
"""
linear = """
name: run
data: {type: labelled, train: [rows.tsv], valid_fraction: 0, max_length: 0, tokenizer: byte}
model: {type: linear-classifier, words: [1, 2], characters: [2, 3, 4, 5]}
train: {epochs: 1, progress: plain}
"""


def write_inputs():
    """40 MB of text, 60,000 rows of 16 classes, 4,000 rows of 5,000 words, a line of a million bytes."""
    draw = random.Random(1)
    words = ["".join(draw.choice("etaoinshrdlu") for _ in range(draw.randint(2, 9))) for _ in range(30000)]
    weights = [1 / (i + 1) for i in range(len(words))]
    stream = draw.choices(words, weights, k=6_500_000)
    text = [" ".join(stream[i:i + 12]) for i in range(0, len(stream), 12)]
    with open("text.txt", "w") as out:
        out.write("\n".join(text) + "\n")
    with open("rows.tsv", "w") as out:
        for i in range(60000):
            out.write(f"class{draw.randrange(16)}\t{text[8 * i]} {text[8 * i + 1]} {text[8 * i + 2]} {text[8 * i + 3]}\n")
    with open("long-rows.tsv", "w") as out:
        for i in range(4000):
            out.write(f"class{i % 3}\t{' '.join(stream[i * 1000:i * 1000 + 5000])}\n")
    with open("labels.tsv", "w") as out:
        for i in range(60000):
            out.write(f"class{draw.randrange(2000)}\t{text[i]}\n")
    with open("small.tsv", "w") as out:
        for i in range(3000):
            out.write(f"class{i % 16}\t{text[i]}\n")
    with open("small.txt", "w") as out:
        out.write("\n".join(text[:4000]) + "\n")
    with open("line.txt", "w") as out:
        out.write(" ".join(stream)[:1_000_000] + "\n")
    for name, content in {"lm": lm, "attention": attention, "classifier": classifier, "linear": linear}.items():
        with open(name + ".yaml", "w") as out:
            out.write(content.lstrip())


def train(config, *overrides):
    return ["train", "--config", config + ".yaml", "--set", "threads=0", *overrides]


def phases():
    """name: (command, what it prints at the beginning, seconds, standard input)"""
    small = "data.train=[small.txt]"
    tokenizer = "data.tokenizer={type: sentencepiece, vocabulary_size: 8000, model_type: %s}"
    many = "model.ngram_embedding={orders: [2], buckets: 200000}"
    return {
        "read text": (train("lm"), "", 2),
        "learn words": (train("lm", "data.tokenizer=word"), "", 3),
        "learn bpe": (train("lm", tokenizer % "bpe"), "", 10),
        "learn unigram": (train("lm", tokenizer % "unigram"), "", 20),
        "cache tokens": (train("lm", "data.cache=cache"), "", 3),
        "read rows": (train("classifier"), "", 3),
        "check data": (["data", "check", "--config", "classifier.yaml"], "", 6),
        "steps": (train("lm", small), r"Step 1\b", 2),
        "long steps": (train("attention", small, "train.batch_size=256", "train.accumulate=16", "model.width=256"), "schedule", 10),
        "evaluate": (train("lm", small, "train.valid_every=1", "data.valid_fraction=0.5"), r"Step 1\b", 5),
        "evaluate wide": (train("attention", "train.valid_every=1", "data.valid_fraction=0.5", "model.width=512",
                                "train.batch_size=64"), r"Step 1\b", 20),
        "save": (train("lm", "train.save_every=1", many, small), r"Step 1\b", 10),
        "plan": (train("lm", small, "train.steps=0", "train.minutes=5", "model.width=0"), "", 12),
        "linear": (train("linear"), "", 30),
        "linear, many classes": (train("linear", "data.train=[labels.tsv]"), "", 30),
        "linear, long texts": (train("linear", "data.train=[long-rows.tsv]"), "", 40),
        "linear, valid": (train("linear", "data.valid=[rows.tsv]", "data.train=[small.tsv]"), "linear:", 3),
        "warm start": (train("lm", "name=warm", "train.init_from=runs/big", small, many), "", 3),
        "resume": (train("lm", "name=big", "train.steps=100000", small, many), "", 3),
        "sweep": (["sweep", "--config", "lm.yaml", "--set", small, "sweep.train.lr=[0.1, 0.01]"], "", 10),
        "autotune": (["autotune", "--config", "lm.yaml", "--set", small], "", 10),
        "autotune linear": (["autotune", "--config", "linear.yaml"], "", 10),
        "eval": (["eval", "runs/classifier", "--set", "data.test=[rows.tsv]", "--split", "test"], "", 10),
        "eval linear": (["eval", "runs/linear", "--set", "data.test=[rows.tsv]", "--split", "test"], "", 3),
        "predict": (["predict", "runs/classifier", "text.txt", "--input", "lines"], "", 10),
        "predict linear": (["predict", "runs/linear", "text.txt", "--input", "lines"], "", 5),
        "predict to a file": (["predict", "runs/linear", "rows.tsv", "--output", "predicted.tsv"], "", 2),
        "score": (["score", "runs/lm", "text.txt", "--input", "lines"], "", 10),
        "score a long line": (["score", "runs/attention", "line.txt", "--input", "lines"], "", 10),
        "embed": (["embed", "runs/lm", "text.txt", "--input", "lines"], "", 10),
        "embed a long line": (["embed", "runs/attention", "line.txt", "--input", "lines"], "", 10),
        "generate": (["generate", "runs/lm", "--tokens", "-1"], "", 5),
        "generate, long prompt": (["generate", "runs/attention", "--prompt-file", "line.txt"], "", 20),
        "generate, many": (["generate", "runs/lm", "--num-samples", "20000"], "", 10),
        "generate, interactive": (["generate", "runs/attention", "--interactive"], "", 20, "line.txt"),
        "report": (["report", "runs/classifier", "--output", "page.html"], "", 3),
        "report many": (["report", "runs/lm", "runs/attention", "runs/big", "--output", "page.html"], "", 3),
        "verify": (["verify", "runs/big"], "", 1),
        "inspect": (["inspect", "attention.yaml"], "", 1),
    }


def prepare():
    """The runs that reading commands ask."""
    small = "data.train=[small.txt]"
    buckets = "model.ngram_embedding={orders: [2], buckets: 200000}"
    for command in (train("lm", small, "name=lm", "train.steps=5"), train("attention", small, "name=attention", "train.steps=5"),
                    train("lm", small, "name=big", "train.steps=5", buckets),
                    train("classifier", "data.train=[small.tsv]", "name=classifier", "train.steps=5"),
                    train("linear", "data.train=[small.tsv]", "name=linear")):
        done = subprocess.run([program, *command], capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)}\n{done.stderr}")


def attack(name, phase, draw):
    """One signal; the line of the report, and whether it failed."""
    command, begins, seconds, *given = phase
    with open("err", "w") as err, open("out", "w") as out, open(given[0] if given else os.devnull) as stdin:
        process = subprocess.Popen([program, *command], stdin=stdin, stdout=out, stderr=err)
    waited = time.time()
    while begins and process.poll() is None and time.time() - waited < 60 and not re.search(begins, open("err").read()):
        time.sleep(0.02)
    pause = draw.uniform(0.1, seconds)
    try:
        process.wait(pause)
        return f"{name}: ended by itself within {pause:.1f} s (code {process.returncode}): {last_line()}", process.returncode not in (0, 75)
    except subprocess.TimeoutExpired:
        pass
    number = draw.choice([signal.SIGINT, signal.SIGTERM])
    said = last_line()
    sent = time.time()
    process.send_signal(number)
    try:
        process.wait(120)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    took = time.time() - sent
    good = took <= limit and process.returncode in (75, -number)
    return (f"{name}: {number.name} after {pause:.1f} s: {took:.2f} s, code {process.returncode}"
            + ("" if good else f"  FAILED\n    before: {said}\n    after: {last_line()}")), not good


def last_line():
    lines = open("err", errors="replace").read().splitlines()
    return lines[-1][:200] if lines else ""


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell lets what it starts in the background ignore it
    draw = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 1)
    chosen = sys.argv[3:]
    failures = count = 0
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        write_inputs()
        prepare()
        for name, phase in phases().items():
            if chosen and not any(name.startswith(one) for one in chosen):
                continue
            for _ in range(rounds):
                subprocess.run(["rm", "-rf", "runs/run", "runs/warm", "cache"], check=True)
                line, failed = attack(name, phase, draw)
                print(line, flush=True)
                failures += failed
                count += 1
        os.chdir("/")
    print(f"{count} signals, {failures} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
