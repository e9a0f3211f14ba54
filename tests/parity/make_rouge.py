"""Makes fixtures/rouge.jsonl: 200 pairs of texts with the numbers of the package rouge-score 0.1.2.

Run: /path/to/python-with-rouge-score tests/parity/make_rouge.py
"""

import json
import random
from pathlib import Path

from rouge_score import rouge_scorer

WORDS = ["the", "tape", "turns", "Drum", "WIRE", "runs", "out,", "slow", "ship's", "rope", "x2", "42", "3.5", "café",
         "naïve", "\u212aelvin", "\u0130stanbul", "well-known", "(home)", "—", "U.S.", "straße", "日本", "a_b", "...", "\t"]
KINDS = ("rouge1", "rouge2", "rougeL")


def text(stream, longest):
    return " ".join(stream.choice(WORDS) for _ in range(stream.randrange(longest + 1)))


def changed(stream, reference):
    """The reference with words left out, doubled, replaced and moved."""
    words = reference.split(" ")
    for _ in range(stream.randrange(len(words) + 1)):
        at = stream.randrange(len(words))
        words[at:at + 1] = stream.choice([[], [words[at]] * 2, [stream.choice(WORDS)], [words[at].upper()]])
        if not words:
            break
        if stream.random() < 0.3:
            words.insert(stream.randrange(len(words) + 1), words.pop(stream.randrange(len(words))))
    return " ".join(words)


def main():
    stream = random.Random(7)
    scorer = rouge_scorer.RougeScorer(KINDS, use_stemmer=False)
    lines = []
    for i in range(200):
        reference = text(stream, 30)
        prediction = text(stream, 30) if i % 4 == 0 else changed(stream, reference)
        scores = scorer.score(reference, prediction)
        numbers = {kind: [scores[kind].precision, scores[kind].recall, scores[kind].fmeasure] for kind in KINDS}
        lines.append(json.dumps({"reference": reference, "prediction": prediction, **numbers}, ensure_ascii=False))
    path = Path(__file__).parent / "fixtures" / "rouge.jsonl"
    path.write_text("\n".join(lines) + "\n")
    print(f"{path}: {len(lines)} pairs, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
