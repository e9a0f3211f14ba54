#!/usr/bin/env python3
"""All systems on the sentence sets of Kim 2014 (arXiv 1408.5882), beside its figures and configs/classify.yaml.

  bench/tables/sentence_sets.py DATA [--classify FILE] [--out FILE] [--work runs/tables] [--seeds 1,2,3]

MR, Subj, CR and MPQA: ten folds and the first seed, mean and deviation over folds; SST-1 and TREC: their test sets and all seeds, mean and
deviation over seeds. Every system is one block (gau and flash: two units) of width 64 with
n-grams beside it, configs/trec.yaml with configs/compare/block-*.yaml, from random weights. The figures of classify.yaml are taken
from the results of classify.py.
"""
import argparse
import os
import statistics

from labelled_sets import SETS, read_results, split, write
from runs import RECORDS, SYSTEMS, Grid, add_grid_options, config, print_table

KIM = {"mr": (0.761, 0.815), "sst1": (0.450, 0.480), "subj": (0.896, 0.934), "trec": (0.912, 0.936), "cr": (0.798, 0.843),
       "mpqa": (0.834, 0.895)}  # CNN-rand, CNN-non-static


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--classify", default=os.path.join(RECORDS, "classify.jsonl"), help="results of classify.py")
    parser.add_argument("--sets", default=",".join(KIM))
    parser.add_argument("--systems", default=",".join(SYSTEMS))
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--folds", type=int, default=10)
    add_grid_options(parser, "sentence_sets.jsonl")
    options = parser.parse_args()
    grid = Grid(options.out, options.work, options.jobs)
    systems, seeds = options.systems.split(","), [int(seed) for seed in options.seeds.split(",")]

    def run(cell):
        name, fold, system, seed = cell
        files = [f"{grid.work}/{name}-{fold}-{part}.tsv" for part in ("train", "test")]
        for path, pairs in zip(files, split(options.data, name, fold)):
            if not os.path.exists(path):
                write(f"{path}.{system}.part", pairs)
                os.rename(f"{path}.{system}.part", path)
        recipe = [config("trec.yaml")] + ([] if system == "aft-simple" else [config(f"compare/block-{system}.yaml")])
        case = {"table": "sentence sets", "set": name, "fold": fold, "system": system, "seed": seed}
        return grid.run(case, recipe, [f"data.train=[{files[0]}]", f"data.test=[{files[1]}]", f"seed={seed}"], splits=("test",))

    names = options.sets.split(",")
    has_folds = {name: isinstance(SETS[name], str) for name in names}
    cells = [(name, fold, system, seed) for name in names for fold in range(options.folds if has_folds[name] else 1)
             for seed in (seeds[:1] if has_folds[name] else seeds) for system in systems]
    found = dict(zip(cells, grid.each(run, cells)))

    def shown(values):
        return f"{statistics.mean(values):.4f}" + (f" ± {statistics.stdev(values):.4f}" if len(values) > 1 else "")

    rows = []
    for name in names:
        row = [name]
        for system in systems:
            row.append(shown([found[c]["test"]["accuracy"] for c in cells if c[0] == name and c[2] == system]))
        recipe = [r["accuracy"] for r in read_results(options.classify)
                  if r["set"] == name and r["size"] == "all" and r["method"] == "classify.yaml" and r["fold"] < options.folds
                  and r["seed"] in (seeds[:1] if has_folds[name] else seeds)]
        row.append(shown(recipe) if recipe else "")
        rows.append(row + list(KIM[name]) + [f"{max(found[c]['seconds'] for c in cells if c[0] == name):.0f}",
                                             f"{max(found[c]['rss_mb'] for c in cells if c[0] == name):.0f}"])
    print_table(["data set", *systems, "classify.yaml", "Kim, rand", "Kim, non-static", "longest run, s", "MB"], rows)


if __name__ == "__main__":
    main()
