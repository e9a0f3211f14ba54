"""The twin of `bench_models serve`: one subject, timed on request. Same requests, same answers (bench/serve.hpp), and also

  save WEIGHTS DATA   writes the weights and the batch this subject works on   {"parameters"}

The forms: eager; tuned, the same code in an environment where malloc keeps its memory (bench/workers.py sets it);
compile; bf16, autocast; compile-bf16, both."""

import argparse
import json
import platform
import sys
import time
from pathlib import Path

import torch

import decode
import model as twin

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "parity"))
import safetensors_file  # noqa: E402

LEARNING_RATE, CLIP = 1e-4, 1.0
ADAMW = {"betas": (0.9, 0.95), "eps": 1e-8}
WEIGHT_DECAY = 0.1


class NotAvailable(Exception):
    """This machine or build cannot run the form that was asked for."""


class Subject:
    """The model; `repeats` units of work are what a round times."""

    def __init__(self, options):
        self.options = options
        torch.manual_seed(1)
        max_length = options.max_length or options.length
        self.model = twin.LanguageModel(options.system, options.width, options.layers, max_length)
        twin.randomise(self.model, seed=2)
        self.autocast = torch.autocast("cpu", dtype=torch.bfloat16, enabled=options.form.endswith("bf16"))
        self.random = torch.Generator().manual_seed(3)

    def compiled(self, function):
        return torch.compile(function) if self.options.form.startswith("compile") else function

    def ids(self, *shape):
        return torch.randint(0, twin.VOCABULARY, shape, generator=self.random)

    def gradient_norm(self):
        """In double: a float32 sum of squares over a million numbers is off by 3e-5."""
        gradients = (p.grad for p in self.model.parameters() if p.grad is not None)
        return sum(gradient.double().square().sum().item() for gradient in gradients) ** 0.5

    def run(self, repeats):
        start = time.perf_counter()
        for _ in range(repeats):
            self.unit()
        return time.perf_counter() - start


class TrainingStep(Subject):
    """Loss, gradients, clip and AdamW, as in Capstan."""

    def __init__(self, options):
        super().__init__(options)
        self.tokens, self.labels = self.ids(options.batch, options.length), self.ids(options.batch, options.length)
        self.loss = self.compiled(self.model)
        named = list(self.model.named_parameters())
        groups = [{"params": [p for name, p in named if twin.decayed(name, p)], "weight_decay": WEIGHT_DECAY},
                  {"params": [p for name, p in named if not twin.decayed(name, p)], "weight_decay": 0.0}]
        self.optimizer = torch.optim.AdamW(groups, lr=LEARNING_RATE, fused=True, **ADAMW)

    def data(self):
        return {"tokens": self.tokens.int(), "labels": self.labels.int()}

    def gradients(self):
        with self.autocast:
            loss = self.loss(self.tokens, self.labels)
        loss.backward()
        return loss.detach()

    def unit(self):
        self.gradients()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), CLIP)
        self.optimizer.step()
        self.optimizer.zero_grad()

    def check(self):
        loss = self.gradients().item()
        norm = self.gradient_norm()
        self.optimizer.zero_grad()
        return {"loss": loss, "grad_norm": norm}


class BlockPass(Subject):
    """All blocks without embedding and output, forward or forward and backward; the gradient at y is y."""

    def __init__(self, options):
        super().__init__(options)
        shape = (options.batch, options.length, options.width)
        self.x = torch.randn(shape, generator=self.random).requires_grad_(options.work == "both")
        self.blocks = self.compiled(self.model.run_blocks)

    def data(self):
        return {"x": self.x}

    def unit(self):
        with self.autocast, torch.set_grad_enabled(self.options.work == "both"):
            y = self.blocks(self.x)
        if self.options.work == "both":
            y.backward(y.detach())
            self.x.grad = None
        return y.detach()

    def run(self, repeats):
        seconds = super().run(repeats)
        self.model.zero_grad()
        return seconds

    def check(self):
        y = self.unit()
        norm = self.gradient_norm()
        self.model.zero_grad()
        return {"loss": y.double().square().mean().item() / 2, "grad_norm": norm}


class Decoding(Subject):
    """One token after the other, with the algorithm of Capstan's decode state."""

    def __init__(self, options):
        super().__init__(options)
        if options.system not in decode.DECODERS:
            raise NotAvailable("no twin decodes this system with Capstan's algorithm")
        self.longest = options.max_length or options.length
        self.tokens = self.ids(options.batch, self.longest)
        self.decoder = decode.Decoder(self.model, options.system, self.compiled)

    def data(self):
        return {"tokens": self.tokens.int()}

    @torch.inference_mode()
    def run(self, repeats):
        """The tokens before the timed ones are read once; rounds start from a copy of that state."""
        if not hasattr(self, "prefix"):
            self.prefix = self.decoder.start(self.options.batch)
            for t in range(self.options.length):
                self.decoder.step(self.tokens[:, t], t, self.prefix)
        state = decode.copied(self.prefix)
        start = time.perf_counter()
        for t in range(self.options.length, self.options.length + repeats):
            self.decoder.step(self.tokens[:, t], t, state)
        return time.perf_counter() - start

    @torch.inference_mode()
    def check(self):
        state, total = self.decoder.start(self.options.batch), 0.0
        for t in range(self.longest - 1):
            logits = self.decoder.step(self.tokens[:, t], t, state)
            total += torch.nn.functional.cross_entropy(logits, self.tokens[:, t + 1]).item()
        return {"loss": total / (self.longest - 1), "grad_norm": 0.0}


SUBJECTS = {"step": TrainingStep, "forward": BlockPass, "both": BlockPass, "decode": Decoding}


def take_peak_bytes():
    """Peak of the resident memory, which then starts again from what is resident now."""
    status = Path("/proc/self/status").read_text()
    Path("/proc/self/clear_refs").write_text("5")
    return int(status.split("VmHWM:")[1].split()[0]) * 1024


def build_option(name):
    return torch.__config__.show().split(f"{name}=")[1].split(",")[0] if f"{name}=" in torch.__config__.show() else "?"


def info():
    return {"torch": torch.__version__, "python": platform.python_version(), "threads": torch.get_num_threads(),
            "blas": build_option("BLAS_INFO"), "cpu_capability": torch.backends.cpu.get_cpu_capability()}


def save(subject, weights, data):
    parameters = {name: p.detach() for name, p in subject.model.named_parameters()}
    safetensors_file.save(weights, parameters, {})
    safetensors_file.save(data, subject.data(), {})
    return {"parameters": sum(p.numel() for p in parameters.values())}


def answer(subject, request, *arguments):
    if request == "check":
        return subject.check()
    if request == "round":
        return {"seconds": subject.run(int(arguments[0]))}
    if request == "memory":
        return {"peak_bytes": take_peak_bytes()}
    if request == "info":
        return info()
    if request == "save":
        return save(subject, *arguments)
    raise ValueError(f"unknown request {request}")


def has_bf16():
    """Where the CPU has no bf16 instructions, oneDNN emulates them: that would time the emulation."""
    probes = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
    return any(getattr(torch.cpu, probe, lambda: False)() for probe in probes)


def parse(arguments):
    parser = argparse.ArgumentParser()
    parser.add_argument("--form", choices=("eager", "tuned", "compile", "bf16", "compile-bf16"), default="eager")
    parser.add_argument("--system", choices=twin.MIXERS, default="aft-simple")
    parser.add_argument("--work", choices=SUBJECTS, default="step")
    for name, default in (("width", 256), ("layers", 4), ("batch", 8), ("length", 512), ("max-length", 0), ("threads", 0)):
        parser.add_argument(f"--{name}", type=int, default=default)
    return parser.parse_args(arguments)


def main():
    options = parse(sys.argv[1:])
    if options.threads:
        torch.set_num_threads(options.threads)
    torch.set_flush_denormal(True)
    subject = None
    for line in sys.stdin:
        try:
            if options.form.endswith("bf16") and not has_bf16():
                raise NotAvailable("this CPU has no bf16 instructions")
            subject = subject or SUBJECTS[options.work](options)
            reply = answer(subject, *line.split())
        except Exception as error:  # whatever keeps a form from running is what its row says
            reply = {"error": str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__}
        print(json.dumps(reply), flush=True)


if __name__ == "__main__":
    main()
