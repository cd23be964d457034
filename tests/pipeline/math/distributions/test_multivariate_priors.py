"""Priors of several columns: read, written and refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from suffice.errors import PriorError
from suffice.pipeline.ask.posterior.choice_of_engine import posterior_of
from suffice.pipeline.math.distributions.normal_inverse_gamma import NormalInverseGammaRegression
from suffice.pipeline.math.distributions.normal_inverse_wishart import NormalInverseWishart
from suffice.pipeline.math.priors.by_name import parse_prior
from support.several import ENTRIES, released, rows_of


@pytest.mark.parametrize(
    "text",
    [
        "NormalInverseWishart(0, 1, 5, 2)",
        "NormalInverseWishart([0, 1.5], precision=1, df=5, scale=[1, 2])",
        "NormalInverseWishart([0, -1], 1, 5, [[1, 0.5], [0.5, 2]])",
        "NormalInverseGammaRegression([1, 2], [[1, 0], [0, 2]], 3, 4)",
    ],
)
def test_priors_are_read_and_written_alike(text: str) -> None:
    prior = parse_prior(text)
    assert parse_prior(str(prior)) == prior
    assert hash(prior) == hash(parse_prior(text))


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("NormalInverseWishart(0, 0, 5, 2)", "above 0"),
        ("NormalInverseWishart(0, 1, [5], 2)", "above 0"),
        ("NormalInverseWishart([[[1]]], 1, 5, 2)", "plain number"),
        ("NormalInverseWishart([0, 'x'], 1, 5, 2)", "plain number"),
        ("NormalInverseWishart([], 1, 5, 2)", "finite numbers"),
        ("NormalInverseWishart(0, 1, 5)", r"takes exactly \(loc, precision, df, scale\)"),
        ("Beta([1, 2], 3)", "must be a number"),
    ],
)
def test_priors_that_are_none_are_refused(text: str, rule: str) -> None:
    with pytest.raises(PriorError, match=rule):
        parse_prior(text)


@pytest.mark.parametrize(
    ("prior", "rule"),
    [
        (NormalInverseWishart(0, 1, 2, 1), "df must be above 2"),
        (NormalInverseWishart([0, 1], 1, 5, 1), "loc needs 1 or 3 numbers"),
        (NormalInverseWishart(0, 1, 5, [1, 2]), "3 lists of 3"),
        (NormalInverseWishart(0, 1, 5, [1, -2, 1]), "positive definite"),
        (NormalInverseWishart(0, 1, 5, [1, 0, 1]), "positive definite"),
        (NormalInverseWishart(0, 1, 5, [[1, 2, 0], [2, 1, 0], [0, 0, 1]]), "positive definite"),
        (NormalInverseWishart(0, 1, 5, [[1, 2, 0], [1, 5, 0], [0, 0, 1]]), "symmetric"),
        (NormalInverseWishart(0, 1, 5, [[1, 2], [1]]), "equal lists"),
        (NormalInverseGammaRegression(0, 1, 1, 1), "must be NormalInverseWishart"),
    ],
)
def test_priors_that_do_not_fit_are_refused(prior: Any, rule: str) -> None:
    statistic = released(ENTRIES["normal"], rows_of(40, np.random.default_rng(7)))
    with pytest.raises(PriorError, match=rule):
        posterior_of(statistic, prior=prior, method="plug-in")
