"""Releases whose source is lost while it is read: each kind ends them before the draw."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import suffice
from suffice.errors import StageFailedError
from suffice.pipeline.rows.reduce import tree
from suffice.pipeline.rows.sources import SOURCES
from suffice.storage.ledger.opening import open_ledger
from support.hostile import bernoulli, normal
from support.making import Workspace, make_workspace
from support.paid import copy_database
from support.source_makers import MAKERS, VARIANTS, maker_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from support.source_makers import SourceMaker

CANARY = "CANARY-51aa"
SPEC: dict[str, Any] = {
    "window": {"column": "day", "every": "month"},
    "groups": {"city": [CANARY, "b"]},
    "statistics": {"amount": normal("amount", "0", "10"), "flag": bernoulli("flag")},
}
KINDS = [*SOURCES, *VARIANTS]
CHANGING = [made_as for made_as in KINDS if not {**MAKERS, **VARIANTS}[made_as].keeps_its_snapshot]


def rows(n_rows: int = 40) -> pa.Table:
    day = dt.date(2013, 1, 1)
    return pa.table(
        {
            "amount": pa.array([float(number) for number in range(n_rows)]),
            "city": pa.array([CANARY] * n_rows),
            "flag": pa.array([number % 2 == 0 for number in range(n_rows)]),
            "day": pa.array([day + dt.timedelta(number % 31) for number in range(n_rows)]),
        }
    )


@pytest.fixture
def maker(made_as: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> SourceMaker:
    made = VARIANTS.get(made_as) or maker_of(made_as)
    for name, value in {**made.environment, **made.prepare(request)}.items():
        monkeypatch.setenv(name, value)
    return made


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    return make_workspace(tmp_path_factory.mktemp("template"))


@pytest.fixture
def workspace(template: Workspace, tmp_path: Path) -> Workspace:
    """Return a granted ledger and no store yet."""
    copy_database(template.directory / "ledger.db", tmp_path / "ledger.db")
    return replace(
        template,
        directory=tmp_path,
        ledger=f"sqlite:///{tmp_path}/ledger.db",
        store=str(tmp_path / "releases"),
    )


def assert_it_ends_before_the_draw(workspace: Workspace, entry: dict[str, Any]) -> None:
    with pytest.raises(StageFailedError, match=r"nothing was drawn, and its epsilon was returned") as caught:
        suffice.release(
            workspace.spec(source=entry, **SPEC),
            store=workspace.store,
            ledger=workspace.ledger,
            window="2013-01",
            publish_timeout=0,
        )
    assert caught.value.stage == "reading"
    assert CANARY not in str(caught.value)
    assert caught.value.__context__ is None or caught.value.__suppress_context__
    charge = workspace.charge(window="2013-01")
    assert charge is not None
    assert charge.state == "abandoned"
    assert not charge.drew
    account = workspace.account()
    assert account.spent == account.reserved == 0
    with open_ledger(workspace.ledger) as ledger:
        kinds = [entry.kind for entry in ledger.entries()]
    assert kinds[-2:] == ["reserved", "abandoned"]
    assert "drawing" not in kinds


def around_reading(
    monkeypatch: pytest.MonkeyPatch, *, before: Callable[[], object] = int, after: Callable[[], object] = int
) -> None:
    """Do something between the reservation and the reading, or between the reading and the draw."""
    summed = tree.exact_sums

    def with_others(*given: Any, **named: Any) -> Any:
        before()
        totals = summed(*given, **named)
        after()
        return totals

    monkeypatch.setattr(tree, "exact_sums", with_others)


@pytest.mark.slow
@pytest.mark.parametrize("made_as", KINDS)
def test_a_pin_that_is_lost_before_it_is_read(
    maker: SourceMaker, workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = maker.write(tmp_path, rows())
    around_reading(monkeypatch, before=lambda: maker.lose(tmp_path))
    assert_it_ends_before_the_draw(workspace, entry)


@pytest.mark.parametrize("made_as", KINDS)
def test_a_pin_that_is_lost_when_all_is_read(
    maker: SourceMaker, workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = maker.write(tmp_path, rows())
    around_reading(monkeypatch, after=lambda: maker.lose(tmp_path))
    assert_it_ends_before_the_draw(workspace, entry)


@pytest.mark.parametrize("made_as", CHANGING)
def test_a_source_that_changes_in_place(
    maker: SourceMaker, workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = maker.write(tmp_path, rows())
    around_reading(monkeypatch, after=lambda: maker.change(tmp_path))
    assert_it_ends_before_the_draw(workspace, entry)
