#!/usr/bin/env python3
"""Attacks run folders and linear classifiers.

  scripts/attack/runs.py old [COUNT] [SEED]      runs of earlier versions (tests/fixtures/runs) with a random change of one or two files:
                                                 every command answers or refuses, and training goes on or is refused
  scripts/attack/runs.py linear [COUNT] [SEED]   random tables and settings of linear classifiers: trained, broken off, gone on with,
                                                 asked, with one and with two threads

A command must end within 60 seconds (CAPSTAN_LIMIT) with exit code 0, 1, 2 or 75 and no signal; an error says so in a line and names no
exception; reading commands change nothing. CAPSTAN_PROGRAM names another build. What fails is printed and kept in a folder.
"""
import json
import os
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

program = os.path.realpath(os.environ.get("CAPSTAN_PROGRAM", "build/release/capstan"))
fixtures = os.path.realpath("tests/fixtures/runs")
recipe = os.path.realpath("configs/classify.yaml")
limit = float(os.environ.get("CAPSTAN_LIMIT", "60"))
indecent = re.compile(r"terminate called|std::|nlohmann|\[json|basic_string|what\(\)|AddressSanitizer|runtime error|Assertion|bad_alloc|yaml-cpp|vector::")


def content(folder):
    found = {}
    for path, _, files in os.walk(folder):
        for name in files:
            full = os.path.join(path, name)
            found[full] = os.readlink(full) if os.path.islink(full) else open(full, "rb").read() if os.path.isfile(full) else "?"
    return found


def run(words, text="", stop=None):
    """exit code, output, errors, and what is wrong with them"""
    process = subprocess.Popen(["bash", "-c", 'ulimit -v 6000000; exec "$@"', "bash", program, *words], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    began = time.time()
    try:
        if stop is not None:
            time.sleep(stop)
            process.send_signal(signal.SIGTERM)
        out, err = process.communicate(text.encode(), timeout=limit)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        return -9, "", "", f"no end within {limit} s"
    out, err = out.decode(errors="replace"), err.decode(errors="replace")
    wrong = ""
    if process.returncode not in (0, 1, 2, 75) and not (stop is not None and process.returncode == -15):
        wrong = f"exit code {process.returncode}"
    elif process.returncode in (1, 2) and "error: " not in err and "FAILED" not in out + err and "DAMAGED" not in out:
        wrong = "an error without a message"
    elif indecent.search(err):
        wrong = "names an exception: " + indecent.search(err).group()
    elif time.time() - began > limit:
        wrong = "too long"
    return process.returncode, out, err, wrong


def report(failures, what, words, result, folder):
    print(f"FAILED {what}: {' '.join(words)}: {result[3]}\n  {result[2][-400:].strip()}\n  kept: {folder}", flush=True)
    failures.append(what)


strange = ["0", "-1", "1e999", "nan", ".inf", "9223372036854775807", "-9223372036854775808", "2147483648", "4294967296", "1e-320", "true", "null",
           "[]", "{}", "[1, 2", "''", "\"\\u0000\"", "~", "*x", "&x 1", "!!binary aa", "../..", "/etc/passwd", "/dev/zero", "x" * 5000, "\xff"]


def change_text(path, draw):
    """One random change of a text file; what it was."""
    data = open(path, "rb").read()
    lines = data.split(b"\n")
    at = draw.randrange(len(lines))
    kind = draw.choice(["delete", "double", "swap", "number", "number", "number", "value", "cut", "byte", "rename", "empty", "join"])
    if kind == "delete":
        del lines[at]
    elif kind == "double":
        lines.insert(at, lines[at])
    elif kind == "swap":
        other = draw.randrange(len(lines))
        lines[at], lines[other] = lines[other], lines[at]
    elif kind == "number":
        numbers = list(re.finditer(rb"-?\b\d+(\.\d+)?(e-?\d+)?\b", data))
        if numbers:
            one = draw.choice(numbers)
            return write(path, data[:one.start()] + draw.choice(strange[:12]).encode() + data[one.end():], kind + f" at {one.start()}")
    elif kind == "value":
        lines[at] = re.sub(rb"(:\s*).*", lambda m: m.group(1) + draw.choice(strange).encode("latin1"), lines[at], count=1)
    elif kind == "cut":
        return write(path, data[:draw.randrange(len(data) + 1)], kind)
    elif kind == "byte":
        place = draw.randrange(len(data) + 1)
        return write(path, data[:place] + bytes([draw.randrange(256)]) + data[place:], kind)
    elif kind == "rename":
        lines[at] = lines[at].replace(b"_", b"-", 1).replace(b"type", b"tpye")
    elif kind == "empty":
        return write(path, b"", kind)
    elif kind == "join" and at + 1 < len(lines):
        lines[at:at + 2] = [lines[at] + lines[at + 1]]
    return write(path, b"\n".join(lines), f"{kind} line {at + 1}")


def write(path, data, what):
    with open(path, "wb") as out:
        out.write(data)
    return f"{os.path.basename(path)}: {what}"


def change_file(path, draw):
    kind = draw.choice(["flip", "cut", "grow", "remove", "folder", "link", "fifo", "header"])
    data = bytearray(open(path, "rb").read())
    if kind in ("remove", "folder", "link", "fifo"):
        os.remove(path)
        if kind == "folder":
            os.mkdir(path)
        elif kind == "link":
            os.symlink(draw.choice(["/dev/zero", "/etc/passwd", "missing", ".", os.path.basename(path)]), path)
        elif kind == "fifo":
            os.mkfifo(path)
        return f"{os.path.basename(path)}: {kind}"
    if kind == "cut" or not data:
        data = data[:draw.randrange(len(data) + 1)]
    elif kind == "grow":
        data += bytes(draw.randrange(256) for _ in range(draw.randrange(1, 100)))
    else:
        for _ in range(draw.randrange(1, 4)):
            data[draw.randrange(min(len(data), 200) if kind == "header" else len(data))] = draw.randrange(256)
    return write(path, bytes(data), kind)


def change_tensors(path, draw):
    """Strange values, shapes, types or names in a file of tensors, without the checksum that would tell."""
    data = open(path, "rb").read()
    size = struct.unpack("<Q", data[:8])[0]
    header, body = json.loads(data[8:8 + size]), bytearray(data[8 + size:])
    header.get("__metadata__", {}).pop("xxh3_128", None)
    name = draw.choice(sorted(n for n in header if n != "__metadata__") or ["none"])
    tensor = header.get(name)
    kind = draw.choice(["values", "values", "values", "shape", "dtype", "rename", "metadata", "offsets"])
    if kind == "values" and tensor:
        begin, end = tensor["data_offsets"]
        value = struct.pack("<f", draw.choice([float("nan"), float("inf"), -float("inf"), 3e38, -3e38, 1e-42, 0, 1e6]))
        for _ in range(draw.choice([1, 5, (end - begin) // 4])):
            if end - begin >= 4:
                at = begin + 4 * draw.randrange((end - begin) // 4)
                body[at:at + 4] = value
    elif kind == "shape" and tensor and tensor["shape"]:
        tensor["shape"][draw.randrange(len(tensor["shape"]))] = draw.choice([0, 1, -1, 2**31, 2**63, 2**64, "2", None, 1.5])
    elif kind == "dtype" and tensor:
        tensor["dtype"] = draw.choice(["F64", "F16", "BF16", "I64", "", 3, None, "F8"])
    elif kind == "rename" and tensor:
        header[draw.choice(["", "x" * 3000, name + " ", "linear.weight", "\x1b[2J"])] = header.pop(name)
    elif kind == "offsets" and tensor:
        tensor["data_offsets"][draw.randrange(2)] = draw.choice([0, -1, 2**63, 2**64 - 1, 4, None, "0"])
    else:
        header["__metadata__"] = draw.choice([{}, None, [], {"step": "x"}, {"aliases": "[1]"}, {"aliases": "{\"a\": 1}"}, {"xxh3_128": 3}, {"format": "pt"}])
    text = json.dumps(header).encode()
    return write(path, struct.pack("<Q", len(text)) + text + bytes(body), f"{kind} of {name[:40]}")


def attack_old(count, draw):
    failures, answered, refused = [], 0, 0
    versions = [v for v in sorted(os.listdir(fixtures)) if os.path.isdir(os.path.join(fixtures, v))]
    for case in range(count):
        folder = tempfile.mkdtemp()
        version = os.path.join(fixtures, draw.choice(versions))
        name = draw.choice(sorted(os.listdir(os.path.join(version, "runs"))))
        shutil.copytree(os.path.join(version, "data"), os.path.join(folder, "data"), symlinks=True)
        shutil.copytree(os.path.join(version, "runs"), os.path.join(folder, "runs"), symlinks=True)
        os.chdir(folder)
        target = os.path.join("runs", name)
        changes = []
        for _ in range(draw.choice([0, 1, 1, 1, 2])):
            files = sorted(f for f in content(target) if os.path.isfile(f) and not os.path.islink(f))
            texts = [f for f in files if not f.endswith((".safetensors", ".log")) and "events" not in f]
            one = draw.choice(texts if draw.random() < 0.8 else files)
            change = change_text if one in texts else change_tensors if one.endswith(".safetensors") else change_file
            changes.append((change if draw.random() < 0.85 else change_file)(one, draw))
        what = f"case {case}, {os.path.basename(version)}/{name}, {changes}"
        before, bad = content("."), len(failures)
        text = "the tape turns\n\n1 2 3\t3 2 1\nthe <mask> turns\n"
        for words in (["eval", target], ["eval", target, "--split", "train"], ["predict", target], ["score", target], ["embed", target],
                      ["generate", target, "-n", "5"], ["inspect", target], ["verify", target], ["compare", target, "runs"], ["metrics", target],
                      ["report", target, "-o", os.path.join(folder, "..", os.path.basename(folder) + ".html")],
                      ["config", "print", "--config", os.path.join(target, "config.yaml")]):
            result = run(words, text if words[0] in ("predict", "score", "embed") else "")
            answered, refused = answered + (result[0] == 0), refused + (result[0] != 0)
            if result[3]:
                report(failures, what, words, result, folder)
        if content(".") != before:
            report(failures, what, ["reading commands"], (0, "", "", "changed the folder"), folder)
        config = os.path.join(target, "config.yaml")
        if os.path.isfile(config):
            words = ["train", "--config", config, "--set", "train.steps=12", "train.epochs=0", "train.minutes=0", "folder=runs", "name=" + name]
            result = run(words, stop=None if draw.random() < 0.7 else draw.random())
            answered, refused = answered + (result[0] in (0, 75)), refused + (result[0] not in (0, 75))
            if result[3]:
                report(failures, what, words, result, folder)
        os.chdir("/")
        if len(failures) == bad:
            shutil.rmtree(folder)
        page = folder + ".html"
        if os.path.exists(page):
            os.remove(page)
    print(f"{count} runs, {answered} commands answered, {refused} refused, {len(failures)} failed")
    return failures


def random_text(draw):
    kind = draw.randrange(12)
    words = ["alpha", "beta", "Gamma", "δέλτα", "猫", "tape", "\u0301", "e\u0301", "👩‍👩‍👧", "0", "\"", "'", ",", "-", "\u200b", "<b>", "\x1b[31m"]
    if kind == 0:
        return ""
    if kind == 1:
        return " " * draw.randrange(1, 5)
    if kind == 2:
        return draw.choice("aé猫") * draw.choice([1, 300, 70000])
    if kind == 3:
        return "".join(chr(draw.choice([0x20, 0x41, 0x300, 0x1F600, 0xFFFD, 0x2028, 0x85, 0xA0, 0x10FFFF])) for _ in range(draw.randrange(50)))
    return " ".join(draw.choice(words) for _ in range(draw.choice([1, 3, 20, 300])))


def attack_linear(count, draw):
    failures, trained, refused = [], 0, 0
    for case in range(count):
        folder = tempfile.mkdtemp()
        os.chdir(folder)
        rows, classes = draw.choice([1, 2, 3, 10, 200, 1000]), draw.choice([1, 2, 3, 7, 50])
        multi = draw.random() < 0.15
        texts = [random_text(draw).replace("\t", " ").replace("\n", " ") for _ in range(draw.choice([1, rows]))]
        label = lambda: " ".join(sorted({f"c{draw.randrange(classes)}" for _ in range(draw.randrange(3))})) if multi else draw.choice(
            ["c%d" % draw.randrange(classes)] * 20 + ["", " ", "x y", "\u00e9" * 300, "\x1b[2J"])
        with open("train.tsv", "w", encoding="utf-8", errors="surrogatepass", newline="\n") as out:
            for _ in range(rows):
                out.write(f"{label()}\t{draw.choice(texts)}\n")
        settings = {
            "data.on_error": draw.choice(["stop", "skip"]), "data.skip_empty": draw.choice(["true", "false"]),
            "data.valid_fraction": draw.choice(["0", "0", "0.2", "0.9"]), "data.max_length": draw.choice(["0", "0", "1", "50", "4096"]),
            "model.words": draw.choice(["[1]", "[1, 2]", "[]", "[8]", "[1, 2, 3, 4, 5]", "[0]", "[2, 2]"]),
            "model.characters": draw.choice(["[]", "[2, 3]", "[1]", "[8]", "[1, 2, 3, 4, 5, 6]", "[64]"]),
            "model.text_ends": draw.choice(["true", "false"]), "model.min_texts": draw.choice(["0", "1", "2", "1000000"]),
            "model.buckets": draw.choice(["0", "1024", "4096", "1", "1000", "4194304"]), "model.folds": draw.choice(["5", "2", "1", "1000", "0"]),
            "train.max_minutes": draw.choice(["0", "0", "1"]), "seed": draw.choice(["1", "0", "9223372036854775807"])}
        if draw.random() < 0.6:  # usual settings but for two
            settings = dict(draw.sample(sorted(settings.items()), 2))
        if multi:
            settings["data.multi_label"] = "true"
        words = ["train", "--config", recipe, "--set", "data.train=[train.tsv]", *[f"{k}={v}" for k, v in settings.items()], "train.progress=plain", "train.keep_optimizer=true"]
        what, bad = f"case {case}", len(failures)

        def expect(words, text="", stop=None):
            result = run(words, text, stop)
            if result[3]:
                report(failures, what, words, result, folder)
            return result

        first = expect([*words, "name=one", "threads=1"])
        trained, refused = trained + (first[0] == 0), refused + (first[0] != 0)
        expect([*words, "name=two", "threads=2"], stop=draw.random() * 0.5)
        second = expect([*words, "name=two", "threads=2"])
        if first[0] == 0 and second[0] == 0:
            weights = [open(f"runs/{n}/checkpoints/last/model.safetensors", "rb").read() for n in ("one", "two")]
            if weights[0] != weights[1]:
                report(failures, what, words, (0, "", "", "threads or a signal change the weights"), folder)
            asked = "\n".join(texts[:50] + ["", "alpha beta"]) + "\n"
            for more in (["eval", "runs/one", "--split", "train"], ["predict", "runs/one", "--input", "lines"], ["predict", "runs/one", "--format", "jsonl"],
                         ["verify", "runs/one"], ["inspect", "runs/one"], ["report", "runs/one", "-o", "page.html"], ["compare", "runs"],
                         ["data", "check", "--config", "runs/one/config.yaml"],
                         [*words, "name=warm", "train.init_from=runs/one"]):
                result = expect(more, asked if more[0] == "predict" else "")
                if result[0] != 0 and more[0] in ("verify", "inspect", "compare"):
                    report(failures, what, more, (0, "", result[2], "a trained run is refused"), folder)
                if more[0] == "predict" and result[0] == 0 and "lines" in more and result[1].count("\n") != asked.count("\n") + 1:
                    report(failures, what, more, (0, "", result[2], f"{result[1].count(chr(10))} lines for {asked.count(chr(10))} texts"), folder)
            one = draw.choice(sorted(f for f in content("runs/one") if not f.endswith(".log") and not os.path.islink(f)))
            what += ", " + (change_tensors if one.endswith(".safetensors") and draw.random() < 0.7 else change_file)(one, draw)
            for more in (["predict", "runs/one", "--input", "lines"], ["eval", "runs/one", "--split", "train"], ["inspect", "runs/one"], ["verify", "runs/one"],
                         ["report", "runs/one", "-o", "page.html"], [*words, "name=cold", "train.init_from=runs/one"], [*words, "name=one"]):
                expect(more, asked if more[0] == "predict" else "")
        os.chdir("/")
        if len(failures) == bad:
            shutil.rmtree(folder)
    print(f"{count} tables, {trained} trained, {refused} refused, {len(failures)} failed")
    return failures


def main():
    if len(sys.argv) < 2 or sys.argv[1] not in ("old", "linear"):
        sys.exit(__doc__)
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 200
    draw = random.Random(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    return 1 if (attack_old if sys.argv[1] == "old" else attack_linear)(count, draw) else 0


if __name__ == "__main__":
    sys.exit(main())
