"""Which published pools stand beside a release on its page, and what of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import suffice
from suffice.pages.pools_beside import pools_beside
from support.series_store import SeriesStore

if TYPE_CHECKING:
    from pathlib import Path

    from suffice import Publication

ORIGINS = {"origin": ["JFK", "LGA"]}


@pytest.mark.slow
def test_of_a_walk_a_window_has_its_own_cells(tmp_path: Path) -> None:
    windows = SeriesStore(tmp_path / "releases")
    for month in (1, 2, 3):
        windows.publish(f"2025-0{month}", [0.1 * month, 0.3], groups=ORIGINS)
    series = suffice.open_series("flights", store=tmp_path / "releases")
    walked = suffice.publish(series, "cancelled", pooled=True, draws=0, mass=0.9)
    release = series["2025-02"]
    fewer = suffice.publish(release, "cancelled", where={"origin": "JFK"}, draws=0)
    beside = pools_beside(release, [fewer, walked])
    assert list(beside) == ["cancelled"]
    pool = beside["cancelled"]
    assert (pool.publication_id, pool.mass, pool.kind) == (walked.publication_id, 0.9, "central")
    explored = pool.explored(["origin"], "../../", "./publications/x")
    assert (explored["others"], explored["over_windows"]) == (5, True)
    assert explored["link"] == f"../../publications/{walked.publication_id}/index.html"
    exact = [row for row in walked.pooled().cells if row["window"] == "2025-02"]
    assert [row["of"] for row in explored["rows"]] == [[key, "probability"] for key in ORIGINS["origin"]]
    for row, known in zip(explored["rows"], exact, strict=True):
        assert row["numbers"] == [known[name] for name in ("mean", "sd", "lower", "upper", "own_share")]


class Broken:
    """A publication whose files are not what its manifest states."""

    def __init__(self, request: dict[str, Any], error: Exception) -> None:
        self.request, self.error = request, error

    @property
    def files(self) -> list[Any]:
        raise self.error


def test_what_cannot_be_read_is_left_out(tmp_path: Path) -> None:
    windows = SeriesStore(tmp_path / "releases")
    windows.publish("2025-01", [0.1, 0.3], groups=ORIGINS)
    (release,) = suffice.open_series("flights", store=tmp_path / "releases").releases
    request = {"pooled": {"population": "beta"}, "releases": [{}], "mass": "0.95"}
    request["statistics"] = [{"statistic": "cancelled", "interval": "central"}]
    broken: Publication = Broken(request, suffice.errors.PublicationCorruptError("changed"))  # type: ignore[assignment]
    assert pools_beside(release, [broken]) == {}
    assert pools_beside(release, []) == {}
