#!/usr/bin/env python3
"""The pictures of the documents, by matplotlib: a line for each value of a column.

  bench/picture.py OUT.svg FILE --x COLUMN --y COLUMN --line COLUMN [--title TEXT] [--log x|y|xy]

FILE has a line of JSON for each point (bench/timing.py --out, bench/tables/records), with columns of nested ones as case.length, or is a
table of `capstan compare RUN ... --format csv`. A column may also be the end of its name, such as mixer.window. Of several points at the
same x, the mean. Examples:

  bench/picture.py docs/pictures/length.svg length.jsonl --x case.length --y tokens_per_second --line case.system --log xy
  bench/picture.py docs/pictures/many-texts.svg bench/tables/records/many_texts.jsonl --x cpu_seconds --y accuracy --line kind --log x
  build/release/capstan compare runs/recall/* --format csv >recall.csv && bench/picture.py recall.svg recall.csv --x pairs --y accuracy --line type
"""
import argparse
import csv
import json
import statistics

COLOURS = {"aft-simple": "#1b7f79", "aft-local": "#3a9d5d", "aft-conv": "#86a93b", "aft-full": "#b7791f", "fastformer": "#2f6fbf",
           "flash": "#7a4fc4", "gau": "#c4508b", "attention": "#d1383d"}


def flat(record, prefix=""):
    for key, value in record.items():
        if isinstance(value, dict):
            yield from flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def derived(record):
    """What timing.py and classifiers.py do not write as such."""
    if "sides" in record:
        record["tokens_per_second"] = record["tokens"] / statistics.median(next(iter(record["sides"].values())))
    if "method" in record:
        word = record["method"].split()[0]
        record["kind"] = {"words": "linear", "classify.yaml": "linear"}.get(word, word if word in ("fastText", "SGD", "SVM") else "blocks")
    return record


def read(path):
    with open(path, encoding="utf-8") as file:
        if path.endswith(".csv"):
            return list(csv.DictReader(file))
        return [dict(flat(derived(json.loads(line)))) for line in file]


def value(row, column):
    return row[column] if column in row else next(row[name] for name in row if name.endswith("." + column))


def chart(out, title, across, up, lines, logarithmic=""):
    """An SVG of {name: [(x, y), ...]}, each line with its name at its end."""
    import matplotlib
    matplotlib.use("svg")
    from matplotlib import pyplot
    figure, axes = pyplot.subplots(figsize=(5.6, 4), layout="constrained")
    for name, points in lines.items():
        line, = axes.plot(*zip(*sorted(points)), marker=".", color=COLOURS.get(name))
        axes.annotate(name, max(points), xytext=(6, 0), textcoords="offset points", color=line.get_color(), va="center")
    axes.set(title=title, xlabel=across, ylabel=up, xscale="log" if "x" in logarithmic else "linear", yscale="log" if "y" in logarithmic else "linear")
    axes.margins(x=0.2)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.3)
    figure.savefig(out, transparent=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("file")
    for name in ("x", "y", "line"):
        parser.add_argument(f"--{name}", required=True, metavar="COLUMN")
    parser.add_argument("--title", default="")
    parser.add_argument("--log", default="")
    options = parser.parse_args()
    found = {}
    for row in read(options.file):
        points = found.setdefault(str(value(row, options.line)), {})
        points.setdefault(float(value(row, options.x)), []).append(float(value(row, options.y)))
    lines = {name: [(x, statistics.mean(ys)) for x, ys in points.items()] for name, points in found.items()}
    chart(options.out, options.title, options.x, options.y, lines, options.log)


if __name__ == "__main__":
    main()
