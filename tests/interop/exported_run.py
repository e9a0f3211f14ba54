"""Runs with random options and random weights, what Capstan computes with them, and their exports."""

import json
import pathlib
import random
import subprocess
import sys
import tempfile

from sample_run import PROGRAM, last_checkpoint, require, skip

NUMBERS = PROGRAM.parent / "bin" / "run_numbers"
TEXT = "the tape turns a drum and wire runs out slow ship of rope pulls home"
SYSTEMS = ("aft-simple", "aft-full", "aft-local", "aft-conv", "fastformer", "attention", "gau", "flash")
TASKS = ("language-model", "masked-language-model", "text-classifier", "pairs")


def mixer(system, draw):
    """A mixer with random options."""
    yes = lambda: draw.choice((True, False))
    if system.startswith("aft"):
        config = {"bias": yes(), "output_projection": True, "inner": draw.choice((0, 24))}
        if system == "aft-conv":
            config |= {"window": draw.choice((2, 5)), "heads": draw.choice((1, 4))}
        elif system != "aft-simple":
            config |= {"position_bias": draw.choice(("dense", "factorised")), "rank": 4}
            config |= {"window": draw.choice((1, 3, 20))} if system == "aft-local" else {}
    elif system == "fastformer":
        config = {"heads": draw.choice((1, 4)), "logits": draw.choice(("all-features", "per-head")), "bias": yes(),
                  "value": draw.choice(("shared", "own")), "output_projection": yes()}
    elif system == "attention":
        config = {"heads": draw.choice((1, 2)), "rotary": yes(), "bias": yes(), "output_projection": yes(),
                  "rotary_pairs": draw.choice(("halves", "interleaved"))}
    else:
        kernel = draw.choice(("squared-relu", "laplace", "softmax"))
        logits = "key-dim" if kernel == "softmax" else draw.choice(("key-dim", "length"))
        normaliser = draw.choice(("counted", "paper") + (("document",) if system == "flash" else ()))
        bias = draw.choice(("none", "toeplitz", "rotary"))
        config = {"expansion": draw.choice((1, 2.5)), "key_dim": 8, "kernel": kernel, "logits": logits,
                  "normaliser": normaliser, "rotary": yes(), "position_bias": bias, "bias": yes(),
                  "rotary_pairs": draw.choice(("halves", "interleaved"))}
        if system == "flash":
            part = draw.choice(("both", "both", "local", "global"))
            config |= {"chunk": draw.choice((3, 7, 64)), "local": part != "global", "global": part != "local"}
        else:
            config["paper_length"] = 16
    return {"type": system} | config


def model(system, task, seed):
    draw = random.Random(f"{system} {task} {seed}")
    yes = lambda: draw.choice((True, False))
    prefix = task == "pairs" and system != "aft-conv"
    layer = {"mixer": mixer(system, draw), "short_conv": draw.choice((0, 1, 4)), "repeat": 2,
             "feed_forward": {"type": draw.choice(("none", "relu", "squared-relu", "gelu", "silu", "glu", "swiglu",
                                                    "geglu")), "expansion": 1.5, "bias": yes()},
             "norm": draw.choice(("layer", "rms", "scale")),
             "norm_placement": draw.choice(("pre", "post"))}
    config = {"width": 16, "max_length": 48, "layers": [layer], "embedding_norm": yes(),
              "positions": draw.choice(("none", "learned", "sinusoidal", "scaled-sinusoidal"))}
    if yes():
        config["ngram_embedding"] = {"orders": [1, 3], "buckets": 97, "width": 6, "every_block": yes()}
    if task == "text-classifier":
        config |= {"pooling": draw.choice(("mean", "cls", "last", "attention"))}
        config["causal"] = yes() and config["pooling"] != "cls"
        if yes():
            config["ngrams"] = {"orders": [1, 2], "buckets": 89, "width": 5}
    else:
        config |= {"tied_output": yes(), "output_bias": yes()}
    if task == "pairs":
        config["prefix"] = "bidirectional" if prefix else "causal"
    return {"type": "language-model" if task == "pairs" else task} | config


DATA = {"language-model": {"type": "text", "train": ["text.txt"], "sequence_length": 32, "tokenizer": "byte"},
        "masked-language-model": {"type": "text", "train": ["text.txt"], "sequence_length": 32, "tokenizer": "byte"},
        "text-classifier": {"type": "labelled", "train": ["rows.tsv"], "valid_fraction": 0.2, "tokenizer": "byte",
                        "max_length": 48},
        "pairs": {"type": "pairs", "train": ["pairs.tsv"], "valid_fraction": 0.2, "tokenizer": "byte",
                  "max_source": 20, "max_length": 48}}


class Place:
    """A folder with data, runs and exports."""

    def __init__(self, folder=None):
        for program in (PROGRAM, NUMBERS):
            if not program.exists():
                skip(f"{program} is not there: build it first")
        self._folder = tempfile.TemporaryDirectory() if folder is None else None
        self.folder = pathlib.Path(self._folder.name if folder is None else folder)
        self.folder.mkdir(exist_ok=True)
        words = TEXT.split()
        lines = [" ".join(words[(i * i + j * j // 3) % len(words)] for j in range(6)) for i in range(200)]
        (self.folder / "text.txt").write_text("\n".join(lines) + "\n")
        (self.folder / "rows.tsv").write_text("".join(f"{'abc'[i % 3]}\t{line}\n" for i, line in enumerate(lines)))
        (self.folder / "pairs.tsv").write_text("".join(f"{line[:12]}\t{line[12:20]}\n" for line in lines))

    def capstan(self, *arguments):
        done = subprocess.run([str(PROGRAM), *arguments], cwd=self.folder, capture_output=True)
        if done.returncode != 0:
            sys.exit(f"capstan {' '.join(arguments)}: {done.stderr.decode()}")
        return done

    def train(self, name, config):
        """Trains a run of one step, without a line about it."""
        run = {"name": name, "threads": 1, "train": {"steps": 1, "batch_size": 2, "progress": "none"}} | config
        if run["model"]["type"] == "linear-classifier":
            run["train"] = {"steps": 1, "progress": "none"}  # its weights are solved for
        (self.folder / f"{name}.yaml").write_text(json.dumps(run))
        self.capstan("train", "--config", f"{name}.yaml")
        return self.folder / "runs" / name

    def random_run(self, name, system, task, seed):
        run = self.train(name, {"data": DATA[task], "model": model(system, task, seed)})
        randomise(run, seed)
        return run

    def export(self, run, target, form="huggingface"):
        folder = self.folder / target
        self.capstan("export", str(run), "--format", form, "--output", str(folder))
        return folder

    def numbers(self, run, **tensors):
        """What Capstan computes: logits, loss, gradients."""
        torch = require("torch")
        save, load = require("safetensors.torch").save_file, require("safetensors.torch").load_file
        given, found = self.folder / "given.safetensors", self.folder / "found.safetensors"
        save({name: tensor.to(torch.int32).contiguous() for name, tensor in tensors.items()}, str(given))
        subprocess.run([str(NUMBERS), str(run), str(given), str(found)], check=True)
        return load(str(found))

    def text_logits(self, run, texts):
        """What a linear classifier computes of texts without line ends, (N, C)."""
        load = require("safetensors.torch").load_file
        lines, found = self.folder / "lines.txt", self.folder / "found.safetensors"
        lines.write_text("".join(text + "\n" for text in texts), newline="")
        subprocess.run([str(NUMBERS), str(run), str(lines), str(found)], check=True)
        return load(str(found))["logits"]


def randomise(run, seed):
    """Weights that hide no error: none is 0 or 1 throughout, and every matrix keeps the size of what it is applied to."""
    torch = require("torch")
    save, load = require("safetensors.torch").save_file, require("safetensors.torch").load_file
    file = last_checkpoint(run) / "model.safetensors"
    tensors = load(str(file))
    rows = {name[:-5]: bits for name, bits in tensors.items() if name.endswith(".rows")}
    random_numbers = torch.Generator().manual_seed(seed)
    for name in list(tensors):
        shape = list(tensors[name].shape)
        if name.endswith(".rows"):
            del tensors[name]
            continue
        if name in rows:  # of a table that a run stores without its rows of zeros
            shape[0] = 97 if name.startswith("ngram_embedding") else 89
        noise = torch.randn(shape, generator=random_numbers)
        if name.endswith((".gain", ".scale")):
            noise = 1 + 0.2 * noise
        elif name.endswith(".weight") and len(shape) == 2 and not name.startswith(("embed.", "positions.")):
            noise = noise / shape[1] ** 0.5
        elif not name.endswith((".kernel", "embed.weight")):
            noise = 0.3 * noise
        tensors[name] = noise
    save(tensors, str(file))


def worst(found, wanted, of=None):
    """The largest difference as a share of the largest value (of `of`, if that is not `wanted`); infinite where one is NaN, which
    max() would pass over."""
    share = float((found - wanted).abs().max() / (wanted if of is None else of).abs().max().clamp(min=1e-30))
    return share if share == share else float("inf")
