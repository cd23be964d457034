"""What is said of sampled posteriors."""

from __future__ import annotations

import numpy as np
import pytest

from suffice.pipeline.ask.posterior import notes
from suffice.pipeline.ask.posterior.choice_of_engine import posterior_of
from suffice.pipeline.math.distributions.normal_inverse_wishart import NormalInverseWishart
from support.joint import plan_of
from support.noisy import noisy_statistic

UNIT = {"lower": -1, "upper": 1}


@pytest.mark.slow
def test_chains_that_disagree_or_are_worth_little_are_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = {"family": "multivariate_normal", "columns": {"x": UNIT, "y": UNIT}}
    statistic = noisy_statistic(plan_of(entry, epsilon="1", public_n=False), np.zeros((1, 6), dtype=object))
    posterior = posterior_of(statistic, prior=NormalInverseWishart(0, 1, 6, 1), n_prior=20)
    r_hat, effective = (posterior.diagnostics[name] for name in ("largest_r_hat", "fewest_effective_draws"))
    monkeypatch.setattr(notes, "LARGEST_R_HAT", r_hat)
    monkeypatch.setattr(notes, "FEWEST_EFFECTIVE_DRAWS", effective)
    assert notes.unsettled_warning(posterior) == ""
    monkeypatch.setattr(notes, "FEWEST_EFFECTIVE_DRAWS", effective + 1)
    assert f"worth {effective} independent draws" in notes.unsettled_warning(posterior)
    monkeypatch.setattr(notes, "LARGEST_R_HAT", r_hat - 1e-4)
    assert f"do not agree with each other (R-hat {r_hat}" in notes.unsettled_warning(posterior)
