#!/usr/bin/env python3
"""The README's picture of speed over length, from the table `length`: bench/picture.py bench/results/length.json docs/pictures/length.svg

Scripts of bench/tables draw with chart(), too. One line per system: tokens per second, forward and backward, of one block over texts of growing length, their number of tokens
together the same. Both axes are logarithmic. The colours suit a light and a dark page."""

import json
import math
import sys

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 560, 400, 56, 96, 44, 54  # small, so that a phone can show the letters
COLOURS = {"aft-simple": "#1b7f79", "aft-local": "#3a9d5d", "aft-conv": "#86a93b", "aft-full": "#b7791f", "fastformer": "#2f6fbf",
           "flash": "#7a4fc4", "gau": "#c4508b", "attention": "#d1383d"}
OTHERS = ["#1b7f79", "#2f6fbf", "#d1383d", "#b7791f", "#7a4fc4"]  # of lines that are no system
LABEL_DISTANCE = 17  # at least so many pixels between two names

STYLE = """
  text { font: 14px system-ui, sans-serif; fill: #333 } .title { font-size: 16px; font-weight: 600 }
  .grid { stroke: #8884; stroke-width: 1 } .line { fill: none; stroke-width: 2.2 }
  @media (prefers-color-scheme: dark) { text { fill: #ddd } }
"""


def read(path):
    """{system: [(length, tokens per second), ...]} of both passes."""
    lines = {}
    with open(path, encoding="utf-8") as file:
        for result in json.load(file)["results"]:
            case = result["case"]
            if case["work"] == "both":
                lines.setdefault(case["system"], []).append((case["length"], result["capstan"]["tokens_per_second"]))
    return {system: sorted(points) for system, points in lines.items()}


def spread(wanted):
    """Heights as near to the wanted ones as their distance allows, top to bottom."""
    placed = []
    for height in sorted(wanted):
        placed.append(max(height, placed[-1] + LABEL_DISTANCE) if placed else height)
    overshoot = max(0, placed[-1] - (HEIGHT - BOTTOM))
    for i in range(len(placed) - 1, -1, -1):
        limit = HEIGHT - BOTTOM if i == len(placed) - 1 else placed[i + 1] - LABEL_DISTANCE
        placed[i] = min(placed[i], limit) if overshoot else placed[i]
    return placed


def steps(low, high, most=7):
    """Round numbers from low to high, at most so many."""
    size = 10.0 ** math.floor(math.log10((high - low) / most))
    size *= next(factor for factor in (1, 2, 5, 10) if (high - low) / (size * factor) <= most)
    return [size * i for i in range(math.ceil(low / size), math.floor(high / size) + 1)]


def powers(low, high):
    """1, 2 and 5 times powers of ten from low to high."""
    return [m * 10**e for e in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1) for m in (1, 2, 5) if low <= m * 10**e <= high]


def chart(title, across, lines, logarithmic="", unit=1):
    """An SVG of {name: [(x, y), ...]}, each line with its name at its end; `across` is the name of x. `logarithmic` names the
    axes that are: "", "x", or "xy" with a mark at every x; y is shown in so many of its units."""
    xs, ys = ([point[i] for points in lines.values() for point in points] for i in (0, 1))
    scale_x, scale_y = (math.log if axis in logarithmic else float for axis in "xy")
    room = 0.05 * (max(ys) - min(ys))
    low, high = (min(ys) / 1.2, max(ys) * 1.2) if "y" in logarithmic else (min(ys) - room, max(ys) + room)
    rows = powers(low, high) if "y" in logarithmic else steps(low, high)
    left, right = (min(xs) if "x" in logarithmic else 0), max(xs)
    columns = steps(0, right) if "x" not in logarithmic else sorted(set(xs)) if logarithmic == "xy" else powers(left, right)

    def x(value):
        return LEFT + (scale_x(value) - scale_x(left)) / (scale_x(right) - scale_x(left)) * (WIDTH - LEFT - RIGHT)

    def y(value):
        return TOP + (scale_y(high) - scale_y(value)) / (scale_y(high) - scale_y(low)) * (HEIGHT - TOP - BOTTOM)

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">', f"<style>{STYLE}</style>",
             f"<title>{title}</title>", f'<text class="title" x="{LEFT}" y="22">{title}</text>']
    for tick in rows:
        parts.append(f'<path class="grid" d="M{LEFT} {y(tick):.1f}H{WIDTH - RIGHT}"/>'
                     f'<text x="{LEFT - 8}" y="{y(tick) + 4:.1f}" text-anchor="end">{tick / unit:g}</text>')
    for column in columns:
        parts.append(f'<path class="grid" d="M{x(column):.1f} {TOP}V{HEIGHT - BOTTOM}"/>'
                     f'<text x="{x(column):.1f}" y="{HEIGHT - BOTTOM + 20}" text-anchor="middle">{column:,g}</text>')
    parts.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 8}" text-anchor="middle">{across}</text>')
    last = sorted(lines, key=lambda name: y(lines[name][-1][1]))
    others = iter(OTHERS)
    for name, height in zip(last, spread([y(lines[name][-1][1]) for name in last])):
        colour = COLOURS.get(name) or next(others)
        parts += [f'<circle cx="{x(a):.1f}" cy="{y(b):.1f}" r="2.5" fill="{colour}"/>' for a, b in lines[name]]
        path = " ".join(f"{x(a):.1f},{y(b):.1f}" for a, b in lines[name])
        parts.append(f'<polyline class="line" stroke="{colour}" points="{path}"/>'
                     f'<text x="{WIDTH - RIGHT + 8}" y="{height + 4:.1f}" style="fill:{colour}">{name}</text>')
    return "\n".join(parts + ["</svg>"]) + "\n"


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with open(sys.argv[2], "w", encoding="utf-8") as out:
        out.write(chart("Training one block: thousand tokens/s over length", "tokens per text", read(sys.argv[1]), logarithmic="xy", unit=1000))


if __name__ == "__main__":
    main()
