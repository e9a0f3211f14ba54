"""Makes fixtures/label_metrics.json: 60 texts with 7 labels, and what scikit-learn 1.9.1 says of them.

Some texts have no label, some have all that occur; label 5 is never true, label 6 never true nor likely. Probabilities
are equal to each other and to thresholds in many places.

Run: /path/to/python-with-scikit-learn tests/parity/make_label_metrics.py
"""

import json
from pathlib import Path

import numpy as np
from sklearn.metrics import accuracy_score, f1_score, log_loss, precision_score, recall_score

TEXTS, LABELS = 60, 7


def example():
    stream = np.random.default_rng(11)
    truth = (stream.random((TEXTS, LABELS)) < [0.5, 0.4, 0.3, 0.2, 0.1, 0, 0]).astype(int)
    truth[0] = 0
    truth[1] = [1, 1, 1, 1, 1, 0, 0]
    guess = 0.5 + 0.35 * (2 * truth - 1) * stream.random(truth.shape) + 0.3 * (stream.random(truth.shape) - 0.5)
    probabilities = np.clip(np.round(guess, 2), 0.01, 0.99).astype(np.float32)
    probabilities[:, 6] = np.float32(0.004)
    probabilities[5] = np.float32(0.25)  # all equal
    return truth, probabilities


def precision_at(truth, probabilities, k):
    order = np.argsort(-probabilities, axis=1, kind="stable")[:, :k]
    return float(np.take_along_axis(truth, order, axis=1).mean())


def main():
    truth, probabilities = example()
    scores = []
    for level in range(1, 100):
        predicted = (probabilities >= np.float32(level / 100)).astype(int)
        options = {"zero_division": 0}
        scores.append({
            "threshold": level / 100,
            "micro_precision": precision_score(truth, predicted, average="micro", **options),
            "micro_recall": recall_score(truth, predicted, average="micro", **options),
            "micro_f1": f1_score(truth, predicted, average="micro", **options),
            "macro_f1": f1_score(truth, predicted, average="macro", **options),
            "accuracy": accuracy_score(truth, predicted),
            "label_precision": list(precision_score(truth, predicted, average=None, **options)),
            "label_recall": list(recall_score(truth, predicted, average=None, **options)),
            "label_f1": list(f1_score(truth, predicted, average=None, **options)),
        })
    wide = probabilities.astype(np.float64)
    content = {
        "truth": truth.tolist(),
        "probabilities": wide.tolist(),
        "log_loss": sum(log_loss(truth[:, c], wide[:, c], labels=[0, 1]) for c in range(LABELS)),
        "precision_at": {str(k): precision_at(truth, probabilities, k) for k in (1, 3, 5)},
        "scores": scores,
    }
    path = Path(__file__).parent / "fixtures" / "label_metrics.json"
    path.write_text(json.dumps(content) + "\n")
    print(f"{path}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
