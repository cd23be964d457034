"""Who asks a posterior in Python for numbers is warned where a prior contradicts what was released."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from suffice import open_release
from suffice.errors import ConflictWarning

RELEASE = Path(__file__).parents[3] / "vectors" / "valid" / "first-families" / "release"


def test_a_contradicted_prior_is_warned_of_once() -> None:
    release = open_release(RELEASE)
    posterior = release.posterior("cancelled", prior="Beta(800, 200)", where={"origin": "EWR"})
    with pytest.warns(ConflictWarning, match="conflict: the prior of the parameters, Beta"):
        posterior.credible_interval("probability")
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConflictWarning)
        posterior.quantile("probability", 0.5)
        agreeing = release.posterior("cancelled", where={"origin": "EWR"})
        agreeing.credible_interval("probability")
    another = release.posterior("cancelled", prior="Beta(800, 200)", where={"origin": "EWR"})
    with pytest.warns(ConflictWarning):
        another.quantile("probability", 0.5)


@pytest.mark.parametrize("kind", ["difference", "ratio"])
def test_differences_and_ratios_are_warned_of_where_they_were_asked_for(kind: str) -> None:
    release = open_release(RELEASE)
    cells = {"origin": "EWR"}, {"origin": "JFK"}
    with pytest.warns(ConflictWarning, match="conflict: the prior of the parameters, Beta") as caught:
        getattr(release.posterior("cancelled", prior="Beta(800, 200)"), kind)(*cells, rng=1)
    assert caught[0].filename == __file__
    with pytest.warns(ConflictWarning):
        getattr(release.posterior("cancelled", prior="Beta(800, 200)")["probability"], kind)(*cells, rng=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConflictWarning)
        getattr(release.posterior("cancelled"), kind)(*cells, rng=1)
