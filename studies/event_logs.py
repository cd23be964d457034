"""Event logs in the shape of the war logs of Foulds et al. (2016), which are not used.

An event has a region, a time step and five features. Two logs: many events a cell of region and time, as
of Iraq (median 972), and few, as of Afghanistan (58). Their stand-ins are fatal road crashes of the United
States (`fars`): by state and year 1982-2012, and by state and month 2013-15. Where those are not there,
generated logs of 18 x 70 cells stand in. No log here is anybody's secret: features are read as they are, and
the codes that occur are the categories.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from studies.crash_labels import LABELS, STATES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from suffice.typing import Counts

Kind = Literal["many", "few"]
BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"
"""Where public data stand; SUFFICE_SHARED_DATA says where else."""
FILES: Mapping[Kind, str] = {
    "many": "crash_1982_2012.parquet",
    "few": "crash_monthly_2013_2015.parquet",
}
TIMES: Mapping[Kind, tuple[str, ...]] = {"many": ("YEAR",), "few": ("YEAR", "MONTH")}
COLUMNS: Mapping[Kind, Mapping[str, str]] = {
    "many": {
        "A_ROADFC": "road",
        "A_MANCOL": "collision",
        "A_TOD": "time_of_day",
        "A_PED": "pedestrian",
        "A_ROLL": "rollover",
    },
    "few": {
        "MAN_COLL": "collision",
        "HARM_EV": "first_event",
        "LGT_COND": "light",
        "PEDS": "pedestrian",
        "DRUNK_DR": "drunk_driver",
    },
}
NOT_ZERO = ("PEDS", "DRUNK_DR")
"""Columns of two categories: 0, and all else, as the papers' casualties."""
MEDIANS: Mapping[Kind, int] = {"many": 972, "few": 58}
GENERATED_SHAPE = (18, 70)
GENERATED_CATEGORIES = (10, 60, 2, 2, 2)
GENERATED_FEATURES = ("type", "category", "casualties_friendly", "casualties_civilian", "casualties_enemy")
GENERATED_STATES = 6
_SPREAD_OF_ROWS, _STAY, _LIKENESS = 0.76, 0.9, 100.0
"""Deviation of log rows a cell; chance to stay; Dirichlet of a cell about its state."""
_EMISSIONS = (1.3, 0.33, 1.0, 1.0, 1.0)
"""Dirichlet of the states, by feature: the one of 60 categories is sparse."""


@dataclass(frozen=True, kw_only=True)
class EventLog:
    """Events of regions and time steps with categorical features.

    Attributes
    ----------
    kind : {"many", "few"}
        Events a cell.
    source : str
        Where they come from.
    features : tuple of str
    categories : tuple of tuple of str
        Of each feature.
    regions, times : tuple of str
    region, time : ndarray of shape (n_rows,), int64
        Of each event, as a place in `regions`, `times`.
    codes : ndarray of shape (n_features, n_rows), int64
        Of each event, as a place in `categories`.
    """

    kind: Kind
    source: str
    features: tuple[str, ...]
    categories: tuple[tuple[str, ...], ...]
    regions: tuple[str, ...]
    times: tuple[str, ...]
    region: NDArray[np.int64]
    time: NDArray[np.int64]
    codes: NDArray[np.int64]

    @property
    def shape(self) -> tuple[int, int]:
        """Regions and time steps."""
        return len(self.regions), len(self.times)

    @property
    def n_rows(self) -> int:
        """Number of events."""
        return int(self.region.size)

    @cached_property
    def counts(self) -> tuple[Counts, ...]:
        """Exact counts of each feature, (n_regions, n_times, n_categories)."""
        cell = self.region * len(self.times) + self.time
        cells = len(self.regions) * len(self.times)
        return tuple(
            np.bincount(cell * len(names) + code, minlength=cells * len(names)).reshape(*self.shape, -1)
            for names, code in zip(self.categories, self.codes, strict=True)
        )

    @property
    def median_rows(self) -> float:
        """Median number of events of a cell, empty ones included."""
        return float(np.median(self.counts[0].sum(axis=-1)))

    def part(self, n_regions: int, n_times: int) -> EventLog:
        """Return the first regions and time steps, with all categories."""
        kept = (self.region < n_regions) & (self.time < n_times)
        return EventLog(
            kind=self.kind,
            source=self.source,
            features=self.features,
            categories=self.categories,
            regions=self.regions[:n_regions],
            times=self.times[:n_times],
            region=self.region[kept],
            time=self.time[kept],
            codes=self.codes[:, kept],
        )

    def write(self, path: Path) -> None:
        """Write one row an event to a Parquet file: region, time, features, as texts."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        named = {"region": (self.regions, self.region), "time": (self.times, self.time)}
        named |= dict(zip(self.features, zip(self.categories, self.codes, strict=True), strict=True))
        columns = {
            name: pa.DictionaryArray.from_arrays(pa.array(places, pa.int32()), pa.array(texts)).cast(
                pa.string()
            )
            for name, (texts, places) in named.items()
        }
        pq.write_table(pa.table(columns), path)


def event_log(kind: Kind, rng: np.random.Generator) -> EventLog:
    """Return the crashes, or a generated log where they are not there."""
    path = Path(os.environ.get("SUFFICE_SHARED_DATA", BESIDE)) / "fars" / FILES[kind]
    return crash_log(kind, path) if path.exists() else generated_log(kind, rng)


def crash_log(kind: Kind, path: Path) -> EventLog:
    """Read crashes: regions are states, time steps are years, or months."""
    import pyarrow.parquet as pq  # only where the data are

    keys, features = ("STATE", *TIMES[kind]), COLUMNS[kind]
    table = pq.read_table(path, columns=[*keys, *features])
    column = {name: table.column(name).to_numpy() for name in table.column_names}
    (regions, region), *parts = (_places(column[key]) for key in keys)
    times, time = [str(year) for year in parts[0][0]], parts[0][1]
    for months, month in parts[1:]:
        times = [f"{year}-{month_number:02}" for year in times for month_number in months]
        time = time * len(months) + month
    categories, codes = [], []
    for name in features:
        values = (column[name] > 0).astype(np.int64) if name in NOT_ZERO else column[name]
        places, code = _places(values)
        categories.append(tuple(LABELS[name].get(int(place), f"code {place}") for place in places))
        codes.append(code)
    return EventLog(
        kind=kind,
        source="fatal crashes",
        features=tuple(features.values()),
        categories=tuple(categories),
        regions=tuple(STATES[int(state_code)] for state_code in regions),
        times=tuple(times),
        region=region,
        time=time,
        codes=np.array(codes),
    )


def _places(values: NDArray[np.integer]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the values that occur, none negative, and the place of each: ``unique`` without sorting."""
    occurs = np.bincount(values) > 0
    return np.flatnonzero(occurs), (np.cumsum(occurs) - 1)[values]


def generated_log(
    kind: Kind,
    rng: np.random.Generator,
    *,
    shape: tuple[int, int] = GENERATED_SHAPE,
    n_categories: tuple[int, ...] = GENERATED_CATEGORIES,
) -> EventLog:
    """Generate a log of cells in six hidden states, each cell a little unlike its state.

    Parameters
    ----------
    kind : {"many", "few"}
        The median number of events of a cell is 972 or 58, exactly.
    rng : numpy.random.Generator
    shape : tuple of int
        Regions and time steps.
    n_categories : tuple of int
        Of each feature, five at most.
    """
    emissions = [
        rng.dirichlet(np.full(size, concentration), size=GENERATED_STATES)
        for size, concentration in zip(n_categories, _EMISSIONS, strict=False)
    ]
    states = _generated_states(shape, rng)
    weights = np.exp(_SPREAD_OF_ROWS * rng.standard_normal(shape))
    rows = np.rint(MEDIANS[kind] * weights / np.median(weights)).astype(np.int64).ravel()
    cell = np.repeat(np.arange(rows.size), rows)
    codes = []
    for size, of_states in zip(n_categories, emissions, strict=True):
        gammas = rng.standard_gamma(_LIKENESS * of_states[states.ravel()] + 1e-9)
        tallies = rng.multinomial(rows, gammas / gammas.sum(axis=1, keepdims=True))
        # Features are independent given the cell: any order of rows within it does.
        categories = np.repeat(np.tile(np.arange(size), rows.size), tallies.ravel())
        codes.append(categories[np.argsort(cell + rng.random(categories.size))])
    n_regions, n_times = shape
    return EventLog(
        kind=kind,
        source="generated",
        features=GENERATED_FEATURES[: len(n_categories)],
        categories=tuple(tuple(f"{place + 1}" for place in range(size)) for size in n_categories),
        regions=tuple(f"region {place + 1}" for place in range(n_regions)),
        times=tuple(f"step {place + 1}" for place in range(n_times)),
        region=cell // n_times,
        time=cell % n_times,
        codes=np.array(codes),
    )


def _generated_states(shape: tuple[int, int], rng: np.random.Generator) -> NDArray[np.int64]:
    n_regions, n_times = shape
    states = np.empty(shape, dtype=np.int64)
    states[:, 0] = rng.integers(GENERATED_STATES, size=n_regions)
    for step in range(1, n_times):
        fresh = rng.integers(GENERATED_STATES, size=n_regions)
        states[:, step] = np.where(rng.random(n_regions) < _STAY, states[:, step - 1], fresh)
    return states
