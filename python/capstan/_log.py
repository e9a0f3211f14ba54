"""Where the lines of the log go: to an observer, to Python's logging, or to standard error."""
import contextlib
import logging
import re
import sys
import threading

from . import _capstan

_here = threading.local()
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
    try:
        (_stack[-1] if _stack else _default)(level, line)
    finally:
        _here.observes = False


def observes():
    """Whether this is the thread of a training that waits for on_log()."""
    return getattr(_here, "observes", False)


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
    """A bar of tqdm where people see it, in a terminal or a notebook, and tqdm is installed; else None."""
    if not sys.stderr.isatty() and "ipykernel" not in sys.modules:
        return None
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return None
    return _Bar(tqdm)


class _Bar:
    """Shows lines like "[=====     ]  52% training : ETA 3m : ..."."""

    def __init__(self, tqdm):
        self._tqdm, self._shown = tqdm, None

    def show(self, line):
        found = re.match(r"\[.*?\] *(\d+)% +(.*)", line)
        if not found:
            if self._shown is not None:
                self._shown.close()
            self._shown = None
            return
        if self._shown is None:
            self._shown = self._tqdm(total=100, leave=False, file=sys.stderr, bar_format="{percentage:3.0f}%|{bar:10}| {desc}")
        self._shown.n = int(found[1])
        self._shown.set_description_str(found[2])

    def write(self, level, line):
        self._tqdm.write(line if level == "info" else f"{level}: {line}", file=sys.stderr)


_capstan.send_log_to(_send)
