"""Where the lines of the log go: to standard error, to an observer, or nowhere."""
import contextlib
import sys

from . import _capstan

_stack = []  # observers of the calls that run, the innermost last; a line goes to the last one


def _default(level, line):
    print(line if level == "info" else f"{level}: {line}", file=sys.stderr, flush=True)


def _send(level, line):
    (_stack[-1] if _stack else _default)(level, line)


@contextlib.contextmanager
def observed(on_log=None, quiet=False):
    """While it lives, lines go to on_log(level, line); with `quiet`, only warnings and errors are printed."""

    def quietly(level, line):
        if level != "info":
            _default(level, line)

    observer = on_log or (quietly if quiet else _default)
    _stack.append(observer)
    try:
        yield
    finally:
        _stack.remove(observer)


_capstan.send_log_to(_send)
