"""A release in rho, end to end: charged, published, read again, and refused where nothing is left."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import pandas as pd
import pytest

import suffice
from suffice.errors import BudgetExceededError
from suffice.pipeline.terms.declaration.privacy_loss import PrivacyLoss
from suffice.storage.ledger.opening import create_ledger

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
