"""Categories as a spec declares them: by name, as codes of a column, and the one for all other values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from suffice.pipeline.terms.statistics.measure import CodeColumn

if TYPE_CHECKING:
    from suffice.pipeline.terms.declaration.domains import Domain

OTHER = "other"
"""What null and unlisted values are called where a spec says ``other: true``."""


class DeclaredCategories(Protocol):
    """A column and its categories; null and unlisted values go to `other` if declared."""

    @property
    def column(self) -> str: ...  # noqa: D102
    @property
    def categories(self) -> Domain: ...  # noqa: D102
    @property
    def other(self) -> bool: ...  # noqa: D102


def require_one_other(spec: DeclaredCategories) -> None:
    """Refuse a category called like the one that null and unlisted values go to."""
    if spec.other and OTHER in spec.categories:
        message = "a category cannot be called 'other' where other: true is stated"
        raise ValueError(message)


def names(spec: DeclaredCategories) -> tuple[str, ...]:
    """Return all released categories as text, ``other`` last."""
    return (*map(str, spec.categories), *((OTHER,) if spec.other else ()))


def code_column(spec: DeclaredCategories) -> CodeColumn:
    """Return how the column is read: null and unlisted values as `other`, or as not entering."""
    return CodeColumn(
        column=spec.column,
        domain=spec.categories,
        fallback=len(spec.categories) if spec.other else None,
    )
