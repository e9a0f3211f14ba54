"""Texts, labels and weights in all forms in which people have them."""
import json

import numpy as np
import pytest

import capstan


def with_pandas(texts, labels):
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"text": texts, "label": labels})
    yield table["text"], table["label"]
    yield table[["text"]], table["label"].astype("category")
    yield table["text"].astype("string"), table[["label"]]


def with_polars(texts, labels):
    polars = pytest.importorskip("polars")
    table = polars.DataFrame({"text": texts, "label": labels})
    yield table["text"], table["label"]
    yield table.select("text"), table["label"].cast(polars.Categorical)
    yield table["text"], table.select("label")


def with_datasets(texts, labels):
    datasets = pytest.importorskip("datasets")
    table = datasets.Dataset.from_dict({"text": texts, "label": labels})
    yield table["text"], table["label"]
    yield table.select_columns("text"), table.select_columns("label")


def with_numpy(texts, labels):
    yield np.array(texts), np.array(labels)
    yield np.array(texts, object), np.array(labels, object)


def with_iterators(texts, labels):
    yield iter(texts), iter(labels)
    yield (text for text in texts), labels
    yield texts, (label for label in labels)
    yield zip(texts, labels), None
    yield list(zip(texts, labels)), None


@pytest.mark.parametrize("forms", [with_numpy, with_iterators, with_pandas, with_polars, with_datasets])
def test_all_forms_train_the_same_classifier(reviews, forms):
    wanted = capstan.Classifier().fit(*reviews).predict_proba(reviews[0])
    for number, (texts, labels) in enumerate(forms(*reviews)):
        assert (capstan.Classifier().fit(texts, labels).predict_proba(reviews[0]) == wanted).all(), number
    online = capstan.Classifier().partial_fit(*reviews, classes=["bad", "good"]).predict_proba(reviews[0])
    for number, (texts, labels) in enumerate(forms(*reviews)):
        model = capstan.Classifier().partial_fit(texts, labels, classes=["bad", "good"])
        assert (model.predict_proba(reviews[0]) == online).all(), number


@pytest.mark.parametrize("suffix", ["tsv", "csv", "jsonl"])
def test_a_file_is_read_as_the_program_reads_it(reviews, tmp_path, suffix):
    path, rows = tmp_path / f"reviews.{suffix}", list(zip(*reviews))
    if suffix == "jsonl":
        path.write_text("".join(json.dumps({"text": text, "label": label}) + "\n" for text, label in rows))
    elif suffix == "csv":
        path.write_text("label,text\n" + "".join(f'{label},"{text}"\n' for text, label in rows))
    else:
        path.write_text("".join(f"{label}\t{text}\n" for text, label in rows))
    for given in (path, str(path)):
        model = capstan.Classifier().fit(given)
        assert model.score(*reviews) == 1 and model.classes_.tolist() == ["bad", "good"]
    with pytest.raises(capstan.Error, match="nowhere"):
        capstan.Classifier().fit(tmp_path / "nowhere.csv")
    with pytest.raises(ValueError, match="data__weight_column"):
        capstan.Classifier().fit(path, sample_weight=[1])


def test_labels_that_are_lists_come_from_any_iterable(reviews):
    polars = pytest.importorskip("polars")
    texts, names = reviews
    lists = [[name, "film"] if "film" in text else [name] for text, name in zip(texts, names)]
    wanted = capstan.Classifier().fit(texts, lists)
    for labels in (iter(lists), polars.Series(lists)):
        model = capstan.Classifier().fit(texts, labels)
        assert model.predict(texts) == wanted.predict(texts)


@pytest.mark.parametrize("texts, labels, hint", [
    ("one text", ["a"], "write \\[text\\]"), ({"text": ["a"]}, ["a"], "a list of texts is needed, not dict"),
    (3, ["a"], "a list of texts is needed, not int"), ([["a"], 3], ["a", "b"], r"texts\[1\]: a string"),
    (iter(["a", "b"]), ["x"], "2 texts, but 1 labels"), (iter(["a"]), iter("xy"), "labels left after 1 texts"),
    (["a", "b"], None, "requires y to be passed, but the target y is None"), (["a", "b"], ["x", "x"], "there is only one class, 'x'"),
    ([], [], "there are no texts"), ([("a", "b"), "c"], ["x", "y"], r"texts\[1\] has 1 columns, texts\[0\] has 2")])
def test_what_cannot_be_texts_with_labels_is_refused_with_a_hint(texts, labels, hint):
    with pytest.raises((TypeError, ValueError), match=hint):
        capstan.Classifier().fit(texts, labels)


def test_texts_of_an_iterator_are_not_held():
    held = []

    def texts():
        class Text(str):
            def __init__(self, _):
                held.append(1)

            def __del__(self):
                held.pop()

        for number in range(300):
            assert len(held) < 10
            yield Text(f"text {number} {'good' if number % 2 else 'bad'}")

    assert capstan.Classifier().fit(texts(), [number % 2 for number in range(300)]).predict(["good"]) == [1]


def test_messages_name_the_column_and_row_that_fit_got(reviews, capfd):
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    texts, labels = list(reviews[0]), list(reviews[1])
    labels[7] = "ugly"
    table = {"review": texts}
    for given, place in [(texts, "texts[7]"), (iter(texts), "texts[7]"), (pandas.DataFrame(table)["review"], "review.iloc[7]"),
                         (pandas.DataFrame(table), "review.iloc[7]"), (polars.DataFrame(table)["review"], "review[7]")]:
        capstan.Classifier().fit(given, labels)
        said = capfd.readouterr().err
        assert f"'ugly' ({place})" in said and "jsonl" not in said
    with pytest.raises(capstan.Error) as refused:
        capstan.Classifier(data__max_length=1, data__truncate="error").fit(pandas.Series(texts, name="review"), labels)
    assert "review.iloc[0]" in str(refused.value) and "jsonl" not in str(refused.value)


def test_fit_passes_events_to_a_callback_and_raises_what_that_raises(reviews):
    events = []
    capstan.Classifier().fit(*reviews, callback=events.append)
    assert [event["event"] for event in events] == ["train", "valid"]

    def fail(event):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        capstan.Classifier().fit(*reviews, callback=fail)
    short = capstan.Classifier("classifier-gau", data__max_length=64, model__width=32, train__steps=40, train__log_every=1,
                               train__valid_every=0)
    seen = []
    short.fit(*reviews, callback=lambda event: seen.append(event) or event["step"] >= 3)
    assert seen[-1]["step"] < 40 and len(short.predict(reviews[0])) == 120
