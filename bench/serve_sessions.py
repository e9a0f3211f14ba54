#!/usr/bin/env python3
"""What a session of `capstan serve` saves and holds, for each system: seconds to the first token of a prompt that adds 20 tokens to
8,000, with the stored state and without it; bytes of a state; resident memory per kept session; and whether a state that another
process has taken back writes the same text.

  bench/serve_sessions.py WORK [--program build/release/capstan] [--systems aft-simple ...] [--size small] [--rounds 5]
                          [--context 8000]

Trains each model for two steps: neither speed nor memory depends on the weights. Prompts are token ids; each round has other ones, so
that no state of a round before fits. Prints a Markdown table with medians [lowest, highest].
"""
import argparse
import http.client
import json
import os
import pathlib
import random
import signal
import statistics
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
SIZES = {"small": (256, 4), "base": (512, 6)}
MIXERS = {
    "aft-simple": "{type: aft-simple}", "aft-local": "{type: aft-local, window: 64, rank: 16}", "aft-conv": "{type: aft-conv, heads: 4, window: 32}",
    "aft-full": "{type: aft-full, rank: 64}", "fastformer": "{type: fastformer, heads: 4}", "gau": "{type: gau, expansion: 2, key_dim: 128}",
    "flash": "{type: flash, expansion: 2, key_dim: 128, chunk: 128}", "attention": "{type: attention, heads: 4}",
}
KEPT_BYTES = 400_000_000  # of sessions whose memory is measured
GATED = ("gau", "flash")  # without a feed-forward network, two for each layer


class Server:
    def __init__(self, program, run, cache_mb, work):
        self.process = subprocess.Popen([program, "serve", run, "--port", "0", "--cache-mb", str(cache_mb), "--max-body-kb", "524288"],
                                        cwd=work, stderr=subprocess.PIPE, text=True)
        for line in self.process.stderr:
            if "serves" in line:
                self.port = int(line.split("127.0.0.1:")[1].split("/")[0])
                return
        raise SystemExit(f"the server of {run} has ended")

    def call(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        connection.request(method, path, body if isinstance(body, bytes) or body is None else json.dumps(body))
        answer = connection.getresponse()
        content = answer.read()
        if answer.status >= 300:
            raise SystemExit(f"{method} {path}: {answer.status} {content[:500]!r}")
        return content

    def text(self, prompt, tokens, **fields):
        body = {"prompt": prompt, "max_tokens": tokens, "temperature": 0, **fields}
        return json.loads(self.call("POST", "/v1/completions", body))["choices"][0]["text"]

    def seconds_to_first(self, prompt, **fields):
        begin = time.perf_counter()
        self.text(prompt, 1, **fields)
        return time.perf_counter() - begin

    def resident(self):
        pages = int(pathlib.Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    def close(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()


def train(program, work, system, size, positions):
    width, layers = SIZES[size]
    name = f"{system}-{size}"
    if (work / "runs" / name).exists():
        return name
    gated = system in GATED
    config = f"""name: {name}
data: {{type: text, train: [text.txt], split: tail, sequence_length: 128, tokenizer: byte}}
model:
  type: language-model
  width: {width}
  max_length: {positions}
  layers: [{{mixer: {MIXERS[system]}, {"feed_forward: {type: none}, " if gated else ""}repeat: {layers * (2 if gated else 1)}}}]
train: {{steps: 2, batch_size: 2, progress: none, valid_every: 0}}
"""
    (work / f"{name}.yaml").write_text(config)
    subprocess.run([program, "train", "--config", f"{name}.yaml"], cwd=work, check=True, stderr=subprocess.DEVNULL)
    return name


def spread(values, form="{:.4f}"):
    return f"{form.format(statistics.median(values))} [{form.format(min(values))}, {form.format(max(values))}]"


def row(options, program, work, system):
    name = train(program, work, system, options.size, options.context + 256)
    draw = random.Random(1)
    ids = lambda count: [draw.randrange(32, 127) for _ in range(count)]  # printable bytes
    server = Server(program, f"runs/{name}", 4096, work)
    with_state, without = [], []
    for _ in range(options.rounds):
        context, more = ids(options.context), ids(20)
        without.append(server.seconds_to_first(ids(options.context + 20)))
        server.text(context, 1, session={"keep": "story"})
        with_state.append(server.seconds_to_first(more, session={"from": "story"}))
    server.text(ids(options.context), 1, session={"keep": "first"})
    same = server.text([65, 66, 67], 64, session={"from": "first"})
    state = server.call("GET", f"/v1/models/{name}/sessions/first")
    kept = max(8, min(512, KEPT_BYTES // len(state)))
    before = server.resident()
    for i in range(kept):
        server.text(ids(4), 1, session={"from": "first", "keep": f"kept{i}"})
    grown = (server.resident() - before) / kept
    server.close()
    other = Server(program, f"runs/{name}", 4096, work)
    other.call("PUT", f"/v1/models/{name}/sessions/first", state)
    restored = other.text([65, 66, 67], 64, session={"from": "first"})
    other.close()
    ratio = [a / b for a, b in zip(without, with_state)]
    print(f"| {system} | {spread(without)} | {spread(with_state)} | {spread(ratio, '{:.0f}')} | {len(state):,} | {grown:,.0f} | "
          f"{1e9 / max(grown, 1):,.0f} | {'yes' if same == restored else '**no**'} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=pathlib.Path)
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "build/release/capstan")
    parser.add_argument("--systems", nargs="*", choices=MIXERS, default=list(MIXERS))
    parser.add_argument("--size", choices=SIZES, default="small")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--context", type=int, default=8000)
    options = parser.parse_args()
    work, program = options.work.resolve(), options.program.resolve()
    work.mkdir(parents=True, exist_ok=True)
    (work / "text.txt").write_text("The tape turns a drum and a wire of rope pulls the slow ship home. " * 300)
    print(f"| system | s to the first token, {options.context:,} + 20 tokens | with the state | ratio | bytes saved | "
          "resident bytes per session | sessions per GB | restored: same text |\n|---|---|---|---|---|---|---|---|")
    for system in options.systems:
        row(options, program, work, system)


if __name__ == "__main__":
    main()
