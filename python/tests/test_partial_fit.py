"""Learning from texts as they come."""
import gzip
import os
import pickle
import random
from pathlib import Path

import numpy as np
import pytest

import capstan

YEAR = Path(os.environ.get("CAPSTAN_DATA", "/work/shared/data")) / "year"


def resident_mb():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


SMALL = {"model__buckets": 1 << 16}


@pytest.fixture(scope="module")
def learnt(reviews):
    texts, labels = reviews
    model = capstan.Classifier(**SMALL)
    for begin in range(0, len(texts), 24):
        model.partial_fit(texts[begin:begin + 24], labels[begin:begin + 24], classes=["bad", "good"])
    return model


def test_it_learns_batch_by_batch_and_predicts_after_each(reviews, learnt):
    texts, labels = reviews
    model = capstan.Classifier().partial_fit(texts[:12], labels[:12], classes=["good", "bad"])
    assert model.classes_.tolist() == ["bad", "good"] and model.predict_proba(texts).shape == (len(texts), 2)
    assert model.score(texts[:12], labels[:12]) > 0.5
    assert learnt.score(texts, labels) == 1


def test_batches_of_any_iterable_without_a_length_give_the_same(reviews, learnt):
    texts, labels = reviews
    model = capstan.Classifier(**SMALL).partial_fit(iter(zip(texts[:24], labels[:24])), classes=["bad", "good"])
    for begin in range(24, len(texts), 24):
        some = slice(begin, begin + 24)
        model.partial_fit((text for text in texts[some]), np.array(labels[some]), sample_weight=iter([1] * 24))
    assert (model.predict_proba(texts) == learnt.predict_proba(texts)).all()


@pytest.mark.parametrize("threads", [1, 2])
def test_the_bits_do_not_depend_on_the_number_of_threads(reviews, threads):
    rng = random.Random(1)
    texts = [" ".join(rng.choices(["alpha", "beta", "gamma", "delta", "eta"], k=12)) for _ in range(6000)]
    labels = [int("alpha beta" in text) for text in texts]
    model = capstan.Classifier(threads=threads).partial_fit(texts, labels, classes=[0, 1])
    one = capstan.Classifier(threads=1).partial_fit(texts, labels, classes=[0, 1])
    assert (model.decision_function(texts) == one.decision_function(texts)).all() and model.score(texts, labels) > 0.95


def test_classes_are_named_first_and_what_is_unknown_is_an_error(reviews):
    texts, labels = reviews
    model = capstan.Classifier()
    with pytest.raises(ValueError, match="classes must be passed on the first call"):
        model.partial_fit(texts, labels)
    model.partial_fit(texts, labels, classes=["bad", "good"])
    with pytest.raises(ValueError, match=r"labels\[1\]: 'ugly' is none of classes"):
        model.partial_fit(texts[:2], ["good", "ugly"])
    with pytest.raises(ValueError, match="not the same as on last call"):
        model.partial_fit(texts, labels, classes=["bad", "fine"])
    with pytest.raises(ValueError, match="of type int, but were single of type str"):
        model.partial_fit(texts[:1], [3])
    with pytest.raises(ValueError, match="2 texts, but 1 labels"):
        model.partial_fit(texts[:2], labels[:1])
    with pytest.raises(ValueError, match="left after 1"):
        model.partial_fit(iter(texts[:2]), iter(labels[:1]))
    with pytest.raises(ValueError, match="only a linear-classifier learns"):
        capstan.Classifier("classifier-gau").partial_fit(texts, labels, classes=["bad", "good"])


def test_a_pickle_and_a_saved_run_predict_the_same_and_go_on_alike(reviews, learnt, tmp_path):
    texts, labels = reviews
    learnt.save(tmp_path / "run")
    run = capstan.load(tmp_path / "run")
    assert np.allclose(run.predict_proba(texts), learnt.predict_proba(texts), atol=1e-6)
    copies = [pickle.loads(pickle.dumps(learnt)), capstan.Classifier.load(tmp_path / "run")]
    for model in copies:
        assert np.allclose(model.predict_proba(texts), learnt.predict_proba(texts), atol=1e-6)
        model.partial_fit(["a new kind of joy"], ["good"])
    other = pickle.loads(pickle.dumps(learnt)).partial_fit(["a new kind of joy"], ["good"])
    assert all((model.decision_function(texts) == other.decision_function(texts)).all() for model in copies)
    assert dict(learnt.explain("superb acting", "good"))["superb"] > 0
    assert learnt.slim(size=0.5).predict(["superb acting"]) == ["good"]


def test_after_fit_it_goes_on_from_there(reviews):
    texts, labels = reviews
    model = capstan.Classifier().fit(texts, labels)
    before = model.decision_function(texts)
    model.partial_fit(["zyx wvu"], ["good"])
    assert np.allclose(model.decision_function(texts), before, atol=0.3) and model.score(texts, labels) == 1
    for _ in range(20):
        model.partial_fit(["zyx wvu", "rst qpo"], ["good", "bad"])
    assert model.predict(["zyx wvu", "rst qpo"]).tolist() == ["good", "bad"] and model.score(texts, labels) == 1
    with pytest.raises(ValueError, match="balanced"):
        capstan.Classifier(class_weight="balanced").fit(texts, labels).partial_fit(texts, labels)


def test_weights_of_classes_and_texts_count(reviews):
    texts, labels = ["same", "same", "same", "other"], ["a", "b", "a", "a"]
    plain = capstan.Classifier().partial_fit(texts * 20, labels * 20, classes=["a", "b"])
    heavy = capstan.Classifier(class_weight={"b": 9}).partial_fit(texts * 20, labels * 20, classes=["a", "b"])
    assert plain.predict(["same"]) == ["a"] and heavy.predict(["same"]) == ["b"]
    weighed = capstan.Classifier().partial_fit(texts * 20, labels * 20, ["a", "b"], sample_weight=[1, 9, 1, 1] * 20)
    assert weighed.predict_proba(["same"])[0, 1] > plain.predict_proba(["same"])[0, 1] + 0.1


def test_texts_may_have_any_number_of_labels_of_several_types(reviews):
    texts, names = reviews
    lists = [[3, 7] if "film" in text and name == "good" else [3] if "film" in text else [] for text, name in zip(texts, names)]
    model = capstan.Classifier()
    for _ in range(5):
        model.partial_fit(texts, lists, classes=[3, 7])
    assert model.score(texts, lists) > 0.9 and model.classes_.tolist() == [3, 7]
    matrix = np.array([[3 in row, 7 in row] for row in lists], int)
    wide = capstan.Classifier().partial_fit(texts * 5, np.vstack([matrix] * 5), classes=[0, 1])
    assert (wide.predict(texts) == matrix).mean() > 0.9


def test_the_memory_does_not_grow_with_the_texts():
    def stream(count):
        rng = random.Random(count)
        for _ in range(count):
            yield " ".join(f"w{rng.randrange(3000)}" for _ in range(20)), rng.randrange(3)

    model = capstan.Classifier(**{"model.buckets": 1 << 18}).partial_fit(stream(30_000), classes=[0, 1, 2])
    before = resident_mb()
    model.partial_fit(stream(60_000))
    assert resident_mb() < before + 10


@pytest.mark.skipif(not YEAR.is_dir(), reason=f"{YEAR}: no such data")
def test_one_pass_is_as_good_as_three(reviews):
    def rows(name, count):
        with gzip.open(YEAR / f"{name}.tsv.gz", "rt", encoding="utf-8") as lines:
            chosen = [line.rstrip("\n").split("\t", 1) for line in lines]
        random.Random(1).shuffle(chosen)
        return [(text, label) for label, text in chosen[:count]]

    train, (texts, labels) = rows("train", 100_000), zip(*rows("test", 10_000))
    online = capstan.Classifier().partial_fit(iter(train), classes=sorted({label for _, label in train}))
    accuracy = online.score(texts, labels)
    assert accuracy > 0.385, accuracy
