"""What the page of a release says: what it is, what it shows, how to use it, and what it is not."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from suffice.pages.card import noise_of
from suffice.pages.drawing import number
from suffice.pages.price import guarantee_of
from suffice.pages.statistic_view import NOISE, POSTERIOR, SAMPLE
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.terms.declaration.privacy_loss import PrivacyLoss
from suffice.pipeline.terms.declaration.row_rules import in_words

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from suffice.pages.statistic_view import StatisticView
    from suffice.pipeline.ask.pooling.release import Release
    from suffice.pipeline.spec.about import StatisticWords
    from suffice.pipeline.terms.statistics.statistic_plan import StatisticPlan


def lead(facts: Mapping[str, Any], views: Sequence[StatisticView], plans: Sequence[StatisticPlan]) -> str:
    """Say what was released, in a sentence or two."""
    names = [view.label for view in views]
    listed = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
    cells = "" if facts["cells"] == 1 else " in each of their cells"
    cells = f" in each of {facts['cells']:,} cells" if facts["cells"] and cells else cells
    window = "" if facts["window"] == "all" else f" for {facts['window']}"
    sampled = [view.label for view in views if view.kind == SAMPLE]
    if len(sampled) == len(views):
        return (
            f"Posterior samples of {listed}{cells}{window}, drawn once under differential privacy, from "
            "posteriors that are as flat as privacy asks for."
        )
    besides = f" Of {', '.join(sampled)} posterior samples were drawn instead." if sampled else ""
    what = listed if any(view.has_label for view in views) else f"Sufficient statistics of {listed}"
    return (
        f"{what}{cells}{window}, released once under differential privacy: every "
        f"number carries {noise_of(plans)}. Posteriors take it into account.{besides}"
    )


def protects(facts: Mapping[str, Any]) -> str:
    """Say what the guarantee is about."""
    if facts["unit"] == "row":
        return "every row"
    column = in_words(facts["unit"]).removeprefix("column:")
    return f"every {column}, with all of its rows"


def sentence(release: Release, view: StatisticView) -> str:
    """Say what a statistic is of, and what its picture shows."""
    plan = release.plan_of(view.name)
    columns = ", ".join(plan.columns)
    parameters, words = plan.parameters, release.about.words(view.name)
    if words.label:
        return " ".join(_in_words(plan, words, view))
    of = f"Of column {columns}" if len(plan.columns) == 1 else f"Of columns {columns}"
    bounds = ""
    if plan.columns and parameters.lower is not None and parameters.upper is not None:
        bounds = (
            f", clipped to {number(float(parameters.lower), 9)} to {number(float(parameters.upper), 9)} "
            "in the column's unit"
        )
    family = f"modelled as {view.family.replace('_', ' ')}"
    if view.is_column:
        family = f"counted in {len(plan.components)} bins"
    return f"{of}{bounds}, {family}: the picture shows {_a_parameter(view)}."


def _in_words(plan: StatisticPlan, words: StatisticWords, view: StatisticView) -> Iterator[str]:
    """Say the same in the words of the release's owner, a sentence each."""
    if words.description:
        yield words.description if words.description.endswith((".", "!", "?")) else f"{words.description}."
    bounds = plan.parameters.lower, plan.parameters.upper
    if plan.columns and None not in bounds:
        lower, upper = (number(float(bound), 9) for bound in bounds if bound is not None)
        unit = f" {words.unit}" if words.unit else ""
        yield f"Values below {lower}{unit} count as {lower}, and values above {upper} as {upper}."
    drawn = {SAMPLE: "draws", NOISE: "estimates"}.get(view.kind, "")
    what = ", ".join(filter(None, (view.number_label, drawn)))
    yield f"Shown{_of_each(view)}: {what}."


def _a_parameter(view: StatisticView) -> str:
    if view.is_column:
        each = " of each cell" if view.n_cells > 1 else ""
        how = "how its values are distributed, and " if view.densities else ""
        return f"{how}quantiles{each}"
    name = view.shown_of.replace("_", " ")
    if view.kind == SAMPLE:
        return f"draws of the {name}"
    if view.kind == NOISE:
        return f"estimates of the {name}"
    return f"the {name}{_of_each(view)}"


def _of_each(view: StatisticView) -> str:
    parts = [
        *(["cell"] if view.n_cells > 1 else []),
        *(["category"] if len(view.entries) > 1 else []),
    ]
    return f" of each {' and '.join(parts)}" if parts else ""


def lines(views: Sequence[StatisticView], uri: str) -> dict[str, str]:
    """Return lines that readers copy: of the first noisy statistic, and of the first sample."""
    place = shlex.quote(uri)
    cli = [f"suffice show {place}"]
    python = ["import suffice", "", f"release = suffice.open_release({uri!r})"]
    noisy = next((view for view in views if view.kind != SAMPLE), None)
    sampled = next((view for view in views if view.kind == SAMPLE), None)
    if noisy is not None:
        name = shlex.quote(noisy.name)
        asked = "quantiles" if noisy.is_column else "posterior"
        cli += [f"suffice table {place} {name}", f"suffice {asked} {place} {name}"]
        python += (
            [
                f"column = release[{noisy.name!r}].posterior().column()",
                "print(column.quantile(0.5))",
            ]
            if noisy.is_column
            else [
                f"posterior = release[{noisy.name!r}].posterior()",
                "print(posterior)",
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
            "No contract said beforehand which files and columns the data have: a file that did not fit "
            "could have stopped the release, and that it was made would tell so."
        )
    if facts["audit"] is None:
        yield "The account's grant named no audit of this plan: its setup was not tried beforehand."
    if not facts["input_verified"]:
        yield "The input files were not compared with checksums by their owner before the release."


def limits(facts: Mapping[str, Any], views: Sequence[StatisticView], *, is_explored: bool) -> Iterator[str]:
    """Say in plain words what no reader should take from the page, which may have an explorer."""
    unit = "row" if facts["unit"] == "row" else in_words(facts["unit"]).removeprefix("column:")
    added = "added or removed" if facts["neighboring"] == "add_or_remove_one" else "replaced by another"
    yield guarantee_of(PrivacyLoss.read(facts), unit, added)
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
            "right, on average over the prior. The prior is an assumption: "
            + ("move it in the explorer and see." if is_explored else "state another one and see.")
        )
    if NOISE in kinds:
        yield "Noise intervals show what privacy added, and nothing of sampling or of missing data."
    if kinds != {SAMPLE}:
        yield (
            "Each interval stands alone: with many cells, some miss. Intervals that overlap do not say that "
            "two cells are alike, nor which is higher: ask "
            + ("the explorer for their difference, or " if is_explored else "")
            + "posterior.difference in Python."
        )
    clipped = [view.label for view in views if FAMILIES[view.family].outside is not None]
    if clipped:
        yield (
            f"Values beyond the public bounds were clipped ({', '.join(clipped)}): where that matters, "
            "the page says so."
        )
    if facts["max_rows"] is not None:
        most = facts["max_rows_per_cell"]
        in_cell = "" if most is None else f", at most {most} in a cell"
        yield (
            f"Of each {unit}, at most {facts['max_rows']} rows enter statistics of rows{in_cell}, chosen by "
            f"hash; those with more weigh less. Rows whose {unit} is a floating-point number from 2^53 on "
            "(2^24 in single precision) enter nothing: it may have been rounded, and name somebody else."
        )
    yield from _of_the_account(facts)
    yield "A cell that is empty in the data is there too: what exists is not told by what is listed."
