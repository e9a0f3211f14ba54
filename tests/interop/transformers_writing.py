"""transformers writes what Capstan does: 200 greedy tokens of every system through the decode state, as `capstan generate` prints
them, and the texts of a beam.

    python tests/interop/transformers_writing.py [SEEDS [SYSTEM,...]]

Beams are compared by the log probability of a text (length_penalty 0), which both programs can finish exactly
(early_stopping="never"). Capstan also follows the greedy text: a beam that differs must differ by this text alone.

Needs the Python packages torch and transformers (4.57 or later) and a built program; says so and skips otherwise.
"""

import os
import random
import string
import sys

os.environ["HF_HUB_OFFLINE"] = "1"

from exported_run import DATA, SYSTEMS, Place, model, randomise
from sample_run import require
from transformers_models import opened

LONGEST, TOKENS, BEAM = 256, 200, 4


def long_run(place, name, system, task, seed):
    """A run with random options whose positions are enough for 200 tokens."""
    run = place.train(name, {"data": DATA[task], "model": model(system, task, seed) | {"max_length": LONGEST}})
    randomise(run, seed)
    return run


def written(place, run, prompt, tokens, width, stop):
    torch = require("torch")
    found = place.numbers(run, prompt=prompt, search=torch.tensor([tokens, width, stop]))
    scores = found["scores"].tolist()
    return [(found[f"text.{i}"].tolist(), score) for i, score in enumerate(scores)]


def check_greedy(place, run, net, task, text, prompt):
    ours = written(place, run, prompt, TOKENS, 1, -1)[0][0]
    theirs = net.generate(prompt, attention_mask=prompt.new_ones(prompt.shape), max_new_tokens=TOKENS, do_sample=False,
                          eos_token_id=None, suppress_tokens=None, pad_token_id=0)[0, prompt.shape[1]:].tolist()
    if task == "language-model":  # also as the program prints it
        options = ("--prompt", text, "--temperature", "0", "--tokens", str(TOKENS))
        printed = place.capstan("generate", str(run), *options).stdout.decode(errors="replace")
        if printed != text + bytes(theirs).decode(errors="replace") + "\n":
            return "OTHER TEXT than capstan generate"
    same = next((i for i, (a, b) in enumerate(zip(ours, theirs)) if a != b), None)
    if same is not None or len(ours) != len(theirs):
        return f"OTHER TEXT from token {same} of {len(ours)}, {len(theirs)}"
    return f"{len(ours)} tokens"


def check_beams(place, run, net, prompt, stop):
    """Without a stop token, every text has 12 tokens; with one, texts end where it is written."""
    tokens = 12
    ours = written(place, run, prompt, tokens, BEAM, stop)
    options = {"attention_mask": prompt.new_ones(prompt.shape), "max_new_tokens": tokens, "do_sample": False, "pad_token_id": 0,
               "eos_token_id": None if stop < 0 else stop, "suppress_tokens": [0] if stop < 0 else None}
    cut = lambda row: row[: row.index(stop)] if stop in row else row
    greedy = cut(net.generate(prompt, **options)[0, prompt.shape[1]:].tolist())
    found = net.generate(prompt, num_beams=BEAM, num_return_sequences=BEAM, early_stopping="never", length_penalty=0.0,
                         output_scores=True, return_dict_in_generate=True, **options)
    theirs = [(cut(row), score) for row, score in zip(found.sequences[:, prompt.shape[1]:].tolist(), found.sequences_scores.tolist())]
    added = [text for text, _ in ours if text not in [other for other, _ in theirs]]
    below = max(b[1] - a[1] for a, b in zip(ours, theirs)) / max(1.0, abs(theirs[0][1]))
    if len(ours) < len(theirs) or below > 1e-5 or added not in ([], [greedy]):
        return f"WORSE BEAM: {ours}, {theirs}, greedy {greedy}"
    return f"beam of {BEAM} equal" + (" but for the greedy text, which is better than the last" if added else "")


def main():
    torch, transformers = require("torch"), require("transformers")
    transformers.logging.set_verbosity_error()
    print("transformers", transformers.__version__)
    torch.set_num_threads(1)
    place, failed = Place(), 0
    for system in sys.argv[2].split(",") if len(sys.argv) > 2 else SYSTEMS:
        for task in ("language-model", "pairs"):
            for seed in range(int(sys.argv[1]) if len(sys.argv) > 1 else 2):
                name = f"{system}-{task}-{seed}"
                run = long_run(place, name, system, task, seed)
                folder = place.export(run, f"export-{name}")
                net, tokenizer = opened(folder, task), transformers.AutoTokenizer.from_pretrained(folder, trust_remote_code=True)
                text = "".join(random.Random(name).choices(string.ascii_letters + string.punctuation, k=20))
                prompt = tokenizer(text, return_tensors="pt")["input_ids"]
                greedy = check_greedy(place, run, net, task, text, prompt)
                beams = check_beams(place, run, net, prompt, net.config.eos_token_id if task == "pairs" else -1)
                good = "OTHER" not in greedy and "WORSE" not in beams
                failed += not good
                print(f"{name:34} {greedy}, {beams}{'' if good else ' WRONG'}", flush=True)
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
