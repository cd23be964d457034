"""What a spec says of a statistic that is released as draws of a posterior and not as noisy sums."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Annotated

from pydantic import AfterValidator, PlainValidator

from suffice.pipeline.terms.declaration.fields import ColumnSpec, SpecModel, read_bound
from suffice.pipeline.terms.declaration.scalars import read_integer, read_text

if TYPE_CHECKING:
    from suffice.pipeline.terms.declaration.fields import StatisticSpec

MOST_DRAWS = 1000
FEWEST_POINTS, MOST_POINTS = 3, 4097
LONGEST_PRIOR = 1000


def _draws(value: int) -> int:
    if not 1 <= value <= MOST_DRAWS:
        message = f"draws lies in 1..{MOST_DRAWS}, not {value}"
        raise ValueError(message)
    return value


def _points(value: int) -> int:
    if not FEWEST_POINTS <= value <= MOST_POINTS:
        message = f"grid lies in {FEWEST_POINTS}..{MOST_POINTS}: it is a number of points, not {value}"
        raise ValueError(message)
    return value


def _prior(value: object) -> str:
    text = read_text(value)
    if len(text) > LONGEST_PRIOR:
        message = f"the prior of a sample is a text of at most {LONGEST_PRIOR} characters, not {len(text)}"
        raise ValueError(message)
    return text


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

    draws: Annotated[int, PlainValidator(read_integer), AfterValidator(_draws)]
    within: Annotated[tuple[Fraction, Fraction], PlainValidator(_interval)]
    grid: Annotated[int, PlainValidator(read_integer), AfterValidator(_points)]
    prior: Annotated[str | None, PlainValidator(_prior)] = None


class SampledColumnSpec(ColumnSpec):
    """A statistic of one column and one parameter, of which draws may be released."""

    sample: SampleEntry | None = None


def sample_entry(statistic: StatisticSpec) -> SampleEntry | None:
    """Return what a statistic says of draws; None where noisy sums are released."""
    return statistic.sample if isinstance(statistic, SampledColumnSpec) else None
