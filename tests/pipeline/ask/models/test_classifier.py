"""Classes of rows against sums over draws written out, and the Adult data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

from suffice import models
from suffice.errors import SufficeWarning, UsageError
from suffice.storage.releases.release_store import open_release
from support import adult
from support.real_data import real_data
from support.table_releases import LATE, publish_tables

if TYPE_CHECKING:
    from pathlib import Path

    from suffice.pipeline.ask.models.classifier import Classifier
    from suffice.pipeline.ask.pooling.release import Release
    from suffice.typing import Floats

ROWS: dict[str, Any] = {
    "from": np.array(["EWR", "JFK", "LGA", None, "EWR", "JFK"], dtype=object),
    "month": np.array([1.0, 2.0, 3.0, np.nan, 9.0, 2.5]),
    "kind": np.array(["jet", "prop", None, "other", "jet", "prop"], dtype=object),
    "site": np.array(["p", "q", "q", "p", "z", None], dtype=object),
}
DRAWS = 9


def released(root: Path, **changes: Any) -> Release:
    """Open the release of made-up counts of two sites."""
    return open_release(publish_tables(root, **changes))


def small(release: Release, **terms: Any) -> Classifier:
    """Make a classifier of few draws that are known."""
    return models.classifier(release, "late", method="plug-in", draws=DRAWS, rng=5, **terms)


def written_out(classifier: Classifier, row: dict[str, str | None], cell: int) -> Floats:
    """Return the chances of both classes: of every draw by its labels, normalised, then averaged."""
    labels = classifier.posterior.label_columns
    drawn = classifier.posterior.sample(DRAWS, np.random.default_rng(5))["probability"][:, cell]
    chances = np.ones((DRAWS, 2))
    for place in range(drawn.shape[1]):
        entry = {name: column[place] for name, column in labels.items()}
        table, late = str(entry["table"]), ["false", "true"].index(str(entry["late"]))
        if table == "late" or (row[table] is not None and entry[table] == row[table]):
            chances[:, late] *= drawn[:, place]
    mean: Floats = (chances / chances.sum(axis=1, keepdims=True)).mean(axis=0)
    return mean


def test_chances_are_averages_over_draws(tmp_path: Path) -> None:
    classifier = small(released(tmp_path))
    assert classifier.classes == ("false", "true")
    chances = classifier.predict_proba(ROWS)
    meant: list[tuple[dict[str, str | None], int]] = [
        ({"origin": "EWR", "month": "1", "kind": "jet"}, 0),
        ({"origin": "JFK", "month": "2", "kind": "prop"}, 1),
        ({"origin": "other", "month": "3", "kind": None}, 1),
        ({"origin": "other", "month": None, "kind": None}, 0),
    ]
    for place, (row, cell) in enumerate(meant):
        np.testing.assert_allclose(chances[place], written_out(classifier, row, cell), rtol=1e-10)
    assert np.isnan(chances[4:]).all()  # keys of no cell
    predicted = classifier.predict(ROWS).tolist()
    assert predicted[4:] == [None, None]
    assert predicted[:4] == [classifier.classes[place] for place in chances[:4].argmax(axis=1)]
    assert classifier.classify(ROWS).left_out == {"origin": 0, "month": 3, "kind": 2}
    columns = classifier.classify(ROWS).columns()
    assert columns["site"] == ["p", "q", "q", "p", None, None]
    np.testing.assert_array_equal(columns["class_probability"], chances.max(axis=1))
    np.testing.assert_array_equal(chances, classifier.predict_proba(pa.table(ROWS)))
    assert classifier.predict_proba({name: column[:0] for name, column in ROWS.items()}).shape == (0, 2)


def test_where_keeps_one_cell_and_absent_features_drop_out(tmp_path: Path) -> None:
    classifier = small(released(tmp_path), where={"site": "q"})
    expected = written_out(classifier, {"origin": None, "month": None, "kind": "jet"}, 0)
    with pytest.warns(SufficeWarning, match="no column of origin, month"):
        here = classifier.classify({"kind": ["jet", "jet"]})
    np.testing.assert_allclose(here.probability, [expected, expected], rtol=1e-10)
    assert here.absent == ("origin", "month")
    assert here.left_out == {"origin": 2, "month": 2, "kind": 0}
    with pytest.warns(SufficeWarning, match="no column of origin, month"):
        elsewhere = classifier.predict_proba({"kind": ["jet", "jet"], "site": ["p", "q"]})
    assert np.isnan(elsewhere[0]).all()
    np.testing.assert_allclose(elsewhere[1], expected, rtol=1e-10)


def test_alike_rows_and_blocks_make_no_difference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    classifier = small(released(tmp_path))
    places = np.random.default_rng(1).integers(0, 6, 500)
    once = classifier.predict_proba(ROWS)
    monkeypatch.setattr("suffice.pipeline.ask.models.classifier._BLOCK", 3 * 2 * DRAWS)
    many = classifier.predict_proba({name: column[places] for name, column in ROWS.items()})
    np.testing.assert_allclose(many, once[places], rtol=1e-12)


def test_more_combinations_than_integers_are_told_apart(tmp_path: Path) -> None:
    features = {f"f{place}": ["a", "b", "c"] for place in range(40)}
    entry = {"family": "naive_bayes", "outcome": {"late": ["false", "true"]}, "features": features}
    classifier = small(released(tmp_path, statistics={"late": entry}, groups=None))
    rows = np.random.default_rng(2).choice(np.array(["a", "b", "c", "d"]), (40, 30))
    chances = classifier.predict_proba(dict(zip(features, rows, strict=True)))
    for place in (0, 29):
        row = {
            name: None if value == "d" else str(value)
            for name, value in zip(features, rows[:, place], strict=True)
        }
        np.testing.assert_allclose(chances[place], written_out(classifier, row, 0), rtol=1e-10)


def test_scores_are_of_rows_with_a_class_and_a_cell(tmp_path: Path) -> None:
    classifier = small(released(tmp_path))
    chances = classifier.predict_proba(ROWS)
    score = classifier.score(ROWS, np.array([True, False, None, False, True, True], dtype=object))
    of_outcomes = np.array([chances[0, 1], chances[1, 0], chances[3, 0]])
    assert score.n_rows == 3
    assert score.mean_log_score == pytest.approx(np.log(of_outcomes).mean())
    assert score.accuracy == pytest.approx(np.mean(of_outcomes > 0.5))
    assert classifier.score(ROWS, ["true", "false", "x", "false", "true", "true"]) == score
    with pytest.raises(UsageError, match="2 labels of 6 rows"):
        classifier.score(ROWS, [True, False])
    with pytest.raises(UsageError, match="no row can be scored: none has a cell and a class of false, true"):
        classifier.score(ROWS, ["x"] * 6)


def test_labels_that_are_no_class_are_other_where_the_outcome_has_it(tmp_path: Path) -> None:
    outcome = {"late": {"column": "late", "categories": ["no", "yes"], "other": True}}
    classifier = small(released(tmp_path, statistics={"late": {**LATE, "outcome": outcome}}))
    assert classifier.classes == ("no", "yes", "other")
    chances = classifier.predict_proba(ROWS)
    score = classifier.score(ROWS, ["yes", "x", None, "no", "x", "x"])
    known = [row for row in range(6) if not np.isnan(chances[row, 0])]
    of_outcomes = [chances[row, (1, 2, 2, 0, 2, 2)[row]] for row in known]
    assert score.n_rows == len(known)
    assert score.mean_log_score == pytest.approx(np.log(of_outcomes).mean())


def test_what_cannot_classify_is_refused_by_what_exists(tmp_path: Path) -> None:
    both = {"late": LATE, "cancelled": {"family": "bernoulli", "column": "cancelled"}}
    release = released(tmp_path, statistics=both)
    with pytest.raises(UsageError, match=r"cancelled is bernoulli.*: in this release that is late"):
        models.classifier(release, "cancelled")
    with pytest.raises(UsageError, match="it has late, cancelled"):
        models.classifier(release, "absent")
    with pytest.raises(UsageError, match="draws must be"):
        models.classifier(release, "late", draws=0)
    classifier = small(release)
    with pytest.raises(UsageError, match="no column of any feature of late: it reads from, month"):
        classifier.predict_proba({"origin": ["JFK"]})
    with pytest.raises(UsageError, match="rows need a column 'site'"):
        classifier.predict_proba({"from": ["JFK"], "month": [1], "kind": ["jet"]})


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", ["0.1", "0.5", "1"])
def test_adult_is_classified_as_without_noise(epsilon: str, tmp_path: Path) -> None:
    """Trained on 32,561 rows: accuracy within 0.01 of the exact counts', log score no worse by 0.02."""
    data = adult.adult(real_data("adult"))
    exact_accuracy, exact_log_score = adult.add_one(data)
    assert exact_accuracy == pytest.approx(0.8115, abs=5e-5)
    assert exact_log_score == pytest.approx(-0.449, abs=5e-4)
    release = adult.released(data, epsilon, tmp_path, np.random.default_rng(1))
    labels = data.test["income"]
    score = models.classifier(release, "income", rng=1).score(data.test, labels)
    assert score.n_rows == 16_281
    assert abs(score.accuracy - exact_accuracy) <= 0.01
    assert score.mean_log_score >= exact_log_score - 0.02
    if epsilon == "0.1":
        plug_in = models.classifier(release, "income", method="plug-in", rng=1).score(data.test, labels)
        assert plug_in.mean_log_score < exact_log_score - 0.03
