"""What both descriptions of a release say in words: what it is, and what its files and their columns hold."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from suffice.pipeline.spec.terms import ALL
from suffice.pipeline.terms.declaration.domains import DomainKind
from suffice.pipeline.terms.declaration.exact_numbers import format_epsilon, format_number

if TYPE_CHECKING:
    from collections.abc import Iterator

    from suffice.pipeline.terms.statistics.statistic_plan import StatisticPlan
    from suffice.storage.releases.manifest_model import FileEntry, Manifest


def parts(manifest: Manifest) -> Iterator[tuple[FileEntry, StatisticPlan]]:
    """Return the data files, each with the plan of its statistic."""
    return zip(manifest.files, manifest.plan.statistics, strict=True)


def within_cell(statistic: StatisticPlan) -> str:
    """Return the column that tells the rows of a cell apart."""
    return "component" if statistic.sample is None else "draw"


def title(manifest: Manifest) -> str:
    """Return the title of a release."""
    of = "" if manifest.window == ALL else f", {manifest.window}"
    again = f", amendment {manifest.amendment}" if manifest.amendment else ""
    what = "posterior samples" if _is_sampled(manifest) else "noisy statistics"
    return f"{manifest.name}{of}{again}: {what} of {manifest.dataset}"


def description(manifest: Manifest) -> str:
    """Say what a release is, and what it promises."""
    unit = "row" if manifest.plan.unit == "row" else f"value of {manifest.plan.unit}"
    adds = str(manifest.plan.neighboring) == "add_or_remove_one"
    other = f"one {unit} more or less" if adds else f"another {unit}"
    return (
        f"Differentially private statistics of the data set {manifest.dataset}, made once: with {other} in "
        "the data, the probability of any outcome changes by a factor of at most exp(epsilon), epsilon = "
        f"{format_epsilon(manifest.epsilon)} for the whole release. {' '.join(_laws(manifest))} Every "
        "combination of group keys has its rows, empty or not. The manifest, manifest.json, states "
        f"{'what was drawn' if _is_sampled(manifest) else 'the exact maps from components to quantities'}. "
        "No licence is stated there."
    )


def meaning(statistic: StatisticPlan) -> str:
    """Say what the file of a statistic holds."""
    of = f" of {', '.join(statistic.columns)}" if statistic.columns else ""
    counted = f" They are of {statistic.rows_of}." if statistic.rows_of else ""
    if statistic.sample is not None:
        drawn = statistic.sample
        lower, upper = map(format_number, drawn.within)
        return (
            f"Draws of the {drawn.parameter}{of}, family {statistic.family}: one row for each cell and draw."
            f"{counted} Each is one of {drawn.grid} equally spaced points of {lower}..{upper}, drawn by the "
            f"exponential mechanism from the posterior under the prior {drawn.prior}, at temperature "
            f"{format_number(drawn.temperature)}."
        )
    return (
        f"Noisy sufficient statistics{of}, family {statistic.family}: one row for each cell and component."
        f"{counted} The noise on each value is discrete Laplace, independent, of scale "
        f"{format_number(Fraction(statistic.scale))}, in the units of value."
    )


def columns_of(statistic: StatisticPlan, manifest: Manifest) -> Iterator[tuple[str, str, str]]:
    """Give name, type and meaning of each column of a file."""
    for name, domain in manifest.plan.groups.items():
        yield name, "integer" if domain.kind is DomainKind.RANGE else "string", f"Key of the cell: {name}."
    if statistic.sample is not None:
        yield "draw", "integer", "Which draw of the cell it is, counted from 0."
        yield "value", "integer", "The point of the grid that was drawn, counted from 0."
        return
    yield "component", "string", "Which component of the statistic the value is of."
    yield "value", "integer", "The component's sum over the rows of the cell, in lattice units, plus noise."
    total = statistic.partition_total
    if total is None:
        yield "estimate", "number", "The value again, in lattice steps."
    else:
        meaning = f"The value divided by {total}, what one record adds over all components: a pseudo-count."
        yield "estimate", "number", meaning


def version(manifest: Manifest) -> str:
    """Return the edition of the window as a version: amendments replace what came before."""
    return f"{manifest.amendment + 1}.0.0"


def created(manifest: Manifest) -> str:
    """Return the hour in which a release was made, as an instant."""
    return manifest.stated.created.replace("Z", ":00:00Z")


def _is_sampled(manifest: Manifest) -> bool:
    return all(statistic.sample is not None for statistic in manifest.plan.statistics)


def _laws(manifest: Manifest) -> Iterator[str]:
    """Say how the files' values came about."""
    sampled = [statistic.name for statistic in manifest.plan.statistics if statistic.sample is not None]
    if not _is_sampled(manifest):
        besides = f" but those of {', '.join(sampled)}" if sampled else ""
        yield (
            f"Every value{besides} carries discrete Laplace noise of the scale that its file states, so "
            "counts may be negative and sums need not add up."
        )
    if sampled:
        yield (
            f"The files of {', '.join(sampled)} hold draws of a posterior, made flatter as privacy asks for, "
            "and no statistics."
        )
