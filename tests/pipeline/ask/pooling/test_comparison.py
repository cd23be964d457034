"""Priors compared by what was released."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import suffice
from suffice.errors import PriorError, UsageError
from suffice.pipeline.terms.declaration.documents import document
from support.releases import make_plan, publish

if TYPE_CHECKING:
    from pathlib import Path

    from suffice import Release

COUNTS = np.array([[900, 100], [800, 200], [950, 50]], dtype=object)
PRIORS = ["Beta(1, 1)", "Beta(10, 90)", "Beta(90, 10)"]


@pytest.fixture
def release(tmp_path: Path) -> Release:
    plan = make_plan(
        statistics={
            "cancelled": {"family": "bernoulli", "column": "c"},
            "delay": {"family": "normal", "column": "d", "lower": "-10", "upper": "10"},
        }
    )
    unit = 4 * (1 << 16) ** 2
    delay = np.array([[300 * unit, 450 * unit, 250 * unit]] * plan.n_cells, dtype=object)
    cancelled = np.tile(COUNTS, (plan.n_cells // 3 + 1, 1))[: plan.n_cells]
    return suffice.open_release(publish(tmp_path, plan, {"cancelled": cancelled, "delay": delay}))


def test_bayes_factors_are_ratios_of_evidence(release: Release) -> None:
    comparison = suffice.compare_priors(release, "cancelled", PRIORS)
    evidence = np.stack(
        [release.posterior("cancelled", prior=prior).log_evidence for prior in PRIORS], axis=1
    )
    assert comparison.log_evidence == pytest.approx(evidence)
    assert comparison.log_bayes_factors[:, 0].tolist() == [0.0] * len(evidence)
    assert comparison.total_log_bayes_factors == pytest.approx(np.sum(evidence - evidence[:, :1], axis=0))
    # About a tenth of all records is true.
    assert comparison.total_log_bayes_factors[1] > 0 > comparison.total_log_bayes_factors[2]
    written = document(comparison)
    assert [row["prior"] for row in written["totals"]] == PRIORS
    assert len(written["rows"]) == 3 * len(evidence)
    assert "Beta(10, 90)" in str(comparison)
    assert written["n_prior"].startswith("Reciprocal")


@pytest.mark.slow
def test_the_order_turns_the_sign_and_a_default_is_named(release: Release) -> None:
    priors = [None, "NormalInverseGamma(0, 1, 3, 1)"]
    there, back = (
        suffice.compare_priors(release, "delay", order, n_prior=1000, clipping="ignored")
        for order in (priors, priors[::-1])
    )
    assert there.total_log_bayes_factors[1] == pytest.approx(-back.total_log_bayes_factors[1])
    assert there.priors[0] == str(release.posterior("delay").prior)


def test_what_cannot_be_compared_is_refused(release: Release) -> None:
    alone: Any
    for alone in ("Beta(1, 1)", ["Beta(1, 1)"], []):
        with pytest.raises(UsageError, match="two priors or more"):
            suffice.compare_priors(release, "cancelled", alone)
    with pytest.raises(PriorError):
        suffice.compare_priors(release, "cancelled", ["Beta(1, 1)", "Gamma(1, 1)"])
