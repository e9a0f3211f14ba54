"""Chromium shows reports of all kinds of runs at 1280 and 400 pixels, light and dark: all can be read, nothing overlaps.

    python tests/interop/report_pages.py [FOLDER]      (leaves pictures in the folder)

Needs the Python package selenium, chromium and chromium-driver of Debian, and a built program; says so and skips
otherwise.
"""

import pathlib
import subprocess
import sys

from browser import VIEWS, check_logs, check_view, picture, started_browser, view
from sample_run import PROGRAM, SampleRun

WORDS = {"food": ["bread", "cheese", "soup"], "money": ["bank", "bond", "stock"], "sport and other news": ["ball", "goal", "team"]}
BLOCKS = """data: {type: labelled, train: [rows.tsv], valid_fraction: 0.2, tokenizer: {type: word, min_count: 1}}
model: {type: text-classifier, width: 16, max_length: 32, layers: [{mixer: attention, feed_forward: {type: gelu, expansion: 2}}]}
train: {epochs: 3, batch_size: 16, lr: 0.01, valid_every: 10}
"""
PAIRS = """data: {type: pairs, train: [pairs.tsv], valid_fraction: 0.2, max_length: 24, max_source: 8, tokenizer: word}
model: {type: language-model, prefix: bidirectional, width: 32, max_length: 24, positions: learned,
        layers: [{mixer: {type: gau, key_dim: 16, position_bias: rotary}, feed_forward: {type: none}, norm: scale}]}
train: {steps: 40, batch_size: 8, lr: 5e-3, valid_every: 20}
"""
# Opens what is folded, also what that has in it. The page fills a part when it is opened.
OPEN_ALL = """
const done = arguments[0];
let opened = -1;
const open = () => {
  const parts = document.querySelectorAll("details");
  for (const part of parts) part.open = true;
  if (parts.length === opened) return done();
  opened = parts.length;
  setTimeout(open, 50);
};
open();
"""
LINEAR = str(pathlib.Path(__file__).resolve().parents[2] / "configs" / "classify.yaml")
# Of each report: its runs, each with a configuration and what is set.
REPORTS = {
    "language-models": {"sample": ("run.yaml", ["train.steps=30"]), "other": ("run.yaml", ["train.steps=30", "seed=2"])},
    "blocks": {"blocks": ("blocks.yaml", [])},
    "linear": {"linear": (LINEAR, ["data.train=[rows.tsv]", "data.test=[]"])},
    "pairs": {"pairs": ("pairs.yaml", [])},
    "multi-label": {"topics": ("blocks.yaml", ["data.train=[topics.tsv]", "data.multi_label=true", "train.monitor=micro-f1"])},
    "multi-label-linear": {"topics-linear": (LINEAR, ["data.train=[topics.tsv]", "data.test=[]", "data.multi_label=true",
                                                      "train.monitor=micro-f1"])},
}


def write_data(place):
    names = list(WORDS)
    rows, topics, pairs = [], [], []
    for i in range(200):
        first, second = names[i % 3], names[i // 3 % 3]
        text = f"the {WORDS[first][i // 9 % 3]} of day {i % 31} and the {WORDS[second][i // 27 % 3]}"
        rows.append(f"{first}\t{text}\n")
        topics.append(f"{','.join(sorted({first, second}))}\t{text}\n")
        pairs.append(f"{text.split()[1]} {text.split()[-1]}\t{text.split()[-1]} {text.split()[1]}\n")
    for name, lines in (("rows.tsv", rows), ("topics.tsv", topics), ("pairs.tsv", pairs)):
        (place / name).write_text("".join(lines))
    (place / "blocks.yaml").write_text(BLOCKS)
    (place / "pairs.yaml").write_text(PAIRS)


def written_report(run, name):
    def capstan(*arguments):
        subprocess.run([str(PROGRAM), *arguments], cwd=run.place, check=True, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)

    for folder, (config, keys) in REPORTS[name].items():
        capstan("train", "--config", config, "--set", f"name={folder}", *keys)
    capstan("report", *(f"runs/{folder}" for folder in REPORTS[name]), "--output", name + ".html")
    return (run.place / f"{name}.html").as_uri()


def main():
    run = SampleRun()
    write_data(run.place)
    pictures = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else None
    browser = started_browser(run.place / "profile")
    try:
        for name in REPORTS:
            address = written_report(run, name)
            for width, scheme in VIEWS:
                view(browser, width, scheme)
                browser.get(address)
                browser.execute_async_script(OPEN_ALL)
                assert browser.execute_script("return document.querySelectorAll('main svg, main .figures, main .ngrams').length") > 1, name
                check_view(browser, (name, width, scheme))
                if pictures:
                    picture(browser, pictures / f"{name}-{width}-{scheme}.png")
            check_logs(browser, address, "no message at all")
        print(f"{len(REPORTS)} reports can be read at 1280 and 400 pixels, light and dark")
    finally:
        browser.quit()


if __name__ == "__main__":
    main()
