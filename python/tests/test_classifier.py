import pickle
import subprocess
import sys

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import capstan


@pytest.fixture(scope="module")
def fitted(reviews):
    return capstan.Classifier().fit(*reviews)


def test_a_classifier_learns_what_its_texts_say(fitted, reviews):
    texts, labels = reviews
    assert fitted.score(texts, labels) == 1
    assert list(fitted.classes_) == ["bad", "good"]
    assert fitted.predict(["superb film", "a bore"]).tolist() == ["good", "bad"]


def test_probabilities_and_decision_values_follow_classes(fitted):
    texts = ["superb film", "a bore", ""]
    probabilities = fitted.predict_proba(texts)
    assert probabilities.shape == (3, 2) and np.allclose(probabilities.sum(axis=1), 1)
    values = fitted.decision_function(texts)
    assert values.shape == (3,)
    assert np.allclose(np.tanh(values / 2), probabilities[:, 1] - probabilities[:, 0], atol=1e-5)


@pytest.mark.parametrize("labels", [[3, 11], [True, False], ["b", "a"]])
def test_labels_come_back_with_their_type_and_sorted(reviews, labels):
    texts, names = reviews
    y = [labels[name == "good"] for name in names]
    model = capstan.Classifier().fit(texts, y)
    assert model.classes_.tolist() == sorted(labels)
    assert model.predict(texts).tolist() == y
    assert model.predict(texts).dtype == np.array(y).dtype or isinstance(labels[0], str)


@pytest.mark.parametrize("labels, dtype", [
    ([3, 2**63 + 5], np.uint64), ([-3, 2**63 + 5], object), ([2**64, 1], object), ([-10**30, 10**30], object),
    ([-2**63, 2**63 - 1], np.int64), ([np.uint64(2**63 + 5), np.int64(-3)], object), ([np.uint8(200), -3], np.int64),
    ([np.str_("b"), "a"], np.dtype("U1")), ([np.True_, False], np.bool_)])
def test_labels_keep_their_value_whatever_integers_or_scalars_they_are(reviews, labels, dtype, tmp_path):
    texts, names = reviews
    y = [labels[name == "good"] for name in names]
    model = capstan.Classifier().fit(texts, y)
    model.save(tmp_path / "saved")
    for fitted in (model, pickle.loads(pickle.dumps(model)), capstan.Classifier.load(tmp_path / "saved")):
        assert fitted.classes_.tolist() == sorted(labels) and fitted.classes_.dtype == dtype
        assert fitted.predict(texts).tolist() == y and fitted.score(texts, y) == 1
        assert len(fitted.explain(texts[0], labels[0])) > 2


def test_labels_of_pandas_keep_their_value(reviews):
    pandas = pytest.importorskip("pandas")
    texts, names = reviews
    y = [[3, 2**63 + 5][name == "good"] for name in names]
    for series in (pandas.Series(y, dtype="uint64"), pandas.Series(y, dtype="UInt64"), pandas.Series(y).astype("category"),
                   pandas.Categorical(y)):
        assert capstan.Classifier().fit(texts, series).predict(texts).tolist() == y
    assert capstan.Classifier().fit(texts, pandas.Series(names).astype("category")).predict(texts).tolist() == names


def test_many_labels_per_text_keep_their_value(reviews):
    texts, names = reviews
    y = [[-3, 2**63 + 5] if name == "good" else [-3] for name in names]
    assert capstan.Classifier().fit(texts, y).predict(texts) == y


@pytest.mark.parametrize("label, hint", [
    (0.5, "labels.0. is 0.5; Unknown label type: continuous$"), (2.0, "labels.0. is 2.0; use .astype.int"), (np.float32(1), "use .astype.int"), (b"good", "labels.0. is b'good'; decode bytes"),
    (None, "leave out texts without a label"), (float("nan"), "leave out texts without a label")])
def test_labels_that_are_neither_strings_nor_integers_are_refused(reviews, label, hint):
    texts, _ = reviews
    with pytest.raises(ValueError, match=f"all strings, all integers or all booleans; .*{hint}"):
        capstan.Classifier().fit(texts, [label] * len(texts))


def test_parameters_are_cloned_set_and_unknown_keys_named(reviews):
    model = capstan.Classifier(model__words=[1], seed=3)
    assert clone(model).get_params() == model.get_params()
    assert model.set_params(seed=4).get_params()["seed"] == 4
    with pytest.raises(capstan.Error, match="^model.wrods=.*did you mean words"):
        model.set_params(model__wrods=[1])
    assert model.get_params() == {"recipe": "classify", "verbose": False, "class_weight": None, "model__words": [1], "seed": 4}
    with pytest.raises(capstan.Error, match="model.wrods"):
        capstan.Classifier(model__wrods=[1]).fit(*reviews)


def test_what_is_not_fitted_says_so():
    with pytest.raises(NotFittedError):
        capstan.Classifier().predict(["a"])


def test_sample_weights_of_one_change_nothing(reviews):
    plain, weighed = capstan.Classifier().fit(*reviews), capstan.Classifier().fit(*reviews, sample_weight=[1] * 120)
    assert (plain.predict_proba(reviews[0]) == weighed.predict_proba(reviews[0])).all()


def test_one_text_in_place_of_a_list_is_refused(fitted):
    with pytest.raises(TypeError, match=r"write \[text\]"):
        fitted.predict("a fine film")


def test_a_second_fit_replaces_the_first(reviews):
    texts, labels = reviews
    model = capstan.Classifier().fit(texts, labels)
    model.fit(texts, ["x" if label == "good" else "y" for label in labels])
    assert list(model.classes_) == ["x", "y"]


def test_a_pickle_predicts_the_same_in_another_process(fitted, tmp_path):
    path = tmp_path / "model.pickle"
    path.write_bytes(pickle.dumps(fitted))
    program = "import pickle, sys; print(pickle.load(open(sys.argv[1], 'rb')).predict_proba(['a fine day']).tolist())"
    said = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True).stdout
    assert eval(said) == fitted.predict_proba(["a fine day"]).tolist()


def test_a_saved_classifier_is_a_run_and_loads(fitted, tmp_path):
    fitted.save(tmp_path / "saved")
    again = capstan.Classifier.load(tmp_path / "saved")
    assert again.predict(["superb film"]) == ["good"]
    assert capstan.load(tmp_path / "saved").predict(["superb film"]) == ["good"]
    with pytest.raises(capstan.Error, match="exists"):
        fitted.save(tmp_path / "saved")


def test_pipelines_grids_and_cross_validation_work(reviews):
    texts, labels = reviews
    same = FunctionTransformer(lambda rows: [row.lower() for row in rows])
    assert make_pipeline(same, capstan.Classifier()).fit(texts, labels).score(texts, labels) == 1
    assert cross_val_score(capstan.Classifier(), texts, labels, cv=2).mean() > 0.9
    grid = GridSearchCV(capstan.Classifier(), {"model__words": [[1], [1, 2]], "model__text_ends": [True, False]}, cv=2)
    assert grid.fit(texts, labels).best_score_ > 0.9


def test_texts_may_have_any_number_of_labels(reviews):
    texts, names = reviews
    wanted = [[name, "film"] if "film" in text else [name] for text, name in zip(texts, names)]
    lists = capstan.Classifier().fit(texts, wanted)
    assert lists.score(texts, wanted) > 0.9
    matrix = np.array([["bad" in row, "film" in row, "good" in row] for row in wanted], dtype=int)
    assert (capstan.Classifier().fit(texts, matrix).predict(texts) == matrix).mean() > 0.9


def test_rows_of_zeros_and_ones_are_a_matrix(reviews):
    texts, names = reviews
    rows = [[int(name == "bad"), int("film" in text), int(name == "good")] for text, name in zip(texts, names)]
    predicted = capstan.Classifier().fit(texts, rows).predict(texts)
    assert predicted.shape == (len(texts), 3) and (predicted == np.array(rows)).mean() > 0.9


def test_labels_that_a_file_cannot_hold_are_refused(reviews):
    texts, names = reviews
    with pytest.raises(ValueError, match=r"labels\[0\]: ' good' .* blanks at its ends"):
        capstan.Classifier().fit(texts, [" " + name for name in names])


def test_a_table_of_one_column_is_that_column_and_of_several_is_refused(fitted, reviews):
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"text": reviews[0], "label": reviews[1]})
    assert len(fitted.predict(table[["text"]])) == len(table)
    assert fitted.score(table["text"], table[["label"]]) == 1
    with pytest.raises(TypeError, match="table of 2 columns"):
        fitted.predict(table)


def test_texts_that_cannot_be_encoded_are_named(fitted):
    with pytest.raises(ValueError, match=r"texts\[1\]"):
        fitted.predict(["good", "\ud800"])


@pytest.mark.parametrize("recipe", ["trec", "classifier-gau"])
def test_every_recipe_of_a_classifier_learns_from_texts(reviews, recipe):
    model = capstan.Classifier(recipe, train__steps=2, train__epochs=0).fit(*reviews)
    assert model.predict_proba(["a film"]).shape == (1, 2)


def test_parameters_are_saved_with_the_run(reviews, tmp_path):
    model = capstan.Classifier(model__words=[1]).fit(*reviews)
    model.save(tmp_path / "run")
    model.save(tmp_path / "run", overwrite=True)
    assert capstan.Classifier.load(tmp_path / "run").get_params() == model.get_params()
    (tmp_path / "run" / "notes.txt").write_text("mine")
    with pytest.raises(capstan.Error, match="notes.txt"):
        model.save(tmp_path / "run", overwrite=True)


def test_two_threads_fit_one_after_the_other(reviews):
    import joblib

    with joblib.parallel_backend("threading", n_jobs=2):
        assert cross_val_score(capstan.Classifier(), *reviews, cv=2).min() > 0.9


def test_an_explanation_adds_up_to_the_decision_value(fitted):
    text = "A superb, superb film — déjà vu"
    parts = fitted.explain(text)
    assert abs(sum(value for _, value in parts) - fitted.decision_function([text])[0]) < 1e-6
    assert abs(sum(value for _, value in fitted.explain(text, "bad")) + fitted.decision_function([text])[0]) < 1e-6
    values = dict(parts)
    assert values["superb"] > 0 and "" in values and "_su·" in values
    assert [abs(value) for _, value in parts] == sorted((abs(value) for _, value in parts), reverse=True)
    with pytest.raises(ValueError, match="'ugly' is none of"):
        fitted.explain(text, "ugly")


def test_an_explanation_of_several_classes_is_that_of_one(reviews):
    texts, names = reviews
    labels = [3 if "film" in text else 7 if name == "good" else 5 for text, name in zip(texts, names)]
    model = capstan.Classifier().fit(texts, labels)
    (values,) = model.decision_function(["superb acting"])
    for index, label in enumerate([3, 5, 7]):
        assert abs(sum(value for _, value in model.explain("superb acting", label)) - values[index]) < 1e-6
    assert model.explain("superb acting") == model.explain("superb acting", 7)
    run = model.run_
    (values,) = run.decision_function(["superb acting"])
    assert abs(sum(value for _, value in run.explain("superb acting")) - values.max()) < 1e-6


def test_a_slim_classifier_predicts_the_same_labels_and_is_saved_and_pickled(reviews, tmp_path):
    texts, labels = reviews
    full = capstan.Classifier().fit(texts, [3 if label == "good" else 7 for label in labels])
    slim = full.slim(size=0.3)
    assert slim.predict(texts).tolist() == full.predict(texts).tolist()
    assert pickle.loads(pickle.dumps(slim)).decision_function(texts).tolist() == slim.decision_function(texts).tolist()
    slim.save(tmp_path / "slim")
    again = capstan.Classifier.load(tmp_path / "slim")
    assert again.classes_.tolist() == [3, 7] and len(again.explain("a superb film")) > 2
    with pytest.raises(capstan.Error, match="slim already"):
        slim.slim()


def test_errors_in_texts_name_their_index(reviews):
    texts, labels = reviews
    with pytest.raises(capstan.Error) as refused:
        capstan.Classifier(data__text_columns=["missing"]).fit(texts, labels)
    assert "capstan-" not in str(refused.value) and "texts" in str(refused.value)
