"""transformers gives the labels of a linear classifier.

    python tests/interop/transformers_linear.py [TRAIN.tsv TEST.tsv]

Needs the Python packages torch, transformers, safetensors and xxhash and a built program; says so and skips otherwise.
"""

import os
import sys

os.environ["HF_HUB_OFFLINE"] = "1"

from exported_run import Place
from sample_run import require

STRANGE = ["Ein Ba\u00df, GRO\u1e9eE", "\u65e5\u672c\u8a9e \u0e20\u0e32\u0e29\u0e32 \uff21\uff42\uff43", "don't  x\u00a0y \U0001f600!!", "\u0130I \ufb01ne", ""]


def main():
    torch, transformers = require("torch"), require("transformers")
    require("xxhash")
    transformers.logging.set_verbosity_error()
    torch.set_num_threads(1)
    place, failed = Place(), 0
    given = sys.argv[1:] or [str(place.folder / "rows.tsv")] * 2
    texts = [line.split("\t", 1)[1].rstrip("\n") for line in open(given[1], newline="\n")] + STRANGE
    for unicode in (False, True):
        name = f"linear-{unicode}"
        model = {"type": "linear-classifier", "words": [1, 2], "characters": [2, 3, 4, 5], "text_ends": True,
                 "unicode": unicode}
        data = {"type": "labelled", "train": [given[0]], "valid_fraction": 0.1, "tokenizer": "byte", "max_length": 0}
        run = place.train(name, {"data": data, "model": model, "train": {"progress": "none"}})
        folder = place.export(run, f"export-{name}")
        net = transformers.AutoModelForSequenceClassification.from_pretrained(folder, trust_remote_code=True).eval()
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, trust_remote_code=True)
        wanted = place.text_logits(run, texts)
        found = []
        for begin in range(0, len(texts), 64):
            batch = tokenizer(texts[begin : begin + 64], return_tensors="pt", padding=True)
            with torch.no_grad():
                found.append(net(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"]).logits)
        found = torch.cat(found)
        labels = int((found.argmax(1) == wanted.argmax(1)).sum())
        off = float((found - wanted).abs().max() / wanted.abs().max())
        failed += labels != len(texts) or off > 1e-5
        print(f"unicode {unicode}: {labels} of {len(texts)} labels equal, numbers differ by {off:.1e} of the largest")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
