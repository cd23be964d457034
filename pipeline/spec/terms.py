"""The terms of a release: what is charged, which is all that a spec declares but its source.

A window has a first edition, and amendments that replace it.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, PlainValidator, ValidationInfo, model_validator

from suffice.errors import SpecError
from suffice.pipeline.terms.declaration.derived_conditions import DerivedColumn
from suffice.pipeline.terms.declaration.domain_entries import domain_size, parse_domain
from suffice.pipeline.terms.declaration.domains import MOST_CELLS, Domain, period_start, too_many_cells
from suffice.pipeline.terms.declaration.fields import (
    Column,
    ColumnUnit,
    Epsilon,
    EveryField,
    Integer,
    Name,
    ReleaseName,
    SpecModel,
    StatisticSpec,
    Text,
    canonical,
    label_name,
)
from suffice.pipeline.terms.declaration.scalars import Duration, DurationField, read_choice, read_duration
from suffice.pipeline.terms.declaration.time_zones import UTC, TimeZone, window_grid
from suffice.pipeline.terms.statistics.sensitivity import NeighboringRelation

MOST_AMENDMENTS = 99
"""Of one window."""

_EDITION = re.compile(r"([A-Za-z0-9-]{1,32})(?:\.(0|[1-9]\d?))?", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class AmendedRelease:
    """The release that an amendment replaces.

    Attributes
    ----------
    release_id : str
        16 hex digits.
    manifest_sha256 : str
        Of its manifest's bytes, in hex.
    """

    release_id: str
    manifest_sha256: str


def edition(window: str, amendment: int) -> str:
    """Name an edition: the window alone for its first release, ``2013-01.2`` for its second amendment.

    Examples
    --------
    >>> edition("2013-01", 0), edition("2013-01", 2)
    ('2013-01', '2013-01.2')
    """
    return f"{window}.{amendment}" if amendment else window


def amended_of(release_id: str | None, manifest_sha256: str | None) -> AmendedRelease | None:
    """Return what two columns of a charge name; None where it amends nothing."""
    if release_id is None or manifest_sha256 is None:
        return None
    return AmendedRelease(release_id=release_id, manifest_sha256=manifest_sha256)


def read_edition(text: str) -> tuple[str, int | None] | None:
    """Read a window and the number of an amendment; None where no edition has that name.

    Returns
    -------
    tuple of (str, int or None), or None
        The number is None where none is written, and 0 for ``2013-01.0``, the first release.

    Examples
    --------
    >>> read_edition("2013-01"), read_edition("2013-01.0"), read_edition("2013-01.2")
    (('2013-01', None), ('2013-01', 0), ('2013-01', 2))
    """
    match = _EDITION.fullmatch(text)
    if match is None:
        return None
    return match[1], None if match[2] is None else int(match[2])


ALL = "all"
"""The window label of a spec without windows."""
ROW = "row"
"""The privacy unit where it is no column's value."""

DEFAULT_MAX_TOTAL_ROWS = 10**12
PLAN_VERSION = "1"


def _amendments(value: object) -> tuple[Duration, ...]:
    if not isinstance(value, list) or not 1 <= len(value) <= MOST_AMENDMENTS:
        message = f"amendments are a list of 1 to {MOST_AMENDMENTS} lengths of time, as [7 days, 30 days]"
        raise ValueError(message)
    durations = tuple(map(read_duration, value))
    if any(duration.hours or not duration.days for duration in durations):
        message = "an amendment falls due whole days or weeks after its window is complete, and at least one"
        raise ValueError(message)
    if any(later.days <= earlier.days for earlier, later in pairwise(durations)):
        message = "the lengths of time of amendments increase"
        raise ValueError(message)
    return durations


class Window(SpecModel):
    """Releases per period of a date column: ``--window 2013-01`` selects those rows.

    `lag`, `first` and `amend` say when releases are expected, and not what is in them: they are no terms.

    Attributes
    ----------
    column : str
    every : Every
    time_zone : str
        Whose midnights divide windows: the column's instants are converted, and its dates and timestamps
        without a zone are taken as they are.
    lag : Duration
        How long after its end a window counts as complete.
    first : str or None
        The label of the first window that is expected; none before it is released.
    amend : tuple of Duration
        How long after a window is complete its amendments fall due, each a release of the whole window anew
        and a charge of its own; increasing.
    """

    column: Column
    every: EveryField
    time_zone: TimeZone = UTC
    lag: DurationField = Field(default=Duration(), exclude=True)
    first: Text | None = Field(default=None, exclude=True)
    amend: Annotated[tuple[Duration, ...], PlainValidator(_amendments)] = Field(default=(), exclude=True)

    @model_validator(mode="after")
    def _first_is_a_label(self) -> Self:
        if self.first is not None:
            period_start(self.first, self.every)
        return self

    @property
    def grid(self) -> str:
        """The window grid, ``column:every:time_zone``."""
        return window_grid(self.column, self.every, self.time_zone)


def _unit(value: object) -> str | ColumnUnit:
    if isinstance(value, dict):
        return ColumnUnit.model_validate(value)
    if value != ROW:
        message = f"{value!r} is not a privacy unit: use row, or {{column: customer_id, max_rows: 20}}"
        raise ValueError(message)
    return ROW


class Privacy(SpecModel):
    """The price and the guarantee."""

    epsilon: Epsilon
    neighboring: Annotated[
        NeighboringRelation, PlainValidator(partial(read_choice, kind=NeighboringRelation))
    ]
    unit: Annotated[str | ColumnUnit, PlainValidator(_unit)] = ROW

    @property
    def column_unit(self) -> ColumnUnit | None:
        """The unit where it is a column's value; None where it is a row."""
        return self.unit if isinstance(self.unit, ColumnUnit) else None

    @property
    def max_rows(self) -> int | None:
        """Most rows that a column unit keeps; None where the unit is a row."""
        return self.column_unit.max_rows if self.column_unit else None

    @property
    def unit_name(self) -> str:
        """The unit as accounts name it: ``row`` or ``column:NAME``."""
        return f"column:{self.unit.column}" if isinstance(self.unit, ColumnUnit) else ROW


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


class Terms(SpecModel):
    """What is charged: all that a spec declares but its source. Defaults are filled, domains inlined."""

    name: ReleaseName
    dataset: Name
    window: Window | None = None
    privacy: Privacy
    derived: dict[str, DerivedColumn] = Field(default_factory=dict)
    groups: Annotated[dict[str, Domain], PlainValidator(_groups)] = Field(default_factory=dict)
    statistics: dict[str, StatisticSpec]
    max_total_rows: Integer = DEFAULT_MAX_TOTAL_ROWS

    def canonical_plan(self) -> str:
        """Return the canonical plan: compact JSON, sorted keys, numbers as decimal text, no source."""
        content = {name: canonical(getattr(self, name)) for name in Terms.model_fields}
        content["format_version"] = PLAN_VERSION
        return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)

    def plan_hash(self) -> str:
        """Return the SHA-256 of the canonical plan, in hex: the identity of what is charged."""
        return hashlib.sha256(self.canonical_plan().encode()).hexdigest()

    @property
    def grid(self) -> str | None:
        """The window grid, ``column:every:time_zone``, or None where the spec has no window."""
        return self.window.grid if self.window else None


def check_window(spec: Terms, window: str, place: str = "--window") -> str:
    """Check a window label against the spec, and return it; a message names `place`.

    Raises
    ------
    SpecError
        Where the spec has windows and none is named, or the reverse, or the label is not canonical.
    """
    if spec.window is None:
        if window != ALL:
            raise SpecError(place, f"{window!r} is given, but the spec has no window key", "leave it out")
        return ALL
    if window == ALL:
        raise SpecError(place, "the spec releases by window, and none is named", f"as {place} 2013-01")
    try:
        period_start(window, spec.window.every)
    except ValueError as error:
        raise SpecError(place, str(error)) from None
    return window
