#!/usr/bin/env python3
"""Changes one token of the program at random, builds it with AddressSanitizer and runs the tests; lists what no test notices.

  scripts/mutate.py FOLDER [--count 300] [--seed 1] [--rooms core,nn,models,data,train] [--most-objects 40] [--quick]
  scripts/mutate.py FOLDER --report          the survivors so far, as Markdown
  scripts/mutate.py FOLDER --try FILE:LINE:KIND:COLUMN    one mutant again, against the tests of FOLDER's tree

FOLDER, outside of the repository, holds a clone of the committed sources (tree/), its build, and mutants.jsonl with one line per
mutant; the same command goes on where it stopped. The n-th mutant depends on the seed, n and the sources alone. A mutant is
killed by the first test program that fails, crashes or hangs; the programs of its own room run first, the quickest first, then
those of the rooms above, then the command line's; of each program, the tests in files of a similar name run before all. With
--quick only the own programs run, and of these, where tests/ has such a folder, the tests in it or in files of a similar name;
what survives them is then tried with --try against all. Needs GCC, Ninja and Python's standard library; mold or gold link faster.
Run it at low priority: nice -n 19 scripts/mutate.py ...
"""
import argparse
import collections
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOMS = ("core", "nn", "models", "data", "train")
# Test programs that can notice a change in a room; later ones are farther away.
PROGRAMS = {
    "core": ("test_core", "test_core_f64", "test_nn", "test_nn_f64", "test_models", "test_models_f64", "test_data", "test_train"),
    "nn": ("test_nn", "test_nn_f64", "test_models", "test_models_f64", "test_train"),
    "models": ("test_models", "test_models_f64", "test_train"),
    "data": ("test_data", "test_train"),
    "train": ("test_train",),
}
LAST = ("test_cli",)
OWN = {"core": 2, "nn": 2, "models": 2, "data": 1, "train": 1}  # so many of them are the room's own
MEMORY_MB = 6000
BUILD_SECONDS = 1200

SWAPS = {
    " + ": " - ", " - ": " + ", " * ": " / ", " / ": " * ", " % ": " * ", " += ": " -= ", " -= ": " += ", " *= ": " /= ",
    " < ": " <= ", " <= ": " < ", " > ": " >= ", " >= ": " > ", " == ": " != ", " != ": " == ", " && ": " || ", " || ": " && ",
    "++": "--", "true": "false", "false": "true", "std::min": "std::max", "std::max": "std::min", "continue;": "break;",
    ".front()": ".back()", ".back()": ".front()",
}
SWAP = re.compile("|".join(r"\b" + re.escape(key) + r"\b" if key.isalpha() else re.escape(key)
                           for key in sorted(SWAPS, key=len, reverse=True)))
NUMBER = re.compile(r"(?<![\w.'])(\d+)(?![\w.'])")
NOT = re.compile(r"!(?=[\w(])")
STATEMENT = re.compile(r"^( +)((?!return\b|throw\b|using\b|const\b|auto\b|static\b|else\b|if\b|for\b|while\b|case\b|default\b|delete\b|goto\b)"
                       r"[\w:>.\[\]*-]+(\(.*\)|(\[[^\]]*\])? [-+*/|&]?= [^{]*|(\+\+|--))|continue|break|return);$")
ARGUMENTS = re.compile(r"\w\(([\w.:>\[\]-]+), ([\w.:>\[\]-]+)(?=[,)])")
Site = collections.namedtuple("Site", "file line kind column before after")


def blank_out(text):
    """The text with comments, strings, characters and preprocessor lines as blanks: positions stay."""
    pattern = re.compile(r'//[^\n]*|/\*.*?\*/|R"\((?:.*?)\)"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])+\'|^[ \t]*#(?:\\\n|[^\n])*',
                         re.S | re.M)
    return pattern.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), text)


def sites_in(file, text):
    for number, (line, code) in enumerate(zip(text.split("\n"), blank_out(text).split("\n")), 1):
        if "static_assert" in code or "namespace" in code or code.startswith("template"):
            continue
        for match in SWAP.finditer(code):
            yield Site(file, number, "operator", match.start(), match.group(), SWAPS[match.group()])
        for match in NUMBER.finditer(code):
            value = int(match.group())
            yield Site(file, number, "plus", match.start(), match.group(), str(value + 1))
            if value > 0:
                yield Site(file, number, "minus", match.start(), match.group(), str(value - 1))
        for match in NOT.finditer(code):
            yield Site(file, number, "not", match.start(), "!", "")
        for match in ARGUMENTS.finditer(code):
            if match.group(1) != match.group(2):
                yield Site(file, number, "arguments", match.start(1), f"{match.group(1)}, {match.group(2)}",
                           f"{match.group(2)}, {match.group(1)}")
        if STATEMENT.match(code) and code.rstrip() == line.rstrip():
            start = len(code) - len(code.lstrip())
            yield Site(file, number, "statement", start, code[start:], "static_cast<void>(0);")


def programs_of(room, quick):
    return PROGRAMS[room][:OWN[room]] if quick else (*PROGRAMS[room], *LAST)


def nearest_tests(file, quick):
    """Options for doctest that choose tests, the nearest to a file first: those of its name, those of its folder, all. With
    `quick`, all only where its folder has none."""
    chosen = [[f"--source-file=*{Path(file).stem}*"]]
    folder = Path("tests") / Path(file).parent
    if len(folder.parts) > 2 and any((Path(__file__).resolve().parent.parent / folder).glob("*.cpp")):
        chosen.append([f"--source-file=*/{folder}/*"])
    if not quick or len(chosen) == 1:
        chosen.append([])
    return chosen


def place(site):
    return f"{site.file}:{site.line}:{site.kind}:{site.column}"


def mutated(text, site):
    lines = text.split("\n")
    line = lines[site.line - 1]
    assert line[site.column:].startswith(site.before), (site, line)
    lines[site.line - 1] = line[:site.column] + site.after + line[site.column + len(site.before):]
    return "\n".join(lines)


class Laboratory:
    """A clone of the sources with its build."""

    def __init__(self, folder):
        self.folder = Path(folder).resolve()
        self.tree = self.folder / "tree"
        self.build_folder = self.tree / "build" / "mutants"
        self.records = self.folder / "mutants.jsonl"

    def set_up(self):
        self.folder.mkdir(parents=True, exist_ok=True)
        source = Path(__file__).resolve().parent.parent
        if not self.tree.exists():
            subprocess.run(["git", "clone", "-q", str(source), str(self.tree)], check=True)
        subprocess.run(["git", "checkout", "-q", "--", *ROOMS], cwd=self.tree, check=True)
        if not (self.build_folder / "build.ninja").exists():
            linker = next((name for name in ("mold", "gold") if shutil.which(f"ld.{name}") or shutil.which(name)), "bfd")
            subprocess.run(["cmake", "-G", "Ninja", "-B", str(self.build_folder), "-DCMAKE_BUILD_TYPE=Mutants",
                            "-DCMAKE_CXX_FLAGS_MUTANTS=-O1 -g0", "-DCMAKE_CXX_FLAGS=-w -fsanitize=address",
                            f"-DCMAKE_EXE_LINKER_FLAGS=-fuse-ld={linker} -fsanitize=address", "-DCAPSTAN_BATCHES=OFF"],
                           cwd=self.tree, check=True, stdout=subprocess.DEVNULL)

    def sites(self, rooms):
        found = collections.defaultdict(list)
        for room in rooms:
            for path in sorted((self.tree / room).rglob("*.[ch]pp")):
                file = str(path.relative_to(self.tree))
                for site in sites_in(file, path.read_text()):
                    found[site.kind].append(site)
        return found

    def build(self, programs):
        """Exit code; None after a time-out."""
        return self.run(["cmake", "--build", str(self.build_folder), "--target", *programs], BUILD_SECONDS, limited=False)

    def objects_to_build(self, programs):
        answer = subprocess.run(["ninja", "-C", str(self.build_folder), "-n", *programs], capture_output=True, text=True)
        return answer.stdout.count("Building CXX object")

    def test(self, program, seconds, *more):
        return self.run([str(self.build_folder / "bin" / program), "--abort-after=1", "--no-breaks=true", *more], seconds, limited=True)

    def run(self, command, seconds, limited):
        def limits():
            if limited:
                resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 30, 1 << 30))
                resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        environment = dict(os.environ, OMP_NUM_THREADS="2", ASAN_OPTIONS=f"hard_rss_limit_mb={MEMORY_MB}:max_allocation_size_mb={MEMORY_MB}:allocator_may_return_null=1")
        process = subprocess.Popen(command, cwd=self.tree, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, start_new_session=True, preexec_fn=limits)
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        finally:
            try:
                os.killpg(process.pid, signal.SIGKILL)  # what it has started, too
            except ProcessLookupError:
                pass
            process.wait()

    def time_tests(self, rooms, quick):
        """Seconds of every test program that passes without a mutant."""
        path = self.folder / "times.json"
        times = json.loads(path.read_text()) if path.exists() else {}
        names = [*dict.fromkeys(name for room in rooms for name in programs_of(room, quick))]
        names = [name for name in names if name not in times]
        if not names:
            return times
        print("building", *names, flush=True)
        if subprocess.run(["cmake", "--build", str(self.build_folder), "--target", *names], cwd=self.tree).returncode != 0:
            sys.exit("mutate.py: the unchanged sources do not build")
        for name in names:
            start = time.time()
            code = self.test(name, 3600)
            print(f"{name}: exit {code}, {time.time() - start:.0f} s", flush=True)
            if code == 0:
                times[name] = time.time() - start
            else:
                print(f"mutate.py: {name} fails with the unchanged sources and is left out", file=sys.stderr, flush=True)
        path.write_text(json.dumps(times))
        return times

    def attempt(self, site, times, options):
        """What became of one mutant."""
        path = self.tree / site.file
        original = path.read_text()
        room = site.file.split("/")[0]
        programs = sorted(PROGRAMS[room][:OWN[room]], key=lambda name: times.get(name, 0))
        programs += programs_of(room, options.quick)[len(programs):]
        programs = [name for name in programs if name in times]
        start = time.time()
        record = dict(site._asdict())
        try:
            path.write_text(mutated(original, site))
            if site.file.endswith(".hpp") and self.objects_to_build(programs) > options.max_objects:
                return dict(record, outcome="left out", by="too many objects to build")
            for program in programs:
                targets = [program, "capstan"] if program in LAST else [program]
                code = self.build(targets)
                if code != 0:
                    return dict(record, outcome="uncompilable", by=program, seconds=round(time.time() - start))
                limit = 30 + 8 * times[program]
                code = 0
                for chosen in nearest_tests(site.file, options.quick):
                    if code == 0:
                        code = self.test(program, limit, *chosen)
                if code != 0:
                    return dict(record, outcome="killed", by=program, how="hang" if code is None else f"exit {code}",
                                seconds=round(time.time() - start))
            return dict(record, outcome="survived", by="", seconds=round(time.time() - start))
        finally:
            path.write_text(original)


def draw(found, seed, index):
    """The index-th mutant: first its kind, then its place."""
    generator = random.Random(f"{seed}:{index}")
    kinds = ["operator"] * 4 + ["plus", "minus"] + ["statement"] * 2 + ["arguments", "not"]
    return generator.choice(found[generator.choice(kinds)])


def read_records(path):
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def report(records):
    counts = collections.Counter(record["outcome"] for record in records)
    print(", ".join(f"{count} {name}" for name, count in sorted(counts.items())))
    print("\n| place | change | reason |\n|---|---|---|")
    for record in records:
        if record["outcome"] == "survived":
            site = Site(**{name: record[name] for name in Site._fields})
            print(f"| {place(site)} | `{site.before.strip()}` → `{site.after.strip()}` | |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rooms", default=",".join(ROOMS))
    parser.add_argument("--most-objects", type=int, default=40)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--report", action="store_true")
    parser.add_argument("--try", dest="single")
    options = parser.parse_args()
    laboratory = Laboratory(options.folder)
    if options.report:
        return report(read_records(laboratory.records))
    laboratory.set_up()
    rooms = options.rooms.split(",")
    times = laboratory.time_tests(rooms, options.quick)
    found = laboratory.sites(rooms)
    if options.single:
        chosen = [site for sites in found.values() for site in sites
                  if place(site) == options.single]
        for site in chosen:
            print(json.dumps(laboratory.attempt(site, times, options)))
        return None
    drawn_by = {"seed": options.seed, "rooms": options.rooms}
    records = read_records(laboratory.records)
    seen = {place(Site(**{name: record[name] for name in Site._fields})) for record in records}
    records = [record for record in records if drawn_by.items() <= record.items()]
    done = {record["index"] for record in records}
    tried = sum(record["outcome"] in ("killed", "survived") for record in records)
    index = 0
    while tried < options.count:
        site = draw(found, options.seed, index)
        if index not in done and place(site) not in seen:
            seen.add(place(site))
            record = dict(laboratory.attempt(site, times, options), index=index, **drawn_by)
            with laboratory.records.open("a") as file:
                file.write(json.dumps(record) + "\n")
            tried += record["outcome"] in ("killed", "survived")
            print(f"{tried} {record['outcome']} {record.get('by')}: {record['file']}:{record['line']}: {record['before'].strip()} -> "
                  f"{record['after'].strip()}", flush=True)
        index += 1
    return report(read_records(laboratory.records))


main()
