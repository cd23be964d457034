"""What cells are said to have in common: a population, public covariates, neighbours, an order in time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from suffice.errors import UsageError
from suffice.pipeline.ask.borrowing.walk import Walk
from suffice.pipeline.math.distributions.distribution import Line
from suffice.pipeline.math.engines.pooled.populations import (
    DEFAULT,
    DICTIONARY,
    DIRICHLET,
    NAMES,
    POPULATIONS,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic

ALL = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pooling:
    """What cells have in common; all of it is public.

    Attributes
    ----------
    population : str, optional
        How parameters differ between cells: ``contaminated``, ``dictionary``, ``logit-normal``, ``beta``,
        ``lognormal``, ``gamma``, of means ``normal``, of categories ``dirichlet``, which the first stands for
        there.
    within : tuple of str, optional
        Group columns within whose keys cells are pooled: a population for each. All cells are one pool
        otherwise.
    covariates : path or table, optional
        A table of public numbers and labels, joined by the names of the group columns that it has: a CSV or
        Parquet file, a frame of pandas, Polars or Arrow, or a mapping of columns. One row for each of their
        keys. It must be public: coefficients tell of it.
    formula : str, optional
        What of the covariates the location of a cell depends on, as ``"~ income + C(state)"``, in the words
        of the library ``formulaic``. It may name group columns too, and then needs no covariates.
    over : str or Walk, optional
        A group column whose keys are in order, or ``"window"`` of a series: neighbours in it are alike. With
        terms as ``"month jumps=0"``, or as a :class:`Walk`.
    adjacency : path or table, optional
        Pairs of keys of a group column that are neighbours.
    """

    population: str = DEFAULT
    within: tuple[str, ...] = ()
    covariates: Any = None
    formula: str | None = None
    over: str | Walk | None = None
    adjacency: Any = None

    @classmethod
    def of(cls, statistic: NoisyStatistic, pooled: Any, line: Line) -> Pooling:
        """Read what a person asks for: True, names of a population and of group columns, or a ``Pooling``.

        Raises
        ------
        UsageError
            Where a name is neither, or there are two populations.
        """
        if isinstance(pooled, Pooling):
            asked = () if pooled.population == DEFAULT else (pooled.population,)
            named = cls.of(statistic, (*asked, *pooled.within) or True, line)
            further = (pooled.covariates, pooled.formula, pooled.over, pooled.adjacency)
            is_further = any(each is not None for each in further)
            if is_further and named.population == DICTIONARY:
                message = (
                    f"{DICTIONARY} goes with no covariates, order or neighbours: name another population"
                )
                raise UsageError(message)
            if is_further and (line is Line.IDENTITY or named.population == DIRICHLET):
                message = (
                    f"{statistic.plan.name} is {statistic.plan.family}, which is pooled without covariates, "
                    "order and neighbours: they are of cells with one parameter"
                )
                raise UsageError(message)
            over = None if pooled.over is None else Walk.of(pooled.over)
            return replace(pooled, population=named.population, within=named.within, over=over)
        population, within = _read(statistic, pooled, line)
        return cls(population=population, within=within)

    @classmethod
    def of_names(cls, names: Sequence[str], **further: Any) -> Pooling:
        """Take the names of a population and of group columns together, as ``--pooled`` does."""
        populations = [name for name in names if name in NAMES]
        within = tuple(name for name in names if name != ALL and name not in populations[:1])
        return cls(population=(populations or [DEFAULT])[0], within=within, **further)


def _read(
    statistic: NoisyStatistic, pooled: bool | str | Sequence[str], line: Line
) -> tuple[str, tuple[str, ...]]:
    """Return the population's name, and the group columns."""
    asked: tuple[Any, ...] = (pooled,)
    if pooled is True:
        asked = ()
    elif isinstance(pooled, list | tuple) and pooled and all(isinstance(each, str) for each in pooled):
        asked = tuple(pooled)
    elif not isinstance(pooled, str):
        asked = (repr(pooled),)
    populations: Sequence[str] = (
        (DIRICHLET,) if statistic.plan.family == "categorical" else tuple(POPULATIONS[line])
    )
    columns = list(statistic.groups)
    names = [each for each in asked if each in NAMES and each not in columns]
    within = tuple(dict.fromkeys(each for each in asked if each in columns))
    unknown = [each for each in asked if each not in {*names, *within, ALL}]
    if unknown or any(name not in populations for name in names):
        wrong = (unknown or [name for name in names if name not in populations])[0]
        message = (
            f"pooled={wrong!r}: {statistic.plan.name} takes True, a population ({', '.join(populations)}) "
            f"or group columns within whose keys cells are pooled ({', '.join(columns) or 'it has none'})"
        )
        raise UsageError(message)
    if len(names) > 1:
        message = f"pooled takes one population, not {' and '.join(names)}"
        raise UsageError(message)
    if len(within) == len(columns) and within:
        message = f"pooled within {', '.join(within)} leaves every cell alone: name fewer columns"
        raise UsageError(message)
    return (names or populations)[0], within
