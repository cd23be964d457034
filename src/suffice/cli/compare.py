"""Comparisons and probabilities: of releases, of cells and, by Bayes factors, of priors."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, TypedDict

import typer

from suffice.cli import messages, options, output
from suffice.cli.answers import Answer, clipping_of, design_effects_of, diagnostics_of
from suffice.cli.column_quantiles import (
    AtOption,
    ChangedQuantiles,
    change_rows,
    levels_of,
    print_quantiles,
    quantiles_of,
)
from suffice.cli.files import OverwriteOption, new_file
from suffice.cli.output import in_line, say
from suffice.cli.pooled import AskedPooling, check_pooled, ways_to_pool, with_pooling
from suffice.errors import ConflictWarning, UsageError
from suffice.pipeline.ask.inference.posterior_terms import TERMS
from suffice.pipeline.ask.posterior.notes import conflict_lines, default_lines, model_lines
from suffice.pipeline.terms.declaration.documents import Measured, Rows, document, printed


def other_method(
    release: Release, statistic: str, method: str | None, terms: options.Terms
) -> Posterior | None:
    """Return the posterior to draw beside another, if one is asked for."""
    if method is None:
        return None
    used = {**terms, "method": method}
    if method == "plug-in":
        used |= {"n_prior": None, "predictor_prior": None, "clipping": TERMS["clipping"].default}
    return release.posterior(statistic, **used, progress=messages.cell_progress("posterior"))


def check_versus(where: Mapping[str, object], versus: Mapping[str, object]) -> None:
    """Refuse --versus where --where does not say which cells to compare with."""
    for column, key in versus.items():
        if column not in where:
            message = (
                f"--versus {column}={key} needs --where {column}=KEY beside it: --where names the cells that "
                "are compared with those of --versus"
            )
            raise UsageError(message)


def check_one_side(versus: Sequence[str] | None, files: Mapping[str, object]) -> None:
    """Refuse files that would show the cells of --where alone, and nothing of the comparison."""
    for option, path in files.items():
        if versus and path is not None:
            message = (
                f"{option} shows one side of --versus alone: leave --versus out, and give {option} once with "
                "--where of each side; draws of the difference are Posterior.difference in Python"
            )
            raise UsageError(message)


def parse_statements(statements: Sequence[str], *, is_contrast: bool) -> list[Statement]:
    """Read every --probability; beside --versus each is about the difference or the ratio."""
    from suffice.pipeline.math.parameters.contrasts import DIFFERENCE, RATIO, parse_statement

    read = [(statement, *parse_statement(statement)) for statement in statements]
    for statement, parameter, _, _ in read:
        if is_contrast and parameter not in {DIFFERENCE, RATIO}:
            message = (
                f"--probability {statement!r}: beside --versus a statement is about the difference or the "
                "ratio, as 'difference > 0' or 'ratio < 1'; ask about one side without --versus"
            )
            raise UsageError(message)
        if not is_contrast and parameter in {DIFFERENCE, RATIO}:
            message = f"--probability {statement!r} needs --versus: it says what is compared"
            raise UsageError(message)
    return read


def comparison(
    first: Posterior,
    second: Posterior,
    versus: Mapping[str, object],
    statements: Sequence[Statement],
    *,
    mass: float,
    interval: str,
    draws: int,
    rng: np.random.Generator,
) -> dict[str, list[dict[str, Any]]]:
    """Return rows of every parameter's difference, and of probabilities of it and of the ratio."""
    from suffice.pipeline.math.parameters.contrasts import DIFFERENCE, contrast_between, tidy_rows

    if dict(first.groups) == dict(second.groups):
        message = "--versus names the cells that --where keeps: name others"
        raise UsageError(message)
    contrasts = {
        kind: [
            contrast_between(kind, parameter, first, second, apart_from=set(versus), draws=draws, rng=rng)
            for parameter in first.parameters
        ]
        for kind in dict.fromkeys([DIFFERENCE, *(kind for _, kind, _, _ in statements)])
    }
    answers = {
        "comparison": [row for each in contrasts[DIFFERENCE] for row in each.rows(mass, interval=interval)]
    }
    if statements:
        answers["probability"] = [
            {**row, "statement": statement}
            for statement, kind, above, below in statements
            for each in contrasts[kind]
            for row in tidy_rows(
                each.groups,
                each.labels,
                {each.parameter: {"probability": each.probability(above=above, below=below)}},
                each.components,
            )
        ]
    return answers


def probability(
    posterior: Posterior, statements: Sequence[Statement], draws: int, rng: np.random.Generator
) -> list[dict[str, Any]]:
    """Return one row a statement, cell and category with the probability that the statement holds."""
    from suffice.pipeline.math.parameters.contrasts import tidy_rows

    answers = []
    for statement, parameter, above, below in statements:
        shares = posterior.probability(parameter, above=above, below=below, draws=draws, rng=rng)
        asked = {parameter: {"probability": shares}}
        rows = tidy_rows(posterior.groups, posterior.label_columns, asked, posterior.components)
        answers += [{**row, "statement": statement} for row in rows]
    return answers


def print_answers(answers: Mapping[str, list[dict[str, Any]]], k: int | None = None) -> None:
    """Print what was asked beyond the intervals; `k`: of how many that are highest."""
    among = "highest" if k == 1 else f"among the {k} highest"
    titles = {
        "comparison": "difference",
        "probability": "probability",
        "highest": f"probability of being {among}, of joint draws of all cells",
    }
    for question, title in titles.items():
        if question in answers:
            say(f"\n{title}\n")
            output.print_rows(answers[question])


Side: TypeAlias = Literal["first", "second"]


class Independent(TypedDict):
    """The diagnostics of a posterior whose draws are independent: none."""


@printed(
    "source statistic=posterior.statistic first second rows_of=posterior.rows_of estimand "
    "method=posterior.method prior n_prior predictor_prior=posterior.predictor_prior mass interval draws "
    "seed diagnostics?=drawn rows quantiles? clipping design_effect conflicts=disagreeing decided_by_default"
)
@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedAnswer(Answer):
    """What ``suffice compare`` prints; the terms are those of the first release, as of the second."""

    first: str
    second: str
    estimand: dict[Side, str | None]
    mass: float
    interval: IntervalKind
    drawn: dict[Side, Diagnostics | Independent] | None
    rows: Annotated[
        list[dict[str, Any]],
        Rows(
            parameter=str,
            **dict.fromkeys(("before", "after", "change", "sd", "lower", "upper", "ratio"), Measured),
            **dict.fromkeys(("probability_above", "apparent", "noise_sd", "noise_probability"), Measured),
            conflict=bool | None,
        ),
    ]
    quantiles: ChangedQuantiles | None
    clipping: dict[Side, Clipping | None]
    design_effect: dict[Side, DesignEffects | None]
    disagreeing: dict[Side, list[str]]
    decided_by_default: dict[Side, list[str]]


@options.with_terms(without=("method", "within_unit"))
def compare(  # noqa: PLR0915 - a command and its files, in order
    first: Annotated[str, typer.Argument(metavar="A", help="A release: path, URI or NAME[@WINDOW].")],
    second: Annotated[str, typer.Argument(metavar="B", help="Another, of disjoint data.")],
    statistic: Annotated[str, typer.Argument(help="A statistic of both.")],
    terms: options.Terms,
    at: AtOption = None,
    mass: options.MassOption = 0.95,
    interval: options.IntervalOption = None,
    draws: options.NumberOfDrawsOption = 4000,
    seed: options.SeedOption = None,
    plot: options.PlotOption = None,
    store: options.StoreOption = options.DEFAULT_STORE,
    public_keys: options.PublicKeyOption = None,
    *,
    allow_withdrawn: options.AllowWithdrawnOption = False,
    vouched: Annotated[
        bool, typer.Option("--vouched", help="You vouch that the two hold disjoint data.")
    ] = False,
    overwrite: OverwriteOption = False,
    as_json: options.JsonOption = False,
) -> None:
    """Say how a statistic changed from release A to release B, and what noise alone would do."""
    options.check_draws(draws, seed)
    at_levels = quantiles_of(at)
    output.check_picture(plot, overwrite=overwrite)
    from suffice.pipeline.ask.pooling.comparison import compare as compare_releases
    from suffice.pipeline.ask.posterior.shown import without_conflicts

    first_release, second_release = (
        options.open_for_reading(reference, store, public_keys, allow_withdrawn=allow_withdrawn)
        for reference in (first, second)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConflictWarning)  # it is printed, beside the numbers
        comparison = compare_releases(
            first_release, second_release, statistic, **terms, vouched=vouched, draws=draws, rng=seed
        )
    about, kind = second_release.about, comparison.before.interval_kind(interval)
    rows = comparison.rows(mass, interval=kind)
    levels = levels_of(at_levels, comparison.before.family)
    quantiles = change_rows(comparison, levels, mass=mass, draws=draws, rng=seed) if levels else None
    both: dict[Side, Posterior] = {"first": comparison.before, "second": comparison.after}
    if plot is not None:
        from suffice.data_files.source import SUMMARIES, posterior_source
        from suffice.plots.comparisons import plot_comparison
        from suffice.plots.style import footer_of

        footer = footer_of(
            posterior_source(SUMMARIES, [first_release, second_release], comparison.before),
            [first_release, second_release],
        )
        title = f"{about.label(statistic)}: from {comparison.first} to {comparison.second}"
        with new_file("--plot", plot, overwrite=overwrite) as written:
            plot_comparison(comparison, written, title=title, footer=footer, mass=mass, interval=kind)
    if as_json:
        from suffice.data_files.source import posterior_source  # pydantic is slow to import

        what = "posterior summaries of a comparison"
        source = posterior_source(
            what,
            [first_release, second_release],
            comparison.before,
            mass=mass,
            interval=kind,
            draws=draws,
            seed=seed,
        )
        drawn: dict[Side, Diagnostics | Independent] = {
            which: diagnostics_of(posterior) or Independent() for which, posterior in both.items()
        }
        answer = ComparedAnswer(
            source=source,
            posterior=comparison.before,
            first=comparison.first,
            second=comparison.second,
            estimand={which: posterior.estimand or None for which, posterior in both.items()},
            mass=mass,
            interval=kind,
            draws=draws,
            seed=seed,
            drawn=drawn if any(drawn.values()) else None,
            rows=rows,
            quantiles=quantiles,
            clipping={which: clipping_of(posterior) for which, posterior in both.items()},
            design_effect={which: design_effects_of(posterior) for which, posterior in both.items()},
            disagreeing={which: conflict_lines(posterior) for which, posterior in both.items()},
            decided_by_default={which: default_lines(posterior) for which, posterior in both.items()},
        )
        output.print_json(document(answer))
        return
    say(f"{in_line(about.label(statistic))}: from {comparison.first} to {comparison.second}\n")
    output.print_estimand(comparison.before)
    if comparison.after.estimand != comparison.before.estimand:
        say(f"and {comparison.second} {comparison.after.estimand}\n")
    if quantiles is None:
        output.print_rows(without_conflicts(rows))
        say(
            "\napparent: change of the estimates as they stand; noise_sd: what noise alone gives to it; "
            "noise_probability: how often noise alone moves them as far"
        )
    else:
        print_quantiles(quantiles, comparison.before.groups, about, statistic, mass)
    for name, posterior in ((comparison.first, comparison.before), (comparison.second, comparison.after)):
        for line in model_lines(posterior):
            say(f"\n{name}: {line}")
        output.print_conflicts(posterior, name)
        output.print_default(posterior, name)
        output.print_diagnostics(posterior, name)
    n_priors = dict.fromkeys(str(posterior.n_prior) for posterior in both.values())
    say(f"\nmethod: {comparison.before.method}")
    output.print_rows_of(comparison.before.rows_of)
    say(f"prior: {comparison.before.prior}")
    say(f"prior of N: {', '.join(n_priors)}")
    if comparison.before.predictor_prior is not None:
        say(f"prior of predictors: {comparison.before.predictor_prior}")
    if quantiles is None:
        from suffice.pipeline.math.parameters.arguments import interval_in_words

        say(f"intervals: {interval_in_words(kind, mass)}")
    output.print_written(plot)


@printed("source release *comparison")
@dataclass(frozen=True, slots=True, kw_only=True)
class PriorsAnswer:
    """What ``suffice compare-priors`` prints."""

    source: Provenance
    release: str
    comparison: PriorComparison


@printed("source release *comparison")
@dataclass(frozen=True, slots=True, kw_only=True)
class HeldOutAnswer:
    """What ``suffice compare-priors --pooled`` prints."""

    source: Provenance
    release: str
    comparison: HeldOutComparison


@options.with_terms(without=("prior", "method", "within_unit", "predictor_prior"))
@with_pooling
def compare_priors(
    release: options.ReleaseArgument,
    statistic: options.StatisticArgument,
    terms: options.Terms,
    pooling: AskedPooling,
    prior: Annotated[
        list[str] | None,
        typer.Option("--prior", help='As "Beta(1, 9)"; twice or more, the first is what others are held to.'),
    ] = None,
    plot: options.PlotOption = None,
    store: options.StoreOption = options.DEFAULT_STORE,
    public_keys: options.PublicKeyOption = None,
    *,
    allow_withdrawn: options.AllowWithdrawnOption = False,
    overwrite: OverwriteOption = False,
    as_json: options.JsonOption = False,
) -> None:
    """Print which of several priors the released values speak for: Bayes factors. Costs no privacy.

    With --pooled, once for each way (a comma between names of one): which predicts held-out cells best, or
    each cell alone.
    """
    ways = ways_to_pool(pooling)
    if ways:
        check_pooled({"--prior": prior, "--plot": plot})
        opened = options.open_for_reading(release, store, public_keys, allow_withdrawn=allow_withdrawn)
        _compare_pooled(opened, statistic, ways, terms, as_json=as_json)
        return
    if prior is None or len(prior) < 2:
        message = '--prior: give two or more to compare, as --prior "Beta(1, 1)" --prior "Beta(1, 9)"'
        raise UsageError(message)
    output.check_picture(plot, overwrite=overwrite)
    opened = options.open_for_reading(release, store, public_keys, allow_withdrawn=allow_withdrawn)
    from suffice.pipeline.ask.pooling.comparison import compare_priors as compared
    from suffice.pipeline.ask.pooling.comparison import shown

    comparison = compared(opened, statistic, prior, **terms)
    from suffice.data_files.source import comparison_source  # pydantic is slow to import

    source = comparison_source(opened, comparison)
    if plot is not None:
        from suffice.plots.comparisons import plot_prior_comparison
        from suffice.plots.style import footer_of

        label, count = opened.about.label(statistic), len(comparison.priors)
        title = f"{label}: which of {count} priors {opened.label} speaks for"
        with new_file("--plot", plot, overwrite=overwrite) as written:
            plot_prior_comparison(comparison, written, title=title, footer=footer_of(source, [opened]))
    if as_json:
        answer = PriorsAnswer(source=source, release=opened.label, comparison=comparison)
        output.print_json(document(answer))
        return
    if len(comparison.log_evidence) > 1:
        output.print_rows(shown(comparison.rows()))
        say("\nall cells together\n")
    output.print_rows(shown(comparison.totals()))
    say(f"\nrelease: {opened.label}")
    say(f"prior of N: {comparison.n_prior}")
    say("log_bayes_factor: log of the evidence over that of the first prior")
    if comparison.standard_error is not None:
        say("standard_error: of the log Bayes factor, by Monte Carlo; two of them are a 95 % interval")
    output.print_written(plot)


def _compare_pooled(
    opened: Release, statistic: str, ways: Sequence[Any], terms: options.Terms, *, as_json: bool
) -> None:
    """Print how well each way predicts held-out cells."""
    from suffice.data_files.source import held_out_source  # pydantic is slow to import
    from suffice.pipeline.ask.pooling.comparison import compare_pooled

    comparison = compare_pooled(opened, statistic, ways, **terms)
    if as_json:
        source = held_out_source(opened, comparison)
        output.print_json(document(HeldOutAnswer(source=source, release=opened.label, comparison=comparison)))
        return
    output.print_rows(comparison.totals())
    say(f"\n{comparison.said}")
    say(f"\nrelease: {opened.label}")
    say(f"prior of N: {comparison.n_prior}")
    say("log_score: log probability of what each cell released, from all other cells, added up")
    say(
        "behind: how far below the best; its standard_error takes cells for independent, which is approximate"
    )


if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np

    from suffice.cli.answers import Clipping, DesignEffects, Diagnostics, IntervalKind
    from suffice.data_files.source import Provenance
    from suffice.pipeline.ask.borrowing.held_out import HeldOutComparison
    from suffice.pipeline.ask.pooling.comparison import PriorComparison
    from suffice.pipeline.ask.pooling.release import Release
    from suffice.pipeline.ask.posterior.posterior import Posterior

    Statement: TypeAlias = tuple[str, str, float | None, float | None]
