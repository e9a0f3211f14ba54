"""The exported tokenizers give the ids of Capstan's, and decode them.

    python tests/interop/transformers_tokenizers.py [FILE.txt [KIND,...]]

FILE: text to compare on; by default this repository's pages and some lines in other scripts. Needs the Python packages
transformers, torch and safetensors and a built program; says so and skips otherwise.
"""

import os
import pathlib
import subprocess
import sys
import time

os.environ["HF_HUB_OFFLINE"] = "1"

from exported_run import NUMBERS, Place
from sample_run import require

KINDS = {
    "byte": {"type": "byte"},
    "char": {"type": "char"},
    "word": {"type": "word", "min_count": 2},
    "word-lower": {"type": "word", "split": "words", "lower_case": True, "max_size": 1000},
    "bpe": {"type": "sentencepiece", "vocabulary_size": 2000},
    "unigram": {"type": "sentencepiece", "model_type": "unigram", "vocabulary_size": 2000},
}
MODEL = {"type": "language-model", "width": 8, "max_length": 32,
         "layers": [{"mixer": "aft-simple", "feed_forward": {"type": "none"}}]}
STRANGE = """Ein Ba\u00df, GRO\u1e9eE Stra\u00dfe, \u0130stanbul, \ufb01ne \u2167 \u33a1 \u1f88 \u03a3\u03c2 A\u030a \u00c5 \u212b\r
\u65e5\u672c\u8a9e \u0e20\u0e32\u0e29\u0e32 \u0645\u0631\u062d\u0628\u0627 \u05e9\u05dc\u05d5\u05dd \uff21\uff42\uff43 \U0001f600 x\u0301y\u0323\u0307
\ttab  two   three \u00a0 hard\u2581blank <eos> <unk> x<eos> don't! \u0000 \u000b \u13a0\uab70

last"""


def sample():
    if len(sys.argv) > 1 and sys.argv[1]:
        return pathlib.Path(sys.argv[1]).read_bytes().decode()
    root = pathlib.Path(__file__).resolve().parents[2]
    pages = "".join(page.read_text() for page in sorted((root / "docs").glob("*.md")))
    return pages + STRANGE


def lines_of(ids, newline):
    """The ids of each line."""
    lines = [[]]
    for one in ids:
        lines[-1].append(one)
        if one == newline:
            lines.append([])
    return lines


def main():
    load, transformers = require("safetensors.torch").load_file, require("transformers")
    transformers.logging.set_verbosity_error()
    print("transformers", transformers.__version__)
    place, failed, text = Place(), 0, sample()
    (place.folder / "sample.txt").write_text(text, newline="")
    (place.folder / "learnt.txt").write_text(text[: 200000] + STRANGE.replace("\u0000", ""), newline="")
    chosen = sys.argv[2].split(",") if len(sys.argv) > 2 else list(KINDS)
    for name, tokenizer in ((name, KINDS[name]) for name in chosen):
        data = {"type": "text", "train": ["learnt.txt"], "valid_fraction": 0.1, "sequence_length": 32, "tokenizer": tokenizer}
        run = place.train(name, {"data": data, "model": MODEL})
        theirs = transformers.AutoTokenizer.from_pretrained(place.export(run, f"export-{name}"), trust_remote_code=True)
        subprocess.run([str(NUMBERS), str(run), str(place.folder / "sample.txt"), str(place.folder / "ids")], check=True)
        wanted = load(str(place.folder / "ids"))["ids"].tolist()
        begin = time.time()
        found = theirs(text, add_special_tokens=False)["input_ids"]
        speed = len(text.encode()) / 1e6 / (time.time() - begin)
        newline = theirs.convert_tokens_to_ids("\n")
        pairs = list(zip(lines_of(found, newline), lines_of(wanted, newline)))
        others = sum(a != b for a, b in pairs)
        # The library adds the scores of a unigram model in double, which decides otherwise between some that are equal.
        good = others <= 0.02 * len(pairs) if name.startswith("unigram") else found == wanted
        back = theirs.decode(found) == text
        failed += not good
        print(f"{name:18} {len(wanted):8} ids, {others} of {len(pairs)} lines differ, decoded {'equal' if back else 'otherwise'}, "
              f"{speed:.2f} MB/s")
        if not good:
            print("  WRONG")
            place_of = next((i for i, pair in enumerate(zip(found, wanted)) if pair[0] != pair[1]), min(len(found), len(wanted)))
            print("  first at", place_of, found[place_of - 3 : place_of + 5], wanted[place_of - 3 : place_of + 5],
                  repr(theirs.decode(wanted[max(0, place_of - 8) : place_of + 5])))
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
