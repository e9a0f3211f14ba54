#!/usr/bin/env python3
"""Sends SIGINT or SIGTERM at a random moment of each long phase of each command and measures the time to the end.

  scripts/attack/signals.py [ROUNDS] [SEED] [PHASE ...]     ROUNDS signals per phase (3); PHASE: only those with this beginning

Each command must end within 2 seconds (CAPSTAN_SIGNAL_LIMIT) of the signal, with exit code 75 or by the signal. CAPSTAN_PROGRAM names
another build of the program. The exit code is 0 when nothing failed.
"""
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

program = os.path.realpath(os.environ.get("CAPSTAN_PROGRAM", "build/release/capstan"))
limit = float(os.environ.get("CAPSTAN_SIGNAL_LIMIT", "2"))
train = "steps: 100000, batch_size: 8, progress: plain, log_every: 1, valid_every: 0, save_every: 0"
configs = {
    "lm": f"""
data: {{type: text, train: [text.txt], sequence_length: 64, tokenizer: char}}
model: {{type: language-model, width: 64, max_length: 64, layers: [{{mixer: {{type: aft-local, window: 16, rank: 4}}}}]}}
train: {{{train}}}
""",
    "attention": f"""
data: {{type: text, train: [text.txt], sequence_length: 64, tokenizer: char}}
model: {{type: language-model, positions: none, width: 64, max_length: 64, layers: [{{mixer: {{type: attention, heads: 4, rotary: true}}}}]}}
train: {{{train}}}
""",
    "classifier": f"""
data: {{type: labelled, train: [rows.tsv], tokenizer: word, max_length: 512}}
model: {{type: text-classifier, width: 64, max_length: 512, layers: [{{mixer: {{type: fastformer, heads: 4}}}}]}}
train: {{{train}}}
""",
    "linear": """
data: {type: labelled, train: [rows.tsv], valid_fraction: 0, max_length: 0, tokenizer: byte}
model: {type: linear-classifier, words: [1, 2], characters: [2, 3, 4, 5]}
train: {epochs: 1, progress: plain}
""",
}
small, many = "data.train=[small.txt]", "model.ngram_embedding={orders: [2], buckets: 200000}"
# Name: seconds within which the signal comes, and the command; a folder `runs/NAME` is that of prepare().
phases = {
    "read text": (2, "train lm"),
    "learn bpe": (10, "train lm", "data.tokenizer={type: sentencepiece, vocabulary_size: 8000, model_type: bpe}"),
    "learn unigram": (20, "train lm", "data.tokenizer={type: sentencepiece, vocabulary_size: 8000, model_type: unigram}"),
    "cache tokens": (3, "train lm", "data.cache=cache"),
    "read rows": (3, "train classifier"),
    "long steps": (10, "train attention", small, "train.batch_size=256", "train.accumulate=16", "model.width=256"),
    "evaluate": (20, "train attention", "train.valid_every=1", "data.valid_fraction=0.5", "model.width=512", "train.batch_size=64"),
    "save": (10, "train lm", "train.save_every=1", many, small),
    "plan": (12, "train lm", small, "train.steps=0", "train.minutes=5", "model.width=0"),
    "linear": (30, "train linear"),
    "linear, many classes": (30, "train linear", "data.train=[labels.tsv]"),
    "warm start": (3, "train lm", "train.init_from=runs/lm", small),
    "check data": (6, "data check --config classifier.yaml"),
    "eval": (10, "eval runs/classifier --set data.test=[rows.tsv] --split test"),
    "predict": (10, "predict runs/classifier text.txt --input lines"),
    "predict linear": (5, "predict runs/linear text.txt --input lines"),
    "score a long line": (10, "score runs/attention line.txt --input lines"),
    "embed": (10, "embed runs/lm text.txt --input lines"),
    "generate": (5, "generate runs/lm --tokens -1"),
    "generate, long prompt": (20, "generate runs/attention --prompt-file line.txt"),
    "report": (3, "report runs/lm runs/attention --output page.html"),
}


def command_of(words, *settings, name="run"):
    words = words.split()
    if words[0] == "train":
        words = ["train", "--config", f"{words[1]}.yaml", "--set", f"name={name}", *settings]
    return [program, *words]


def write(name, lines):
    with open(name, "w") as out:
        out.writelines(line + "\n" for line in lines)


def prepare():
    """40 MB of text, 60,000 rows of 16 and of 2,000 classes, a line of a million bytes; and the runs that reading commands ask."""
    draw = random.Random(1)
    words = ["".join(draw.choice("etaoinshrdlu") for _ in range(draw.randint(2, 9))) for _ in range(30000)]
    stream = draw.choices(words, [1 / (i + 1) for i in range(len(words))], k=6_500_000)
    text = [" ".join(stream[i:i + 12]) for i in range(0, len(stream), 12)]
    write("text.txt", text)
    write("small.txt", text[:4000])
    write("line.txt", [" ".join(stream)[:1_000_000]])
    write("rows.tsv", (f"class{draw.randrange(16)}\t{' '.join(text[8 * i:8 * i + 4])}" for i in range(60000)))
    write("labels.tsv", (f"class{draw.randrange(2000)}\t{text[i]}" for i in range(60000)))
    write("small.tsv", (f"class{i % 16}\t{text[i]}" for i in range(3000)))
    for name, content in configs.items():
        write(name + ".yaml", [content.lstrip()])
        data = [small] if name in ("lm", "attention") else ["data.train=[small.tsv]"]
        steps = [] if name == "linear" else ["train.steps=5"]
        subprocess.run(command_of(f"train {name}", *data, *steps, name=name), check=True, stderr=subprocess.DEVNULL)


def attack(name, seconds, command, draw):
    """Whether one signal failed."""
    pause, number = draw.uniform(0.1, seconds), draw.choice([signal.SIGINT, signal.SIGTERM])
    with open("err", "w") as err:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=err)
    try:
        process.wait(pause)
        print(f"{name}: ended by itself within {pause:.1f} s (code {process.returncode})", flush=True)
        return process.returncode not in (0, 75)
    except subprocess.TimeoutExpired:
        sent = time.time()
        process.send_signal(number)
    try:
        process.wait(120)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    took = time.time() - sent
    good = took <= limit and process.returncode in (75, -number)
    last = (open("err", errors="replace").read().splitlines() or [""])[-1]
    print(f"{name}: {number.name} after {pause:.1f} s: {took:.2f} s, code {process.returncode}" + ("" if good else f"  FAILED: {last[:200]}"), flush=True)
    return not good


def main():
    rounds, seed = (int(word) for word in (sys.argv[1:3] + ["3", "1"][len(sys.argv[1:3]):]))
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell lets what it starts in the background ignore it
    draw, failures = random.Random(seed), []
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        prepare()
        for name, (seconds, words, *settings) in phases.items():
            for _ in range(rounds if not sys.argv[3:] or name.startswith(tuple(sys.argv[3:])) else 0):
                subprocess.run(["rm", "-rf", "runs/run", "cache"], check=True)
                failures.append(attack(name, seconds, command_of(words, *settings), draw))
        os.chdir("/")
    print(f"{len(failures)} signals, {sum(failures)} failed")
    return 1 if any(failures) else 0


if __name__ == "__main__":
    sys.exit(main())
