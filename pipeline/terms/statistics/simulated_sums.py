"""Data sets drawn from a family's own model, summed as a release sums them: for consumers, never for privacy.

The values go through the very transform, lattice and bounds of the statistic, and beside that through the
same lattice without its bounds: what differs is clipping alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from graphlib import TopologicalSorter
from itertools import combinations_with_replacement
from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.terms.statistics.lattice import Shape

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from suffice.pipeline.terms.statistics.count_table import CountTable
    from suffice.pipeline.terms.statistics.lattice import Transform
    from suffice.pipeline.terms.statistics.measure import LatticeColumn, MomentSums, PowerSums
    from suffice.typing import Counts, Floats


_RECORDS = 1 << 17
"""Records drawn at a time; they stay in a processor's cache."""
_FARTHEST = 1e30
"""Lattice values without bounds are kept finite: heavy tails leave float64."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedSums:
    """The exact sums of simulated data sets, one a row.

    Attributes
    ----------
    clipped : ndarray of object, shape (n_data_sets, n_sums)
        As the engine sums them; Python integers.
    unclipped : ndarray of object, shape (n_data_sets, n_sums)
        Of the same records, had no value been clipped.
    n_clipped : int
        How many records were clipped, over all data sets.
    """

    clipped: NDArray[np.object_]
    unclipped: NDArray[np.object_]
    n_clipped: int


def code_counts(sizes: Counts, probability: Floats, rng: np.random.Generator) -> SimulatedSums:
    """Count the codes of data sets drawn with these probabilities, (n_data_sets, n_codes)."""
    counts = rng.multinomial(sizes, probability).astype(object)
    return SimulatedSums(clipped=counts, unclipped=counts, n_clipped=0)


def power_sums(measure: PowerSums, sizes: Counts, draw: Callable[[Counts], Floats]) -> SimulatedSums:
    """Sum the powers 0 to ``measure.degree`` of simulated records on the lattice.

    Parameters
    ----------
    measure : PowerSums
        What the engine would compute.
    sizes : ndarray of int64, shape (n_data_sets,)
        Records of each data set.
    draw : callable
        The data set of each record, (n_records,) -> a value of the column for each. Memory is bounded:
        it is called with parts of the records, of a data set too where it is large.

    Notes
    -----
    Sums are kept in float64: exact below 2**53, and wrong by a part in 1e15 beyond it, where the noise is
    larger by many orders.
    """
    clipped, unclipped = (np.zeros((len(sizes), measure.degree + 1)) for _ in range(2))
    n_clipped = 0
    for part, count in _parts(sizes):
        first = part.start
        data_set = np.repeat(np.arange(first, first + len(count)), count)
        with np.errstate(over="ignore"):
            free = _on_endless_lattice(measure.of, draw(data_set))
        bounded = np.clip(free, measure.of.quantiser.lowest, measure.of.quantiser.highest)
        n_clipped += int(np.count_nonzero(free != bounded))
        for lattice_values, sums in ((bounded, clipped), (free, unclipped)):
            sums[part, 0] += count
            for power in range(1, measure.degree + 1):
                weights = lattice_values if power == 1 else lattice_values**power
                sums[part, power] += np.bincount(data_set - first, weights, len(count))
    return SimulatedSums(clipped=_integers(clipped), unclipped=_integers(unclipped), n_clipped=n_clipped)


def moment_sums(measure: MomentSums, sizes: Counts, draw: Callable[[Counts], Floats]) -> SimulatedSums:
    """Sum the values and products of simulated records on the lattices of several columns.

    Parameters
    ----------
    measure : MomentSums
        What the engine would compute.
    sizes : ndarray of int64, shape (n_data_sets,)
        Records of each data set.
    draw : callable
        The data set of each record, (n_records,) -> values of the columns, (n_records, n_columns); called
        and summed as in ``power_sums``.
    """
    clipped, unclipped = (np.zeros((len(sizes), measure.width)) for _ in range(2))
    pairs = list(combinations_with_replacement(range(len(measure.of) + 1), 2))
    n_clipped = 0
    for part, count in _parts(sizes):
        within = np.repeat(np.arange(len(count)), count)
        values = draw(within + part.start)
        free = [_on_endless_lattice(of, values[:, position]) for position, of in enumerate(measure.of)]
        bounded = [
            np.clip(values, of.quantiser.lowest, of.quantiser.highest)
            for of, values in zip(measure.of, free, strict=True)
        ]
        differs = [before != after for before, after in zip(free, bounded, strict=True)]
        n_clipped += int(np.count_nonzero(np.any(differs, axis=0)))
        for lattice_values, sums in ((bounded, clipped), (free, unclipped)):
            factors = [np.ones(len(within)), *lattice_values]
            for position, (first, second) in enumerate(pairs):
                sums[part, position] += np.bincount(within, factors[first] * factors[second], len(count))
    return SimulatedSums(clipped=_integers(clipped), unclipped=_integers(unclipped), n_clipped=n_clipped)


def normal_rows(mean: Floats, covariance: Floats, rng: np.random.Generator) -> Callable[[Counts], Floats]:
    """Return what draws rows of data sets with these means (n, d) and covariances (n, d, d)."""
    root = np.linalg.cholesky(covariance)

    def draw(data_set: Counts) -> Floats:
        noise = rng.standard_normal((len(data_set), mean.shape[1]))
        rows: Floats = mean[data_set] + np.einsum("rij,rj->ri", root[data_set], noise)
        return rows

    return draw


def table_counts(
    estimated: Sequence[CountTable],
    released: Sequence[CountTable],
    probability: Floats,
    sizes: Counts,
    rng: np.random.Generator,
) -> SimulatedSums:
    """Draw records variable by variable, each given its parents, and count them in the released tables.

    Parameters
    ----------
    estimated : sequence of CountTable
        One for each variable, which is its last; the others are its parents.
    released : sequence of CountTable
        Over the same variables.
    probability : ndarray of shape (n_data_sets, n_probabilities), float64
        Of the estimated tables, side by side.
    sizes : ndarray of int64, shape (n_data_sets,)
        Records of each data set.
    rng : numpy.random.Generator
    """
    ends = np.cumsum([table.size for table in estimated])
    parents, below = {}, {}
    for table, chances in zip(estimated, np.split(probability, ends[:-1], axis=1), strict=True):
        *others, last_variable = (variable.name for variable in table.variables)
        parents[last_variable] = others
        below[last_variable] = np.cumsum(chances.reshape(-1, *table.shape), axis=-1)[..., :-1]
    order = tuple(TopologicalSorter(parents).static_order())
    counts = [np.zeros((len(sizes), table.size), np.int64) for table in released]
    for part, count in _parts(sizes):
        within = np.repeat(np.arange(len(count)), count)
        codes: dict[str, Counts] = {}
        for name in order:
            thresholds = below[name][(within + part.start, *(codes[parent] for parent in parents[name]))]
            codes[name] = np.sum(rng.random((len(within), 1)) >= thresholds, axis=1)
        for table, sums in zip(released, counts, strict=True):
            entry = np.ravel_multi_index([codes[variable.name] for variable in table.variables], table.shape)
            sums[part] += _tallies(within, entry, (len(count), table.size))
    joined = np.concatenate(counts, axis=1).astype(object)
    return SimulatedSums(clipped=joined, unclipped=joined, n_clipped=0)


def transition_counts(
    probability: Floats, most: int, sizes: Counts, rng: np.random.Generator
) -> SimulatedSums:
    """Count the transitions of units that start in states equally likely and walk `most` steps.

    Parameters
    ----------
    probability : ndarray of shape (n_data_sets, n_states, n_states), float64
        Of the next state given each.
    most : int, > 0
        Steps of a unit; the last unit of a data set takes what is left.
    sizes : ndarray of int64, shape (n_data_sets,)
        Transitions of each data set.
    rng : numpy.random.Generator
    """
    states = probability.shape[1]
    below = np.cumsum(probability, axis=-1)[..., :-1]
    counts = np.zeros((len(sizes), states**2), np.int64)
    whole, rest = np.divmod(sizes, most)
    for steps, units in (
        (most, whole),
        *((left, (rest == left).astype(np.int64)) for left in range(1, most)),
    ):
        for part, count in _parts(units):
            within = np.repeat(np.arange(len(count)), count)
            at = rng.integers(0, states, len(within))
            for _ in range(steps):
                after = np.sum(rng.random((len(within), 1)) >= below[within + part.start, at], axis=1)
                counts[part] += _tallies(within, at * states + after, (len(count), states**2))
                at = after
    joined = counts.astype(object)
    return SimulatedSums(clipped=joined, unclipped=joined, n_clipped=0)


def discrete_laplace(
    scale: float, size: tuple[int, ...], rng: np.random.Generator, terms: int = 1
) -> NDArray[np.int64]:
    """Simulated discrete Laplace noise, which protects nobody: a difference of two geometric numbers.

    A generator in the same state gives noise that grows in step with the scale. With `terms` it is
    the sum of so many.
    """
    noise = np.zeros(size, dtype=np.int64)
    for _ in range(terms):
        first, second = np.floor(rng.standard_exponential((2, *size)) * scale).astype(np.int64)
        noise += first - second
    return noise


def _parts(sizes: Counts) -> Iterator[tuple[slice, Counts]]:
    """Go through records in order, ``_RECORDS`` at a time: the data sets, and how many records of each."""
    ends = np.cumsum(sizes)
    for start in range(0, int(ends[-1]), _RECORDS):
        within = np.clip(ends - start, 0, _RECORDS)
        first, last = np.searchsorted(ends, [start, start + _RECORDS], side="right")
        part = slice(int(first), int(last) + 1)
        yield part, np.diff(within[part], prepend=0)


def _tallies(rows: Counts, entries: Counts, shape: tuple[int, int]) -> Counts:
    """Count every pair of a row and an entry."""
    return np.bincount(rows * shape[1] + entries, minlength=shape[0] * shape[1]).reshape(shape)


def _on_endless_lattice(of: LatticeColumn, values: Floats) -> Floats:
    """Lattice values before clipping, in float64."""
    quantiser = of.quantiser
    transformed = values if of.transform is None else _unbounded(of.transform, values)
    lattice_values = np.rint((transformed - quantiser.centre) / quantiser.half_range * quantiser.steps)
    return np.clip(lattice_values, -_FARTHEST, _FARTHEST)


def _unbounded(transform: Transform, values: Floats) -> Floats:
    """The transform; a power also of what lies beyond its unit."""
    if transform.shape is not Shape.POWER:
        return transform.apply(values)
    beyond = values > transform.centre + transform.unit
    powers = transform.apply(values)
    powers[beyond] = ((values[beyond] - transform.centre) / transform.unit) ** transform.exponent
    return powers


def _integers(sums: Floats) -> NDArray[np.object_]:
    if np.all(np.abs(sums) < 2.0**63):
        return sums.astype(np.int64).astype(object)
    integers = np.empty(sums.shape, dtype=object)
    integers[:] = [[int(entry) for entry in row] for row in sums.tolist()]
    return integers
