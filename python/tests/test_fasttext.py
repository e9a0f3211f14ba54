import pytest

import capstan
import capstan.fasttext as fasttext


@pytest.fixture(scope="module")
def lines(reviews, tmp_path_factory):
    path = tmp_path_factory.mktemp("fasttext") / "train.txt"
    path.write_text("".join(f"__label__{label} {text}\n" for text, label in zip(*reviews)))
    return path


def test_a_program_of_fasttext_changes_one_import(lines, tmp_path):
    model = fasttext.train_supervised(input=str(lines), epoch=25, lr=1.0, wordNgrams=2, verbose=0)
    labels, probabilities = model.predict("superb film", k=2)
    assert labels[0] == "__label__good" and len(probabilities) == 2 and probabilities[0] > probabilities[1]
    labels, probabilities = model.predict(["superb film", "a bore"])
    assert labels == [["__label__good"], ["__label__bad"]]
    assert model.predict("a bore") == (("__label__bad",), probabilities[1])
    assert model.predict(["a bore"]) == ([["__label__bad"]], [probabilities[1]])
    alone, certain = model.predict("a bore", threshold=0.9999999)
    assert alone == () and certain.shape == (0,)
    assert model.test(str(lines)) == (120, 1.0, 1.0)
    assert sorted(model.get_labels()) == ["__label__bad", "__label__good"]
    figures = model.test_label(str(lines))
    assert figures["__label__good"] == {"precision": 1.0, "recall": 1.0, "f1score": 1.0}
    model.save_model(str(tmp_path / "model"))
    assert fasttext.load_model(str(tmp_path / "model")).predict("superb film")[0] == ("__label__good",)


def test_what_has_no_counterpart_says_what_to_do(lines, tmp_path):
    with pytest.raises(capstan.Error, match="train_supervised"):
        fasttext.load_model(str(lines))
    with pytest.raises(capstan.Error, match="word vectors"):
        fasttext.train_unsupervised("data.txt")
    with pytest.raises(capstan.Error, match="train__init_vectors"):
        fasttext.train_supervised(input=str(lines), pretrainedVectors="wiki.vec")


def test_the_remedy_for_pretrained_vectors_trains(lines, tmp_path):
    vectors = tmp_path / "small.vec"
    vectors.write_text("2 4\nsuperb 0.1 0.2 0.3 0.4\nbore 0.4 0.3 0.2 0.1\n")
    run = capstan.train("ag-news", data={"train": str(lines), "test": [], "format": "fasttext"}, model__width=4, train__epochs=1,
                        train__init_vectors=vectors, model__ngrams__buckets=1024, folder=tmp_path, quiet=True)
    assert sorted(run.classes) == ["bad", "good"]


def test_quantize_makes_the_model_small(lines, tmp_path):
    model = fasttext.train_supervised(input=str(lines), verbose=0)
    model.save_model(tmp_path / "full")
    assert not model.is_quantized()
    model.quantize(input=str(lines), retrain=True, cutoff=100000, size=0.3)
    assert model.is_quantized() and model.test(str(lines))[1] > 0.95
    model.save_model(tmp_path / "slim")
    size = {name: sum(path.stat().st_size for path in (tmp_path / name / "checkpoints").rglob("*") if not path.is_symlink())
            for name in ("full", "slim")}
    assert size["slim"] < size["full"] / 2
