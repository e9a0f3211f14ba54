#!/usr/bin/env python3
"""The README's picture of speed over length, from the table `length`: bench/picture.py bench/results/length.json docs/pictures/length.svg

One line per system: tokens per second, forward and backward, of one block over texts of growing length, their number of tokens
together the same. Both axes are logarithmic. The colours suit a light and a dark page."""

import json
import math
import sys

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 560, 400, 40, 96, 44, 54  # small, so that a phone can show the letters
COLOURS = {"aft-simple": "#1b7f79", "aft-local": "#3a9d5d", "aft-conv": "#86a93b", "aft-full": "#b7791f", "fastformer": "#2f6fbf",
           "flash": "#7a4fc4", "gau": "#c4508b", "attention": "#d1383d"}
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


def picture(lines):
    lengths = sorted({length for points in lines.values() for length, _ in points})
    speeds = [speed for points in lines.values() for _, speed in points]
    low, high = math.log10(min(speeds) / 1.2), math.log10(max(speeds) * 1.2)

    def x(length):
        return LEFT + (math.log2(length / lengths[0]) / math.log2(lengths[-1] / lengths[0])) * (WIDTH - LEFT - RIGHT)

    def y(speed):
        return TOP + (high - math.log10(speed)) / (high - low) * (HEIGHT - TOP - BOTTOM)

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">', f"<style>{STYLE}</style>",
             "<title>Tokens per second over the length of a text, eight systems</title>",
             f'<text class="title" x="{LEFT}" y="22">Training one block: thousand tokens/s over length</text>']
    ticks = [m * 10**e for e in range(int(low) - 1, int(high) + 2) for m in (1, 2, 5) if low <= math.log10(m * 10**e) <= high]
    for tick in ticks:
        parts.append(f'<path class="grid" d="M{LEFT} {y(tick):.1f}H{WIDTH - RIGHT}"/>'
                     f'<text x="{LEFT - 8}" y="{y(tick) + 4:.1f}" text-anchor="end">{tick / 1000:g}</text>')
    for length in lengths:
        parts.append(f'<path class="grid" d="M{x(length):.1f} {TOP}V{HEIGHT - BOTTOM}"/>'
                     f'<text x="{x(length):.1f}" y="{HEIGHT - BOTTOM + 20}" text-anchor="middle">{length:,}</text>')
    parts.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 8}" text-anchor="middle">tokens per text</text>')
    last = sorted(lines, key=lambda system: y(lines[system][-1][1]))
    for system, height in zip(last, spread([y(lines[system][-1][1]) for system in last])):
        colour = COLOURS[system]
        path = " ".join(f"{x(length):.1f},{y(speed):.1f}" for length, speed in lines[system])
        parts.append(f'<polyline class="line" stroke="{colour}" points="{path}"/>'
                     f'<text x="{WIDTH - RIGHT + 8}" y="{height + 4:.1f}" style="fill:{colour}">{system}</text>')
    return "\n".join(parts + ["</svg>"]) + "\n"


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with open(sys.argv[2], "w", encoding="utf-8") as out:
        out.write(picture(read(sys.argv[1])))


if __name__ == "__main__":
    main()
