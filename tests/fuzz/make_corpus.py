#!/usr/bin/env python3
"""Writes the first inputs of every fuzzer to tests/fuzz/corpus/<target>. Inputs that were findings are added by hand.

tests/fuzz/make_corpus.py            (the SentencePiece models need the program build/release/capstan)
"""
import gzip
import json
import pathlib
import struct
import subprocess
import tempfile

root = pathlib.Path(__file__).resolve().parents[2]
corpus = root / "tests" / "fuzz" / "corpus"
program = root / "build" / "release" / "capstan"


def put(target, name, content):
    folder = corpus / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)


def tensors(entries, metadata=None):
    """A safetensors file of float32 tensors {name: shape} whose elements count up."""
    header, data = {}, b""
    for name, shape in sorted(entries.items()):
        size = 1
        for extent in shape:
            size *= extent
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + 4 * size]}
        data += b"".join(struct.pack("<f", i % 7 - 3) for i in range(size))
    if metadata:
        header["__metadata__"] = metadata
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


put("json", "object", '0{"a": [1, -2, 3.5, true, null, "\\u00e9\\n"], "b": {"a": 18446744073709551615}}')
put("json", "deep", "0" + "[" * 20000)
put("json", "deep-objects", "0" + '{"a":' * 5000 + "1")
put("json", "large-numbers", "0[1e400, 9223372036854775808, -9223372036854775809, 1e-400]")
put("json", "repeated", '1{"a": 1, "a": 2}')
put("json", "cut", '0{"a": "\\ud83d')

put("safetensors", "one", tensors({"t": [2, 3]}, {"k": "v"}))
put("safetensors", "empty-tensor", tensors({"e": [0], "s": []}))
put("safetensors", "none", struct.pack("<Q", 2) + b"{}")
wide = {"t": {"dtype": "U8", "shape": [0, 2**40, 2**40], "data_offsets": [0, 0]}}
put("safetensors", "zero-of-many", struct.pack("<Q", len(json.dumps(wide))) + json.dumps(wide).encode())
deep = b'{"__metadata__":' + b"[" * 5000
put("safetensors", "deep", struct.pack("<Q", len(deep)) + deep)

put("yaml", "run", "name: a\nflag: false\ndata:\n  train: [a.txt]\n  windows: random\n  documents: {type: marker, text: x}\n"
    "  tokenizer: {type: word, split: words}\nlayers:\n  - rate: 0.25\n    width: 8\n    tokenizer: char\n  - {}\n"
    "weights: [1, .5, 1e3]\n")
put("yaml", "anchors", "data: &d {train: a}\nlayers: [&l {rate: 0}, *l, *l]\nname: !x y\n<<: *d\n")
put("yaml", "deep", "name: " + "[" * 20000)
put("yaml", "deep-blocks", "".join(" " * i + "a:\n" for i in range(300)))
put("yaml", "deep-keys", "? " * 3000 + "a")
put("yaml", "deep-lists", "- " * 3000 + "a")
put("yaml", "laughs", "a: &a [x, x, x, x, x, x, x, x, x]\n" +
    "".join(f"{chr(98 + i)}: &{chr(98 + i)} [" + ", ".join(f"*{chr(97 + i)}" for _ in range(9)) + "]\n" for i in range(9)))
put("yaml", "quote", 'name: "never closed\ndata: {train: [a]}\n\ttab: 1\n')
put("set", "some", "name=a\ndata.train=[a, b]\ndata.tokenizer=char\nlayers.0.rate=0.5\nlayers.0.tokenizer.type=word\nx\n=\n")
put("set", "wrong", "layers.9223372036854775808.rate=1\nname.a.b=1\ndata.tokenizer={type: word, type: char}\nname=[[[\n")

put("csv", "rows", '0label,text\n1,"a, ""b""\nc"\r\n2,d\n')
put("csv", "header", '5a,b,c\nx,"y",z\n1,2\n')
put("csv", "quotes", '0"a\n"b"c\n"""\n"",""\n"')
put("tsv", "rows", "01\tone two\n2\tthree\n\n3\n")
put("tsv", "header", "7a\tb\tc\nx\ty\tz\n\xff\ty\tz\n".encode("latin-1"))
put("jsonl", "rows", '0{"label": 1, "text": "a"}\n{"label": "b", "text": "c"}\n{"text": 3}\n[]\n{"label": 1e400}\n')
put("jsonl", "columns", '4{"a": 9223372036854775808, "b": "x", "3": "y"}\n{"a": {}, "b": []}\n')
put("jsonl", "deep", '0{"label": 1, "text": ' + "[" * 20000 + "\n" + '{"label": 1, "text": ' + "[" * 60 + "]" * 60 + "}\n")
put("labels", "names", "0neg\npos\n\npos\nneg\n1\nother\n")
put("labels", "numbers", "11\n2\n\n1\n3\n-9223372036854775808\n")

put("utf8", "text", "plain ASCII that is long enough\ncaf\u00e9 \u6f22 \U0001f600\n")
put("utf8", "wrong", b"\xc0\x80 \xed\xa0\x80 \xf4\x90\x80\x80 \xe2\x82")
put("utf8", "base64", "QUJDRA==")

put("tokenizer_json", "byte", '{"kind":"byte"}\nany \xff'.encode("latin-1"))
put("tokenizer_json", "char", '{"kind":"char","code_points":[10,32,97,233],"normalise":"nfc"}\na e\u0301\n')
put("tokenizer_json", "char-floats", '{"kind":"char","code_points":[1e99,-1.5,4294967296]}\na')
put("tokenizer_json", "char-surrogate", '{"kind":"char","code_points":[55296]}\na')
put("tokenizer_json", "word", '{"kind":"word","split":"words","lower_case":true,"words":["a","b"]}\nA b, c\n')
put("tokenizer_json", "word-twice", '{"kind":"word","split":"blanks","lower_case":false,"words":["a","a"]}\na')
put("tokenizer_json", "deep", '{"kind":' + "[" * 20000)

index = {"fingerprint": "f", "left_out": [], "warnings": [["unknown", "m"]], "sources": [4, 10],
         "splits": {name: {"files": 1, "bytes": 10, "words": 2} for name in ("train", "valid", "test")}}
put("cache_index", "whole", json.dumps(index))
index["sources"] = [4, 1e300]
put("cache_index", "wrong-source", json.dumps(index))
put("cache_index", "not-an-object", "[1, 2]")

state = {name: 1 for name in ("step", "epoch", "batch", "optimizer_step", "tokens", "skipped", "skipped_in_row", "best_step",
                              "stalled", "validated_step", "window_targets", "seed")}
state.update({"seconds": 1.5, "window_loss": 0.5, "identity": {"model": "a"}, "settings": {"seed": "1"}, "machine": {},
              "best_loss": 2.5, "best_accuracy": None})
put("state", "content", "1" + json.dumps(state))
put("state", "large", "1" + json.dumps({**state, "step": 1e300, "tokens": 2**64 - 1}))
put("state", "deep", "0" + '{"state":' + "[" * 20000)
put("metrics", "lines", '3{"step": 1, "event": "train"}\n{"step": 2}\n{"step": 9}\n{"st')
put("metrics", "wrong", '3{"step": 1e300}\n{"step": 18446744073709551615}\n' + "[" * 20000 + "\n\n")



def post(path, body, more=""):
    return f"7POST {path} HTTP/1.1\r\nHost: a\r\n{more}Content-Length: {len(body)}\r\n\r\n{body}"


knobs = {"model": "m", "prompt": ["a", "b"], "max_tokens": 5, "n": 2, "temperature": 0.5, "top_p": 0.9, "top_k": 5, "min_p": 0.1, "seed": 3,
         "stop": ["x"], "stream": True, "stream_options": {"include_usage": True}, "logprobs": 2, "echo": True}
put("request", "completion", post("/v1/completions", json.dumps(knobs)))
put("request", "tokens", post("/v1/completions", '{"prompt": [[1, 2], [99]], "session": {"keep": "a"}}', "Expect: 100-continue\r\n"))
put("request", "classify", post("/v1/classify?x=%2F", '{"input": ["a", ["b", "c"]], "explain": true}', "Authorization: Bearer a\r\n"))
put("request", "detokenize", post("/detokenize", '{"tokens": [1, 2, 3]}'))
put("request", "pipelined", post("/detokenize", '{"tokens": [1]}') + post("/v1/completions", "{}")[1:] + "GET /health HTTP/1.1\r\n\r\n")
put("request", "chunked", '1POST /v1/completions HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n10\r\n{"prompt":"a b"}\r\n0\r\n\r\n')
put("request", "chunks-above", "3POST /v1/completions HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" + ("ff\r\n" + "x" * 255 + "\r\n") * 3)
put("request", "head-above", "0GET /v1/models/lr%3D1e-2%2 HTTP/1.1\r\nX: " + "x" * 300 + "\r\n\r\n")
put("request", "length-above", "9POST / HTTP/1.1\r\nContent-Length: 18446744073709551616\r\n\r\n")

put("glob", "folders", "src/**/*.[ch]pp\nsrc/a/b/c.cpp\nc.hpp\n")
put("glob", "stars", "*a" * 30 + "b\n" + "a" * 250 + "\n")
put("glob", "any-folders", "**/a/" * 60 + "c\n" + "a/" * 200 + "b\n")
put("glob", "brackets", "[!a-\\x][\nab\n[[:alpha:]]\n")
put("gzip", "text", gzip.compress(b"a text\n" * 20, mtime=0))
put("gzip", "bomb", gzip.compress(bytes(3_000_000), mtime=0))
put("gzip", "two", gzip.compress(b"one", mtime=0) + gzip.compress(b"two", mtime=0))
put("gzip", "cut", gzip.compress(b"a text\n" * 20, mtime=0)[:-6])
raw = b"\x28\xb5\x2f\xfd\x20\x03\x19\x00\x00abc"  # one frame, one raw block of three bytes
put("zstd", "text", raw)
put("zstd", "two", raw + raw)
put("zstd", "window", b"\x28\xb5\x2f\xfd\x00\xa8\x19\x00\x00abc")  # asks for 2 GiB
put("zstd", "bomb", b"\x28\xb5\x2f\xfd\x00\x58" + b"\x02\x00\x10a" * 30)  # blocks of 128 KiB that repeat one byte
put("documents", "lines", "1\x03one\n\n  \ntwo\r\nthree")
put("documents", "blank", "2\x02one\n \n\ntwo\n\n")
put("documents", "marker", "3\x01<s>one<s><s>\ntwo<s")

with tempfile.TemporaryDirectory() as folder:
    text = pathlib.Path(folder) / "text.txt"
    text.write_text("".join(f"line {i} holds some words and the number {i * i}\n" for i in range(200)))
    for kind in ("bpe", "unigram"):
        model = pathlib.Path(folder) / f"{kind}.model"
        config = pathlib.Path(folder) / f"{kind}.yaml"
        config.write_text(json.dumps({
            "name": kind, "folder": folder, "train": {"steps": 1, "batch_size": 1},
            "data": {"type": "text", "train": [str(text)], "sequence_length": 8, "cache": "",
                     "tokenizer": {"type": "sentencepiece", "model_type": kind, "vocabulary_size": 64,
                                   "byte_fallback": False, "model": str(model)}},
            "model": {"type": "language-model", "width": 8, "layers": [{"mixer": "aft-simple"}]}}))
        subprocess.run([program, "train", "--config", config], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        put("sentencepiece_model", kind, model.read_bytes())
