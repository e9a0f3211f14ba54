#!/usr/bin/env python3
"""Every system as a language model for the same time on one core, with the best of some learning rates; or AdamW beside Muon.

  bench/tables/equal_time.py DATA [--sets enwiki,wikitext-2,tinyshakespeare] [--scale 1] [--out equal_time.jsonl] [--work runs/tables]
  bench/tables/equal_time.py DATA --optimizers adamw,muon --seeds 1,2,3     flash with each optimizer, three times as many rates

Ten minutes for enwiki_xml (bytes, with hashed n-grams) and WikiText-2 (pieces of words), five for tinyshakespeare (characters). Models are those
of configs/compare, about 1 M parameters besides the embedding; a step has 2,048 tokens in all sets. The learning rate of each is the best on
validation in runs of a fifth of the time. Two runs at a time, one on each core, so that all are disturbed alike. --scale
shortens all runs, to try the script.
"""
import argparse
import gzip
import os
import shutil
import statistics

from runs import SYSTEMS, Grid, add_grid_options, config, print_table

RATES = ["1e-3", "2e-3", "4e-3"]
SETS = {"enwiki": (10, "bits_per_byte"), "wikitext-2": (10, "word_perplexity"), "tinyshakespeare": (5, "loss")}
OPTIMIZERS = {"adamw": ["train.optimizer={type: adamw, beta2: 0.99, weight_decay: 0.1}"], "muon": ["train.optimizer={type: muon, adamw: {beta2: 0.99}}"]}


def text_settings(data, name, work):
    if name == "enwiki":
        return [f"data.train=[{data}/enwiki_xml/enwiki_head_2016.xml.gz]"]
    if name == "tinyshakespeare":
        return [f"data.train=[{data}/tinyshakespeare/input.txt]", "train.batch_size=4"]
    train = f"{work}/wiki.train.tokens"
    if not os.path.exists(train):
        with gzip.open(f"{data}/wikitext-2/wiki.train.tokens.gz") as packed, open(train + ".part", "wb") as file:
            shutil.copyfileobj(packed, file)
        os.rename(train + ".part", train)
    return [f"data.train=[{train}]", *(f"data.{split}=[{data}/wikitext-2/wiki.{split}.tokens]" for split in ("valid", "test"))]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--systems", default=",".join(SYSTEMS))
    parser.add_argument("--optimizers", help="in place of the systems")
    parser.add_argument("--seeds", default="1")
    parser.add_argument("--scale", type=float, default=1)
    add_grid_options(parser, "equal_time.jsonl")
    options = parser.parse_args()
    grid = Grid(options.out, options.work, options.jobs)
    data = os.path.abspath(options.data)
    systems, seeds = (options.optimizers or options.systems).split(","), options.seeds.split(",")
    rates = RATES + (["8e-3", "1.6e-2", "3.2e-2"] if options.optimizers else [])

    def run(name, text, system, lr, minutes, seed):
        case = {"table": "equal time", "set": name, "system": system, "lr": lr, "minutes": round(minutes * options.scale, 4)}
        case |= {"seed": seed} if seed != "1" else {}
        settings = text + OPTIMIZERS.get(system, []) + [
            f"seed={seed}", f"train.lr={lr}", "train.steps=0", "train.epochs=0", f"train.minutes={case['minutes']}", "train.valid_every=0"]
        splits = ("valid",) if minutes < SETS[name][0] or name == "tinyshakespeare" else ("valid", "test")
        files = [f"compare/{name}.yaml", f"compare/tiny-{'flash' if system in OPTIMIZERS else system}.yaml"]
        return grid.run(case, map(config, files), settings, splits=splits)

    def measured(cell):
        name, text, system = cell
        minutes = SETS[name][0]
        trials = [run(name, text, system, lr, minutes / 5, "1") for lr in rates]
        best = min(trials, key=lambda result: result["valid"]["loss"])
        return [run(name, text, system, best["lr"], minutes, seed) for seed in seeds], best["lr"]

    for name in options.sets.split(","):
        minutes, measure = SETS[name]
        text = text_settings(data, name, grid.work)  # unpacked once, before runs that share it
        found = grid.each(measured, [(name, text, system) for system in systems])
        print(f"\n{name}, {minutes * options.scale:g} minutes\n")
        split = "valid" if name == "tinyshakespeare" else "test"
        mean = lambda results, split, measure: statistics.mean(result[split][measure] for result in results)
        rows = sorted(zip(systems, found), key=lambda row: mean(row[1][0], split, measure))
        print_table(["system", "lr", "validation loss", f"{split}, {measure.replace('_', ' ')}", "steps", "seconds", "MB"],
                    [[system, lr, f"{mean(results, 'valid', 'loss'):.4f}", f"{mean(results, split, measure):#.4g}", results[0]["steps"],
                      f"{results[0]['seconds']:.0f}", f"{results[0]['rss_mb']:.0f}"] for system, (results, lr) in rows])


if __name__ == "__main__":
    main()
