#!/usr/bin/env python3
"""Multi-query associative recall on a part of Zoology's grid (Arora et al. 2023, arXiv 2312.04927, figure 2), for all systems.

  bench/tables/mqar.py [--lengths 64,128] [--widths 64,128] [--short-conv 0,4] [--steps 2000] [--out mqar.jsonl] [--work runs/tables] [--jobs 2]

As there: (length, pairs) of (64, 4), (128, 8), (256, 16), (512, 64); vocabulary 8192, 100,000 training and 3,000 test sequences
(bench/data/recall.py writes them to datasets/, a line per question; fewer of more than 8 pairs), two
layers without feed-forward networks, one head, dropout 0.1 after the embedding, AdamW with weight decay 0.1, a filler of random tokens.
Other than there: --steps updates of the questions of 64 sequences instead of 64 epochs, and the upper two of the learning rates 1e-4, 4.6e-4, 2.2e-3 and
1e-2 (--rates), of which the best on validation counts; with 2,000 steps, 4.6e-4 was the worst of the upper three in 15 cells of (64, 4)
and width 64, and the best in none. Each system is run with and without a short convolution in front of the mixer (short_conv: 4). A
system that answers 99 % at one rate is not tried with further ones.
"""
import argparse
import os
import subprocess

from runs import ROOT, SYSTEMS, Grid, add_grid_options, config, print_table

PAIRS = {64: 4, 128: 8, 256: 16, 512: 64}
MIXERS = {"attention": "{type: attention, heads: 1}", "fastformer": "{type: fastformer, heads: 1}", "flash": "{type: flash, chunk: 32}"}


def sequences(length):
    """The folder with the questions of sequences of this length, written where it does not exist."""
    folder = os.path.join(ROOT, "datasets", f"mqar-{length}")
    if not os.path.exists(folder):
        train = min(100000, 800000 // PAIRS[length])
        subprocess.run([os.path.join(ROOT, "bench/data/recall.py"), "--out", folder + ".part", "--vocabulary", "8192", "--random-filler",
                        "--length", str(length), "--pairs", str(PAIRS[length]), "--train", str(train)], check=True)
        os.rename(folder + ".part", folder)
    return folder


def settings(case, steps):
    system, length, width = case["system"], case["length"], case["width"]
    mixer = MIXERS.get(system, f"{{type: {system}}}")
    files = [f"data.{split}=[{sequences(length)}/{split}.jsonl]" for split in ("train", "valid", "test")]
    return [*files, f"data.max_length={length}", f"train.batch_size={64 * PAIRS[length]}",
            f"model.max_length={length}", f"model.width={width}", "model.dropout=0.1",
            f"model.positions={'learned' if system == 'attention' else 'none'}",
            f"model.layers=[{{mixer: {mixer}, feed_forward: {{type: none}}, repeat: 2, short_conv: {case['short_conv']}}}]",
            f"train.steps={steps}", f"train.lr={case['lr']}", "train.schedule.warmup_steps=0",
            "train.schedule.warmup_fraction=0.1", f"train.valid_every={max(1, steps // 4)}"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lengths", default="64,128")
    parser.add_argument("--widths", default="64,128")
    parser.add_argument("--systems", default=",".join(SYSTEMS))
    parser.add_argument("--short-conv", default="0,4", help="widths of the convolution in front of the mixer; 0 is none")
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--rates", default="2.2e-3,1e-2", help="learning rates, in the order in which they are tried")
    add_grid_options(parser, "mqar.jsonl")
    options = parser.parse_args()
    grid = Grid(options.out, options.work, options.jobs)
    sizes = [(int(length), int(width)) for length in options.lengths.split(",") for width in options.widths.split(",")]
    systems = options.systems.split(",")

    for length, _ in sizes:
        sequences(length)  # before several threads ask for them

    def results(cell):
        """Of all learning rates that were tried."""
        system, short_conv, (length, width) = cell
        found = []
        for lr in options.rates.split(","):
            case = {"table": "mqar", "system": system, "short_conv": short_conv, "length": length, "width": width, "lr": lr,
                    "steps_given": options.steps}
            found.append(grid.run(case, [config("mqar.yaml")], settings(case, options.steps)))
            if found[-1]["valid"]["accuracy"] > 0.99:
                break
        return found

    short_convs = [int(width) for width in options.short_conv.split(",")]
    cells = [(system, short_conv, size) for size in sizes for system in systems for short_conv in short_convs]
    found = dict(zip(cells, grid.each(results, cells)))

    def row(system, short_conv):
        of_sizes = [found[system, short_conv, size] for size in sizes]
        best = [max(results, key=lambda result: result["valid"]["accuracy"]) for results in of_sizes]
        runs = sum(of_sizes, [])
        return [system, short_conv or "", *(f"{result['test']['accuracy']:.3f} ({result['lr']})" for result in best),
                f"{max(run['seconds'] for run in runs):.0f}", f"{max(run['rss_mb'] for run in runs):.0f}"]

    head = ["system", "short_conv"] + [f"({length}, {PAIRS[length]}), width {width}" for length, width in sizes]
    print_table(head + ["longest run, s", "MB"],
                [row(system, short_conv) for system in systems for short_conv in short_convs])


if __name__ == "__main__":
    main()
