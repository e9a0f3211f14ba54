"""llama.cpp reads an exported model: the same ids, and the same 200 greedy tokens.

    python tests/interop/llama_cpp.py

Needs the Python packages xllamacpp, torch, transformers and gguf and a built program; says so and skips otherwise. A model that is
not Llama's is refused with the keys in the way.
"""

import json
import subprocess
import sys
import urllib.request

from exported_run import NUMBERS, Place
from sample_run import require

LAYER = {"mixer": {"type": "attention", "heads": 2, "rotary": True}, "norm": "rms", "repeat": 2,
         "feed_forward": {"type": "swiglu", "expansion": 2, "bias": False}}
MODEL = {"type": "language-model", "width": 32, "max_length": 512, "final_norm": "rms", "layers": [LAYER]}
CASES = {
    "bytes": ({}, {"tokenizer": "byte"}),
    "untied": ({"tied_output": False}, {"tokenizer": "byte", "documents": "line"}),
    "interleaved": ({"layers": [LAYER | {"mixer": LAYER["mixer"] | {"rotary_pairs": "interleaved"}}]},
                    {"tokenizer": "byte"}),
    "pieces": ({}, {"tokenizer": {"type": "sentencepiece", "vocabulary_size": 300}}),
}
TEXT = "the tape turns  a drum, Ein Ba\u00df\n\u65e5\u672c x 12345 don't\tand \U0001f600 wire"
PROMPT = "the tape turns a"


def ids_of(place, run, text):
    (place.folder / "given.txt").write_text(text, newline="")
    found = place.folder / "found.safetensors"
    subprocess.run([str(NUMBERS), str(run), str(place.folder / "given.txt"), str(found)], check=True)
    data = found.read_bytes()
    size = int.from_bytes(data[:8], "little")
    begin, end = json.loads(data[8 : 8 + size])["ids"]["data_offsets"]
    body = data[8 + size :][begin:end]
    return [int.from_bytes(body[i : i + 4], "little") for i in range(0, len(body), 4)]


def refuses(place):
    """Whether the script names what keeps a model from being Llama's."""
    data = {"type": "text", "train": ["text.txt"], "sequence_length": 64, "tokenizer": "byte"}
    layers = [LAYER | {"norm": "layer", "mixer": LAYER["mixer"] | {"bias": True}}]
    run = place.train("other", {"data": data, "model": MODEL | {"layers": layers}})
    folder = place.export(run, "export-other", "gguf")
    ended = subprocess.run([sys.executable, str(folder / "export_gguf.py")], capture_output=True, text=True)
    named = all(f"model.layers.0.{key}: must be" in ended.stderr for key in ("norm", "mixer.bias"))
    print(f"another model is {'refused' if ended.returncode and named else 'NOT REFUSED: ' + ended.stderr}")
    return ended.returncode != 0 and named and not (folder / "model.gguf").exists()


def main():
    xllamacpp = require("xllamacpp")
    require("gguf")
    place, failed = Place(), 0
    for number, (name, (model, data)) in enumerate(CASES.items()):
        data = {"type": "text", "train": ["text.txt"], "valid_fraction": 0.1, "sequence_length": 64} | data
        train = {"steps": 200, "batch_size": 8, "lr": 1e-2, "progress": "none"}
        run = place.train(name, {"data": data, "model": MODEL | model, "train": train})
        folder = place.export(run, f"export-{name}", "gguf")
        subprocess.run([sys.executable, str(folder / "export_gguf.py")], check=True, capture_output=True)
        file = folder / "model.gguf"
        parameters = xllamacpp.CommonParams()
        parameters.model.path, parameters.n_ctx, parameters.warmup = str(file), 512, False
        parameters.cpuparams.n_threads, parameters.port = 1, 18130 + number
        server = xllamacpp.Server(parameters)
        address = getattr(server, "listening_address", None) or f"http://127.0.0.1:{parameters.port}"

        def ask(path, **body):
            request = urllib.request.Request(address + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
            return json.loads(urllib.request.urlopen(request, timeout=120).read())

        same_ids = ask("/tokenize", content=TEXT)["tokens"] == ids_of(place, run, TEXT)
        theirs = ask("/completion", prompt=PROMPT, n_predict=200, temperature=0, cache_prompt=False)["content"]
        ours = place.capstan("generate", str(run), "--prompt", PROMPT, "--tokens", "200", "--temperature", "0").stdout
        ours = ours.decode()[len(PROMPT) : -1]
        good = same_ids and theirs == ours
        failed += not good
        print(f"{name:12} ids {'equal' if same_ids else 'DIFFER'}, text {'equal' if theirs == ours else 'DIFFERS'}")
        if theirs != ours:
            at = next(i for i, (a, b) in enumerate(zip(theirs, ours)) if a != b)
            print(f"  from character {at}: {theirs[at:at + 40]!r}, {ours[at:at + 40]!r}")
        del server
    failed += not refuses(place)
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
