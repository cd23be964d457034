"""``suffice table --pooled``: every cell together with the others, beside itself alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, cast

from suffice.cli import output
from suffice.cli.output import say
from suffice.pipeline.terms.declaration.documents import Rows, document, printed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from suffice.data_files.source import Provenance
    from suffice.pipeline.ask.borrowing.pooled_posterior import PooledPosterior
    from suffice.pipeline.ask.borrowing.pooling import Pooling
    from suffice.pipeline.ask.pooling.release import Release
    from suffice.pipeline.ask.pooling.series import Series

_NUMBERS = ("mean", "sd", "lower", "upper")
_LEFT_OUT = frozenset({"sd", "alone_sd", "outside"})
"""Columns that a terminal has no room for."""
_DIGITS = 3


@printed("source statistic family rows_of mass interval rows")
@dataclass(frozen=True, slots=True, kw_only=True)
class StatedPooled:
    """What ``suffice table`` prints of pooled cells."""

    source: Provenance
    statistic: str
    family: str
    rows_of: str | None
    mass: float
    interval: str
    rows: Annotated[
        list[dict[str, Any]],
        Rows(
            parameter=str,
            own_share=float,
            outside=float,
            **{f"{of}{name}": float | None for of in ("", "alone_") for name in _NUMBERS},
        ),
    ]


def _shown(together: PooledPosterior, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return what a terminal shows of rows: each cell alone first where a spread is not identified."""
    from suffice.pipeline.ask.borrowing.side_by_side import ALONE  # numpy is slow to import

    left_out = _LEFT_OUT | ({"parameter"} if len(together.parameters) == 1 else set())
    alone = [name for name in rows[0] if name.startswith(ALONE)]
    numbers = [name for name in rows[0] if name in {*_NUMBERS, "own_share"}]
    keys = [name for name in rows[0] if name not in {*alone, *numbers}]
    columns = [*keys, *numbers, *alone] if together.is_identified else [*keys, *alone, *numbers]
    return [{name: row[name] for name in columns if name not in left_out} for row in rows]


def print_beside_alone(
    asked_of: Release | Series,
    rests_on: Sequence[Release],
    statistic: str,
    where: Mapping[str, object],
    pooled: Sequence[str] | Pooling,
    *,
    out: Path | None,
    overwrite: bool,
    every_cell: bool,
    as_json: bool,
) -> None:
    """Print pooled cells beside each of them alone, or write them to a file.

    Raises
    ------
    UsageError, PriorError
        As ``Release.posterior``.
    """
    from suffice.data_files.source import SUMMARIES, posterior_source  # numpy is slow to import
    from suffice.pipeline.ask.borrowing.side_by_side import rows_beside_alone
    from suffice.pipeline.ask.posterior.notes import conflict_lines
    from suffice.pipeline.math.parameters.arguments import interval_in_words
    from suffice.pipeline.math.parameters.parameter_posterior import DRAWS, MASS

    together = cast("PooledPosterior", asked_of.posterior(statistic, pooled=pooled, where=where))
    kind = together.default_interval
    rows = rows_beside_alone(together)
    source = posterior_source(SUMMARIES, rests_on, together, mass=MASS, interval=kind, draws=DRAWS)
    if out is not None:
        from suffice.data_files.tables import columns_of

        output.write_table(columns_of(rows), out, source, overwrite=overwrite)
    if as_json:
        stated = StatedPooled(
            source=source,
            statistic=statistic,
            family=together.family,
            rows_of=together.rows_of,
            mass=MASS,
            interval=kind,
            rows=rows,
        )
        output.print_json(document(stated))
        return
    if out is None:
        shown = _shown(together, rests_on[-1].in_words(statistic, rows).in_words(rows))
        limit = len(rows) if every_cell else output.MOST_ROWS
        output.print_rows(shown, limit=limit, digits=_DIGITS)
        say(f"\n{together.rows_of}")
        for line in conflict_lines(together):
            say(f"\n{line}")
        say(f"intervals: {interval_in_words(kind, MASS)}")
    output.print_written(out)
