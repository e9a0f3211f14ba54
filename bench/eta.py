#!/usr/bin/env python3
"""How well a command says how long it will still take: reads the ETA that it shows on a terminal.

  bench/eta.py [--runs 5] COMMAND...      such as: bench/eta.py build/release/capstan train --config classify --set data.train=[train.tsv]

The command must do the same in each run: {run} in its words becomes 1, 2, ... Prints, for each run, the seconds that it took and the median
and largest error of the ETAs shown after a tenth of it, as a share of the time that was left and of the whole time. An ETA has whole
seconds, so those of the last 5 seconds do not count.
"""
import argparse
import fcntl
import os
import pty
import re
import statistics
import struct
import sys
import termios
import time


def seconds_of(text):
    return sum(int(amount) * {"d": 86400, "h": 3600, "m": 60, "s": 1}[unit] for amount, unit in re.findall(r"(\d+)([dhms])", text))


def watch(command):
    """The ETAs of one run with the times at which they were shown, and the time of its end."""
    started, shown = time.monotonic(), []
    child, terminal = pty.fork()
    if child == 0:
        os.execvp(command[0], command)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 160, 0, 0))
    while True:
        try:
            written = os.read(terminal, 65536).decode(errors="replace")
        except OSError:  # the end
            break
        if not written:
            break
        for eta in re.findall(r"ETA ((?:\d+[dhms])+)", written)[-1:]:
            shown.append((time.monotonic() - started, seconds_of(eta)))
    _, status = os.waitpid(child, 0)
    if status != 0:
        sys.exit(f"{' '.join(command)}: status {status}")
    return shown, time.monotonic() - started


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    print("run  seconds  ETAs  median of the rest  largest  median of the whole")
    for run in range(1, options.runs + 1):
        shown, end = watch([word.replace("{run}", str(run)) for word in options.command])
        late = [(abs(at + eta - end), end - at) for at, eta in shown if 0.1 * end <= at <= end - 5]
        if not late:
            print(f"{run:3}  {end:7.1f}  none: too short")
            continue
        of_rest = [error / rest for error, rest in late]
        print(f"{run:3}  {end:7.1f}  {len(late):4}  {statistics.median(of_rest):18.1%}  {max(of_rest):7.1%}  "
              f"{statistics.median(error / end for error, _ in late):19.1%}", flush=True)


if __name__ == "__main__":
    main()
