"""What every derived column declares: the columns that it is computed from, and what it is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from suffice.pipeline.terms.declaration.fields import SpecModel
from suffice.pipeline.terms.declaration.wording import shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suffice.pipeline.terms.declaration.type_family import TypeFamily

Derived = TypeVar("Derived", bound="DerivedColumn")


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """A column that another is computed from.

    Attributes
    ----------
    column : str
        Of the source, or derived.
    families : frozenset of TypeFamily
        What it may be.
    needs_zone : bool
        Whether its times need a time zone of their own.
    """

    column: str
    families: frozenset[TypeFamily]
    needs_zone: bool = False


class DerivedColumn(SpecModel, ABC):
    """A column computed from others of the same row, by a public and total function."""

    @property
    @abstractmethod
    def inputs(self) -> tuple[Input, ...]:
        """The columns that it is computed from, in order."""

    @property
    @abstractmethod
    def family(self) -> TypeFamily:
        """What it is: boolean, numeric or text."""

    @property
    def time_zones(self) -> tuple[str, ...]:
        """The names of the time zones that it needs."""
        return ()

    @abstractmethod
    def __str__(self) -> str:
        """Say what it is, in a line."""


def read_as(
    kinds: Sequence[type[Derived]], entry: object, context: dict[str, Any] | None, forms: str
) -> Derived:
    """Read an entry as the kind that its keys belong to.

    Raises
    ------
    pydantic.ValidationError, ValueError
        Where it is none of them.
    """
    if not isinstance(entry, dict):
        message = f"needs a mapping: {forms}"
        raise ValueError(message)  # noqa: TRY004 - pydantic collects ValueError only
    keys = {kind: keys_of(kind) for kind in kinds}
    # The kind with most of the keys; each has keys of its own.
    kind = max(kinds, key=lambda kind: len(keys[kind] & entry.keys()))
    unknown = next((key for key in entry if key not in keys[kind]), None)
    if unknown is not None:
        known = (
            ""
            if len(keys[kind] & entry.keys()) == 0
            else f"; beside the others: {', '.join(sorted(keys[kind]))}"
        )
        message = f"unknown key '{shown(str(unknown))}'{known}; {forms}"
        raise ValueError(message)
    return kind.model_validate(entry, context=context)


def keys_of(kind: type[SpecModel]) -> set[str]:
    """Return a model's keys as a spec writes them."""
    return {field.alias or name for name, field in kind.model_fields.items()}


def one_of(model: SpecModel, names: Sequence[str], what: str) -> str:
    """Return which of several keys is stated.

    Raises
    ------
    ValueError
        Where it is none, or more than one.
    """
    stated = [name for name in names if getattr(model, name) is not None]
    if len(stated) != 1:
        message = f"needs exactly one of {what}"
        raise ValueError(message)
    return stated[0]
