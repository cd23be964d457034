"""Releases that derive one name in two ways are of different data, in a statistic or in its groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from suffice.errors import UsageError
from suffice.pipeline.ask.pooling.pool import Relation, relation_of, require_agreement
from support.making import make_workspace

if TYPE_CHECKING:
    from suffice.pipeline.ask.pooling.release import Release

LATE = {"column": "arr_delay", "above": "15"}
AREA = {"column": "origin", "map": {"EWR": "NJ", "JFK": "NY"}}


@pytest.fixture(scope="module")
def releases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Release]:
    place = make_workspace(tmp_path_factory.mktemp("derived"))

    def released(name: str, **derived: Any) -> Release:
        return place.run(
            name=name,
            derived=derived,
            groups={"area": ["NJ", "NY"]},
            statistics={"late": {"family": "bernoulli", "column": "late"}},
        ).release

    return {
        "one": released("one", late=LATE, area=AREA),
        "same": released("same", area=AREA, late=LATE, unused={"column": "stops", "above": "1"}),
        "later": released("later", late={**LATE, "above": "30"}, area=AREA),
        "elsewhere": released("elsewhere", late=LATE, area={**AREA, "map": {"LGA": "NJ", "JFK": "NY"}}),
    }


@pytest.mark.slow
def test_columns_that_are_derived_alike_are_the_same_data(releases: dict[str, Release]) -> None:
    require_agreement(releases["one"], releases["same"], "late")
    assert relation_of(releases["one"], releases["same"], "late")[0] is Relation.SAME_DATA


@pytest.mark.parametrize("other", ["later", "elsewhere"])
def test_columns_that_are_derived_otherwise_are_refused(releases: dict[str, Release], other: str) -> None:
    with pytest.raises(UsageError, match="differs between the releases in derived"):
        require_agreement(releases["one"], releases[other], "late")
    assert relation_of(releases["one"], releases[other], "late")[0] is Relation.OVERLAPPING


def test_a_release_states_what_it_derives(releases: dict[str, Release]) -> None:
    assert releases["one"].manifest["plan"]["derived"] == {"late": LATE, "area": {**AREA, "type": "text"}}
