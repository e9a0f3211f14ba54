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
import os
import pathlib
import select
import statistics
import subprocess
import sys
import time
import urllib.request

import gguf
import xllamacpp

ROOT = pathlib.Path(__file__).resolve().parents[1]
SENTINEL = "~~~~~~~~"


MATRICES = {"bf16": gguf.GGMLQuantizationType.BF16, "int8": gguf.GGMLQuantizationType.Q8_0}


def with_matrices(source, target, kind):
    """A copy of a GGUF file of floats whose matrices are of another type."""
    reader = gguf.GGUFReader(source)
    writer = gguf.GGUFWriter(target, reader.fields["general.architecture"].contents())
    for field in reader.fields.values():
        if field.name != "general.architecture" and not field.name.startswith("GGUF."):
            sub_type = field.types[-1] if field.types[0] == gguf.GGUFValueType.ARRAY else None
            writer.add_key_value(field.name, field.contents(), field.types[0], sub_type)
    for tensor in reader.tensors:
        if len(tensor.shape) == 2:
            writer.add_tensor(tensor.name, gguf.quants.quantize(tensor.data, kind), raw_dtype=kind)
        else:
            writer.add_tensor(tensor.name, tensor.data)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


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
        with_matrices(files["float32"], files[weights], MATRICES[weights])
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
