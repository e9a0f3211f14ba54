"""Makes a compile_commands.json for clang-tidy out of GCC's: lint_database.py FROM TO

One entry per source, the first: sources of both precisions are read as float. Without precompiled headers and flags that only GCC
knows. Sources that the build joins in one file of its build folder get an entry each.
"""
import json
import re
import shlex
import sys
from pathlib import Path

GCC_ONLY = ("-mmove-max=", "-mstore-max=", "-Wno-maybe-uninitialized", "-Winvalid-pch", "-Werror")


def for_clang(command):
    words = iter(shlex.split(command))
    for word in words:
        if word == "-include":
            next(words)
        elif not word.startswith(GCC_ONLY):
            yield word


def sources(entry, build):
    """The source that `entry` compiles; of one in the build folder, those that it includes."""
    file = Path(entry["file"])
    if build not in file.parents:
        return [str(file)]
    return re.findall(r'^#include "(/[^"]*\.cpp)"', file.read_text(), re.MULTILINE) if file.exists() else []


def main(source, target):
    entries = {}
    for entry in json.loads(Path(source).read_text()):
        for name in sources(entry, Path(source).resolve().parent):
            arguments = [name if word == entry["file"] else word for word in for_clang(entry["command"])]
            entries.setdefault(name, {"directory": entry["directory"], "file": name, "arguments": arguments})
    Path(target).write_text(json.dumps(list(entries.values()), indent=0))


main(*sys.argv[1:])
