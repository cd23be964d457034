"""A release in rho, end to end: charged, published, read again, and refused where nothing is left."""

from __future__ import annotations

import datetime as dt
import json
from fractions import Fraction
from typing import TYPE_CHECKING

import pandas as pd
import pyarrow as pa
import pytest

import suffice
from suffice.errors import BudgetExceededError
from suffice.pipeline.terms.declaration.privacy_loss import PrivacyLoss
from suffice.storage.ledger.opening import create_ledger
from support.postgres_tables import write_postgresql

if TYPE_CHECKING:
    from pathlib import Path

    from suffice.pipeline.spec.spec import Spec


def night(number: int) -> Spec:
    statistics = {"late": suffice.bernoulli(), "delay": suffice.normal(lower=-60, upper=180)}
    return suffice.spec(name=f"night-{number}", dataset="persons", statistics=statistics, rho="0.02")


def test_nights_of_the_same_persons_add_up_in_rho(tmp_path: Path) -> None:
    frame = pd.DataFrame({"late": [True, False] * 40, "delay": [float(minute) for minute in range(80)]})
    url, store = f"sqlite:///{tmp_path}/ledger.db", tmp_path / "store"
    with create_ledger(url) as ledger:
        ledger.grant("persons", rho=Fraction("0.05"), neighboring="add_or_remove_one", unit="row", reason="t")
    releases = [suffice.release(night(number), store, url, data=frame) for number in range(2)]
    assert [release.loss for release in releases] == [PrivacyLoss.of_rho(Fraction("0.02"))] * 2
    manifest = next(store.rglob("manifest.json")).read_text()
    assert '"rho":"0.02"' in manifest
    assert '"l2_squared":"1"' in manifest
    assert '"epsilon"' not in manifest
    late = releases[0].posterior("late").mean("probability")
    assert 0 < float(late[0]) < 1
    with pytest.raises(BudgetExceededError):
        suffice.release(night(2), store, url, data=frame)


@pytest.mark.slow
def test_windows_of_a_database_are_released_and_published_in_rho(
    tmp_path: Path, source_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Read through SQL, charged window by window; the publication states rho, and nothing epsilon."""
    monkeypatch.setenv("SUFFICE_POSTGRESQL", source_database)
    days = [dt.date(2013, month, 1 + number % 28) for month in (1, 2) for number in range(80)]
    table = pa.table({"day": days, "late": [number % 4 == 0 for number in range(len(days))]})
    spec = {
        "name": "monthly",
        "dataset": "persons",
        "source": write_postgresql(table, "public.in_rho"),
        "privacy": {"rho": "0.02", "neighboring": "add_or_remove_one", "unit": "row"},
        "window": {"column": "day", "every": "month"},
        "statistics": {"late": {"family": "bernoulli", "column": "late"}},
    }
    url, store = f"sqlite:///{tmp_path}/ledger.db", tmp_path / "store"
    with create_ledger(url) as ledger:
        ledger.grant("persons", rho=Fraction("0.05"), neighboring="add_or_remove_one", unit="row", reason="t")
    done = suffice.backfill(suffice.load_spec(spec), "2013-01", "2013-03", store=store, ledger=url)
    assert done.named("published") == ("2013-01", "2013-02")
    assert (done.named("left"), done.needed) == (("2013-03",), Fraction("0.06"))
    assert "rho 0.01 left of 0.05, the release asks for 0.02" in str(done.refusal)
    release = suffice.open_release(str(done.windows[0].uri))
    suffice.publish(release, "late", draws=20, seed=1, to=str(tmp_path / "published"))
    manifest = json.loads(next((tmp_path / "published").rglob("manifest.json")).read_text(encoding="utf-8"))
    assert manifest["rho"] == {release.release_id: "0.02"}
    assert manifest["epsilon"] == {}
