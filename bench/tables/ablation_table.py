#!/usr/bin/env python3
"""The tables of the ablations, from the records that ablations.sh keeps.

  bench/tables/ablation_table.py depth
"""
import argparse
import csv
import os

from runs import RECORDS, print_table

SWEEPS = {  # the keys that are columns; the others follow from them
    "depth": ["mixer.type", "repeat"], "parts": ["mixer.local", "mixer.global"], "chunk": ["mixer.chunk"],
    "kernel": ["mixer.kernel"], "seeds": ["seed"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sweep", choices=SWEEPS)
    name = parser.parse_args().sweep
    with open(os.path.join(RECORDS, f"ablation-{name}.csv")) as file:
        runs = sorted(csv.DictReader(file), key=lambda run: float(run["valid_loss"]))
    keys = [key if key == "seed" else f"model.layers.0.{key}" for key in SWEEPS[name]]
    print_table([*(key.removeprefix("mixer.") for key in SWEEPS[name]),
                 "validation loss", "bits per byte", "steps", "seconds", "MB"],
                [[*(run[key] for key in keys), f"{float(run['valid_loss']):.3f}",
                  f"{float(run['valid_loss']) / 0.6931472:.3f}", run["step"], f"{float(run['seconds']):.0f}",
                  f"{float(run['peak_rss_mb']):.0f}"] for run in runs])


if __name__ == "__main__":
    main()
