#!/usr/bin/env python3
"""Classifiers beside baselines on data sets: each table below has data sets as rows and systems as columns.

  bench/tables/classifiers.py TABLE DATA [--sets mr,trec] [--systems WORD] [--sizes all,500] [--seeds 1,2,3] [--folds 10] [--jobs 1]
  bench/tables/classifiers.py default DATA --replay N [--draw SEED]     trains N random results again: have they the same bits?
  bench/tables/classifiers.py --list                                    the tables with their sets and systems

DATA is a folder with the sets of sets.py. Each result is a line of JSON in --out (bench/tables/records/TABLE.jsonl); what is there is not
run again, and the table of all of it is printed at the end. A size is a sample of so many training texts, another one for each seed; a set
with folds has one run per fold and seed. Each system works in a process of its own, whose processor seconds and memory are those until the model is
trained. Needs the built program; a baseline whose package (scikit-learn, fasttext-wheel, capstan) is missing is left out, with a line.
"""
import argparse
import concurrent.futures
import dataclasses
import importlib.util
import json
import math
import multiprocessing
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import starts
from runs import PROGRAM, RECORDS, SYSTEMS, add_result, best_weights, config, origin, print_table, read_results, weights_hash
from sets import SETS, fasttext_tokens, has_folds, split, write, write_fasttext

TOKENS = r"(?u)\w+|[^\w\s]"  # scikit-learn's own pattern drops words of one letter and all punctuation
BOTH = {"TF-IDF of words": dict(ngram_range=(1, 2), token_pattern=TOKENS), "of characters": dict(analyzer="char_wb", ngram_range=(2, 5))}


@dataclasses.dataclass
class Job:
    """What a system gets: rows of label and text, a folder of its own, and one that all jobs of a table share."""
    train: list
    test: list
    size: str
    seed: int
    threads: int
    folder: str
    work: str


@dataclasses.dataclass
class System:
    """`fit(job)` trains and returns what predicts texts: labels, or rows {"label", "probabilities"}."""
    fit: object
    package: str = ""
    random: bool = True  # else one seed is enough


def called(*words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, words))}\n{done.stderr[-2000:]}")
    return done.stdout


def capstan(*files, settings=(), steps=None, search=None):
    """Recipes with settings, in which {work} is the table's folder; `steps` by size; `search`: minutes of autotune."""
    def fit(job):
        for part, rows in (("train", job.train), ("test", job.test)):
            write(f"{job.folder}/{part}.tsv", rows)
        chosen = [setting.format(work=job.work) for setting in settings] + ([f"train.steps={steps[job.size]}"] if job.size in (steps or {}) else [])
        command = [PROGRAM, "autotune" if search else "train", "--config", *map(config, files), *(["--minutes", search] if search else [])]
        said = called(*command, "--set", f"folder={job.folder}", "name=run", f"seed={job.seed}", f"threads={job.threads}",
               f"data.train=[{job.folder}/train.tsv]", f"data.test=[{job.folder}/test.tsv]", *chosen)
        run = said.split("best: ")[-1].split("\n")[0] if search else f"{job.folder}/run"
        predict = [PROGRAM, "predict", run, f"{job.folder}/test.tsv", "--format", "jsonl"]
        return lambda _: [json.loads(row) for row in called(*predict).split("\n") if row]  # a text may hold other line ends
    return System(fit)


def sklearn(kinds, classifier):
    """Sublinear TF-IDF of some kinds of n-grams; logistic regression (C = 10), LinearSVC (C = 1), SGD, or LinearSVC for even classes."""
    def fit(job):
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.linear_model import LogisticRegression, SGDClassifier
        from sklearn.pipeline import make_pipeline, make_union
        from sklearn.svm import LinearSVC
        made = {"LR": lambda: LogisticRegression(C=10, max_iter=1000), "SVM": LinearSVC, "balanced": lambda: LinearSVC(class_weight="balanced"),
                "SGD": lambda: SGDClassifier(loss="log_loss", alpha=1e-6, max_iter=10, tol=None, random_state=1)}[classifier]()
        labels, texts = zip(*job.train)
        features = make_union(*(TfidfVectorizer(**kind, sublinear_tf=True) for kind in kinds))
        return make_pipeline(features, made).fit(texts, labels).predict
    return System(fit, "sklearn", random=False)


def cut_by_validation():
    """LinearSVC for even classes, whose cut between "common" and "rare" has the best macro-F1 in cross-validation."""
    def fit(job):
        import numpy
        from sklearn.metrics import f1_score
        from sklearn.model_selection import cross_val_predict
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.pipeline import make_union
        from sklearn.svm import LinearSVC
        labels, texts = zip(*job.train)
        features = make_union(*(TfidfVectorizer(**kind, sublinear_tf=True) for kind in BOTH.values()))
        x, y, model = features.fit_transform(texts), numpy.array(labels) == "rare", LinearSVC(class_weight="balanced")
        scores = cross_val_predict(model, x, y, cv=5, method="decision_function")
        cut = max(numpy.quantile(scores, numpy.linspace(0, 1, 400)), key=lambda at: f1_score(y, scores >= at, average="macro"))
        model.fit(x, y)
        return lambda texts: numpy.where(model.decision_function(features.transform(texts)) >= cut, "rare", "common")
    return System(fit, "sklearn", random=False)


def fasttext(minutes=0, chosen=False, **settings):
    """Words and pairs of words. What is left open is chosen on a fifth of the training texts, then all of them are learnt: with minutes,
    by its -autotune; `chosen`: epochs and rate, the best of nine."""
    def fit(job):
        import fasttext as library
        common = {"thread": job.threads, "verbose": 0, "seed": job.seed, **settings}
        everything, best = write_fasttext(f"{job.folder}/train.txt", job.train), {}
        # Not model.predict(): it does not work with NumPy 2.
        answers = lambda model, texts: [model.f.predict(fasttext_tokens(text) + "\n", 1, 0.0, "strict")[0][1].removeprefix("__label__") for text in texts]
        if minutes or chosen:
            shuffled = random.Random(job.seed).sample(job.train, len(job.train))
            held_out, kept = shuffled[::5], [row for i, row in enumerate(shuffled) if i % 5]
            rest = write_fasttext(f"{job.folder}/rest.txt", kept)
        if minutes:
            valid = write_fasttext(f"{job.folder}/valid.txt", held_out)
            found = library.train_supervised(rest, autotuneValidationFile=valid, autotuneDuration=int(60 * minutes), **common).f.getArgs()
            names = ("lr", "dim", "epoch", "wordNgrams", "minn", "maxn", "bucket", "minCount")
            best = {**{name: getattr(found, name) for name in names}, "loss": str(found.loss).split(".")[-1]}
        if chosen:
            labels, texts = zip(*held_out)
            tried = [{"epoch": epoch, "lr": lr} for epoch in (5, 10, 25) for lr in (0.1, 0.5, 1.0)]
            best = max(tried, key=lambda one: sum(map(str.__eq__, labels, answers(library.train_supervised(rest, **common, **one), texts))))
        model = library.train_supervised(everything, **{**common, **best})
        return lambda texts: answers(model, texts)
    return System(fit, "fasttext")


def package(way):
    """The Python package: fit, or partial_fit over a generator."""
    def fit(job):
        import capstan as library
        classifier = library.Classifier(threads=job.threads)
        rows = ((text, label) for label, text in job.train)
        if way == "fit":
            classifier.fit(rows)
        else:
            classifier.partial_fit(rows, classes=sorted({label for label, _ in job.train}))
        return lambda texts: classifier.predict(list(texts))
    return System(fit, "capstan")


WORDS, CHARACTERS = BOTH.values()
DEFAULT = {"classify.yaml": capstan("classify.yaml"), "TF-IDF + LR": sklearn([WORDS], "LR"), "words, characters + SVM": sklearn([WORDS, CHARACTERS], "SVM"),
           "fastText": fasttext(chosen=True, wordNgrams=2, dim=100)}
LARGE = ["data.valid_fraction=0.01", "data.max_length=48", "model.max_length=48", "train.batch_size=256", "train.epochs=2", "train.lr=2e-3",
         "model.sparse_embedding=true"]
NARROW = ["model.width=100", "model.ngrams.orders=[]", "train.lr=3e-3", "train.epochs=0", "data.valid_fraction=0", "data.valid=[]"]
VECTORS = [*NARROW, "train.init_vectors={work}/words.vec"]
TOKENIZED = ["data.tokenizer.file={work}/masked/tokenizer.json"]


def large(*settings):
    return capstan("ag-news.yaml", settings=[*LARGE, *settings])


def few(*settings):
    return capstan("ag-news.yaml", settings=settings, steps={"200": 200, "2000": 500})


def pretrained(*settings):
    return capstan("pretraining/classify.yaml", settings=[*TOKENIZED, *settings], steps={"500": 300})


def even(*settings):
    return capstan("classify.yaml", settings=["data.valid_fraction=0", *settings])


@dataclasses.dataclass
class Table:
    sets: list
    systems: dict
    sizes: str = "all"
    folds: int = 10
    figures: tuple = ("accuracy",)
    published: dict = dataclasses.field(default_factory=dict)  # {column: {set: accuracy}}
    prepare: object = None  # what the systems start from: prepare(data, work)


SENTENCES = ["mr", "sst1", "subj", "trec", "cr", "mpqa"]
KIM = {"Kim, rand": dict(zip(SENTENCES, (0.761, 0.450, 0.896, 0.912, 0.798, 0.834))),
       "Kim, non-static": dict(zip(SENTENCES, (0.815, 0.480, 0.934, 0.936, 0.843, 0.895)))}  # arXiv 1408.5882
SMALL = list(SETS)[:11]
TABLES = {
    "default": Table(SMALL, DEFAULT),
    "unspaced": Table(["zh_sentiment", "zh_topic", "th"], {**DEFAULT, "characters + LR": sklearn([dict(analyzer="char", ngram_range=(1, 3))], "LR")}),
    "autotune": Table(SMALL, {"autotune": capstan("classify.yaml", search=5), "fastText -autotune": fasttext(minutes=5)}),
    "sentence_sets": Table(SENTENCES, {system: capstan("trec.yaml", *([] if system == "aft-simple" else [f"compare/block-{system}.yaml"]),
                                                       settings=["train.save_every=0"]) for system in SYSTEMS}, published=KIM),
    "from_reviews": Table(SENTENCES, {"reviews": capstan("classify.yaml", settings=["train.init_from={work}/reviews"]), "alone": capstan("classify.yaml")},
                          "all,500", published=KIM, prepare=starts.train_on_reviews),
    "pretraining": Table(["trec", "mr", "cr", "subj"],
                         {"scratch": pretrained(), "masked": pretrained("train.init_from={work}/masked"),
                          "causal, scratch": pretrained("model.causal=true"), "causal": pretrained("model.causal=true", "train.init_from={work}/causal")},
                         "all,500", folds=len(starts.TESTED_FOLDS), prepare=starts.pretrain),
    "word_vectors": Table(["ag_news"], {"without vectors": few(*NARROW), "with vectors": few(*VECTORS), "frozen": few(*VECTORS, "train.freeze=[embed.*]"),
                                        "classify.yaml": capstan("classify.yaml")}, "200,2000", prepare=starts.make_vectors),
    "imbalance": Table([f"{name} 1:{ratio}" for name in ("mr", "subj") for ratio in (5, 20, 100)],
                       {"as it is": even(), "class_weights: balanced": even("model.class_weights=balanced"),
                        "monitor: macro-f1": even("train.monitor=macro-f1"),
                        "balanced, monitor: macro-f1": even("model.class_weights=balanced", "train.monitor=macro-f1"),
                        "LinearSVC balanced": sklearn([WORDS, CHARACTERS], "balanced"), "LinearSVC balanced, cut": cut_by_validation()},
                       figures=("macro_f1", "rare_f1", "log_loss", "calibration_error")),
    "python": Table(["trec", "ag_news", "dbpedia", "year"], {"fit": package("fit"), "partial_fit": package("partial_fit")},
                    figures=("accuracy", "cpu_seconds", "rss_mb", "texts_per_second")),
    "many_texts": Table(["year"], {
        "words": capstan("classify.yaml", settings=["model.words=[1]", "model.characters=[]"]),
        "words 1, 2": capstan("classify.yaml", settings=["model.words=[1, 2]", "model.characters=[]"]),
        "words 1 to 3": capstan("classify.yaml", settings=["model.characters=[]"]), "classify.yaml": capstan("classify.yaml"),
        "aft-simple, n-grams 1, 2": large(),
        "flash, n-grams 1, 2": large("model.layers=[{{mixer: {{type: flash}}, feed_forward: {{type: none}}}}]"),
        "fastText words": fasttext(epoch=5), "fastText words 1, 2, best of six settings": fasttext(wordNgrams=2, epoch=2, lr=0.5),
        "fastText words 1, 2": fasttext(wordNgrams=2, epoch=5),
        "fastText words 1, 2, subwords": fasttext(wordNgrams=2, minn=2, maxn=5, epoch=2, lr=0.5),
        "fastText autotune, 5 minutes": fasttext(minutes=5), "SGD words 1, 2": sklearn([WORDS], "SGD"),
        "SGD words 1, 2, characters": sklearn([WORDS, CHARACTERS], "SGD"), "SVM words 1, 2": sklearn([WORDS], "SVM"),
        "SVM words 1, 2, characters": sklearn([WORDS, CHARACTERS], "SVM")}, figures=("cpu_seconds", "rss_mb", "accuracy")),
}


def f1(labels, found, label):
    right = sum(a == b == label for a, b in zip(labels, found))
    return 2 * right / max(1, labels.count(label) + found.count(label))


def figures_of(labels, rows):
    """Accuracy, macro-F1 and F1 of the rarest class; of probabilities, mean log loss and calibration error (15 bins of equal width)."""
    found = [row["label"] if isinstance(row, dict) else str(row) for row in rows]
    classes = sorted(set(labels), key=labels.count)
    result = {"accuracy": sum(a == b for a, b in zip(found, labels)) / len(labels), "rare_f1": f1(labels, found, classes[0]),
              "macro_f1": statistics.mean(f1(labels, found, label) for label in classes)}
    if isinstance(rows[0], dict):
        likeliest = [max(row["probabilities"].items(), key=lambda entry: entry[1]) for row in rows]
        bins = [0.0] * 15
        for (name, sure), label in zip(likeliest, labels):
            bins[min(14, int(15 * sure))] += sure - (name == label)
        result["log_loss"] = -statistics.mean(math.log(max(row["probabilities"].get(label, 0), 1e-15)) for row, label in zip(rows, labels))
        result["calibration_error"] = sum(map(abs, bins)) / len(labels)
    return result


def used():
    both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in both), max(u.ru_maxrss for u in both) / 1e3


def work_alone(table, system, job, results):
    """In a process of its own; what goes wrong is the result."""
    try:
        before = time.monotonic(), used()[0]
        predict = TABLES[table].systems[system].fit(job)
        seconds, (cpu_seconds, rss_mb) = time.monotonic() - before[0], used()
        labels, texts = zip(*job.test)
        begin = time.monotonic()
        rows = list(predict(texts))
        rate = len(texts) / (time.monotonic() - begin)
        result = {**figures_of(list(labels), rows), "seconds": seconds, "cpu_seconds": cpu_seconds - before[1], "rss_mb": rss_mb,
                  "texts_per_second": rate, "train": len(job.train), "test": len(job.test), **origin()}
        if best_weights(f"{job.folder}/run"):
            result["weights"] = weights_hash(f"{job.folder}/run")
        results.put(result)
    except Exception as error:  # noqa: BLE001: told by the parent
        results.put({"error": str(error)})


def measure(options, table, case, work):
    train, test = split(options.data, case["set"], case["seed"] if " 1:" in case["set"] else case["fold"])
    if case["size"] != "all":
        train = random.Random(case["seed"] + case["fold"]).sample(train, int(case["size"]))
    with tempfile.TemporaryDirectory() as folder:
        job = Job(train, test, case["size"], case["seed"], options.threads, folder, work)
        context = multiprocessing.get_context("spawn")
        results = context.SimpleQueue()
        process = context.Process(target=work_alone, args=(options.table, case["method"], job, results))
        process.start()
        process.join()
        result = results.get() if not results.empty() else {"error": f"ended with {process.exitcode}"}
    if "error" in result:
        raise RuntimeError(f"{case}: {result['error']}")
    return {**case, **result}


def cases(options, table):
    for size in options.sizes.split(","):
        for name in options.sets.split(","):
            for fold in range(options.folds if has_folds(name) else 1):
                for method, system in table.systems.items():
                    if system.package and importlib.util.find_spec(system.package) is None:
                        continue
                    for seed in options.seeds.split(",")[:None if system.random or size != "all" or " 1:" in name else 1]:
                        if options.systems in method:
                            yield {"set": name, "size": size, "method": method, "seed": int(seed), "fold": fold}


def shown(values, digits=4):
    deviation = f" ± {statistics.stdev(values):.{digits}f}" if len(values) > 1 else ""
    return f"{statistics.mean(values):.{digits}f}{deviation}"


def print_results(table, results):
    """A row per set and size with a column per system, or, of several figures, a row per set and system."""
    groups = {}
    for result in results:
        groups.setdefault((result["set"], result["size"]), {}).setdefault(result["method"], []).append(result)
    if len(table.figures) > 1:
        print_table(["data set", "system", *table.figures],
                    [[name, method, *(shown([r[figure] for r in found if figure in r] or [float("nan")], 0 if figure in ("cpu_seconds", "rss_mb") else 4)
                                      for figure in table.figures)]
                     for (name, _), methods in groups.items() for method, found in methods.items()])
        return
    names = [name for name in table.systems if any(name in methods for methods in groups.values())]
    rows = []
    for (name, size), methods in sorted(groups.items(), key=lambda group: (group[0][1] != "all", group[0])):
        folds = set.intersection(*({r["fold"] for r in found} for found in methods.values()))  # those that all systems have been run on
        kept = {method: [r for r in found if r["fold"] in folds] for method, found in methods.items()}
        cells = [shown([r["accuracy"] for r in kept[method]]) if kept.get(method) else "" for method in names]
        first = kept.get(names[0]) or [r for found in kept.values() for r in found]
        means = [statistics.mean(r["accuracy"] for r in kept[method]) for method in names if kept.get(method)]
        ahead = f"{100 * (means[0] - max(means[1:])):+.2f}" if 1 < len(means) <= 5 else ""
        rows.append([name, first[0].get("train", size), *cells, ahead, *(column.get(name, "") for column in table.published.values()),
                     f"{max(r.get('cpu_seconds', r.get('seconds', 0)) for r in first):.0f}", f"{max(r.get('rss_mb', 0) for r in first):.0f}"])
    print_table(["data set", "training texts", *names, f"{names[0]} ahead", *table.published, "CPU s", "MB"], rows)


def replay(options, table, known):
    """How many of the drawn results have other bits when they are made again."""
    known = [result for result in known if "weights" in result]
    different = 0
    for was in random.Random(options.draw).sample(known, min(options.replay, len(known))):
        again = measure(options, table, {name: was[name] for name in ("set", "size", "method", "seed", "fold")}, options.work)
        names = [name for name in ("accuracy", "log_loss", "calibration_error") if abs(again[name] - was[name]) > 1e-4]  # some are rounded
        names += ["weights"] if again["weights"] != was["weights"] else []
        different += bool(names)
        print(f"{was['set']}, fold {was['fold']}, seed {was['seed']}, of commit {was['commit']}: "
              + ("; ".join(f"{name} is {again[name]}, was {was[name]}" for name in names) or "the same bits"), flush=True)
    return different


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", choices=TABLES, nargs="?")
    parser.add_argument("data", nargs="?")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--sets")
    parser.add_argument("--systems", default="", help="those whose name has this word")
    parser.add_argument("--sizes")
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--folds", type=int)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out")
    parser.add_argument("--work", default="runs/tables", help="folder for what systems start from")
    parser.add_argument("--replay", type=int, metavar="N")
    parser.add_argument("--draw", type=int, default=1)
    options = parser.parse_args()
    if options.list or options.data is None:
        print_table(["table", "sets", "systems"], [[name, ", ".join(table.sets), "; ".join(table.systems)] for name, table in TABLES.items()])
        sys.exit(0 if options.list else 2)
    options.work = os.path.abspath(options.work)
    options.out = options.out or os.path.join(RECORDS, f"{options.table}.jsonl")
    options.sets = options.sets or ",".join(TABLES[options.table].sets)
    options.folds = options.folds or TABLES[options.table].folds
    options.sizes = options.sizes or TABLES[options.table].sizes
    return options


def main():
    options = parse()
    table, results, lock = TABLES[options.table], read_results(options.out), threading.Lock()
    if options.replay is not None:
        sys.exit(1 if replay(options, table, results) else 0)
    key = lambda case: tuple(str(case[name]) for name in ("set", "size", "method", "seed", "fold"))
    done = {key(result) for result in results}
    left = [case for case in cases(options, table) if key(case) not in done]
    for package in {system.package for system in table.systems.values() if system.package}:
        if importlib.util.find_spec(package) is None:
            print(f"classifiers.py: what needs {package} is left out: {sys.executable} does not have it", file=sys.stderr)
    if left and table.prepare:
        os.makedirs(options.work, exist_ok=True)
        table.prepare(options.data, options.work)

    def run(case):
        result = measure(options, table, case, options.work)
        with lock:
            add_result(options.out, results, result)

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(run, left))
    print_results(table, results)


if __name__ == "__main__":
    main()
