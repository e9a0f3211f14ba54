#!/usr/bin/env python3
"""Tokens per second of `capstan generate` beside llama.cpp on the same model, in interleaved rounds.

  bench/llama_cpp.py WORK [--program build/release/capstan] [--rounds 7] [--tokens 256] [--threads 1 2] [--weights float32 bf16 int8]
                     [--set KEY=VALUE ...]

Trains configs/lm-llama.yaml for ten steps (the speed does not depend on the weights; --set changes the model), writes the GGUF file and
copies with matrices in bf16 and Q8_0, and lets both programs continue prompts of 8 and of 2,000 tokens, with weights in float32, bf16 and 8
bits (Q8_0 in llama.cpp), on one and two threads. Two need a quiet machine. Prints the median [quartiles] of
tokens per second after the first token, of the seconds until it, of CPU milliseconds for prompt and text per new token (which other
programs on the machine change little), and of the ratios of each round: above 1, Capstan is ahead. Capstan is timed from outside, on a
prompt after a first one; of llama.cpp the times are those that it measures itself. Run it by a Python that has the packages
gguf, torch, transformers and xllamacpp.
"""
import argparse
import json
import math
import os
import pathlib
import select
import statistics
import struct
import subprocess
import sys
import time
import urllib.request

import numpy as np
import xllamacpp

ROOT = pathlib.Path(__file__).resolve().parents[1]
SENTINEL = "~~~~~~~~"


def bf16(matrix):
    bits = matrix.view(np.uint32).astype(np.uint64)
    return np.minimum((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16, 0xFFFF).astype("<u2").tobytes()


def q8_0(matrix):
    """Blocks of 32 elements: a scale in float16, and whole numbers in 8 bits."""
    blocks = matrix.reshape(-1, 32)
    scale = np.abs(blocks).max(axis=1, keepdims=True) / 127
    whole = np.rint(np.divide(blocks, scale, out=np.zeros_like(blocks), where=scale > 0)).astype(np.int8)
    return np.concatenate([scale.astype("<f2").view(np.int8), whole], axis=1).tobytes()


MATRICES = {"bf16": (30, bf16), "int8": (8, q8_0)}  # the number of the type in GGUF, and what makes it


def with_matrices(source, target, weights):
    """A copy of a GGUF file of floats whose matrices are of another type. The file's keys are copied as they are."""
    data = source.read_bytes()
    at = 24
    tensors, keys = struct.unpack_from("<QQ", data, 8)
    sizes = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}

    def string(at):
        return at + 8 + struct.unpack_from("<Q", data, at)[0]

    def value(at, kind):
        if kind == 8:
            return string(at)
        if kind != 9:
            return at + sizes[kind]
        inner, count = struct.unpack_from("<IQ", data, at)
        at += 12
        if inner != 8:
            return at + count * sizes[inner]
        for _ in range(count):
            at = string(at)
        return at

    for _ in range(keys):
        at = string(at)
        at = value(at + 4, struct.unpack_from("<I", data, at)[0])
    head, infos = data[:at], []
    for _ in range(tensors):
        name_end = string(at)
        (rank,) = struct.unpack_from("<I", data, name_end)
        shape = struct.unpack_from(f"<{rank}Q", data, name_end + 4)
        _, offset = struct.unpack_from("<IQ", data, name_end + 4 + 8 * rank)
        infos.append((data[at:name_end], shape, offset))
        at = name_end + 16 + 8 * rank
    begin = (at + 31) // 32 * 32
    bodies, offset = [], 0
    for name, shape, was in infos:
        elements = np.frombuffer(data, "<f4", math.prod(shape), begin + was)
        kind, body = MATRICES[weights] if len(shape) == 2 else (0, bytes)
        body = body(elements)
        head += name + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, offset)
        body += b"\0" * (-len(body) % 32)
        bodies.append(body)
        offset += len(body)
    target.write_bytes(head + b"\0" * (-len(head) % 32) + b"".join(bodies))


class Capstan:
    """`capstan generate --interactive`, which has read its weights before it is timed."""

    def __init__(self, program, run, weights, tokens):
        command = [str(program), "generate", str(run), "--interactive", "--temperature", "0", "--tokens", str(tokens), "--weights", weights]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.tokens, self.seen = tokens, b""
        self.send(SENTINEL)
        self.until(lambda text: text.count(b"\n") and not select.select([self.process.stdout], [], [], 3.0)[0])
        self.answer = self.seen  # the same each time

    def send(self, line):
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()

    def until(self, condition):
        while not condition(self.seen):
            self.seen += os.read(self.process.stdout.fileno(), 65536)
        return time.perf_counter()

    def cpu_seconds(self):
        threads = pathlib.Path(f"/proc/{self.process.pid}/task").glob("*/schedstat")
        return sum(int(thread.read_text().split()[0]) for thread in threads) / 1e9

    def measure(self, prompt):
        """(tokens per second, seconds until the first, CPU milliseconds per new token). The line that follows is answered when the
        text is whole."""
        self.seen, cpu, begin = b"", self.cpu_seconds(), time.perf_counter()
        self.send(prompt)
        self.send(SENTINEL)
        first = self.until(lambda text: len(text) > len(prompt))
        last = self.until(lambda text: SENTINEL.encode() in text[len(prompt) :])
        cpu = self.cpu_seconds() - cpu
        whole = self.seen.index(SENTINEL.encode(), len(prompt)) + len(self.answer)
        self.until(lambda text: len(text) >= whole)
        return (self.tokens - 1) / (last - first), first - begin, 1000 * cpu / self.tokens

    def close(self):
        self.process.kill()
        self.process.wait()


class LlamaCpp:
    def __init__(self, file, threads, tokens, port):
        parameters = xllamacpp.CommonParams()
        parameters.model.path, parameters.n_ctx, parameters.port, parameters.n_parallel = str(file), 4096, port, 1
        parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = threads
        self.server, self.tokens = xllamacpp.Server(parameters), tokens
        self.address = getattr(self.server, "listening_address", None) or f"http://127.0.0.1:{port}"
        self.measure(SENTINEL)

    def measure(self, prompt):
        body = {"prompt": prompt, "n_predict": self.tokens, "temperature": 0, "top_k": 1, "samplers": ["top_k"], "cache_prompt": False,
                "ignore_eos": True}
        cpu = time.process_time()
        request = urllib.request.Request(self.address + "/completion", json.dumps(body).encode(), {"Content-Type": "application/json"})
        times = json.loads(urllib.request.urlopen(request, timeout=600).read())["timings"]
        if times["predicted_n"] != self.tokens:
            sys.exit(f"llama.cpp wrote {times['predicted_n']} tokens instead of {self.tokens}")
        return times["predicted_per_second"], times["prompt_ms"] / 1000, 1000 * (time.process_time() - cpu) / self.tokens

    def close(self):
        self.server = None


def spread(values, form="{:.0f}"):
    low, middle, high = statistics.quantiles(values, n=4) if len(values) > 1 else values * 3
    return f"{form.format(middle)} [{form.format(low)}, {form.format(high)}]"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=pathlib.Path)
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "build/release/capstan")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--tokens", type=int, default=256)
    parser.add_argument("--threads", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--weights", nargs="*", default=["float32", *MATRICES])
    parser.add_argument("--set", nargs="*", default=[])
    options = parser.parse_args()
    work, program = options.work.resolve(), options.program.resolve()
    work.mkdir(parents=True, exist_ok=True)
    text = "The tape turns a drum and a wire of rope pulls the slow ship home, says the page. " * 40
    (work / "text.txt").write_text("\n".join(text[i:] for i in range(4)))
    for threads in options.threads:
        if not (work / f"runs/t{threads}").exists():
            subprocess.run([program, "train", "--config", ROOT / "configs/lm-llama.yaml", "--set", f"name=t{threads}", f"threads={threads}",
                            "data.train=[text.txt]", "data.split=tail", "data.include=[]", "data.exclude=[]", "train.steps=10", "train.batch_size=2",
                            "model.max_length=4096",
                            "train.progress=none", *options.set], cwd=work, check=True, stderr=subprocess.DEVNULL)
    if not (work / "gguf").exists():
        subprocess.run([program, "export", f"runs/t{options.threads[0]}", "--format", "gguf", "--output", "gguf"], cwd=work, check=True,
                       stdout=subprocess.DEVNULL)
        subprocess.run([sys.executable, "gguf/export_gguf.py"], cwd=work, check=True, stdout=subprocess.DEVNULL)
    files = {"float32": work / "gguf/model.gguf"} | {weights: work / f"{weights}.gguf" for weights in MATRICES}
    for weights in MATRICES:
        with_matrices(files["float32"], files[weights], weights)
    print("| weights | threads | prompt | Capstan, tokens/s | llama.cpp | ratio | s to the first | llama.cpp | ratio |"
          " CPU ms per token | llama.cpp | ratio |")
    print("|---|---|---|---|---|---|---|---|---|---|---|---|")
    port = 18300
    for weights, file in ((weights, files[weights]) for weights in options.weights):
        for threads in options.threads:
            port += 1
            both = Capstan(program, work / f"runs/t{threads}", weights, options.tokens), LlamaCpp(file, threads, options.tokens, port)
            for length in (8, 2000):
                prompt = text[:length]
                rounds = [(both[0].measure(prompt), both[1].measure(prompt)) for _ in range(options.rounds)]
                ours, theirs = [a for a, _ in rounds], [b for _, b in rounds]
                row = []
                for what, form in ((0, "{:.0f}"), (1, "{:.4f}"), (2, "{:.3f}")):
                    a, b = [x[what] for x in ours], [x[what] for x in theirs]
                    ratio = [x / y if what == 0 else y / x for x, y in zip(a, b)]
                    row += [spread(a, form), spread(b, form), spread(ratio, "{:.2f}")]
                print(f"| {weights} | {threads} | {length} | " + " | ".join(row) + " |", flush=True)
            for one in both:
                one.close()


if __name__ == "__main__":
    main()
