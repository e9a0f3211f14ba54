"""What the figures were taken on, for the head of every table."""

import os
import platform
import subprocess
from datetime import datetime, timezone
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SHOWN_FLAGS = ("avx2", "avx512f", "avx512_bf16", "amx_bf16")


def output_of(*command):
    try:
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def cpu_field(name):
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith(name):
            return line.split(":", 1)[1].strip()
    return "unknown"


def machine():
    flags = cpu_field("flags").split()
    changed = output_of("git", "status", "--porcelain", "--untracked-files=no")
    return {"date": datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
            "cpu": f"{cpu_field('model name')}, family {cpu_field('cpu family')} model {cpu_field('model')}",
            "instructions": [flag for flag in SHOWN_FLAGS if flag in flags],
            "cpus": len(os.sched_getaffinity(0)),
            "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1),
            "kernel": platform.release(),
            "commit": output_of("git", "rev-parse", "--short", "HEAD") + (" with changes" if changed else ""),
            "load_at_start": os.getloadavg()[0]}


def is_busy(facts):
    """Somebody else works on this machine: ratios may still hold, times do not."""
    return facts["load_at_start"] > 0.5
