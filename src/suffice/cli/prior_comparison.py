"""The command that compares priors by the probability of what was released under each."""

from __future__ import annotations

from typing import Annotated

import typer

from suffice.cli import output
from suffice.cli.files import OverwriteOption, new_file
from suffice.cli.options import (
    DEFAULT_STORE,
    AllowWithdrawnOption,
    ClippingOption,
    JsonOption,
    PlotOption,
    PriorOfNOption,
    PublicKeyOption,
    ReleaseArgument,
    StatisticArgument,
    StoreOption,
    WhereOption,
    open_for_reading,
    parse_pairs,
    parse_prior_of_n,
)
from suffice.cli.terminal import say
from suffice.errors import UsageError


def compare_priors(
    release: ReleaseArgument,
    statistic: StatisticArgument,
    prior: Annotated[
        list[str] | None,
        typer.Option("--prior", help='As "Beta(1, 9)"; twice or more, the first is what others are held to.'),
    ] = None,
    n_prior: PriorOfNOption = None,
    clipping: ClippingOption = "by-evidence",
    where: WhereOption = None,
    plot: PlotOption = None,
    store: StoreOption = DEFAULT_STORE,
    public_keys: PublicKeyOption = None,
    *,
    allow_withdrawn: AllowWithdrawnOption = False,
    overwrite: OverwriteOption = False,
    as_json: JsonOption = False,
) -> None:
    """Print which of several priors the released values speak for: Bayes factors. Costs no privacy."""
    if prior is None or len(prior) < 2:
        message = '--prior: give two or more to compare, as --prior "Beta(1, 1)" --prior "Beta(1, 9)"'
        raise UsageError(message)
    output.check_picture(plot, overwrite=overwrite)
    opened = open_for_reading(release, store, public_keys, allow_withdrawn=allow_withdrawn)
    from suffice.pipeline.ask.pooling.prior_comparison import compare_priors as compared

    comparison = compared(
        opened,
        statistic,
        prior,
        n_prior=parse_prior_of_n(n_prior),
        clipping=clipping,
        where=parse_pairs("--where", where),
    )
    from suffice.data_files.source import comparison_source  # pydantic is slow to import

    source = comparison_source(opened, comparison)
    if plot is not None:
        from suffice.plots.prior_comparisons import plot_prior_comparison
        from suffice.plots.style import footer_of

        title = f"{statistic}: which of {len(comparison.priors)} priors {opened.label} speaks for"
        with new_file("--plot", plot, overwrite=overwrite) as written:
            plot_prior_comparison(comparison, written, title=title, footer=footer_of(source, [opened]))
    if as_json:
        output.print_json({"source": source.document(), "release": opened.label, **comparison.to_dict()})
        return
    if len(comparison.log_evidence) > 1:
        output.print_rows(comparison.rows())
        say("\nall cells together\n")
    output.print_rows(comparison.totals())
    say(f"\nrelease: {opened.label}")
    say(f"prior of N: {comparison.n_prior}")
    say("log_bayes_factor: log of the evidence over that of the first prior")
    output.print_written(plot)
