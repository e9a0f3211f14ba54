"""Makes a compile_commands.json for clang-tidy out of GCC's: lint_database.py FROM TO

One entry per source, the first: sources of both precisions are read as float. Without the flags that only GCC knows.
"""
import json
import shlex
import sys
from pathlib import Path

GCC_ONLY = ("-mmove-max=", "-mstore-max=", "-Wno-maybe-uninitialized", "-Werror")


def main(source, target):
    entries = {}
    for entry in json.loads(Path(source).read_text()):
        arguments = [word for word in shlex.split(entry["command"]) if not word.startswith(GCC_ONLY)]
        entries.setdefault(entry["file"], {"directory": entry["directory"], "file": entry["file"], "arguments": arguments})
    Path(target).parent.mkdir(exist_ok=True)
    Path(target).write_text(json.dumps(list(entries.values()), indent=0))


main(*sys.argv[1:])
