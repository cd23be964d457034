"""What a spec needs of the columns of its source: which, for what, and of which type families."""

from __future__ import annotations

from typing import TYPE_CHECKING

from suffice.pipeline.spec.plan import measures
from suffice.pipeline.terms.declaration.derived_column import Input
from suffice.pipeline.terms.declaration.domains import DomainKind
from suffice.pipeline.terms.declaration.fields import ColumnSpec
from suffice.pipeline.terms.declaration.type_family import ANY_FAMILY, DATES, NUMBERS, TypeFamily
from suffice.pipeline.terms.declaration.wording import shortened_name
from suffice.pipeline.terms.statistics.measure import CodeColumn, orders_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from suffice.pipeline.spec.spec import Spec
    from suffice.pipeline.terms.declaration.domains import Domain

_BY_DOMAIN = {
    DomainKind.LIST: ANY_FAMILY,
    DomainKind.RANGE: frozenset({TypeFamily.NUMERIC, TypeFamily.TEXT}),
    DomainKind.PERIOD: DATES,
    DomainKind.BOOLEAN: frozenset({TypeFamily.BOOLEAN, TypeFamily.NUMERIC}),
}
_ORDERED = frozenset({TypeFamily.NUMERIC, TypeFamily.DATE, TypeFamily.TIMESTAMP})


def column_uses(spec: Spec) -> Iterator[tuple[str, Input]]:
    """List what a spec needs: the place in it, and a column, derived or not, with the families that serve."""
    if spec.window is not None:
        yield "window.column", Input(column=spec.window.column, families=DATES)
    if spec.privacy.column_unit is not None:
        column = spec.privacy.column_unit.column
        yield "privacy.unit.column", Input(column=column, families=ANY_FAMILY)
    for name, derived in spec.derived.items():
        for of in derived.inputs:
            yield f"derived.{shortened_name(name)}", of
    for column, domain in spec.groups.items():
        yield f"groups.{column}", Input(column=column, families=_serving(domain))
    for name, measure in measures(spec).items():
        position = f"statistics.{name}" + (".column" if isinstance(spec.statistics[name], ColumnSpec) else "")
        for read in measure.reads:
            needed = _serving(read.domain) if isinstance(read, CodeColumn) else NUMBERS
            yield position, Input(column=read.column, families=needed)
        for order in orders_of([measure]):
            yield f"statistics.{name}.order", Input(column=order, families=_ORDERED)


def _serving(domain: Domain) -> frozenset[TypeFamily]:
    return _BY_DOMAIN[domain.kind]
