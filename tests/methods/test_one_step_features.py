from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import torch
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from assay.methods.one_step_estimators import OneStepClassifier, OneStepRegressor
from assay.methods.one_step_features import OneStepFeatures


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks([OneStepFeatures(16), OneStepClassifier(32), OneStepRegressor(32)])
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


def xor(n: int, dim: int = 30, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Centres ±√dim e_0 for one class and ±√dim e_1 for the other: no linear rule is better than chance."""
    draws = np.random.default_rng(seed)
    component = draws.integers(4, size=n)
    centres = np.sqrt(dim) * np.concatenate([np.eye(dim)[:2], -np.eye(dim)[:2]])
    return centres[component] + draws.standard_normal((n, dim)), np.where(component % 2, "up", "flat")


def test_what_no_linear_rule_solves_the_step_does():
    inputs, labels = xor(800)
    test_inputs, test_labels = xor(1000, seed=1)
    found = OneStepClassifier(128, random_state=0).fit(inputs, labels)
    assert found.score(test_inputs, test_labels) > 0.95
    assert LogisticRegression().fit(inputs, labels).score(test_inputs, test_labels) < 0.6
    assert set(found.predict(test_inputs)) == {"flat", "up"}
    assert found.switch_ in {row["switch"] for row in found.validation_}
    assert found.penalty_ in {row["penalty"] for row in found.validation_}
    np.testing.assert_allclose(found.predict_proba(test_inputs).sum(1), 1)
    odds = found.decision_function(test_inputs)
    assert ((odds > 0) == (found.predict(test_inputs) == "up")).all()
    # The features alone are enough for any head.
    features = OneStepFeatures(128, random_state=0)
    head = make_pipeline(features, StandardScaler(), LogisticRegression(max_iter=1000)).fit(inputs, labels)
    assert head.score(test_inputs, test_labels) > 0.9


def test_shuffled_labels_teach_nothing():
    inputs, labels = xor(600)
    shuffled = np.random.default_rng(2).permutation(labels)
    found = OneStepClassifier(64, random_state=0).fit(inputs, shuffled)
    assert found.score(*xor(1000, seed=1)) == pytest.approx(0.5, abs=0.1)


def test_a_quadratic_target_needs_the_features():
    draws = np.random.default_rng(0)
    inputs = draws.standard_normal((1500, 15))
    targets = inputs[:, 0] ** 2 - inputs[:, 1] ** 2 + 2 * inputs[:, 2] + 5
    found = OneStepRegressor(200, random_state=0).fit(inputs[:1000], targets[:1000])
    assert found.score(inputs[1000:], targets[1000:]) > 0.8
    assert found.linear_ is not None
    linear = found.linear_.scores(torch.from_numpy(inputs[1000:])).squeeze(1).numpy()
    assert np.corrcoef(linear, inputs[1000:, 2])[0, 1] > 0.95, "the step is not spent on the linear part"


def test_it_lives_in_pipelines_and_searches():
    inputs, labels = xor(200)
    search = GridSearchCV(
        make_pipeline(StandardScaler(), OneStepClassifier(32, penalty=0.01, switch=0.7, random_state=0)),
        {"onestepclassifier__bias_scale": [0.5, 1.0]},
        cv=2,
    ).fit(inputs, labels)
    assert search.best_params_["onestepclassifier__bias_scale"] in (0.5, 1.0)
    twin = clone(OneStepClassifier(64, penalty=0.1))
    assert repr(twin) == "OneStepClassifier(penalty=0.1, width=64)"
    assert is_classifier(twin)
    assert is_regressor(OneStepRegressor())
    with pytest.raises(ValueError, match="Invalid parameter 'depth'"):
        twin.set_params(depth=3)


def test_tensors_of_any_precision_are_taken():
    inputs, labels = xor(200)
    coarse = torch.from_numpy(inputs).bfloat16().requires_grad_()
    found = OneStepClassifier(32, random_state=0).fit(coarse, labels)
    plain = OneStepClassifier(32, random_state=0).fit(coarse.detach().double().numpy(), labels)
    np.testing.assert_array_equal(found.predict_proba(coarse), plain.predict_proba(coarse.detach().double().numpy()))


def test_equal_seeds_give_equal_results_and_the_global_generators_stay():
    inputs, labels = xor(200)
    state, numpys = torch.random.get_rng_state(), np.random.get_state()[1].copy()
    first = OneStepClassifier(32, random_state=3).fit(inputs, labels).predict_proba(inputs)
    second = OneStepClassifier(32, random_state=3).fit(inputs, labels).predict_proba(inputs)
    np.testing.assert_array_equal(first, second)
    assert torch.equal(torch.random.get_rng_state(), state)
    np.testing.assert_array_equal(np.random.get_state()[1], numpys)


@pytest.mark.parametrize(
    ("sentence", "changes"),
    [
        ("multiple of 4", {"width": 30}),
        ("bias_scale must be positive", {"bias_scale": -1}),
        ("biases must be one of", {"biases": "none"}),
        ("switch must be", {"switch": "some"}),
        ("penalty must be positive", {"penalty": 0}),
        ("held_out must lie in", {"held_out": 1.5}),
    ],
)
def test_bad_settings_are_refused(sentence, changes):
    with pytest.raises(ValueError, match=sentence):
        OneStepClassifier(**{"width": 32, **changes}).fit(*xor(50))


def test_bad_data_are_refused():
    inputs, labels = xor(50)
    with pytest.raises(ValueError, match="NaN"):
        OneStepClassifier(32).fit(inputs * np.nan, labels)
    with pytest.raises(ValueError, match="at least two classes"):
        OneStepClassifier(32).fit(inputs, np.zeros(50, dtype=int))
    with pytest.raises(ValueError, match="loss must be one of logistic, squared"):
        OneStepFeatures(32, loss="hinge2").fit(inputs, labels)
    with pytest.raises(NotFittedError):
        OneStepClassifier(32).predict(inputs)


def test_the_room_does_not_import_scikit_learn_and_the_module_does_without():
    script = (
        "import sys; import assay.methods; print('sklearn' in sys.modules); sys.modules['sklearn'] = None; "
        "sys.modules['sklearn.base'] = None; from assay.methods import OneStepClassifier; made = OneStepClassifier(8)\n"
        "try:\n    made.fit([[0.0], [1.0]], [0, 1])\nexcept ImportError as error:\n    print(error)"
    )
    lines = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stdout.splitlines()
    assert lines[0] == "False"
    assert lines[1].startswith("OneStepFeatures needs the extra 'lab'")
