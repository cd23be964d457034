"""What the page of a release says in words: what it is, what it shows, how to use it, and what it is not."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from suffice.pages.numbers import number
from suffice.pages.statistic_view import NOISE, POSTERIOR, SAMPLE
from suffice.pipeline.families import FAMILIES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from suffice.pages.statistic_view import StatisticView
    from suffice.pipeline.ask.pooling.release import Release


def lead(facts: Mapping[str, Any], views: Sequence[StatisticView]) -> str:
    """Say what was released, in a sentence or two."""
    names = [statistic["name"] for statistic in facts["statistics"]]
    listed = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
    cells = f" in each of {facts['cells']:,} cells" if facts["cells"] > 1 else ""
    window = "" if facts["window"] == "all" else f" for {facts['window']}"
    sampled = [view.name for view in views if view.kind == SAMPLE]
    if len(sampled) == len(views):
        return (
            f"Posterior samples of {listed}{cells}{window}, drawn once under differential privacy, from "
            "posteriors that are as flat as privacy asks for."
        )
    besides = f" Of {', '.join(sampled)} posterior samples were drawn instead." if sampled else ""
    return (
        f"Sufficient statistics of {listed}{cells}{window}, released once under differential privacy: every "
        f"number carries noise of a stated distribution, and posteriors take it into account.{besides}"
    )


def protects(facts: Mapping[str, Any]) -> str:
    """Say what the guarantee is about."""
    if facts["unit"] == "row":
        return "every row"
    column = facts["unit"].removeprefix("column:")
    return f"every {column}, at most {facts['max_rows']} rows of each"


def sentence(release: Release, view: StatisticView) -> str:
    """Say what a statistic is of, and what its picture shows."""
    plan = release.plan_of(view.name)
    columns = ", ".join(plan.columns)
    parameters = plan.parameters
    of = f"Of column {columns}" if len(plan.columns) == 1 else f"Of columns {columns}"
    bounds = ""
    if plan.columns and parameters.lower is not None and parameters.upper is not None:
        bounds = (
            f", clipped to {number(float(parameters.lower), 9)} to {number(float(parameters.upper), 9)} "
            "in the column's unit"
        )
    family = view.family.replace("_", " ")
    return f"{of}{bounds}, modelled as {family}: the picture shows {_a_parameter(view)}."


def _a_parameter(view: StatisticView) -> str:
    name = view.shown_of.replace("_", " ")
    if view.kind == SAMPLE:
        return f"draws of the {name}"
    if view.kind == NOISE:
        return f"estimates of the {name}"
    cells = " of each cell" if view.n_cells > 1 else ""
    entries = " and category" if len(view.entries) > 1 else ""
    return f"the {name}{cells}{entries if cells else (' of each category' if entries else '')}"


def lines(views: Sequence[StatisticView], uri: str) -> dict[str, str]:
    """Return lines that readers copy: of the first noisy statistic, and of the first sample."""
    place = shlex.quote(uri)
    cli = [f"suffice show {place}"]
    python = ["import suffice", "", f"release = suffice.open_release({uri!r})"]
    noisy = next((view for view in views if view.kind != SAMPLE), None)
    sampled = next((view for view in views if view.kind == SAMPLE), None)
    if noisy is not None:
        name = shlex.quote(noisy.name)
        cli += [f"suffice table {place} {name}", f"suffice posterior {place} {name}"]
        python += (
            [
                f"posterior = release.posterior({noisy.name!r})",
                f"print(posterior.credible_interval({noisy.shown_of!r}))",
            ]
            if noisy.kind == POSTERIOR
            else [f"print(release.table({noisy.name!r}))"]
        )
    if sampled is not None:
        cli.append(f"suffice table {place} {shlex.quote(sampled.name)}")
        python.append(f"print(release.samples({sampled.name!r}).values)")
    return {"cli": "\n".join(cli), "python": "\n".join(python)}


def _of_the_account(facts: Mapping[str, Any]) -> Iterator[str]:
    """Say what the account demanded of nobody."""
    if facts["contract"] is None:
        yield (
            "The account had no contract of its data: how files were typed, and which there were, could "
            "decide whether the release was made."
        )
    if facts["audit"] is None:
        yield "The account's grant named no audit of this plan: its setup was not tried beforehand."
    if not facts["input_verified"]:
        yield "The input files were not compared with checksums by their owner before the release."


def limits(facts: Mapping[str, Any], views: Sequence[StatisticView]) -> Iterator[str]:
    """Say in plain words what no reader should take from the page."""
    unit = "row" if facts["unit"] == "row" else facts["unit"].removeprefix("column:")
    added = "added or removed" if facts["neighboring"] == "add_or_remove_one" else "replaced by another"
    yield (
        f"Nothing here tells much about any one {unit}: with or without it ({added}), every possible release "
        f"is about as likely, within a factor of e to the {facts['epsilon']}. That is the whole guarantee; "
        "it is no promise about groups, or about what others know from elsewhere."
    )
    kinds = {view.kind for view in views}
    if kinds != {SAMPLE}:
        yield (
            "Single estimates may be impossible, such as a negative count: noise is added, and nothing is "
            "cut off."
        )
    if SAMPLE in kinds:
        yield (
            "Draws of a sample at a temperature above 1 are further apart than draws of the data's own "
            "posterior, the more so the hotter they are: their spread is no credible interval. They rest on "
            "one prior and one interval, for good."
        )
    if POSTERIOR in kinds:
        yield (
            "Intervals hold their parameter with the stated probability if the model of the records is "
            "right, on average over the prior. The prior is an assumption: move it in the explorer and see."
        )
    if NOISE in kinds:
        yield "Noise intervals show what privacy added, and nothing of sampling or of missing data."
    if kinds != {SAMPLE}:
        yield (
            "Each interval stands alone: with many cells, some intervals miss. Differences need draws of "
            "both."
        )
    clipped = [view.name for view in views if FAMILIES[view.family].outside is not None]
    if clipped:
        yield (
            f"Values beyond the public bounds were clipped ({', '.join(clipped)}): where that matters, "
            "the page says so."
        )
    if facts["max_rows"] is not None:
        yield (
            f"Of each {unit}, at most {facts['max_rows']} rows enter, chosen by hash; those with more "
            f"weigh less. Rows whose {unit} is a floating-point number from 2^53 on (2^24 in single "
            "precision) enter nothing: it may have been rounded, and name somebody else."
        )
    yield from _of_the_account(facts)
    yield "A cell that is empty in the data is there too: what exists is not told by what is listed."
