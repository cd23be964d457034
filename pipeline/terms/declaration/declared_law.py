"""The declared law of a published noisy table: what its publisher says of the noise and of what came after.

Noise was added to a count first, unless ``order`` says otherwise. Then, each where it is declared: a noisy
number below a threshold was suppressed, one below 0 was set to 0, and what was left was rounded.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, TypeAlias

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    PlainSerializer,
    PlainValidator,
    StringConstraints,
    ValidationError,
    WithJsonSchema,
    model_validator,
)

from suffice.errors import LawError, SpecError
from suffice.pipeline.terms.declaration.domain_entries import parse_domain
from suffice.pipeline.terms.declaration.domains import MOST_CELLS, Domain, too_many_cells
from suffice.pipeline.terms.declaration.spec_file import read_file
from suffice.pipeline.terms.declaration.spec_text import Document, read_mapping
from suffice.pipeline.terms.declaration.wording import (
    MISSING_KEY,
    UNKNOWN_KEY,
    first_complaint,
    rule_of,
)

if TYPE_CHECKING:
    from pathlib import Path

AS_PUBLISHED = "as_published"
ABSENT, EMPTY = "absent", "empty"
LARGEST = 10**15
"""Counts are held in float64 here: beyond this bound neighbouring integers would merge."""


class _Part(BaseModel):
    """A part of a declared law; unknown keys are refused."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid", frozen=True, defer_build=True)


Name = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_.-]{0,62}$")]
Column = Annotated[str, StringConstraints(min_length=1, max_length=255)]


def _one_line(text: str) -> str:
    """Refuse what could look like another line of an answer, or like other words than it is."""
    if not text.isprintable():
        message = "it is one line of characters that can be seen: no line breaks, no control characters"
        raise ValueError(message)
    return text


def _address(text: str) -> str:
    if not re.fullmatch(r"https?://\S+", text):
        message = (
            f"{text!r} is no URL: state where the table, or what describes its noise, can be read, as "
            "https://example.org/table; of a table of your making any address of yours"
        )
        raise ValueError(message)
    return text


Source = Annotated[str, StringConstraints(max_length=2000), AfterValidator(_address)]
Text = Annotated[str, StringConstraints(min_length=1, max_length=2000), AfterValidator(_one_line)]
Positive = Annotated[float, Field(gt=0, le=1e12, allow_inf_nan=False)]
Threshold = Annotated[float, Field(ge=-1e12, le=1e12, allow_inf_nan=False)]


class OfColumn(_Part):
    """A number that another column of the table has, row by row."""

    column: Column


class ByLevel(_Part):
    """A number for each level of a key, or of another column."""

    by: Column
    values: Annotated[dict[str, Threshold], Field(min_length=1)]


def _amount(value: object) -> object:
    """Tell which form is meant, so that a complaint is about that one."""
    if isinstance(value, OfColumn | ByLevel | float):
        return value
    if isinstance(value, dict):
        return (ByLevel if "by" in value else OfColumn).model_validate(value)
    try:
        number = float(str(value))
    except ValueError:
        number = math.nan
    if not abs(number) <= 1e12:
        message = (
            f"{value!r} is no number up to 1e12: write 10, {{column: NAME}}, or "
            "{by: KEY, values: {LEVEL: 10}}"
        )
        raise ValueError(message)
    return number


def _closed(**properties: object) -> dict[str, object]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


_TEXT = {"type": "string"}
_NUMBER_FORM = {
    "anyOf": [
        {"type": "number"},
        _closed(column=_TEXT),
        _closed(by=_TEXT, values={"type": "object", "additionalProperties": {"type": "number"}}),
    ]
}
Amount: TypeAlias = Annotated[
    float | OfColumn | ByLevel,
    PlainValidator(_amount),
    PlainSerializer(lambda amount: amount if isinstance(amount, float) else amount.model_dump()),
    WithJsonSchema(_NUMBER_FORM),
]
"""A number: one for all rows, of another column, or by level."""


class DeclaredNoise(_Part):
    """The law of the noise in a column, and its scale (Laplace, geometric), or sd or variance (Gaussian)."""

    law: Literal["laplace", "geometric", "gaussian", "discrete_gaussian"]
    scale: Amount | None = None
    sd: Amount | None = None
    variance: Amount | None = None

    @model_validator(mode="after")
    def _has_one_spread(self) -> Self:
        names = ("scale",) if self.law in {"laplace", "geometric"} else ("sd", "variance")
        given = [name for name in ("scale", "sd", "variance") if getattr(self, name) is not None]
        if len(given) != 1 or given[0] not in names:
            message = f"{self.law} noise needs {' or '.join(names)}, one of them and nothing else"
            raise ValueError(message)
        if isinstance(self.spread, float) and self.spread <= 0.0:
            message = f"{given[0]} must be above 0"
            raise ValueError(message)
        return self

    @property
    def is_whole(self) -> bool:
        """Whether the noise is of whole numbers."""
        return self.law in {"geometric", "discrete_gaussian"}

    @property
    def spread(self) -> float | OfColumn | ByLevel:
        """The number that was given."""
        given: float | OfColumn | ByLevel
        given = next(each for each in (self.scale, self.sd, self.variance) if each is not None)
        return given


class Suppressed(_Part):
    """Which noisy numbers were suppressed, and what stands there: ``absent``, ``empty`` or a marker."""

    below: Amount
    shown_as: Text


class Rounded(_Part):
    """To a multiple of which number was rounded; ``ties`` matters where a number lies in the middle."""

    to: Positive
    direction: Literal["nearest", "down", "up"] = "nearest"
    ties: Literal["even", "up", "away_from_zero"] = "even"


Step: TypeAlias = Literal["noise", "threshold", "clamp", "round"]
STEPS: tuple[Step, ...] = ("noise", "threshold", "clamp", "round")


class PublishedColumn(_Part):
    """A noisy column: its noise, and what else was done to the numbers.

    Attributes
    ----------
    order : tuple of {"noise", "threshold", "clamp", "round"}
        Every step that is declared, in the order in which the publisher took it; this one where left out.
    """

    noise: DeclaredNoise
    suppressed: Suppressed | None = None
    clamped_at_zero: bool = False
    rounded: Rounded | None = None
    order: tuple[Step, ...] = ()

    @model_validator(mode="after")
    def _has_order(self) -> Self:
        taken = {
            "noise": True,
            "threshold": self.suppressed is not None,
            "clamp": self.clamped_at_zero,
            "round": self.rounded is not None,
        }
        declared = tuple(step for step in STEPS if taken[step])
        if not self.order:
            object.__setattr__(self, "order", declared)  # so that what is written down states it
        if sorted(self.order) != sorted(declared):
            message = f"order must have each of {', '.join(declared)} once: the steps that are declared"
            raise ValueError(message)
        rounds_first = "round" in self.order and self.order.index("round") < self.order.index("noise")
        if rounds_first and self.rounded is not None and not self.rounded.to.is_integer():
            message = "order: what is rounded before the noise is a count, and is rounded to whole numbers"
            raise ValueError(message)
        return self


class CountStatistic(_Part):
    """The count behind every cell itself."""

    family: Literal["count"]
    column: Column
    upper: Annotated[float, Field(ge=1, le=LARGEST, allow_inf_nan=False)]


class RateStatistic(_Part):
    """A rate of a Poisson count, per unit of exposure; ``upper`` is the largest rate that is possible."""

    family: Literal["poisson"]
    column: Column
    upper: Positive
    exposure: Column | None = None


class ShareStatistic(_Part):
    """A probability: successes of a total, which is a public column or a noisy one."""

    family: Literal["bernoulli"]
    column: Column
    total: Column


class SharesStatistic(_Part):
    """Probabilities of categories: several noisy columns, or one whose rows a key divides into categories."""

    family: Literal["categorical"]
    columns: Annotated[tuple[Column, ...], Field(min_length=2)] | None = None
    column: Column | None = None
    category: Column | None = None

    @model_validator(mode="after")
    def _has_categories(self) -> Self:
        if (self.columns is None) == (self.column is None) or (self.column is None) != (
            self.category is None
        ):
            message = "categories are several columns, or one column and the key named by category"
            raise ValueError(message)
        return self


AdoptedStatisticEntry = Annotated[
    CountStatistic | RateStatistic | ShareStatistic | SharesStatistic, Field(discriminator="family")
]


def _domain(value: object) -> Domain | str:
    if isinstance(value, Domain) or value == AS_PUBLISHED:
        return value
    try:
        return parse_domain(value, directory=None, column="text")
    except ValueError as error:
        if "YYYY-Www" not in str(error):
            raise
        message = (
            f"{error}: of weeks that the table names by their first day, list these days, or as_published"
        )
        raise ValueError(message) from None


_KEY = {"type": ["string", "number", "boolean"]}
_DOMAIN_FORM = {
    "anyOf": [
        {"const": AS_PUBLISHED},
        {"type": "array", "items": _KEY, "minItems": 1},
        _closed(range={"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2}),
        _closed(**dict.fromkeys(("from", "to"), _KEY), every={"enum": ["day", "week", "month", "year"]}),
    ]
}
Keys = Annotated[
    Domain | str,
    PlainValidator(_domain),
    PlainSerializer(lambda domain: domain if isinstance(domain, str) else domain.canonical()),
    WithJsonSchema(_DOMAIN_FORM),
]


class DeclaredLaw(_Part):
    """A published table and the law of what stands in it.

    Attributes
    ----------
    name : str
        What the adopted release is called.
    publisher, source, licence : str
        Who published the table, at which URL, under which terms.
    privacy : str
        The guarantee as its publisher words it; nothing is computed from it.
    keys : dict of str to Domain or "as_published"
        The columns whose values name a cell. Every combination of their keys is a cell.
    columns : dict of str to PublishedColumn
        The noisy columns.
    statistics : dict of str to statistic
        What posteriors are of.
    """

    name: Name
    publisher: Text
    source: Source
    licence: Text
    privacy: Text
    keys: dict[Column, Keys] = Field(default_factory=dict)
    columns: Annotated[dict[Column, PublishedColumn], Field(min_length=1)]
    statistics: Annotated[dict[Name, AdoptedStatisticEntry], Field(min_length=1)]

    @model_validator(mode="after")
    def _is_consistent(self) -> Self:
        both = sorted(self.keys.keys() & self.columns.keys())
        if both:
            message = f"{both[0]!r} is a key and a noisy column"
            raise ValueError(message)
        size = math.prod(len(domain) for domain in self.keys.values() if isinstance(domain, Domain))
        if size > MOST_CELLS:
            raise ValueError(too_many_cells(size))
        for name, statistic in self.statistics.items():
            for column in noisy_columns(statistic):
                if column not in self.columns:
                    message = f"statistics.{name} is of {column!r}, which columns does not declare"
                    raise ValueError(message)
            category = getattr(statistic, "category", None)
            if category is not None and category not in self.keys:
                message = f"statistics.{name}: its category {category!r} is no key"
                raise ValueError(message)
        return self

    def content(self) -> dict[str, Any]:
        """Return the law as canonical JSON has it: defaults included, numbers as text."""
        content: dict[str, Any] = read_mapping(self.model_dump(mode="json", exclude_none=True), "law").content
        return content


def noisy_columns(statistic: Any) -> tuple[str, ...]:
    """Return the columns that a statistic's counts are in."""
    return tuple(getattr(statistic, "columns", None) or (statistic.column,))


def load_law(law: str | Path | dict[str, Any] | DeclaredLaw) -> DeclaredLaw:
    """Read the declared law of a published table, from a YAML or JSON file or a mapping.

    Raises
    ------
    LawError
        Naming the place and the rule.
    """
    if isinstance(law, DeclaredLaw):
        return law
    try:
        document = read_mapping(law, "law") if isinstance(law, dict) else read_file(str(law))
    except SpecError as error:
        raise LawError(error.location, error.rule.replace("the spec", "the law"), error.hint) from None
    return parse_law(document)


def parse_law(document: Document) -> DeclaredLaw:
    """Return the law that a document states, whose scalars are text.

    Raises
    ------
    LawError
    """
    try:
        return DeclaredLaw.model_validate(document.content)
    except ValidationError as error:
        first = first_complaint(error.errors(include_url=False))
        path = first["loc"]
        if path[:1] == ("statistics",):  # pydantic names the family, which is no key, before what is in it
            path = (*path[:2], *path[3:])
        if first["type"] == UNKNOWN_KEY:
            hint = "the documentation's page \"How to adopt somebody else's noisy table\" has all keys"
            raise LawError(document.location(path), "unknown key", hint) from None
        if first["type"] == MISSING_KEY:
            raise LawError(document.location(path[:-1]), f"the key {path[-1]!r} is missing") from None
        raise LawError(document.location(path), rule_of(first)) from None
