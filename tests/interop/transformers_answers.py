"""Pipelines of transformers answer as `capstan predict` does: blanks filled with every kind of tokenizer, in texts with one and
several blanks, short and long; labels of texts in one and two columns that are cut in front or at the end; and what a model of
pairs writes for a source that is cut.

    python tests/interop/transformers_answers.py

Needs the Python packages torch, transformers (4.57 or later) and xxhash and a built program; says so and skips otherwise.
"""

import json
import os
import sys

os.environ["HF_HUB_OFFLINE"] = "1"

from exported_run import DATA, TEXT, Place
from sample_run import require
from transformers_tokenizers import KINDS, sample

LAYERS = [{"mixer": "aft-simple", "feed_forward": {"type": "gelu", "expansion": 2}}]
TRAIN = {"steps": 30, "batch_size": 8, "progress": "none"}
MOST = 1e-5
BLANKS = ["the tape <mask> a drum", "<mask> ship", "ship of <mask>", f"{TEXT} {TEXT} {TEXT} the tape <mask> a drum {TEXT}",
          f"{TEXT} <mask> and <mask> {TEXT} {TEXT} of <mask> pulls", "The TAPE, <mask>!"]


def answers(place, run, lines, *options):
    """What the program answers, one object for each line."""
    (place.folder / "asked.txt").write_text("".join(line + "\n" for line in lines))
    return [json.loads(line) for line in place.capstan("predict", str(run), "asked.txt", "--format", "jsonl", *options).stdout.splitlines()]


def pipeline(task, folder):
    return require("transformers").pipeline(task, model=str(folder), trust_remote_code=True)


def check_blanks(place, name, tokenizer, documents="none"):
    """Texts, blanks and scores of the three best tokens."""
    learnt = sample()[:100000] + "".join(line.replace("<mask>", "runs") + "\n" for line in BLANKS * 40)
    (place.folder / "learnt.txt").write_text(learnt, newline="")
    data = {"type": "text", "train": ["learnt.txt"], "valid_fraction": 0.1, "sequence_length": 24, "tokenizer": tokenizer,
            "documents": documents}
    model = {"type": "masked-language-model", "width": 16, "max_length": 24, "positions": "learned", "layers": LAYERS}
    run = place.train(name, {"data": data, "model": model, "train": TRAIN})
    fill, wrong, off = pipeline("fill-mask", place.export(run, f"export-{name}")), [], 0.0
    for text, wanted in zip(BLANKS, answers(place, run, BLANKS, "--top-k", "3")):
        found = fill(text, top_k=3)
        for guesses, blank in zip([found] if isinstance(found[0], dict) else found, wanted["blanks"], strict=True):
            for guess, token in zip(guesses, blank, strict=True):
                off = max(off, abs(guess["score"] - token["probability"]))
                if guess["token_str"].lstrip(" ") != token["token"].lstrip(" "):
                    wrong.append(f"{guess['token_str']!r}, not {token['token']!r}")
    return wrong + [f"scores differ by {off:.1e}"] * (off > MOST)


def labelled(place, name, data, model):
    rows = (place.folder / "rows.tsv").read_text().splitlines()
    columns = [row.split("\t") for row in rows]
    (place.folder / "columns.tsv").write_text("".join(f"{label}\t{text[:25]}\t{text[9:]}\n" for label, text in columns))
    pair = data.get("separator", False)
    data = {"type": "labelled", "train": ["columns.tsv" if pair else "rows.tsv"]} | data
    return place.train(name, {"data": data, "model": model, "train": TRAIN})


def check_labels(place, name, data, model):
    run = labelled(place, name, data, model)
    label, wrong, off = pipeline("text-classification", place.export(run, f"export-{name}")), [], 0.0
    words = TEXT.split()
    texts = [" ".join(words[i:] + words[:i]) for i in range(len(words))] + ["drum", "Ba\u00df \u65e5\u672c\u8a9e " * 9]
    texts += [""] if not data.get("separator") else []
    pairs = [(text, "ship of rope " * (i % 4)) for i, text in enumerate(texts)] + [("drum", text) for text in texts]
    lines = [f"{a}\t{b}" for a, b in pairs] if data.get("separator") else texts
    asked = [{"text": a, "text_pair": b} for a, b in pairs] if data.get("separator") else texts
    for text, wanted in zip(asked, answers(place, run, lines), strict=True):
        found = {guess["label"]: guess["score"] for guess in label(text, top_k=None)}
        best = max(found, key=found.get)
        off = max(off, abs(found[best] - wanted["probability"]))
        if best != wanted["label"]:
            wrong.append(f"{text}: {best}, not {wanted['label']}")
    return wrong + [f"scores differ by {off:.1e}"] * (off > MOST)


def check_several(place, kind, model):
    """Of several labels per text, those that reach their thresholds, which may be none."""
    words = TEXT.split()
    rows = [f"{'odd' if i % 2 else ''}{',' if i % 6 == 3 else ''}{'third' if i % 3 == 0 else ''}\t{words[i % len(words)]} {'odd' if i % 2 else 'even'}"
            f" {'three' if i % 3 == 0 else 'other'}\n" for i in range(120)]
    (place.folder / "several.tsv").write_text("".join(row for row in rows))
    data = {"type": "labelled", "train": ["several.tsv"], "multi_label": True, "tokenizer": "byte"} | ({"max_length": 20} if kind == "net" else {})
    run = place.train(f"several-{kind}", {"data": data, "model": model, "train": TRAIN | {"monitor": "micro-f1"}})
    label, wrong, off = pipeline("text-classification", place.export(run, f"export-several-{kind}")), [], 0.0
    texts = [f"{word} {end}" for word in words[:6] for end in ("odd three", "even other", "odd", "three")]
    for text, wanted in zip(texts, answers(place, run, texts), strict=True):
        found = {guess["label"]: guess["score"] for guess in label(text)[0]}
        off = max([off, *(abs(score - wanted["probabilities"][name]) for name, score in found.items())])
        if set(found) != set(wanted["labels"]):
            wrong.append(f"{text}: {sorted(found)}, not {wanted['labels']}")
    return wrong + [f"scores differ by {off:.1e}"] * (off > MOST)


def check_sources(place, truncate):
    """truncation=True cuts a source where the program cuts it, and the model then writes the same."""
    torch, transformers = require("torch"), require("transformers")
    model = {"type": "language-model", "width": 16, "max_length": 48, "layers": LAYERS, "prefix": "bidirectional"}
    run = place.train(f"pairs-{truncate}", {"data": DATA["pairs"] | {"truncate": truncate}, "model": model, "train": TRAIN})
    folder = place.export(run, f"export-pairs-{truncate}")
    net = transformers.AutoModelForCausalLM.from_pretrained(folder, trust_remote_code=True).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, trust_remote_code=True)
    wrong, sources = [], ["the tape", TEXT, TEXT[30:], "x"]
    for source, wanted in zip(sources, answers(place, run, sources, "--tokens", "9"), strict=True):
        prompt = tokenizer(source, return_tensors="pt", truncation=True)
        written = net.generate(input_ids=prompt["input_ids"], attention_mask=prompt["attention_mask"], max_new_tokens=9, do_sample=False)
        text = tokenizer.decode(written[0, prompt["input_ids"].shape[1]:], skip_special_tokens=True)
        if text != wanted["completion"]:
            wrong.append(f"{text!r}, not {wanted['completion']!r}")
    return wrong


def main():
    torch, transformers = require("torch"), require("transformers")
    require("xxhash")
    transformers.logging.set_verbosity_error()
    print("transformers", transformers.__version__)
    torch.set_num_threads(1)
    place, failed = Place(), 0
    checks = {f"blanks, {name}": lambda name=name, kind=kind: check_blanks(place, name, kind) for name, kind in KINDS.items()}
    checks["blanks, documents"] = lambda: check_blanks(place, "documents", KINDS["word"], "line")
    net = {"type": "text-classifier", "width": 16, "max_length": 20, "positions": "learned", "layers": LAYERS}
    linear = {"type": "linear-classifier", "words": [1, 2], "characters": [2, 3, 4], "text_ends": True, "unicode": True}
    for kind, model in (("net", net), ("net of any length", net | {"positions": "none", "pooling": "attention"}), ("linear", linear)):
        for truncate in ("head", "tail"):
            data = {"tokenizer": "byte", "truncate": truncate, "max_length": 20}
            for columns, more in (("one column", {}), ("two columns", {"text_columns": [2, 3], "label_column": 1, "separator": True})):
                checks[f"labels, {kind}, {truncate}, {columns}"] = (
                    lambda kind=kind, model=model, data=data | more, name=f"{kind}-{truncate}-{columns}".replace(" ", "-"):
                    check_labels(place, name, data, model))
    for kind, model in (("net", net), ("linear", linear)):
        checks[f"several labels, {kind}"] = lambda kind=kind, model=model: check_several(place, kind, model)
    for truncate in ("head", "tail"):
        checks[f"sources, {truncate}"] = lambda truncate=truncate: check_sources(place, truncate)
    for name, check in checks.items():
        wrong = check()
        failed += len(wrong) > 0
        print(f"{name:46} {'; '.join(wrong[:3]) + ' WRONG' if wrong else 'ok'}", flush=True)
    print(f"{failed} wrong")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
