#!/usr/bin/env python3
"""Capstan beside the published shapes of nanoGPT on tinyshakespeare: validation loss over minutes of training, a table and a picture.

  bench/tables/nano_gpt.py DATA [--minutes 30] [--threads 2] [--out nano_gpt.json] [--picture docs/pictures/nano-gpt.svg]

DATA/tinyshakespeare/input.txt; the last tenth is for validation, and a token is a character. Two Transformers in PyTorch, as the
files train_shakespeare_char.py and README of github.com/karpathy/nanoGPT give their shapes and settings: the baby model (6 layers, 6 heads, width
384, context 256, dropout 0.2, batches of 64) and its form for a CPU (4 layers, 4 heads, width 128, context 64, no dropout, batches of 12,
2,000 steps). Both learn by AdamW with beta2 0.99, decay 0.1 and clipping at 1, with a cosine to a tenth of the rate of 1e-3 over the steps that fit
into the time. Beside them configs/lm.yaml for the same minutes. Each trains alone. Evaluations, of every validation token in
windows that do not overlap, are not counted as time of training; Capstan's context is what its recipe evaluates with. What --out has is not measured again.
"""
import argparse
import json
import math
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from picture import chart  # noqa: E402
from runs import PROGRAM, config, origin, print_table  # noqa: E402

SHAPES = {"nanoGPT": {"layers": 6, "heads": 6, "width": 384, "context": 256, "batch": 64, "dropout": 0.2, "steps": 5000},
          "nanoGPT CPU": {"layers": 4, "heads": 4, "width": 128, "context": 64, "batch": 12, "dropout": 0.0, "steps": 2000}}
RATE, LOWEST, WARMUP, EVALUATIONS = 1e-3, 1e-4, 100, 15


def transformer(shape, vocabulary):
    import torch
    from torch import nn
    from torch.nn import functional

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            width = shape["width"]
            self.norms = nn.ModuleList(nn.LayerNorm(width, bias=False) for _ in range(2))
            self.to_qkv, self.to_out = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)
            self.up, self.down = nn.Linear(width, 4 * width, bias=False), nn.Linear(4 * width, width, bias=False)
            self.drop = nn.Dropout(shape["dropout"])

        def forward(self, x):
            heads = self.to_qkv(self.norms[0](x)).unflatten(-1, (3, shape["heads"], -1)).permute(2, 0, 3, 1, 4)
            dropped = shape["dropout"] if self.training else 0.0
            seen = functional.scaled_dot_product_attention(*heads, is_causal=True, dropout_p=dropped)
            x = x + self.drop(self.to_out(seen.transpose(1, 2).flatten(2)))
            return x + self.drop(self.down(functional.gelu(self.up(self.norms[1](x)))))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.place = nn.Embedding(vocabulary, shape["width"]), nn.Embedding(shape["context"], shape["width"])
            self.blocks = nn.Sequential(*[Block() for _ in range(shape["layers"])])
            self.norm, self.drop = nn.LayerNorm(shape["width"], bias=False), nn.Dropout(shape["dropout"])
            for name, weight in self.named_parameters():
                if weight.dim() == 2:
                    last = name.endswith(("to_out.weight", "down.weight"))
                    nn.init.normal_(weight, 0, 0.02 / math.sqrt(2 * shape["layers"]) if last else 0.02)

        def forward(self, tokens, targets):
            x = self.drop(self.embed(tokens) + self.place.weight[:tokens.shape[1]])
            logits = functional.linear(self.norm(self.blocks(x)), self.embed.weight)
            return functional.cross_entropy(logits.flatten(0, 1), targets.flatten())

    torch.manual_seed(1337)
    return Model()


def tokens_of(path):
    import torch
    with open(path, encoding="utf-8") as file:
        text = file.read()
    letters = {letter: i for i, letter in enumerate(sorted(set(text)))}
    tokens = torch.tensor([letters[letter] for letter in text])
    kept = int(0.9 * len(tokens))
    return tokens[:kept], tokens[kept:], len(letters)


def train_transformer(shape, path, minutes, threads):
    """[(minutes of training, validation loss), ...]"""
    import torch
    torch.set_num_threads(threads)
    train, valid, vocabulary = tokens_of(path)
    model = transformer(shape, vocabulary)
    matrices = [weight for weight in model.parameters() if weight.dim() == 2]
    others = [weight for weight in model.parameters() if weight.dim() != 2]
    optimizer = torch.optim.AdamW([{"params": matrices, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}], lr=RATE, betas=(0.9, 0.99))
    context, batch = shape["context"], shape["batch"]
    windows = torch.arange(context)

    def step(rate):
        starts = torch.randint(len(train) - context, (batch, 1))
        places = starts + windows
        for group in optimizer.param_groups:
            group["lr"] = rate
        optimizer.zero_grad(set_to_none=True)
        model(train[places], train[places + 1]).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    @torch.no_grad()
    def validation():
        model.eval()
        count = (len(valid) - 1) // context
        inputs, targets = (valid[i:i + count * context].view(count, context) for i in (0, 1))
        parts = [(len(x), model(x, y).item()) for x, y in zip(inputs.split(64), targets.split(64))]
        model.train()
        return sum(size * loss for size, loss in parts) / count

    step(0.0)  # the first is slow
    began = time.monotonic()
    for _ in range(3):
        step(0.0)
    steps = max(20, min(shape["steps"], int(60 * minutes / ((time.monotonic() - began) / 3))))
    seconds, curve = 0.0, []
    for i in range(steps):
        began = time.monotonic()
        warmup = min(WARMUP, steps // 10)
        share = (i - warmup) / max(1, steps - warmup)
        step(RATE * (i + 1) / warmup if i < warmup else LOWEST + (RATE - LOWEST) * 0.5 * (1 + math.cos(math.pi * share)))
        seconds += time.monotonic() - began
        if (i + 1) % max(1, steps // EVALUATIONS) == 0 or i + 1 == steps:
            curve.append((seconds / 60, validation()))
            print(f"step {i + 1} of {steps}, {curve[-1][0]:.1f} minutes: {curve[-1][1]:.4f}", file=sys.stderr, flush=True)
    return curve


def train_capstan(path, minutes, threads):
    folder = "runs/tables/nano-gpt"
    subprocess.run([PROGRAM, "train", "--config", config("lm.yaml"), "--minutes", str(minutes), "--set", "name=nano-gpt", "folder=runs/tables",
                    f"threads={threads}", f"data.train=[{path}]", "data.valid_fraction=0.1", "data.test_fraction=0", "data.tokenizer=char", "data.validation=full",
                    "train.valid_every=300"], check=True)
    with open(f"{folder}/metrics.jsonl", encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    return [(line["seconds"] / 60, line["loss"]) for line in lines if line["event"] == "valid"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", default="nano_gpt.json")
    parser.add_argument("--picture")
    options = parser.parse_args()
    path = os.path.abspath(f"{options.data}/tinyshakespeare/input.txt")
    found = {"curves": {}}
    if os.path.exists(options.out):
        with open(options.out, encoding="utf-8") as file:
            found = json.load(file)
    for name in ["lm.yaml", *SHAPES]:
        if name in found["curves"]:
            continue
        if name in SHAPES:
            found["curves"][name] = train_transformer(SHAPES[name], path, options.minutes, options.threads)
        else:
            found["curves"][name] = train_capstan(path, options.minutes, options.threads)
        found.update(origin(), minutes=options.minutes, threads=options.threads)
        with open(options.out + ".part", "w", encoding="utf-8") as file:
            json.dump(found, file)
        os.replace(options.out + ".part", options.out)
    print_table(["model", "minutes", "lowest validation loss", "last"],
                [[name, f"{curve[-1][0]:.1f}", f"{min(loss for _, loss in curve):.4f}", f"{curve[-1][1]:.4f}"]
                 for name, curve in found["curves"].items()])
    if options.picture:
        lines = {name.replace("nanoGPT CPU", "CPU form"): curve for name, curve in found["curves"].items()}  # beside the end of a line
        chart(options.picture, "tinyshakespeare", "minutes of training", "validation loss", lines)


if __name__ == "__main__":
    main()
