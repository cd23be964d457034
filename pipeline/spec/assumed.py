"""What a spec's owner assumes of the data, from public knowledge: how many records, and typical parameters.

``suffice plan --divide`` divides epsilon by it. It is no term of what is charged: no plan and no hash of one
depends on it, and nothing that is released follows from it.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, TypeAlias

import numpy as np
from pydantic import AfterValidator, Field, PlainValidator

from suffice.pipeline.families import FAMILIES
from suffice.pipeline.families.shared.parameter_space import ParameterSpace, Support
from suffice.pipeline.terms.declaration.fields import LONGEST_PRIOR, Positive, SpecModel, read_bound
from suffice.pipeline.terms.declaration.scalars import read_integer, read_text
from suffice.pipeline.terms.statistics.count_table import entry_names
from suffice.pipeline.terms.statistics.moment_columns import pair_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from suffice.pipeline.families.shared.contract import Family
    from suffice.pipeline.terms.statistics.sensitivity import Constants

Typical: TypeAlias = "Fraction | tuple[Fraction, ...] | dict[str, Fraction]"
"""One number, one for each entry in order, or one for each by its name."""
_SUM = 1e-6
"""By which probabilities may miss a sum of 1, as rounded numbers do."""


def _typical(value: object) -> Typical:
    if isinstance(value, dict):
        return {str(name): read_bound(number) for name, number in value.items()}
    if isinstance(value, list):
        return tuple(read_bound(number) for number in value)
    return read_bound(value)


def _predictors(value: object) -> tuple[str, ...]:
    texts = tuple(read_text(text) for text in (value if isinstance(value, list) else [value]))
    if not texts or any(len(text) > LONGEST_PRIOR for text in texts):
        message = "needs a distribution as Normal(0, 1), or a list of them, one for each predictor"
        raise ValueError(message)
    return texts


def _records(value: int) -> int:
    if not 1 <= value <= 10**15:
        message = f"{value} is no number of records: write one in 1..10^15"
        raise ValueError(message)
    return value


Records = Annotated[int, PlainValidator(read_integer), AfterValidator(_records)]


class AssumedStatistic(SpecModel):
    """What is assumed of one statistic.

    Attributes
    ----------
    n : int or None
        Records in a cell, as the statistic counts them; None: those of the release, divided by its cells.
    typical : dict
        A typical value of each parameter. Empty: its values are drawn from the statistic's default prior.
    predictors : tuple of str
        Distributions of a regression's predictors, one for all or one each; empty: from their default prior.
    counts : str or None
        The parameter whose error counts, or one entry of it, as ``mean`` or ``probability[UA]``; None: the
        one to which noise adds most.
    weight : Fraction
        Of the statistic's squared inflation, beside the others'.
    """

    n: Records | None = None
    typical: dict[str, Annotated[Typical, PlainValidator(_typical)]] = Field(default_factory=dict)
    predictors: Annotated[tuple[str, ...], PlainValidator(_predictors)] = ()
    counts: Annotated[str | None, PlainValidator(read_text)] = None
    weight: Positive = Fraction(1)


class Assumed(SpecModel):
    """What is assumed of a release, or of one window of it.

    Attributes
    ----------
    rows, units : int or None
        Rows that enter, and units with a row, in all cells together.
    statistics : dict of str to AssumedStatistic
    """

    rows: Records | None = None
    units: Records | None = None
    statistics: dict[str, AssumedStatistic] = Field(default_factory=dict)

    def of(self, statistic: str) -> AssumedStatistic:
        """Return what is assumed of a statistic."""
        return self.statistics.get(statistic) or AssumedStatistic()


def parameter_entries(family: Family, constants: Constants) -> dict[str, tuple[str, ...]]:
    """Return the names of every parameter's entries, in the order of posteriors; none of a single number."""
    names = tuple(column.name for column in constants.columns)
    spaces = family.parameter_spaces(constants)
    if family.name == "multivariate_normal":
        pairs = tuple(pair_name(a, b) for at, a in enumerate(names) for b in names[at + 1 :])
        return {"mean": names, "variance": names, "covariance": pairs}
    labels = family.labels(constants)
    entries = entry_names(labels) if labels else names[:-1]
    return {space.name: entries if space.shape else () for space in spaces}


def typical_values(typical: Mapping[str, Typical], family: Family, constants: Constants) -> list[float]:
    """Return the entries of all parameters in the order of posteriors.

    Raises
    ------
    ValueError
        With the place below ``typical`` and the rule.
    """
    entries = parameter_entries(family, constants)
    unknown = next((name for name in typical if name not in entries), None)
    if unknown is not None:
        raise ValueError(unknown, f"{family.name} has no such parameter: it has {', '.join(entries)}")
    missing = next((name for name in entries if name not in typical), None)
    if missing is not None:
        raise ValueError("", f"{family.name} has the parameters {', '.join(entries)}: {missing} is missing")
    spaces = {space.name: space for space in family.parameter_spaces(constants)}
    values: list[float] = []
    for name, names in entries.items():
        given = _in_order(name, typical[name], names)
        _check_support(name, given, spaces.get(name) or _VARIANCE)
        values += given
    if family.name == "multivariate_normal":
        _check_covariance(values, len(constants.columns))
    return values


_VARIANCE = ParameterSpace(name="variance", support=Support.POSITIVE)


def _in_order(name: str, given: Typical, names: tuple[str, ...]) -> list[float]:
    if isinstance(given, dict):
        if not names or set(given) != set(names):
            known = ", ".join(names) or "none: it is one number"
            raise ValueError(name, f"needs a number for each of its entries, by their names: {known}")
        return [float(given[entry]) for entry in names]
    numbers = given if isinstance(given, tuple) else (given,)
    if len(numbers) != max(1, len(names)) or isinstance(given, tuple) != bool(names):
        rule = f"needs {len(names)} numbers in a list" if names else "needs one number"
        raise ValueError(name, rule)
    return [float(number) for number in numbers]


def _check_support(name: str, given: list[float], space: ParameterSpace) -> None:
    low, high = space.support.ends
    is_inside = all(low <= value <= high for value in given)
    if not space.starts and not all(low < value < high for value in given):
        raise ValueError(name, f"lies above {low:g}" + (f" and below {high:g}" if high < math.inf else ""))
    ends = (*space.starts[1:], len(given))
    sums = [sum(given[start:end]) for start, end in zip(space.starts, ends, strict=False)]
    if not is_inside or any(abs(total - 1.0) > _SUM for total in sums):
        raise ValueError(name, "each distribution of it is of numbers in 0..1 with the sum 1")


def _check_covariance(values: list[float], columns: int) -> None:
    covariance = np.diag(values[columns : 2 * columns])
    covariance[np.triu_indices(columns, 1)] = values[2 * columns :]
    if np.linalg.eigvalsh(covariance, UPLO="U").min() <= 0.0:
        raise ValueError("covariance", "no columns have these variances and covariances together")


def misfit(
    assumed: Assumed, statistics: Mapping[str, tuple[str, Constants]]
) -> tuple[tuple[str, ...], str] | None:
    """Return the place of an assumption that fits no statistic, and the rule; None where all fit.

    Parameters
    ----------
    assumed : Assumed
    statistics : mapping
        Names to families and public constants.
    """
    for name, of in assumed.statistics.items():
        place: tuple[str, ...] = ("statistics", name)
        if name not in statistics:
            return place, f"there is no such statistic: there are {', '.join(statistics)}"
        family, constants = FAMILIES[statistics[name][0]], statistics[name][1]
        if of.predictors and family.normal_predictors is None:
            return (*place, "predictors"), f"{family.name} has no predictors"
        if of.predictors and len(of.predictors) not in {1, len(constants.columns) - 1}:
            return (*place, "predictors"), f"one for all, or one for each of {len(constants.columns) - 1}"
        if of.counts is not None and of.counts not in countable(family, constants):
            known = ", ".join(parameter_entries(family, constants))
            return (*place, "counts"), f"no parameter or entry of one: {known}; an entry as NAME[ENTRY]"
        try:
            if of.typical:
                typical_values(of.typical, family, constants)
        except ValueError as error:
            where, rule = error.args
            return (*place, "typical", *filter(None, [where])), rule
    return None


def countable(family: Family, constants: Constants) -> set[str]:
    """Return what may count of a statistic: its parameters, and their entries, as ``NAME[ENTRY]``."""
    entries = parameter_entries(family, constants)
    return {*entries, *(f"{name}[{entry}]" for name, names in entries.items() for entry in names)}
