"""What scikit-learn does with its estimators."""
import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import VotingClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_validate
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.validation import check_array

import capstan

GUIDE = Path(__file__).parents[2] / "docs" / "python.md"


class OfNumbers(capstan.Classifier):
    """Reads rows of numbers, each as a text with one word for each number: scikit-learn checks estimators with numbers."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array, tags.input_tags.one_d_array, tags.no_validation = True, False, False
        return tags

    @staticmethod
    def texts(X):
        return [" ".join(f"c{column}v{round(float(value), 1)}" for column, value in enumerate(row)) for row in check_array(X)]

    def fit(self, X, y=None, sample_weight=None):
        return super().fit(self.texts(X), y, sample_weight)

    def partial_fit(self, X, y=None, classes=None, sample_weight=None):
        return super().partial_fit(self.texts(X), y, classes, sample_weight)

    def predict(self, X):
        return super().predict(self.texts(X))

    def predict_proba(self, X):
        return super().predict_proba(self.texts(X))

    def decision_function(self, X):
        return super().decision_function(self.texts(X))


def test_the_guide_lists_which_checks_of_scikit_learn_fail():
    estimator_checks = pytest.importorskip("sklearn.utils.estimator_checks")
    try:
        found = estimator_checks.check_estimator(OfNumbers(), on_fail=None, on_skip=None)
    except TypeError:
        pytest.skip("scikit-learn before 1.7 does not return what failed")
    failed = {result["check_name"] for result in found if result["status"] == "failed"}
    listed = set(re.findall(r"^\| `(check_\w+)`", GUIDE.read_text(), re.MULTILINE))
    assert failed == listed
    assert estimator_checks.check_estimator(capstan.Classifier())[0]["status"] == "passed"


def test_it_is_a_step_of_a_pipeline_and_its_parameters_are_set_through_it(reviews):
    lower = FunctionTransformer(lambda texts: [text.lower() for text in texts])
    steps = Pipeline([("lower", lower), ("classify", capstan.Classifier())]).set_params(classify__model__words=[1])
    assert steps.fit(*reviews).score(*reviews) == 1 and steps.get_params()["classify__model__words"] == [1]
    assert (steps.decision_function(reviews[0]) > 0).tolist() == [label == "good" for label in reviews[1]]


def test_it_is_calibrated_by_scikit_learn(reviews):
    for method in ("sigmoid", "isotonic"):
        model = CalibratedClassifierCV(capstan.Classifier(), cv=2, method=method).fit(*reviews)
        assert model.predict_proba(reviews[0]).shape == (120, 2) and model.score(*reviews) == 1


@pytest.mark.parametrize("voting", ["hard", "soft"])
def test_it_votes_with_others(reviews, voting):
    others = make_pipeline(TfidfVectorizer(), LogisticRegression())
    model = VotingClassifier([("capstan", capstan.Classifier()), ("sklearn", others)], voting=voting).fit(*reviews)
    assert model.score(*reviews) == 1


def test_several_metrics_are_cross_validated(reviews):
    metrics = ["accuracy", "f1_macro", "roc_auc", "neg_log_loss", "average_precision"]
    labels = [int(label == "good") for label in reviews[1]]
    found = cross_validate(capstan.Classifier(), reviews[0], labels, cv=3, scoring=metrics, return_train_score=True)
    assert all(found[f"test_{name}"].shape == (3,) and np.isfinite(found[f"test_{name}"]).all() for name in metrics)
    assert found["test_roc_auc"].min() > 0.9
    folds = cross_validate(capstan.Classifier(), np.array(reviews[0]), reviews[1], cv=3, params={"sample_weight": [1.0] * 120})
    assert folds["test_score"].min() > 0.9


def test_decision_values_have_the_order_and_shape_of_classes(reviews):
    three = ["film" if "film" in text else label for text, label in zip(*reviews)]
    model = capstan.Classifier().fit(reviews[0], three)
    values = model.decision_function(reviews[0])
    assert model.classes_.tolist() == ["bad", "film", "good"] and values.shape == (120, 3)
    assert (model.classes_[values.argmax(axis=1)] == model.predict(reviews[0])).all()
    assert np.allclose(np.exp(model.predict_log_proba(reviews[0])), model.predict_proba(reviews[0]))


@pytest.mark.parametrize("given, likelier", [({"bad": 5}, "bad"), ({"good": 5}, "good"), ("balanced", "good")])
def test_weights_of_classes_move_decisions(given, likelier):
    texts, labels = ["a film"] * 80 + ["a play"] * 20, ["bad"] * 50 + ["good"] * 30 + ["bad"] * 15 + ["good"] * 5
    assert capstan.Classifier().fit(texts, labels).predict(["a film"]) == ["bad"]
    assert capstan.Classifier(class_weight=given).fit(texts, labels).predict(["a film"]) == [likelier]


def test_weights_of_texts_move_probabilities(reviews):
    texts, labels = reviews
    heavy = capstan.Classifier().fit(texts, labels, sample_weight=[4 if label == "bad" else 1 for label in labels])
    plain = capstan.Classifier().fit(texts, labels)
    assert heavy.predict_proba(["nothing of this"])[0, 0] > plain.predict_proba(["nothing of this"])[0, 0] + 0.1
    for weights, hint in [([1], "1 numbers for 120"), ([-1] * 120, "finite numbers from 0"), ([0] * 120, "all weights are zero"),
                          ([[1]] * 120, "must be 1D")]:
        with pytest.raises(ValueError, match=hint):
            capstan.Classifier().fit(texts, labels, sample_weight=weights)
