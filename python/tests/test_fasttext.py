import pytest

import capstan


@pytest.fixture(scope="module")
def lines(reviews, tmp_path_factory):
    path = tmp_path_factory.mktemp("fasttext") / "train.txt"
    path.write_text("".join(f"__label__{label} {text}\n" for text, label in zip(*reviews)))
    return path


def test_lines_of_fasttext_train_a_classifier(lines, reviews, tmp_path):
    model = capstan.train_supervised(lines, model__words=[1, 2], data__valid_fraction=0)
    assert model.classes_.tolist() == ["bad", "good"]
    assert model.predict(["superb film", "a bore"]).tolist() == ["good", "bad"]
    assert model.score(*reviews) == 1.0
    model.save(tmp_path / "model")
    assert capstan.Classifier.load(tmp_path / "model").predict(["superb film"]).tolist() == ["good"]


def test_lines_with_several_labels_or_none_have_any_number(tmp_path):
    path = tmp_path / "topics.txt"
    path.write_text("".join(f"__label__film __label__good a fine film {i}\n__label__dish a dull dish {i}\nof nothing {i}\n" for i in range(10)))
    assert sorted(capstan.train_supervised(path).predict(["a fine film"])[0]) == ["film", "good"]


def test_tables_are_taken_as_fit_takes_them(reviews, tmp_path):
    path = tmp_path / "train.tsv"
    path.write_text("".join(f"{label}\t{text}\n" for text, label in zip(*reviews)))
    assert capstan.train_supervised(path).predict(["a bore"]).tolist() == ["bad"]
    with pytest.raises(capstan.Error, match="no such file"):
        capstan.train_supervised(tmp_path / "none.txt")


def test_a_network_starts_from_word_vectors(lines, tmp_path):
    vectors = tmp_path / "small.vec"
    vectors.write_text("2 4\nsuperb 0.1 0.2 0.3 0.4\nbore 0.4 0.3 0.2 0.1\n")
    run = capstan.train("ag-news", data={"train": str(lines), "test": [], "format": "fasttext"}, model__width=4, train__epochs=1,
                        train__init_vectors=vectors, model__ngrams__buckets=1024, folder=tmp_path, quiet=True)
    assert sorted(run.classes) == ["bad", "good"]
