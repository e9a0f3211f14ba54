#!/usr/bin/env python3
"""capstan.Classifier.partial_fit over a generator beside fit: accuracy on the test texts, processor seconds, and memory as texts come.

  bench/tables/partial_fit.py TRAIN TEST [--threads T]

TRAIN and TEST have rows of label and text, divided by a tab (.gz is read, too); TRAIN comes in random order. Needs the Python package.
Each way is a process of its own, since the peak of memory is that of a process.
"""
import argparse
import gzip
import multiprocessing
import resource
import sys
import time

INTERVAL = 100_000  # texts between two looks at the memory


def rows(path):
    with (gzip.open(path, "rt") if path.endswith(".gz") else open(path)) as file:
        for line in file:
            label, text = line.rstrip("\n").split("\t", 1)
            yield text, label


def peak_mb():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3  # KiB


def measure(way, train, test, threads):
    import capstan
    peaks = []

    def watched():
        for number, row in enumerate(rows(train)):
            if number > 0 and number % INTERVAL == 0:
                peaks.append(peak_mb())
            yield row

    classifier = capstan.Classifier(threads=threads)
    before = time.process_time()
    if way == "partial_fit":
        classifier.partial_fit(watched(), classes=sorted({label for _, label in rows(train)}))
    else:
        classifier.fit(watched())
    seconds, peak = time.process_time() - before, peak_mb()
    texts, labels = zip(*rows(test))
    right = sum(a == b for a, b in zip(classifier.predict(list(texts)), labels))
    print(f"{way}: accuracy {right / len(labels):.4f}, {seconds:.1f} processor s, peak {peak:.0f} MB; after each {INTERVAL} texts "
          + ", ".join(f"{value:.0f}" for value in peaks), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("train")
    parser.add_argument("test")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    for way in ("partial_fit", "fit"):
        process = multiprocessing.get_context("spawn").Process(target=measure, args=(way, options.train, options.test, options.threads))
        process.start()
        process.join()
        if process.exitcode != 0:
            sys.exit(f"partial_fit.py: {way} failed")


if __name__ == "__main__":
    main()
