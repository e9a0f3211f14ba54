"""transformers computes what Capstan does in float32, float16 and bfloat16: for every kind of model the same labels, and
probabilities within the precision of the type, whether it is loaded in that type or turned into it.

    python tests/interop/transformers_types.py [SEEDS [SYSTEM,...]]

A label may differ where Capstan's probabilities of both are equal in that precision. A model with random weights may compute
numbers that float16 does not have (above 65504); it is then not checked in float16, and the line says so.

Needs the Python packages torch, transformers (4.57 or later) and xxhash and a built program; says so and skips otherwise.
"""

import os
import sys

os.environ["HF_HUB_OFFLINE"] = "1"

from exported_run import DATA, SYSTEMS, TASKS, TEXT, Place
from sample_run import require
from transformers_models import opened, padded

FLOAT32 = 1e-5  # by which a probability may differ
UNITS = 2  # the same in half precision, in units of 1 or of the largest logit
TEXTS = {"type": "labelled", "tokenizer": "byte", "max_length": 0}
LINEAR = {"type": "linear-classifier", "words": [1, 2], "characters": [2, 3, 4], "text_ends": True, "unicode": True}
CLASSIFIER = {"type": "text-classifier", "width": 16, "max_length": 48,
              "ngrams": {"orders": [1, 2, 3], "buckets": 50000, "width": 8},
              "layers": [{"mixer": "aft-simple", "feed_forward": {"type": "gelu", "expansion": 2}}]}
LM = {"type": "language-model", "width": 16, "max_length": 48, "tied_output": True, "positions": "learned",
      "ngram_embedding": {"orders": [2, 3], "buckets": 50000, "width": 8},
      "layers": [{"mixer": {"type": "attention", "heads": 2}, "short_conv": 3, "feed_forward": {"type": "swiglu", "expansion": 2}}]}
TRAIN = {"steps": 20, "batch_size": 8, "progress": "none"}


def runs_of(place, seeds, systems):
    """(name, task, run) of every kind: all systems with random options and weights, and tables with rows that are left out."""
    for system in systems:
        for task in TASKS:
            for seed in range(seeds):
                yield f"{system}-{task}-{seed}", task, place.random_run(f"{system}-{task}-{seed}", system, task, seed)
    tables = (("ngrams", "text-classifier", DATA["text-classifier"], CLASSIFIER),
              ("ngram-embedding", "language-model", DATA["language-model"], LM),
              ("linear", "linear", TEXTS | {"train": ["rows.tsv"]}, LINEAR),
              ("linear-labels", "linear", TEXTS | {"train": ["labels.tsv"], "multi_label": True}, LINEAR))
    for name, task, data, model in tables:
        run = place.train(name, {"data": data, "model": model, "train": TRAIN})
        yield name, task, run
        place.capstan("slim", str(run), "--size", "0.5", "--output", f"runs/{name}-slim")
        yield f"{name}-slim", task, place.folder / "runs" / f"{name}-slim"


def probabilities(net, logits):
    several = net.config.problem_type == "multi_label_classification"
    return logits.float().sigmoid() if several else logits.float().softmax(dim=-1)


def computing(net, task, lines):
    """A function of a model that computes logits (N, C) as those of Capstan, and these."""
    torch = require("torch")
    torch.manual_seed(0)
    if task == "linear":
        rows = [torch.tensor(list(line.encode())) for line in lines]
        ids, mask = padded(rows, max(map(len, rows)), left=False)
        return (lambda net: net(input_ids=ids, attention_mask=mask).logits), None
    texts = [torch.randint(0, 256, (length,)) for length in (23, 40, 5, 11)]
    ids, mask = padded(texts, 40, left=False)
    given = {"tokens": ids * mask, "segment_ids": mask}
    options = {} if task == "text-classifier" else {"use_cache": False}
    if net.config.model.get("prefix") == "bidirectional":
        options["prefix_lengths"] = mask.sum(dim=1) // 2
        given["prefix_ids"] = (torch.arange(40) < options["prefix_lengths"][:, None]).long()
    rows = (lambda logits: logits) if task == "text-classifier" else (lambda logits: logits[mask == 1])
    return (lambda net: rows(net(input_ids=ids, attention_mask=mask, **options).logits)), (given, rows)


def largest_number(net, compute):
    """Of all that the modules of a model read and compute."""
    torch, found = require("torch"), [0.0]

    def look(module, inputs, output):
        found.extend(float(x.abs().max()) for x in (*inputs, output) if torch.is_tensor(x) and x.is_floating_point())
    hooks = [module.register_forward_hook(look) for module in net.modules()]
    compute(net)
    for hook in hooks:
        hook.remove()
    return max(found)


def check_type(folder, task, dtype, how, compute, wanted, most):
    """(largest difference of a probability, labels that differ)"""
    net = opened(folder, task, **({"dtype": dtype} if how == "loaded" else {})).to(dtype)
    found = probabilities(net, compute(net))
    if net.config.problem_type == "multi_label_classification":
        near = (wanted - 0.5).abs() <= most
        other = ((found > 0.5) != (wanted > 0.5)) & ~near
    else:
        chosen = wanted.gather(-1, found.argmax(dim=-1, keepdim=True))[..., 0]
        other = wanted.amax(dim=-1) - chosen > most
    return float((found - wanted).abs().nan_to_num(nan=9.0).max()), int(other.sum())


def main():
    torch, transformers = require("torch"), require("transformers")
    require("xxhash")
    transformers.logging.set_verbosity_error()
    print("transformers", transformers.__version__)
    torch.set_num_threads(1)
    place, failed = Place(), 0
    words = TEXT.split()
    lines = [" ".join(words[i:] + words[:i]) for i in range(len(words))] + ["\u65e5\u672c\u8a9e Ba\u00df", "x"]
    (place.folder / "labels.tsv").write_text("".join(f"{'abc'[i % 3]},{'de'[i % 2]}\t{lines[i % 13]}\n" for i in range(200)))
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 2
    for name, task, run in runs_of(place, seeds, sys.argv[2].split(",") if len(sys.argv) > 2 else SYSTEMS):
        folder, row = place.export(run, f"export-{name}"), ""
        net = opened(folder, task)
        compute, given = computing(net, task, lines)
        with torch.no_grad():
            numbers = place.text_logits(run, lines) if given is None else given[1](place.numbers(run, **given[0])["logits"])
            wanted, largest = probabilities(net, numbers), largest_number(net, compute)
            for dtype in (torch.float32, torch.float16, torch.bfloat16):
                if largest > torch.finfo(dtype).max:
                    row += f"  beyond {dtype}"
                    continue
                most = FLOAT32 if dtype == torch.float32 else UNITS * torch.finfo(dtype).eps * max(1.0, float(numbers.abs().max()))
                for how in ("loaded", "turned"):
                    off, others = check_type(folder, task, dtype, how, compute, wanted, most)
                    good = off <= most and others == 0
                    failed += not good
                    row += f"  {off:.1e}{'' if good else f' WRONG: {others} labels, most {most:.1e}'}"
        print(f"{name:34}{row}", flush=True)
    print(f"{failed} wrong")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
