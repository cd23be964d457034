"""Public worlds of records that are not a family's model, within the statistic's bounds.

Of a column of numbers, a world says how records are spread about the place and scale that truths differ in:
from the lower bound up where the lattice begins at 0 (waiting times, counts), else about a middle.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from suffice.errors import UsageError
from suffice.pipeline.terms.statistics import measure as measures
from suffice.pipeline.terms.statistics.lattice import Shape

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from suffice.pipeline.terms.declaration.fields import StatisticSpec
    from suffice.typing import Counts, Floats

    Draw = Callable[[int, np.random.Generator], Floats]

Records: TypeAlias = "NDArray[np.float64] | NDArray[np.int64] | Mapping[str, NDArray[np.int64]]"
"""Values or codes, a record each; rows of several columns; codes by column, of tables; of units their states
in order, or their numbers of rows."""


def sums_of_each(measure: measures.Measure, records: Records) -> Floats:
    """Return what each record, or unit, adds to the sums of a pass over the data, (n_records, n_sums).

    All are integers; records beyond the public bounds add what these leave of them.
    """
    if isinstance(records, Mapping) or isinstance(measure, measures.CodeCounts | measures.TableCounts):
        return _counts(measure, records)
    if isinstance(measure, measures.PowerSums):
        return _on_lattice(measure.of, records)[:, None] ** np.arange(measure.degree + 1)
    if isinstance(measure, measures.MomentSums):
        columns = [_on_lattice(of, column) for of, column in zip(measure.of, records.T, strict=True)]
        ones = np.stack([np.ones(len(records)), *columns], axis=1)
        first, second = np.triu_indices(ones.shape[1])
        return ones[:, first] * ones[:, second]
    return _of_units(measure, records)


def _counts(measure: measures.Measure, records: Records) -> Floats:
    if isinstance(measure, measures.TableCounts) and isinstance(records, Mapping):
        entries = [
            np.ravel_multi_index([records[of.column] for of in table], [of.n_codes for of in table])
            for table in measure.tables
        ]
        counts = [_one_hot(entry, width) for entry, width in zip(entries, measure.widths, strict=True)]
        return np.concatenate(counts, axis=1)
    return _one_hot(np.asarray(records), measure.width)


def _of_units(measure: measures.Measure, records: NDArray[np.float64] | NDArray[np.int64]) -> Floats:
    """Return the transitions of units, or what their numbers of rows add."""
    if isinstance(measure, measures.TransitionCounts):
        steps = records[:, :-1] * measure.of.n_codes + records[:, 1:]
        counts: Floats = np.sum([_one_hot(column, measure.width) for column in steps.T], axis=0)
        return counts
    if not isinstance(measure, measures.RowCounts):
        message = f"records cannot be summed one by one as {type(measure).__name__}"
        raise TypeError(message)
    if measure.counts_each:
        return _one_hot(np.minimum(records, measure.upper) - 1, measure.width)
    kept, counted = np.minimum(records, measure.kept), np.minimum(records, measure.upper)
    return np.stack([kept, counted - kept, measure.upper - counted], axis=1).astype(np.float64)


def _on_lattice(of: measures.LatticeColumn, values: NDArray[np.float64] | NDArray[np.int64]) -> Floats:
    given = np.asarray(values, dtype=np.float64)
    transformed = given if of.transform is None else of.transform.apply(given)
    return of.quantiser.quantise(transformed).astype(np.float64)


def _one_hot(codes: NDArray[np.float64] | NDArray[np.int64], width: int) -> Floats:
    counts: Floats = (codes[:, None] == np.arange(width)).astype(np.float64)
    return counts


def python_integers(sums: Floats) -> NDArray[np.object_]:
    """Return sums as Python integers, as families take them."""
    integers = np.empty(sums.shape, dtype=object)
    integers[:] = [[round(entry) for entry in row] for row in sums.tolist()]
    return integers


SIZE = 20_000
"""Records of a population."""
UNIT = 5
"""Records of a unit, in the world where those of one unit are alike."""
CORRELATED, CLIPPED, SKEWED, MIXTURE = "correlated", "clipped", "skewed", "mixture"
_ALIKE = 0.5**0.5
"""Chance that a record is that of its unit: two records of one unit are correlated .5."""
_SCALES = (0.02, 0.05, 0.1, 0.15)
"""Means above the lower bound, or standard deviations, over the range of the bounds."""
_PLACES = (0.3, 0.45, 0.5, 0.65)
"""Where the middle of a column lies between its bounds."""
_BEYOND = (0.02, 0.05, 0.1, 0.2)
"""Shares of records beyond a bound, in the world where bounds cut."""
_LARGEST_LOG = 600.0
"""Of a value over its unit: far beyond every bound, and a number of float64."""


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """What records are like.

    Attributes
    ----------
    name, says : str
    above : callable
        How many, a generator -> numbers of at least 0 whose mean is 1 (one of a record).
    about : callable
        The same, of mean 0 and standard deviation 1.
    """

    name: str
    says: str
    above: Draw = field(repr=False)
    about: Draw = field(repr=False)


_EXPONENTIAL: Draw = lambda size, rng: rng.standard_exponential(size)  # noqa: E731 - one of a table of draws
_NORMAL: Draw = lambda size, rng: rng.standard_normal(size)  # noqa: E731 - as above

_ALL = (
    World(
        name=SKEWED,
        says="lognormal",
        above=lambda size, rng: rng.lognormal(-0.5, 1.0, size),
        about=lambda size, rng: (rng.lognormal(0.0, 0.7, size) - 1.278) / 1.015,
    ),
    World(
        name="heavy-tailed",
        says="Pareto tail 2.5, or Student's t with 3 degrees of freedom",
        above=lambda size, rng: 1.5 * rng.pareto(2.5, size),
        about=lambda size, rng: rng.standard_t(3, size) / 3**0.5,
    ),
    World(
        name="rounded",
        says="to multiples of the mean, or of the standard deviation",
        above=lambda size, rng: np.rint(rng.standard_exponential(size)),
        about=lambda size, rng: np.rint(rng.standard_normal(size)),
    ),
    World(
        name=MIXTURE,
        says="two kinds of records, half of them each",
        above=lambda size, rng: np.where(rng.random(size) < 0.5, 0.2, 1.8) * rng.gamma(4.0, 0.25, size),
        about=lambda size, rng: rng.choice([-0.9, 0.9], size) + 0.44 * rng.standard_normal(size),
    ),
    World(
        name="zero-inflated",
        says="60 % at the lower bound, or at the middle",
        above=lambda size, rng: (rng.random(size) < 0.4) * rng.standard_exponential(size) / 0.4,
        about=lambda size, rng: (rng.random(size) < 0.4) * rng.standard_normal(size) / 0.4**0.5,
    ),
    World(
        name="overdispersed",
        says="scales that vary from record to record",
        above=lambda size, rng: rng.gamma(0.4, 2.5, size),
        about=lambda size, rng: rng.standard_normal(size) * rng.gamma(1.0, 1.0, size) ** 0.5,
    ),
    World(
        name=CORRELATED,
        says=f"units of {UNIT} records, correlated .5",
        above=_EXPONENTIAL,
        about=_NORMAL,
    ),
    World(name=CLIPPED, says="2 to 20 % beyond a bound", above=_EXPONENTIAL, about=_NORMAL),
)
WORLDS = {world.name: world for world in _ALL}


_OTHERWISE = {
    SKEWED: "rare categories, or states that are hardly left",
    MIXTURE: "two kinds of records, or of units, half of them each",
}
"""What records of codes are like."""


def worlds_of(measure: measures.Measure, chosen: Sequence[str] | bool) -> tuple[World, ...]:
    """Return the worlds that a statistic's records can be in, or those of them that are named; refuse others.

    Records that are codes of one column are multinomial whatever the world: rare categories and records that
    hang together are left.
    """
    if isinstance(measure, measures.CodeCounts):
        possible = [SKEWED, CORRELATED]
    elif isinstance(measure, measures.TableCounts):
        possible = [SKEWED, MIXTURE, CORRELATED]
    elif isinstance(measure, measures.TransitionCounts):
        possible = [SKEWED, MIXTURE]
    elif isinstance(measure, measures.PowerSums | measures.MomentSums):
        possible = list(WORLDS)
    else:
        possible = [SKEWED, "heavy-tailed", MIXTURE, "overdispersed"]
    has_codes = isinstance(measure, measures.CodeCounts | measures.TableCounts | measures.TransitionCounts)
    known = {
        name: dataclasses.replace(WORLDS[name], says=_OTHERWISE.get(name, WORLDS[name].says))
        if has_codes
        else WORLDS[name]
        for name in possible
    }
    if isinstance(chosen, bool):
        return tuple(known.values())
    unknown = [name for name in chosen if name not in possible]
    if unknown or isinstance(chosen, str):
        given = chosen if isinstance(chosen, str) else unknown[0]
        message = (
            f"worlds are a list of {', '.join(possible)} for this statistic, or True for all: not {given!r}"
        )
        raise UsageError(message)
    return tuple(known[name] for name in chosen)


def populations(
    world: World, entry: StatisticSpec, measure: measures.Measure, rng: np.random.Generator
) -> tuple[Records, ...]:
    """Return populations of records of one world, whose truths differ.

    The entry states a known variance or number of trials.
    """
    if isinstance(measure, measures.CodeCounts):
        return tuple(_codes(shares, rng) for shares in _shares(world, measure.width))
    if isinstance(measure, measures.TableCounts):
        sizes = {of.column: of.n_codes for of in measure.reads if isinstance(of, measures.CodeColumn)}
        return tuple(_joint_codes(world, sizes, rng) for _ in _SCALES)
    if isinstance(measure, measures.TransitionCounts):
        return tuple(_walks(world, measure, stays, rng) for stays in (0.5, 0.8))
    if isinstance(measure, measures.PowerSums):
        return tuple(_column(world, entry, measure.of, position, rng) for position in range(len(_SCALES)))
    if isinstance(measure, measures.MomentSums):
        return tuple(_columns(world, measure, position, rng) for position in range(len(_SCALES)))
    return tuple(1 + np.floor(mean * world.above(SIZE, rng)).astype(np.int64) for mean in (3.0, 6.0, 12.0))


def _column(
    world: World, entry: StatisticSpec, of: measures.LatticeColumn, position: int, rng: np.random.Generator
) -> Floats:
    """Return values of a column, of which few but in the world of clipped ones lie beyond the bounds."""
    quantiser, transform = of.quantiser, of.transform
    reach = quantiser.half_range * quantiser.highest / quantiser.steps
    trials, variance = getattr(entry, "trials", None), getattr(entry, "variance", None)
    is_even = transform is not None and transform.shape in {Shape.ABSOLUTE, Shape.SQUARE}
    if transform is not None and transform.shape is not Shape.LOG:
        reach = transform.unit
    if quantiser.lowest < 0 or is_even:
        middle = transform.centre if transform is not None and is_even else quantiser.centre
        values = _about(world, middle, reach, position, rng, known=variance, is_centred=is_even)
    else:
        scale = 1.0 / -np.log(_BEYOND[position]) if world.name == CLIPPED else _SCALES[position]
        values = reach * scale * world.above(SIZE, rng)
        if trials is not None:
            values = rng.binomial(int(trials), np.minimum(values / reach, 1.0)).astype(np.float64)
        elif getattr(entry, "lattice_bits", None) is None:
            values = rng.poisson(values).astype(np.float64) if world.name != "rounded" else np.rint(values)
    if transform is not None and transform.shape is Shape.LOG:
        return transform.unit * np.exp(np.minimum(values, _LARGEST_LOG))
    return values


def _about(
    world: World,
    middle: float,
    reach: float,
    position: int,
    rng: np.random.Generator,
    *,
    known: Any = None,
    is_centred: bool = False,
) -> Floats:
    """Return values on both sides of a place between ``middle - reach`` and ``middle + reach``."""
    sd = 2 * reach * _SCALES[position] if known is None else float(known) ** 0.5
    place = middle if is_centred else middle + reach * (2 * _PLACES[position] - 1)
    if world.name == CLIPPED:
        from scipy.special import ndtri

        tail = float(ndtri(1 - _BEYOND[position]))
        # A known spread leaves the place alone to move records beyond a bound.
        place, sd = (middle, reach / tail) if known is None else (middle + reach - sd * tail, sd)
    return place + sd * world.about(SIZE, rng)


def _columns(world: World, measure: measures.MomentSums, position: int, rng: np.random.Generator) -> Floats:
    """Return rows of columns of which any two are correlated .5."""
    width = len(measure.of)
    root = np.linalg.cholesky(0.5 * np.eye(width) + 0.5)
    standard = np.stack([world.about(SIZE, rng) for _ in measure.of], axis=1) @ root.T
    rows = np.empty((SIZE, width))
    for column, of in enumerate(measure.of):
        reach = of.quantiser.half_range * of.quantiser.highest / of.quantiser.steps
        sd = 2 * reach * _SCALES[position]
        place = of.quantiser.centre + reach * (2 * _PLACES[position] - 1)
        if world.name == CLIPPED:
            place, sd = of.quantiser.centre, reach / (1.3 + 0.35 * (len(_SCALES) - 1 - position))
        rows[:, column] = place + sd * standard[:, column]
    return rows


def _shares(world: World, width: int) -> tuple[Floats, ...]:
    """Return shares of categories: rare ones where they are skewed, else equal ones and falling ones."""
    if world.name == SKEWED:
        return tuple(_falling_to(least, width) for least in (0.02, 0.002))
    falling = 1.0 / np.arange(1, width + 1)
    return (np.full(width, 1.0 / width), falling / falling.sum())


def _falling_to(least: float, width: int) -> Floats:
    falling = np.geomspace(1.0, least, width)
    shares: Floats = falling / falling.sum()
    return shares


def _codes(shares: Floats, rng: np.random.Generator) -> Counts:
    return np.asarray(rng.choice(len(shares), SIZE, p=shares), dtype=np.int64)


def _joint_codes(world: World, sizes: dict[str, int], rng: np.random.Generator) -> dict[str, Counts]:
    """Return codes of several columns: rare ones, or of two kinds of records that nobody recorded."""
    kind = rng.random(SIZE) < 0.5
    worlds_by_name = {}
    for name, width in sizes.items():
        first, second = rng.dirichlet(np.full(width, 2.0), 2)
        if world.name == SKEWED:
            first = _falling_to(0.05, width)
        drawn = _codes(first, rng)
        worlds_by_name[name] = np.where(kind, drawn, _codes(second, rng)) if world.name == MIXTURE else drawn
    return worlds_by_name


def _walks(
    world: World, measure: measures.TransitionCounts, stays: float, rng: np.random.Generator
) -> Counts:
    """Return the states of units: of those that hardly ever move, or of two kinds of units."""
    states = measure.of.n_codes
    stay = np.full(SIZE, 0.97 if world.name == SKEWED else stays)
    if world.name == MIXTURE:
        stay = np.where(rng.random(SIZE) < 0.5, stays, 0.98)
    walk = [rng.integers(0, states, SIZE)]
    for _ in range(measure.most):
        moves = rng.random(SIZE) >= stay
        walk.append((walk[-1] + moves * rng.integers(1, max(states, 2), SIZE)) % states)
    return np.stack(walk, axis=1)


def alike_in_units(records: Records, rng: np.random.Generator) -> Records:
    """Let records that follow each other be those of one unit: most repeat its first."""
    first = np.arange(SIZE) // UNIT * UNIT
    taken = np.where(rng.random(SIZE) < _ALIKE, first, np.arange(SIZE))
    if isinstance(records, dict):
        return {name: codes[taken] for name, codes in records.items()}
    return records[taken]  # type: ignore[index] # no mapping
