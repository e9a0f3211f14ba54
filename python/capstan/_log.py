"""Where the lines of the log go: to an observer, to Python's logging, or to standard error."""
import contextlib
import html
import logging
import re
import shutil
import sys
import threading

from . import _capstan

_here = threading.local()
_changes: list = []  # what renamed() says of lines
_stack: list = []  # observers of the calls that run, the innermost last; a line goes to the last one


_logger = logging.getLogger("capstan")


def _configured():
    """Whether the program has said what it wants of the logger "capstan": a level or handlers of its own, or a root that
    shows such lines."""
    return bool(_logger.handlers or _logger.level or (_logger.hasHandlers() and _logger.isEnabledFor(logging.INFO)))


def _default(level, line):
    if _configured():
        _logger.log(getattr(logging, level.upper()), line)
    else:
        print(line if level == "info" else f"{level}: {line}", file=sys.stderr, flush=True)


def _send(level, line):
    _here.observes = True
    for change in list(_changes):
        line = change(line)
    try:
        (_stack[-1] if _stack else _default)(level, line)
    finally:
        _here.observes = False


def observes():
    """Whether this is the thread of a training that waits for on_log()."""
    return getattr(_here, "observes", False)


@contextlib.contextmanager
def renamed(change):
    """While it lives, change(line) is sent instead of a line."""
    _changes.append(change)
    try:
        yield
    finally:
        _changes.remove(change)


@contextlib.contextmanager
def observed(on_log=None, quiet=False):
    """While it lives, lines go to on_log(level, line); with `quiet`, only warnings and errors are printed."""

    def quietly(level, line):
        if level in ("warning", "error"):
            _default(level, line)

    bar = None if on_log or quiet else _bar()
    observer = on_log or (quietly if quiet else bar.write if bar else _default)
    _stack.append(observer)
    _capstan.set_log_level("debug" if _configured() and _logger.isEnabledFor(logging.DEBUG) else "info")
    _capstan.show_progress_with(bar.show if bar else None)
    try:
        yield
    finally:
        _capstan.show_progress_with(None)
        _stack.remove(observer)
        if bar:
            bar.show("")


def _bar():
    """A bar where people see it, in a notebook or a terminal; else None."""
    if "ipykernel" in sys.modules:
        return _NotebookBar()
    return _TerminalBar() if sys.stderr.isatty() else None


class _TerminalBar:
    """Shows lines like "[=====     ]  52% training : ETA 3m : ..." below those of the log."""

    _shown = ""

    def show(self, line):
        self._shown = line[:shutil.get_terminal_size().columns - 1]
        self._print()

    def write(self, level, line):
        self._print(line if level == "info" else f"{level}: {line}")

    def _print(self, above=None):
        print("\r\x1b[K" + ("" if above is None else above + "\n") + self._shown, end="", file=sys.stderr, flush=True)


class _NotebookBar:
    """The same below a cell."""

    def __init__(self):
        from IPython.display import HTML, display

        self._html, self._display = HTML, display
        self._handle = None

    def show(self, line):
        found = re.match(r"\[.*?\] *(\d+)% +(.*)", line)
        text = f'<progress value="{found[1]}" max="100"></progress> {found[1]} % {html.escape(found[2])}' if found else ""
        if self._handle is not None:
            self._handle.update(self._html(text))
        elif found:
            self._handle = self._display(self._html(text), display_id=True)
        if not found:
            self._handle = None

    write = staticmethod(_default)


_capstan.send_log_to(_send)
