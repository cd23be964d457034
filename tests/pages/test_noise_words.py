"""How release pages name their noise."""

from __future__ import annotations

import pytest

from suffice.pages.card import noise_of
from support.releases import make_plan

SIDE = {"lower": "-1", "upper": "1"}
COUNT = {"count": {"family": "bernoulli", "column": "c"}}
JOINT = {"joint": {"family": "multivariate_normal", "columns": dict.fromkeys("abc", SIDE)}}


@pytest.mark.parametrize(
    ("statistics", "laplace", "cone"),
    [(COUNT, True, False), (JOINT, False, True), ({**COUNT, **JOINT}, True, True)],
)
def test_the_lead_names_every_noise_that_a_release_has(
    statistics: dict[str, object], laplace: bool, cone: bool
) -> None:
    text = noise_of(make_plan(statistics=statistics).statistics)
    assert ("discrete Laplace noise" in text) is laplace
    assert ("cone noise" in text) is cone
    assert ("as private as Laplace noise" in text) is cone
