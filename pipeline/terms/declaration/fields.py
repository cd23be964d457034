"""What a spec's entries hold: fields, each converted from text here, and the models that are made of them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    PlainValidator,
    PrivateAttr,
    ValidationInfo,
)

from suffice.pipeline.terms.declaration.documents import Form
from suffice.pipeline.terms.declaration.domain_entries import domain_size, parse_domain
from suffice.pipeline.terms.declaration.domains import MOST_CELLS, Domain, Every, too_many_cells
from suffice.pipeline.terms.declaration.exact_numbers import format_number, parse_decimal
from suffice.pipeline.terms.declaration.hierarchy import Hierarchy, read_hierarchy
from suffice.pipeline.terms.declaration.scalars import (
    read_boolean,
    read_choice,
    read_every,
    read_integer,
    read_mapping,
    read_text,
)
from suffice.pipeline.terms.declaration.wording import is_safe, shown

if TYPE_CHECKING:
    from suffice.pipeline.terms.declaration.contribution import Contribution

RESERVED_NAMES = frozenset({"publications"})
"""Folders of a store that others than those who release may write to."""

LONGEST_NAME = 63
"""Characters of the name of a release or a data set."""
_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,62}", re.ASCII)
_STATISTIC = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}", re.ASCII)
_LARGEST_BOUND = Fraction(10) ** 150
"""Squares of a bounded column must stay finite in float64."""
SMALLEST_SHARE = Fraction(1, 10**6)
LARGEST_SHARE = Fraction(10**6)
LARGEST_COUNT = 10**9
"""Lattice values are 32-bit integers."""
SMALLEST_COUNT_WEIGHT = Fraction(1, 1000)
DEFAULT_COUNT_WEIGHT = Fraction(1, 16)
"""Sums become 6 % noisier, and counts have noise of scale 17 / epsilon."""
FEWEST_BITS = 2
MOST_BITS = 24
RESERVED = frozenset(
    [
        "component",
        "value",
        "estimate",
        "quantity",
        "category",
        "parameter",
        "draw",
        "mean",
        "sd",
        "lower",
        "upper",
        "noise_sd",
        "table",
    ]
)
"""Names of columns of tables and draws, which no group and no variable may have."""


class SpecModel(BaseModel):
    """Base of the spec's models: unknown keys are refused, nothing changes after reading."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class RowsOf(StrEnum):
    """What a statistic is summed over.

    ``rows``: the rows, with a column unit those that each unit keeps. ``units``: the units, each of which
    counts once, by all of its rows.
    """

    ROWS = "rows"
    UNITS = "units"


class NoiseOn(StrEnum):
    """Which noise a statistic of several columns has.

    ``laplace``: discrete Laplace on each component. ``cone``: on all moments together, on the cone of
    matrices that they lie in.
    """

    LAPLACE = "laplace"
    CONE = "cone"


def read_column(value: object) -> str:
    """Return the name of a column."""
    text = read_text(value)
    if not text or not text.isprintable() or not is_safe(text) or len(text) > 255:
        message = "a column name is 1 to 255 printable characters"
        raise ValueError(message)
    return text


def _name(value: object) -> str:
    text = read_text(value)
    if not _NAME.fullmatch(text):
        message = f"{text!r} does not match [a-z0-9][a-z0-9_.-]{{0,62}}"
        raise ValueError(message)
    return text


def _release_name(value: object) -> str:
    text = _name(value)
    if text in RESERVED_NAMES:
        message = f"a release cannot be called {text!r}: that folder of a store is for published posteriors"
        raise ValueError(message)
    return text


def statistic_name(text: str) -> str:
    """Check a statistic's name, which is also its file's."""
    if not _STATISTIC.fullmatch(text):
        message = f"the statistic name {text!r} does not match [A-Za-z0-9][A-Za-z0-9_.-]{{0,62}}"
        raise ValueError(message)
    return text


def label_name(kind: str, text: str) -> str:
    """Check a name that stands beside those of a release's own columns: a group's, or a variable's."""
    if text in RESERVED:
        message = f"the {kind} name {text!r} is reserved for a column of the release"
        raise ValueError(message)
    if not text.isprintable() or not is_safe(text) or not text or "=" in text:
        message = f"the {kind} name '{shown(text)}' needs printable characters and no '='"
        raise ValueError(message)
    return text


def read_bound(value: object) -> Fraction:
    """Return a number whose square is finite in float64."""
    number = parse_decimal(read_text(value))
    if number and not 1 / _LARGEST_BOUND <= abs(number) <= _LARGEST_BOUND:
        message = f"{value!r} is too large or too small: a magnitude lies between 10^-150 and 10^150, or is 0"
        raise ValueError(message)
    return number


def _share(value: object) -> Fraction:
    share = parse_decimal(read_text(value))
    if not SMALLEST_SHARE <= share <= LARGEST_SHARE:
        message = f"a share lies between 0.000001 and 1000000, not {value!r}"
        raise ValueError(message)
    return share


@dataclass(frozen=True, slots=True)
class Nulls:
    """What a null counts as: a public value, or nothing where `value` is None."""

    value: Fraction | None = None

    def canonical(self) -> object:
        """Return the policy as it stands in the canonical plan."""
        return "drop" if self.value is None else {"value": format_number(self.value)}


def _nulls(value: object) -> Nulls:
    if value == "drop":
        return Nulls()
    mapping = read_mapping(value, {"value"}, "drop, or as {value: v}")
    text = {"true": "1", "false": "0"}.get(read_text(mapping["value"]), read_text(mapping["value"]))
    return Nulls(read_bound(text))


def _domain(value: object, info: ValidationInfo) -> Domain:
    directory = (info.context or {}).get("directory", Path())
    return parse_domain(value, directory=directory, column=str(info.data.get("column", "")))


def _groups(value: object, info: ValidationInfo) -> dict[str, Domain]:
    if not isinstance(value, dict):
        message = "groups map column names to domains"
        raise ValueError(message)  # noqa: TRY004 - pydantic collects ValueError only
    directory = (info.context or {}).get("directory", Path())
    groups: dict[str, Domain] = {}
    cells = 1
    for column, domain in value.items():  # counted before they are listed
        label_name("group", column)
        try:
            cells *= domain_size(domain)
        except ValueError as error:
            message = f"{column}: {error}"
            raise ValueError(message) from None
    if cells > MOST_CELLS:
        message = f"{too_many_cells(cells)} (coarsen a domain)"
        raise ValueError(message)
    for column, domain in value.items():
        try:
            groups[column] = parse_domain(domain, directory=directory, column=column)
        except ValueError as error:
            message = f"{column}: {error}"
            raise ValueError(message) from None
    return groups


def _hierarchy(value: object, info: ValidationInfo) -> Hierarchy:
    stated = read_hierarchy(value, (info.context or {}).get("directory", Path()))
    for level in stated.levels:
        label_name("level", level)
    return stated


def _level_shares(value: object) -> tuple[Fraction, ...]:
    if not isinstance(value, list):
        message = "level_shares are a list of numbers, one for each level, root first, as [1, 2, 4]"
        raise ValueError(message)  # noqa: TRY004 - pydantic collects ValueError only
    return tuple(map(_share, value))


def _below_2_53(value: int) -> int:
    if abs(value) >= 2**53:
        message = "must be below 2^53"
        raise ValueError(message)
    return value


def _positive(value: Fraction) -> Fraction:
    if value <= 0:
        message = f"must be above 0, not {format_number(value)}"
        raise ValueError(message)
    return value


def _lies_in(least: int, most: int, name: str = "", more: str = "") -> AfterValidator:
    """Return what refuses an integer outside of a range, in a sentence about `name`."""

    def check(value: int) -> int:
        if not least <= value <= most:
            message = f"{name}lies in {least}..{most}{more}, not {value}"
            raise ValueError(message)
        return value

    return AfterValidator(check)


def _count_weight(value: object) -> Fraction:
    weight = parse_decimal(read_text(value))
    if not SMALLEST_COUNT_WEIGHT <= weight <= 1:
        message = f"the weight of a count lies between 0.001 and 1, not {value!r}"
        raise ValueError(message)
    return weight


def _count_clipped(value: object) -> CountClipped | None:
    if isinstance(value, dict):
        return CountClipped.model_validate(read_mapping(value, {"weight"}, "true, or as {weight: 0.25}"))
    return CountClipped.model_construct(weight=DEFAULT_COUNT_WEIGHT) if read_boolean(value) else None


def _where(value: object, info: ValidationInfo) -> SpecModel | str:
    # Conditions are made of fields, so that whoever reads a statistic brings what reads its condition.
    condition: SpecModel | str = (info.context or {})[READS_CONDITION](value, info)
    return condition


def _moment_weight(value: object) -> Fraction:
    weight = parse_decimal(read_text(value))
    if not Fraction(1, 2) <= weight <= 1 << MOST_BITS or (
        weight != Fraction(1, 2) and weight.denominator != 1
    ):
        message = f"a moment weight is a power of two from 0.5 to 2^lattice_bits, not {value!r}"
        raise ValueError(message)
    if weight.numerator & (weight.numerator - 1):
        message = f"a moment weight is a power of two, not {value!r}"
        raise ValueError(message)
    return weight


Text = Annotated[str, PlainValidator(read_text)]
Column = Annotated[str, PlainValidator(read_column)]
Name = Annotated[str, PlainValidator(_name)]
ReleaseName = Annotated[str, PlainValidator(_release_name)]
Integer = Annotated[int, PlainValidator(read_integer), AfterValidator(_below_2_53)]
Bound = Annotated[Fraction, PlainValidator(read_bound)]
Positive = Annotated[Fraction, PlainValidator(read_bound), AfterValidator(_positive)]
Count = Annotated[
    int,
    PlainValidator(read_integer),
    _lies_in(1, LARGEST_COUNT),
    Form({"type": "integer", "minimum": 1, "maximum": LARGEST_COUNT}),
]
LatticeBits = Annotated[int, PlainValidator(read_integer), _lies_in(FEWEST_BITS, MOST_BITS, "lattice_bits ")]
MomentWeight = Annotated[Fraction, PlainValidator(_moment_weight)]
CountWeight = Annotated[Fraction, PlainValidator(_count_weight)]
Share = Annotated[Fraction, PlainValidator(_share)]
Boolean = Annotated[bool, PlainValidator(read_boolean)]
IfTrue = Annotated[bool | None, PlainValidator(lambda value: read_boolean(value) or None)]
"""Whether something is asked for; what says no is the same plan as what does not say."""


class CountClipped(SpecModel):
    """That records which clipping moved are counted beside the sums.

    Attributes
    ----------
    weight : Fraction
        What such a record may add to its count, as a share of what it may change the sums by.
    """

    weight: CountWeight


CountClippedField = Annotated[CountClipped | None, PlainValidator(_count_clipped)]
"""What is the default weight in words or in numbers is the same plan."""
READS_CONDITION = "read_condition"
"""In a context: what reads a condition of rows, from its entry and the context."""
Where = Annotated[SpecModel | str | None, PlainValidator(_where)]
"""A condition of rows: the name of a boolean column, or a `DerivedColumn`."""
RowsOfField = Annotated[RowsOf, PlainValidator(partial(read_choice, kind=RowsOf))]
_ELSE = "; leave it out, and the one that is predicted to err less is taken"
NoiseField = Annotated[NoiseOn, PlainValidator(partial(read_choice, kind=NoiseOn, advice=_ELSE))]
EveryField = Annotated[Every, PlainValidator(read_every)]
NullsField = Annotated[Nulls, PlainValidator(_nulls)]
DomainField = Annotated[Domain, PlainValidator(_domain)]
Groups = Annotated[dict[str, Domain], PlainValidator(_groups)]
"""Columns that choose a cell, and their keys."""
HierarchyField = Annotated[Hierarchy, PlainValidator(_hierarchy)]
LevelShares = Annotated[tuple[Fraction, ...], PlainValidator(_level_shares)]
"""Of a tree's levels, the root's first, relative to each other."""


class StatisticSpec(SpecModel):
    """What every statistic states, whatever its family.

    A plan has no hierarchy: it has a statistic for every level, and which of them form a tree.
    """

    family: str
    share: Share = Fraction(1)
    rows_of: RowsOfField = RowsOf.ROWS
    within_unit: IfTrue | None = None
    count_clipped: CountClippedField = None
    where: Where = None
    groups: Groups | None = None
    hierarchy: HierarchyField | None = Field(default=None, exclude=True)
    level_shares: LevelShares | None = Field(default=None, exclude=True)
    _contribution: Contribution | None = PrivateAttr(default=None)

    @property
    def contribution(self) -> Contribution:
        """How many rows of a unit enter at most, of a statistic that stands under a column unit.

        Raises
        ------
        ValueError
            Where it stands under none, or was not yet told.
        """
        if self._contribution is None:
            message = f"{self.family} stands under no column unit"
            raise ValueError(message)
        return self._contribution

    def under(self, contribution: Contribution | None) -> Self:
        """Return the statistic as it stands under a column unit that bounds its rows, or under none."""
        bound = self.model_copy()
        bound._contribution = contribution  # noqa: SLF001 - a new statistic's own
        return bound


class ColumnSpec(StatisticSpec):
    """A statistic of one column."""

    column: Column


MOST_DRAWS = 1000
FEWEST_POINTS, MOST_POINTS = 3, 4097
LONGEST_PRIOR = 1000
QUANTILE_DIGITS = 4
"""Of a quantile: scores are multiplied by its denominator, and have 64 bits."""


def _prior(value: object) -> str:
    text = read_text(value)
    if len(text) > LONGEST_PRIOR:
        message = f"the prior of a sample is a text of at most {LONGEST_PRIOR} characters, not {len(text)}"
        raise ValueError(message)
    return text


def _quantile(value: object) -> Fraction:
    quantile = parse_decimal(read_text(value))
    if not 0 < quantile < 1 or (10**QUANTILE_DIGITS) % quantile.denominator:
        message = f"a quantile is above 0 and below 1, with at most {QUANTILE_DIGITS} decimals, not {value!r}"
        raise ValueError(message)
    return quantile


def _interval(value: object) -> tuple[Fraction, Fraction]:
    if not isinstance(value, list) or len(value) != 2:
        message = "within is the two ends of an interval of the parameter, as [0.005, 0.5]"
        raise ValueError(message)
    lower, upper = map(read_bound, value)
    if lower >= upper:
        message = "the first end of within must be below the second"
        raise ValueError(message)
    return lower, upper


class SampleEntry(SpecModel):
    """Draws of the parameter's posterior on a public grid, each by the exponential mechanism.

    Attributes
    ----------
    draws : int
        In each cell, independent given the data.
    within : tuple of Fraction
        The least and the greatest value of the parameter.
    grid : int
        Number of equally spaced points of it, both ends among them.
    prior : str or None
        As text; None for the family's default.
    """

    draws: Annotated[int, PlainValidator(read_integer), _lies_in(1, MOST_DRAWS, "draws ")]
    within: Annotated[tuple[Fraction, Fraction], PlainValidator(_interval)]
    grid: Annotated[
        int,
        PlainValidator(read_integer),
        _lies_in(FEWEST_POINTS, MOST_POINTS, "grid ", ": it is a number of points"),
    ]
    prior: Annotated[str | None, PlainValidator(_prior)] = None


class QuantileEntry(SpecModel):
    """Draws of the bin that one quantile is in, each by the exponential mechanism.

    Attributes
    ----------
    quantile : Fraction
        Above 0 and below 1.
    draws : int
        In each cell, independent given the data.
    """

    quantile: Annotated[Fraction, PlainValidator(_quantile)]
    draws: Annotated[int, PlainValidator(read_integer), _lies_in(1, MOST_DRAWS, "draws ")]


class SampledColumnSpec(ColumnSpec):
    """A statistic of one column and one parameter, of which draws may be released."""

    sample: SampleEntry | None = None


class QuantileColumnSpec(ColumnSpec):
    """A statistic of one column, of which draws of a quantile may be released."""

    sample: QuantileEntry | None = None


def sample_entry(statistic: StatisticSpec) -> SampleEntry | QuantileEntry | None:
    """Return what a statistic says of draws; None where noisy sums are released."""
    return statistic.sample if isinstance(statistic, SampledColumnSpec | QuantileColumnSpec) else None


def canonical(value: object) -> object:
    """Return a spec's value as the canonical plan holds it: numbers as decimal text, defaults filled.

    What a statistic or a unit may leave unstated, and does, is left out, and so is what is no term.

    Raises
    ------
    TypeError
        For a type that the canonical plan has no form for.
    """
    if isinstance(value, SpecModel):
        fields = type(value).model_fields.items()
        stated = {field.alias or name: getattr(value, name) for name, field in fields if not field.exclude}
        return {name: canonical(entry) for name, entry in stated.items() if entry is not None}
    if isinstance(value, Domain | Nulls):
        return value.canonical()
    if isinstance(value, dict):
        return {str(key): canonical(entry) for key, entry in value.items()}
    if isinstance(value, bool | tuple) or value is None:
        return [canonical(entry) for entry in value] if isinstance(value, tuple) else value
    if isinstance(value, int | Fraction):
        return format_number(value)
    if isinstance(value, str):
        return str(value)
    message = f"no canonical form for {type(value).__name__}"
    raise TypeError(message)
