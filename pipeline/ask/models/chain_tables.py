r"""Released counts over chains and time, from one release or from the windows of a series.

.. math:: y_{rtdj} = n_{rtdj} + \mathrm{DLap}_{b_d}

of chain r, time step t, and category j of feature d: what hidden Markov models are fitted to. Chains and time
steps are combinations of the keys of group columns; of a series the window is time. Nothing is computed here
beyond putting cells in order, so there is no error.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.errors import UsageError
from suffice.pipeline.ask.pooling.release import Release
from suffice.pipeline.terms.declaration.documents import printed
from suffice.pipeline.terms.declaration.domains import Every, next_period, period_label, period_start
from suffice.pipeline.terms.released.noisy_statistic import rows_alone
from suffice.pipeline.terms.statistics.sensitivity import Design
from suffice.pipeline.terms.statistics.statistic_plan import INT64

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic


@dataclass(frozen=True, slots=True, kw_only=True)
class CountsOverTime:
    """Noisy counts of D features in cells of chains and time steps.

    Attributes
    ----------
    counts : tuple of ndarray
        One a feature, of shape (n_chains, n_times, n_categories), integers; negative ones are normal. What
        stands in a cell that is not observed has no meaning.
    is_observed : ndarray
        Shape (n_chains, n_times). A cell that is not takes part with no emission.
    scales : tuple of float
        Of the discrete Laplace noise of each feature, P(z) proportional to exp(-|z| / scale); 0: none.
    """

    counts: tuple[NDArray[np.int64], ...]
    is_observed: NDArray[np.bool_]
    scales: tuple[float, ...]


FAMILIES_OF_FEATURES = ("categorical", "bernoulli")
"""Whose components are counts of categories."""
WINDOW = "window"
"""What the time of a series is called in tables."""
_MOST_NAMED = 8

Keys = Mapping[str, list[str | int]]
"""Keys of chains or of time steps, by column."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """A statistic whose categories are counted.

    Attributes
    ----------
    name : str
        Of the statistic.
    categories : tuple of str
        In the order released.
    """

    name: str
    categories: tuple[str, ...]


@printed("releases statistics=feature_names chain=chain_columns time=time_columns")
@dataclass(frozen=True, slots=True, kw_only=True)
class ChainTable:
    """Released counts over chains and time steps, and what all of them are called.

    Attributes
    ----------
    counts : CountsOverTime
    features : tuple of Feature
        In the order of the table's.
    chain_keys, time_keys : dict of str to list
        By column: the key of each chain, and of each time step in its order.
    releases : tuple of str
        Labels of the releases that it was read from.
    """

    counts: CountsOverTime = field(repr=False)
    features: tuple[Feature, ...]
    chain_keys: Keys = field(repr=False)
    time_keys: Keys = field(repr=False)
    releases: tuple[str, ...]

    @property
    def n_chains(self) -> int:
        """Number of chains."""
        return len(self.counts.is_observed)

    @property
    def n_times(self) -> int:
        """Number of time steps."""
        return len(self.counts.is_observed.T)

    @property
    def chain_names(self) -> list[str]:
        """What each chain is called: its keys, joined."""
        return names_of(self.chain_keys, self.n_chains)

    @property
    def chain_columns(self) -> list[str]:
        """The group columns that tell chains apart."""
        return list(self.chain_keys)

    @property
    def time_columns(self) -> list[str]:
        """The group columns that are time."""
        return list(self.time_keys)

    @property
    def feature_names(self) -> list[str]:
        """The statistics that were fitted."""
        return [feature.name for feature in self.features]

    @property
    def cell_keys(self) -> dict[str, list[str | int]]:
        """The keys of every cell by column; all time steps of a chain follow each other."""
        chains = {
            name: [key for key in keys for _ in range(self.n_times)] for name, keys in self.chain_keys.items()
        }
        return chains | {name: list(keys) * self.n_chains for name, keys in self.time_keys.items()}


def names_of(keys: Keys, size: int) -> list[str]:
    """Return the keys of each chain or time step in one text; empty texts where there is no column."""
    return [", ".join(map(str, parts)) for parts in zip(*keys.values(), strict=True)] if keys else [""] * size


def chain_table(
    releases: Release | Sequence[Release],
    statistics: Sequence[str] | None,
    *,
    chain: str | Sequence[str],
    time: str | Sequence[str] | None,
    where: Mapping[str, object] | None = None,
) -> ChainTable:
    """Arrange counts by chain and time step.

    Parameters
    ----------
    releases : Release or sequence of Release
        One, or several windows of one series: then the window is time, before the columns of `time`.
        A window between the first and the last that is not given is a time step without observation.
    statistics : sequence of str or None
        Categorical or bernoulli statistics, the features; None: all of the release.
    chain : str or sequence of str
        Group columns whose keys are chains; empty: there is one chain.
    time : str or sequence of str or None
        Group columns whose keys are time, in their declared order; the first runs slowest.
    where : mapping, optional
        Keep the cells with these keys.

    Raises
    ------
    UsageError
        Where a statistic or a column is unknown or does not fit, a group is neither chain nor time, there is
        one time step, or releases are not of one series.
    """
    windows = _series(releases)
    first = next(iter(windows.values()))
    names = feature_names(first, statistics)
    chains, times = _columns("chain", chain), _columns("time", () if time is None else time)
    cells = {label: [_cells(release, name, where) for name in names] for label, release in windows.items()}
    (*_, sample) = cells[first.window]
    _check_columns(sample, chains, times, of_series=len(windows) > 1)
    chain_keys, time_keys = _keys(sample, chains), _keys(sample, times)
    steps = _steps(windows)
    shape = (len(_first_column(chain_keys)), len(steps), len(_first_column(time_keys)))
    if shape[1] * shape[2] < 2:
        what = f"{times[0]} keeps one key" if times else "there is one window"
        message = f"a hidden Markov model needs two or more time steps, and there is one: {what}"
        raise UsageError(message)
    counts, is_observed = [], np.zeros(shape, dtype=np.bool_)
    for position in range(len(names)):
        values = np.zeros((*shape, cells[first.window][position].values.shape[1]), dtype=np.int64)
        for label, parts in cells.items():
            values[:, steps[label]] = _arranged(parts[position], (*chains, *times), (shape[0], shape[2]))
            is_observed[:, steps[label]] = True
        counts.append(values.reshape(shape[0], -1, values.shape[-1]))
    table = CountsOverTime(
        counts=tuple(counts),
        is_observed=is_observed.reshape(shape[0], -1),
        scales=tuple(part.plan.scale for part in cells[first.window]),
    )
    labels: dict[str, list[str | int]] = {}
    if len(windows) > 1:
        labels[WINDOW] = [label for label in steps for _ in range(shape[2])]
    return ChainTable(
        counts=table,
        features=tuple(
            Feature(name=part.plan.name, categories=part.plan.components) for part in cells[first.window]
        ),
        chain_keys=chain_keys,
        time_keys=labels | {name: keys * len(steps) for name, keys in time_keys.items()},
        releases=tuple(release.label for release in windows.values()),
    )


def _series(given: object) -> dict[str, Release]:
    """Return releases by window, in the order of time; refuse what is not windows of one series."""
    items = list(given) if isinstance(given, Iterable) and not isinstance(given, str | Release) else [given]
    releases = [release for release in items if isinstance(release, Release)]
    if not items or len(releases) < len(items):
        message = (
            "a hidden Markov model is fitted to what suffice.open_release returns, or to a list of these"
        )
        raise UsageError(message)
    first = releases[0]
    if len(releases) == 1:
        return {first.window: first}
    for release in releases[1:]:
        differing = _differing(first, release)
        if differing:
            message = (
                f"{first.label} and {release.label} are not windows of one series: they differ in "
                f"{', '.join(differing)}"
            )
            raise UsageError(message)
    if first.manifest["plan"]["window"] is None:
        message = (
            f"{first.label} has no window: several releases are windows of one series, or name one alone"
        )
        raise UsageError(message)
    labels = [release.window for release in releases]
    twice = next((label for label in labels if labels.count(label) > 1), None)
    if twice is not None:
        message = f"{first.name}@{twice} is given twice: name one edition of each window"
        raise UsageError(message)
    every = Every(first.manifest["plan"]["window"]["every"])
    return {
        release.window: release
        for release in sorted(releases, key=lambda release: period_start(release.window, every))
    }


def _differing(first: Release, second: Release) -> list[str]:
    """Return in what the canonical plans of two releases differ, statistic by statistic."""
    plans = [dict(release.manifest["plan"]) for release in (first, second)]
    first_plan, second_plan = (
        {**plan, **{f"statistic {name}": entry for name, entry in plan.pop("statistics").items()}}
        for plan in plans
    )
    return sorted(key for key in {*first_plan, *second_plan} if first_plan.get(key) != second_plan.get(key))[
        :_MOST_NAMED
    ]


def _steps(windows: Mapping[str, Release]) -> dict[str, int]:
    """Number every window from the first to the last, those that are not given too."""
    labels = list(windows)
    if len(labels) == 1:
        return {labels[0]: 0}
    every = Every(windows[labels[0]].manifest["plan"]["window"]["every"])
    steps, start = {labels[0]: 0}, period_start(labels[0], every)
    while labels[-1] not in steps:
        start = next_period(start, every)
        steps[period_label(start, every)] = len(steps)
    return steps


def feature_names(release: Release, statistics: Sequence[str] | None) -> list[str]:
    """Return the statistics that are features."""
    fitting = [
        name
        for name, statistic in release.statistics.items()
        if statistic.plan.family in FAMILIES_OF_FEATURES
    ]
    kinds = " or ".join(FAMILIES_OF_FEATURES)
    if statistics is None:
        if not fitting:
            others = [f"{name} is {statistic.plan.family}" for name, statistic in release.statistics.items()]
            others += [f"{name} is a posterior sample" for name in release.sampled]
            message = f"{release.label} has no {kinds} statistic: {', '.join(others)}"
            raise UsageError(message)
        return fitting
    names = [statistics] if isinstance(statistics, str) else list(statistics)
    if not names:
        message = f"name at least one statistic: {release.label} has {', '.join(fitting) or 'none that fits'}"
        raise UsageError(message)
    for name in names:
        family = release.statistic(name).plan.family
        if name not in fitting:
            known = ", ".join(fitting) or "none"
            message = (
                f"{name} is {family}: hidden Markov models take {kinds} statistics; the release has {known}"
            )
            raise UsageError(message)
        if names.count(name) > 1:
            message = f"{name} is given twice: each statistic is one feature"
            raise UsageError(message)
    return names


def _columns(what: str, given: str | Sequence[str]) -> tuple[str, ...]:
    columns = (given,) if isinstance(given, str) else tuple(given)
    for column in columns:
        if columns.count(column) > 1:
            message = f"{what} names {column} twice"
            raise UsageError(message)
    return columns


def _cells(release: Release, name: str, where: Mapping[str, object] | None) -> NoisyStatistic:
    """Return the chosen cells of a feature, counts of all its categories."""
    statistic = rows_alone(release.selected(name, where))
    plan = statistic.plan
    if plan.design is not Design.PARTITION_OF_UNITY:
        message = (
            f"{name} was released beside a public number of records, without a count of every category: a "
            "hidden Markov model needs all counts, as add_or_remove_one releases them"
        )
        raise UsageError(message)
    if plan.value_type != INT64:
        message = f"{name} has counts beyond 64 bits: state a smaller max_total_rows in the spec"
        raise UsageError(message)
    return statistic


def _check_columns(
    statistic: NoisyStatistic, chains: Sequence[str], times: Sequence[str], *, of_series: bool
) -> None:
    """Refuse unknown groups, groups that are both or neither, and a model without time."""
    known = ", ".join(statistic.groups) or "none"
    for column in (*chains, *times):
        if column not in statistic.groups:
            message = f"the statistic has no group {column!r}: its groups are {known}"
            raise UsageError(message)
    both = [column for column in chains if column in times]
    if both:
        message = f"{both[0]} is named as chain and as time: a column is one of them"
        raise UsageError(message)
    if not times and not of_series:
        others = ", ".join(column for column in statistic.groups if column not in chains) or "none is left"
        message = (
            "name the group columns that are time, the slowest first, or several windows of one series: "
            f"groups beside the chain: {others}"
        )
        raise UsageError(message)
    for column, keys in statistic.groups.items():
        if column not in (*chains, *times) and len(set(keys)) > 1:
            message = (
                f"the group {column} is neither chain nor time: name it as one, or keep one of its keys with "
                f"where; groups are {known}"
            )
            raise UsageError(message)


def _keys(statistic: NoisyStatistic, columns: Sequence[str]) -> dict[str, list[str | int]]:
    """Return every combination of the columns' keys, by column; the last runs fastest."""
    domains = [list(dict.fromkeys(statistic.groups[column])) for column in columns]
    combined = list(itertools.product(*domains))
    return {column: [keys[position] for keys in combined] for position, column in enumerate(columns)}


def _first_column(keys: Keys) -> list[Any]:
    return next(iter(keys.values()), [None])


def _arranged(
    statistic: NoisyStatistic, columns: Sequence[str], shape: tuple[int, int]
) -> np.ndarray[Any, Any]:
    """Return counts (n_chains, n_times, n_categories) of one release."""
    codes = []
    for column in columns:
        number = {key: code for code, key in enumerate(dict.fromkeys(statistic.groups[column]))}
        codes.append(np.array([number[key] for key in statistic.groups[column]]))
    order = np.lexsort(codes[::-1]) if codes else np.arange(len(statistic.values))
    return statistic.values[order].astype(np.int64).reshape(*shape, -1)
