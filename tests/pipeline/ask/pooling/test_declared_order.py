"""Columns whose declared order is not that of the alphabet, which canonical plans sort by."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import suffice
from suffice.errors import UsageError
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.terms.statistics.measure import MomentSums
from support import releases
from support.releases import make_plan, publish
from support.several import lattice_sums, spec_of

if TYPE_CHECKING:
    from pathlib import Path

    from suffice.pipeline.ask.pooling.release import Release

ROWS = 100_000
COLUMNS: dict[str, dict[str, Any]] = {"z": {"lower": 0, "upper": 10}, "a": {"lower": -1, "upper": 1}}
MEANS, SDS = [5.0, 0.25], [1.0, 0.1]


def release_of(
    tmp_path: Path, columns: dict[str, dict[str, Any]], release_id: str, monkeypatch: pytest.MonkeyPatch
) -> Release:
    """Publish moments of normal rows, without noise."""
    monkeypatch.setattr(releases, "RELEASE_ID", release_id)
    entry = {"family": "multivariate_normal", "columns": columns}
    spec, plan = spec_of(entry), make_plan(statistics={"s": entry}, groups={})
    measure = FAMILIES["multivariate_normal"].measure(spec.statistics["s"])
    assert isinstance(measure, MomentSums)
    rows = np.random.default_rng(7).normal(MEANS, SDS, (ROWS, 2))
    of_name = dict(zip(COLUMNS, rows.T, strict=True))
    lattice = [of.quantiser.quantise(of_name[name]) for name, of in zip(columns, measure.of, strict=True)]
    (statistic,) = plan.statistics
    totals = FAMILIES["multivariate_normal"].totals(
        spec.statistics["s"], statistic.design, lattice_sums(np.stack(lattice, axis=1))
    )
    return suffice.open_release(publish(tmp_path / release_id, plan, {"s": totals}))


@pytest.fixture
def release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Release:
    return release_of(tmp_path, COLUMNS, f"{1:016x}", monkeypatch)


@pytest.mark.slow
def test_new_rows_follow_the_order_that_was_declared(release: Release) -> None:
    """A million rows: their means are those of the parameters, far from those of the columns exchanged."""
    assert list(release.entry("s")["columns"]) == ["z", "a"]
    posterior = release.posterior("s", method="plug-in")
    assert posterior.mean("mean")[0] == pytest.approx(MEANS, abs=0.05)
    new = posterior.predictive(10_000, 100, rng=1)
    assert np.mean(new["total"], axis=(0, 1)) / 10_000 == pytest.approx(MEANS, abs=0.05)
    second = np.square(MEANS) + np.square(SDS)
    assert np.mean(new["total_of_squares"], axis=(0, 1)) / 10_000 == pytest.approx(second, rel=0.05)


@pytest.mark.slow
def test_such_a_release_is_calibrated(release: Release) -> None:
    calibration = suffice.calibrate(release, "s", method="plug-in", simulations=3, n_prior=20)
    assert [ranks.parameter for ranks in calibration.clipped][:2] == ["mean[z]", "mean[a]"]


@pytest.mark.slow
def test_other_orders_are_not_pooled(
    tmp_path: Path, release: Release, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their components are sums and differences of the columns in order: added up they mean nothing."""
    exchanged = release_of(tmp_path, {name: COLUMNS[name] for name in ("a", "z")}, f"{2:016x}", monkeypatch)
    with pytest.raises(UsageError, match="the order of columns"):
        suffice.pool("s", same_data=[release, exchanged], vouched=True)
    same = release_of(tmp_path, COLUMNS, f"{3:016x}", monkeypatch)
    pooled = suffice.pool("s", same_data=[release, same], vouched=True, rng=1)
    assert pooled.mean("mean")[0] == pytest.approx(MEANS, abs=0.05)
