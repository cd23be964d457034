"""Small data sets, specs, ledgers and stores for tests of whole releases."""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from suffice.pipeline.spec.spec import Spec, load_spec
from suffice.releasing.release import Outcome, carry_out
from suffice.storage.ledger.opening import create_ledger, open_ledger

if TYPE_CHECKING:
    from pathlib import Path

    from suffice.storage.ledger.account import Account
    from suffice.storage.ledger.charge import Charge

ORIGINS = ["EWR", "JFK", "LGA"]


def flights(n_rows: int = 600, *, seed: int = 1) -> pa.Table:
    """Return rows with every kind of column, with nulls, unknown keys and values out of range."""
    rng = np.random.default_rng(seed)
    day = np.datetime64("2013-01-01") + rng.integers(0, 120, n_rows)
    delay = rng.normal(10, 60, n_rows)
    delay[rng.random(n_rows) < 0.05] = np.nan
    return pa.table(
        {
            "origin": pa.array(rng.choice([*ORIGINS, "XXX"], n_rows)),
            "day": pa.array(day),
            "carrier": pa.array(
                rng.choice(np.array(["UA", "DL", "AA", None], dtype=object), n_rows), type=pa.string()
            ),
            "cancelled": pa.array(rng.random(n_rows) < 0.1),
            "arr_delay": pa.array(delay),
            "stops": pa.array(rng.poisson(2, n_rows)),
        }
    )


def write_parts(table: pa.Table, directory: Path, n_files: int = 3) -> Path:
    """Write a table as several Parquet files of several row groups."""
    directory.mkdir(parents=True, exist_ok=True)
    size = -(-table.num_rows // n_files)
    for part in range(n_files):
        piece = table.slice(part * size, size)
        pq.write_table(piece, directory / f"part-{part}.parquet", row_group_size=max(1, size // 3))
    return directory


def mapping(source: Path | str | dict[str, str], **changes: Any) -> dict[str, Any]:
    """Return a spec with one statistic of each family, keys of `changes` replaced; None deletes one."""
    spec: dict[str, Any] = {
        "name": "flights",
        "dataset": "passengers",
        "source": source if isinstance(source, dict) else {"parquet": str(source)},
        "privacy": {"epsilon": "1", "neighboring": "add_or_remove_one", "unit": "row"},
        "groups": {"origin": ORIGINS},
        "statistics": {
            "carrier": {
                "family": "categorical",
                "column": "carrier",
                "categories": ["UA", "DL"],
                "other": True,
            },
            "cancelled": {"family": "bernoulli", "column": "cancelled"},
            "stops": {"family": "poisson", "column": "stops", "upper": 5},
            "arr_delay": {"family": "normal", "column": "arr_delay", "lower": -60, "upper": 180},
        },
        **changes,
    }
    return {key: value for key, value in spec.items() if value is not None}


@dataclass(frozen=True)
class Workspace:
    """A directory with data, a granted ledger and an empty store.

    Its specs have `statistics`, or those of :func:`mapping`.
    """

    directory: Path
    data: Path
    ledger: str
    store: str
    statistics: dict[str, Any] | None = None

    def spec(self, **changes: Any) -> Spec:
        """Return the spec of :func:`mapping` over this place's data."""
        return load_spec(mapping(**{"source": self.data, **self._statistics(), **changes}))

    def write_spec(self, **changes: Any) -> Path:
        """Write that spec to a file."""
        path = self.directory / "release.json"
        path.write_text(json.dumps(mapping(self.data, **{**self._statistics(), **changes})), encoding="utf-8")
        return path

    def _statistics(self) -> dict[str, Any]:
        return {} if self.statistics is None else {"statistics": self.statistics}

    def run(self, *, window: str = "all", new_attempt: bool = False, **changes: Any) -> Outcome:
        """Carry that spec out."""
        return carry_out(
            self.spec(**changes),
            store=self.store,
            ledger=self.ledger,
            window=window,
            new_attempt=new_attempt,
            publish_timeout=0,
        )

    def account(self) -> Account:
        """Return the account of the data set."""
        with open_ledger(self.ledger) as ledger:
            return ledger.account("passengers")

    def charge(self, name: str = "flights", window: str = "all") -> Charge | None:
        """Return the charge of a release, if there is one."""
        with open_ledger(self.ledger) as ledger:
            return ledger.find("passengers", name, window)


def make_workspace(
    directory: Path,
    *,
    granted: str = "10",
    measure: str = "epsilon",
    table: pa.Table | None = None,
    **terms: Any,
) -> Workspace:
    """Write data, and grant a budget for them."""
    data = write_parts(flights() if table is None else table, directory / "data")
    url = f"sqlite:///{directory / 'ledger.db'}"
    with create_ledger(url) as ledger:
        if "per_window" in terms:
            terms.setdefault("sources", [str(data.resolve())])
        terms[measure] = Fraction(granted)
        ledger.grant("passengers", reason="tests", **terms)
    return Workspace(directory=directory, data=data, ledger=url, store=str(directory / "releases"))


def january(table: pa.Table) -> pa.Table:
    """Keep the rows of January 2013."""
    days = np.asarray(table["day"])
    return table.filter(
        pa.array((days >= np.datetime64(dt.date(2013, 1, 1))) & (days < np.datetime64("2013-02")))
    )
