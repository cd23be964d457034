"""A release whose statistics have different groups, from rows to every reader, page and question."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import suffice
from suffice.cataloguing.catalogue import catalogue
from suffice.errors import SpecError, SufficeWarning, UsageError
from support.javascript import ask

ORIGINS = ["EWR", "JFK", "LGA"]
N_ROWS = 30_000


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    rng = np.random.default_rng(7)
    return pd.DataFrame(
        {
            "origin": rng.choice([*ORIGINS, "SWF"], N_ROWS),
            "month": rng.integers(1, 14, N_ROWS),
            "cancelled": rng.random(N_ROWS) < 0.1,
            "arr_delay": rng.normal(10, 30, N_ROWS),
        }
    )


def flights(**changes: Any) -> suffice.Spec:
    words = {"keys": {"origin": {"label": "Airport", "values": {"SWF": "Newburgh"}}}}
    return suffice.spec(
        dataset="flights",
        epsilon=30,
        groups={"origin": ORIGINS, "month": range(1, 13)},
        statistics={
            "cancelled": suffice.bernoulli(),
            "arr_delay": suffice.normal(lower=-60, upper=180, groups={"origin": ["LGA", "SWF"]}),
            "flights": suffice.bernoulli("cancelled", groups={}),
        },
        **{"about": words, **changes},
    )


@pytest.fixture(scope="module")
def released(rows: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> suffice.Release:
    root = tmp_path_factory.mktemp("flights")
    places: dict[str, Any] = {"store": str(root / "store"), "ledger": f"sqlite:///{root / 'ledger.db'}"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SufficeWarning)
        suffice.grant(
            "flights", epsilon=30, reason="a test", ledger=places["ledger"], create=True, unwitnessed=True
        )
        suffice.release(flights(), data=rows, **places)
    return suffice.open_release("flights", store=places["store"])


def test_each_counts_the_rows_of_its_own_cells(released: suffice.Release, rows: pd.DataFrame) -> None:
    by = rows[rows.origin.isin(ORIGINS) & (rows.month <= 12)].groupby(["origin", "month"]).size()
    counts = {
        name: [row["estimate"] for row in released.table(name) if row["quantity"] == "n"] for name in released
    }
    assert counts["cancelled"] == pytest.approx([by[o, m] for o in ORIGINS for m in range(1, 13)], abs=10)
    of_origin = rows.groupby("origin").size()
    assert counts["arr_delay"] == pytest.approx([of_origin["LGA"], of_origin["SWF"]], abs=50)
    assert counts["flights"] == pytest.approx([N_ROWS], abs=10)


def test_questions_are_asked_of_a_statistics_own_cells(released: suffice.Release) -> None:
    assert released.posterior("arr_delay", where={"origin": "SWF"}).mean("mean") == pytest.approx(10, abs=2)
    assert released.posterior("flights").mean() == pytest.approx(0.1, abs=0.02)
    assert "by origin>" in repr(released["arr_delay"])
    assert repr(released["flights"]).endswith("1 cell>")
    with pytest.raises(UsageError, match=r"no group 'month': its groups are origin"):
        released.table("arr_delay", where={"month": 1})
    with pytest.raises(UsageError, match=r"no group 'origin': its groups are none"):
        released.posterior("flights", where={"origin": "JFK"})
    with pytest.raises(UsageError, match="has origin=SWF: its keys are EWR, JFK, LGA"):
        released.table("cancelled", where={"origin": "SWF"})
    yearly = suffice.roll_up(released["cancelled"], "month").posterior()
    assert list(yearly.groups) == ["origin"]
    with pytest.raises(UsageError):
        suffice.roll_up(released["flights"], "month")


def test_the_reader_in_javascript_has_the_same_tables(released: suffice.Release) -> None:
    directory = Path(released.uri.removeprefix("file://"))
    where = {"cancelled": {"origin": "JFK"}, "arr_delay": {"origin": "SWF"}, "flights": {}}
    asked: list[dict[str, Any]] = [{"statistic": name, "table": {"where": of}} for name, of in where.items()]
    answers = ask(directory, asked)["answers"]
    for (name, of), answer in zip(where.items(), answers, strict=True):
        expected = released.table(name, of)
        assert [row["cell"] for row in answer] == [
            {column: row[column] for column in released.plan_of(name).groups} for row in expected
        ]
        assert [row["estimate"] for row in answer] == pytest.approx([row["estimate"] for row in expected])


def test_pages_and_descriptions_name_each_statistics_cells(released: suffice.Release, tmp_path: Path) -> None:
    store = released.uri.removeprefix("file://").split("/flights/")[0]
    catalogue(store, tmp_path / "site")
    pages = {path.name: path.read_text() for path in (tmp_path / "site").rglob("*.html")}
    page = next(text for text in pages.values() if "36 cells by origin, month: cancelled" in text)
    assert "2 cells by origin: arr_delay" in page
    assert "1 cell: flights" in page
    assert "groups of their own" in page
    assert "Newburgh" in page
    (package,) = (tmp_path / "site").rglob("datapackage.json")
    keys = {
        entry["name"]: entry["schema"]["primaryKey"] for entry in json.loads(package.read_text())["resources"]
    }
    assert keys == {
        "cancelled": ["origin", "month", "component"],
        "arr_delay": ["origin", "component"],
        "flights": ["component"],
    }


def test_words_fit_the_keys_of_any_statistic() -> None:
    flights()
    with pytest.raises(SpecError, match="no such group: there are origin, month"):
        flights(about={"keys": {"carrier": {"label": "Carrier"}}})
