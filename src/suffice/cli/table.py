"""``suffice table``: a statistic's unbiased estimates, and the standard deviations of their noise."""

from __future__ import annotations

from suffice.cli import output
from suffice.cli.files import OverwriteOption, new_file
from suffice.cli.options import (
    DEFAULT_STORE,
    AllowWithdrawnOption,
    JsonOption,
    OutOption,
    PlotOption,
    PublicKeyOption,
    ReleaseArgument,
    StatisticArgument,
    StoreOption,
    WhereOption,
    open_for_reading,
    parse_pairs,
)


def table(
    release: ReleaseArgument,
    statistic: StatisticArgument,
    where: WhereOption = None,
    out: OutOption = None,
    plot: PlotOption = None,
    store: StoreOption = DEFAULT_STORE,
    public_keys: PublicKeyOption = None,
    *,
    allow_withdrawn: AllowWithdrawnOption = False,
    overwrite: OverwriteOption = False,
    as_json: JsonOption = False,
) -> None:
    """Print a statistic's unbiased estimates and the standard deviations of their noise."""
    output.check_out(out, overwrite=overwrite)
    output.check_picture(plot, overwrite=overwrite)
    opened = open_for_reading(release, store, public_keys, allow_withdrawn=allow_withdrawn)
    chosen = opened.statistic(statistic).where(parse_pairs("--where", where))
    rows = chosen.table()
    from suffice.data_files.source import table_source  # noqa: PLC0415 - each command imports what it needs

    source = table_source(opened, statistic)
    if out is not None:
        from suffice.data_files.tables import columns_of  # noqa: PLC0415

        output.write_table(columns_of(rows), out, source, overwrite=overwrite)
    if plot is not None:
        from suffice.plots.style import footer_of  # noqa: PLC0415
        from suffice.plots.tables import plot_table  # noqa: PLC0415

        footer = footer_of(source, [opened])
        with new_file("--plot", plot, overwrite=overwrite) as written:
            plot_table(chosen, written, title=f"{opened.label}: {statistic}", footer=footer)
    if as_json:
        output.print_json(
            {
                "source": source.document(),
                "statistic": statistic,
                "family": chosen.plan.family,
                "rows_of": chosen.plan.rows_of,
                "saturated": chosen.n_saturated,
                "rows": rows,
            }
        )
        return
    if out is None:
        output.print_rows(rows)
        output.print_saturation(chosen)
        output.print_rows_of(chosen.plan.rows_of, "quantities")
    output.print_written(out, plot)
