"""Releases made without a cluster: plans, values as if they had been drawn, and a store to put them in."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.pipeline.spec.plan import Plan, compile_plan
from suffice.pipeline.spec.spec import load_spec
from suffice.storage.releases.manifest import DataFile, compose_manifest
from suffice.storage.releases.parquet_layout import Sizes
from suffice.storage.releases.release_parquet import encode_statistic
from suffice.storage.releases.release_store import ReleaseStore, open_store
from support.making import mapping

if TYPE_CHECKING:
    from numpy.typing import NDArray

Values = dict[str, "NDArray[np.object_]"]

LEDGER_ID = "ab" * 16
RELEASE_ID = "0123456789abcdef"
HASH = "cd" * 32
NOW = dt.datetime(2026, 1, 31, 8, 59, 30, tzinfo=dt.UTC)


def make_plan(**changes: Any) -> Plan:
    """Compile the spec of :func:`support.making.mapping`."""
    return compile_plan(load_spec(mapping("data", **changes)))


def public_n_plan() -> Plan:
    """Compile a spec whose statistics stand beside a public number of records."""
    return make_plan(
        groups=None,
        privacy={"epsilon": "1", "neighboring": "replace_one"},
        statistics={
            "cancelled": {"family": "bernoulli", "column": "c", "nulls": {"value": "0"}},
            "delay": {"family": "normal", "column": "d", "lower": -60, "upper": 180, "nulls": {"value": "0"}},
        },
    )


def some_values(plan: Plan, seed: int = 1, *, reach: int = 2**40) -> Values:
    """Return values for every component of every cell, some of them negative."""
    rng = np.random.default_rng(seed)
    return {
        statistic.name: rng.integers(-1000, reach, (statistic.n_cells, statistic.n_values)).astype(object)
        for statistic in plan.statistics
    }


def data_files(plan: Plan, values: Values, store: ReleaseStore, window: str = "all") -> list[DataFile]:
    """Write the data files of a release, and no manifest."""
    return [
        store.write_data(
            plan.name,
            window,
            RELEASE_ID,
            statistic.name,
            encode_statistic(statistic, values[statistic.name]),
            rows=values[statistic.name].size,
        )
        for statistic in plan.statistics
    ]


def smallest_files(plan: Plan) -> list[DataFile]:
    """Return entries of files that are not there, of sizes that they could have."""
    return [
        DataFile(
            statistic=statistic.name,
            path=f"{statistic.name}.parquet",
            size=Sizes.of(statistic.groups).of_file(statistic)[0],
            sha256=HASH,
            rows=statistic.n_cells * statistic.n_values,
        )
        for statistic in plan.statistics
    ]


def compose(plan: Plan, files: list[DataFile], **changes: Any) -> bytes:
    """Compose a manifest, some arguments replaced."""
    arguments = {
        "window": "all",
        "release_id": RELEASE_ID,
        "public_n": 1000 if plan.n_is_public else None,
        "input_verified": False,
        "amendment": 0,
        "amends": None,
        "files": files,
        "ledger_id": LEDGER_ID,
        "drawing_sequence": 4,
        "drawing_hash": HASH,
        "created": NOW,
    }
    return compose_manifest(plan, **{**arguments, **changes})


def make_store(root: Path) -> ReleaseStore:
    """Open a store, made where there is none."""
    return open_store(str(root), ledger_id=LEDGER_ID, create=True)


def publish(
    root: Path, plan: Plan, values: Values | None = None, *, window: str = "all", **changes: Any
) -> Path:
    """Publish a release, some arguments of its manifest replaced, and return its directory."""
    store = make_store(root)
    files = data_files(plan, values if values is not None else some_values(plan), store, window)
    store.put_manifest(plan.name, window, RELEASE_ID, compose(plan, files, window=window, **changes))
    return Path(store.release_uri(plan.name, window, RELEASE_ID))


def flip_bit(data: bytes, position: int) -> bytes:
    """Return `data` with one bit the other way."""
    changed = bytearray(data)
    changed[position // 8] ^= 1 << position % 8
    return bytes(changed)
