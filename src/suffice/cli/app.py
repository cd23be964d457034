"""The command line: parsing and printing only. Exit statuses are those of ``suffice.errors``."""

from __future__ import annotations

import signal
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from typer.exceptions import TyperException
from typer.main import get_command

import suffice
from suffice.cli import (
    analysis,
    calibration,
    catalogue,
    cluster,
    config,
    doctor,
    keys,
    ledger,
    messages,
    model,
    monitor,
    output,
    pool,
    posterior,
    prior_comparison,
    publications,
    publish,
    rehearsal,
    store,
    trust,
    windows,
    withdrawal,
)
from suffice.cli.files import OverwriteOption, check_file, new_file
from suffice.cli.options import (
    DEFAULT_LEDGER,
    DEFAULT_STORE,
    PUBLISH_TIMEOUT,
    AllowOpenOption,
    AllowWithdrawnOption,
    AsOfOption,
    ClusterOption,
    JsonOption,
    LedgerOption,
    OutOption,
    PlotOption,
    PublicKeyOption,
    PublishTimeoutOption,
    ReleaseArgument,
    SpecArgument,
    StatisticArgument,
    StoreOption,
    WaitOption,
    WhereOption,
    WitnessOption,
    open_for_reading,
    parse_pairs,
)
from suffice.cli.strict import make_strict, own_words
from suffice.cli.terminal import say, say_json
from suffice.cli.withdrawn import forget_withdrawn, note_withdrawn
from suffice.errors import ReleaseInterruptedError, SufficeError, UsageError, bounded_message
from suffice.monitoring import log_lines
from suffice.monitoring.counting import counting_refusals
from suffice.profile.finding import CHOSEN
from suffice.profile.settings import settings

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from suffice.pipeline.pooling.release import Release

app = typer.Typer(
    name="suffice",
    help="Release differentially private sufficient statistics once; draw posteriors from them for ever.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
    no_args_is_help=True,
)
app.add_typer(ledger.app, name="ledger")
app.add_typer(keys.app, name="keys")
app.add_typer(config.app, name="config")
app.add_typer(cluster.app, name="cluster")
app.add_typer(store.app, name="store")
app.add_typer(model.app, name="model")
app.add_typer(publications.app, name="publications")


def _print_version(wanted: bool) -> None:
    if wanted:
        say(f"suffice {suffice.__version__}")
        raise typer.Exit


@app.callback()
def options(
    *,
    version: Annotated[  # noqa: ARG001 - its callback prints it
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
    profile: Annotated[
        str | None,
        typer.Option("--config", metavar="FILE", help="The deployment profile. Default: SUFFICE_CONFIG."),
    ] = None,
) -> None:
    """Release differentially private sufficient statistics once; draw posteriors from them for ever."""
    CHOSEN.set(profile)


@app.command()
def demo(
    directory: Annotated[Path, typer.Option("--dir", help="Where to work.")] = Path("demo"),
    *,
    as_json: JsonOption = False,
) -> None:
    """Run the whole main job on real flight records, offline."""
    from suffice.cli.demo import run_demo  # noqa: PLC0415 - each command imports what it needs

    summary = run_demo(directory, quiet=as_json)
    if as_json:
        output.print_json(summary)


@app.command()
def init(
    data: Annotated[
        str,
        typer.Argument(
            metavar="DATA",
            help="A Parquet file, directory or glob; or a source as specs have it: '{delta: flights}'.",
        ),
    ],
    out: Annotated[
        Path | None, typer.Option("--out", metavar="SPEC", help="Write the skeleton here.")
    ] = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """Write a spec skeleton from the schema alone; bounds and categories are left for a person to state."""
    from suffice.pipeline.sources.template import skeleton  # noqa: PLC0415

    check_file("--out", out, overwrite=None)
    text = skeleton(data, relative_to=out.parent if out else Path())
    if out is not None:
        try:
            with out.open("x", encoding="utf-8") as file:
                file.write(text)
        except FileExistsError:
            message = f"--out {out}: the file exists, and is not overwritten"
            raise UsageError(message) from None
        except OSError:
            message = f"--out {out}: the file cannot be written"
            raise UsageError(message) from None
    if as_json:
        output.print_json({"spec": text, "out": str(out) if out else None})
    elif out is None:
        say(text, end="")
    else:
        say(f"wrote {out}: state the epsilon, the bounds and the categories, then run: suffice plan {out}")


app.command()(calibration.plan)


@app.command()
def release(
    spec: SpecArgument,
    window: Annotated[
        str, typer.Option("--window", metavar="W", help="A window label, as 2013-01, or latest-complete.")
    ] = "all",
    amendment: Annotated[
        int, typer.Option("--amendment", metavar="N", help="Release the window again, as its N-th amendment.")
    ] = 0,
    store: StoreOption = DEFAULT_STORE,
    ledger: LedgerOption = DEFAULT_LEDGER,
    cluster: ClusterOption = "threads",
    witness: WitnessOption = None,
    as_of: AsOfOption = None,
    *,
    new_attempt: Annotated[
        bool, typer.Option("--new-attempt", help="Charge again after a spent attempt.")
    ] = False,
    publish_timeout: PublishTimeoutOption = PUBLISH_TIMEOUT,
    wait: WaitOption = False,
    allow_open: AllowOpenOption = False,
    as_json: JsonOption = False,
) -> None:
    """Charge the ledger, compute exact statistics, add noise once, publish."""
    with counting_refusals():
        settings(store=store, ledger=ledger, cluster=cluster, spec_path=spec)  # before the spec is opened
        from suffice.pipeline.spec.spec import load_spec  # noqa: PLC0415
        from suffice.releasing import carry_out  # noqa: PLC0415

        loaded = load_spec(spec)
        with messages.about_release(
            loaded, window=window, amendment=amendment, as_of=as_of, allow_open=allow_open, ledger=ledger
        ):
            outcome = carry_out(
                loaded,
                store=store,
                ledger=ledger,
                cluster=cluster,
                window=window,
                amendment=amendment,
                as_of=as_of,
                allow_open=allow_open,
                new_attempt=new_attempt,
                publish_timeout=publish_timeout,
                wait=wait,
                witness=witness,
                progress=messages.progress(),
                notice=messages.notice,
            )
    note_withdrawn(outcome.release, warned=True)
    document = {
        **_release_document(outcome.release),
        "status": outcome.status,
        "remaining_epsilon": outcome.remaining_epsilon,
    }
    if as_json:
        output.print_json(document)
        return
    if outcome.status == "already_published":
        say("already published: the data were not read again, nothing was charged")
    _print_release(document)
    say(f"remaining epsilon  {outcome.remaining_epsilon}")


app.command()(rehearsal.rehearse)
app.command()(windows.backfill)
app.command()(windows.status)
app.command()(monitor.metrics)
app.command("doctor")(doctor.doctor)


@app.command()
def show(
    release: ReleaseArgument,
    store: StoreOption = DEFAULT_STORE,
    public_keys: PublicKeyOption = None,
    *,
    allow_withdrawn: AllowWithdrawnOption = False,
    as_json: JsonOption = False,
) -> None:
    """Show a release: what, for whom, at what price, signed by whom, which files."""
    document = _release_document(
        open_for_reading(release, store, public_keys, allow_withdrawn=allow_withdrawn), public_keys
    )
    if as_json:
        output.print_json(document)
    else:
        _print_release(document)


app.command()(analysis.compare)
app.command()(pool.pool)
app.command()(prior_comparison.compare_priors)
app.command()(trust.verify)
app.command()(trust.disclose)
app.command()(withdrawal.withdraw)
app.command()(withdrawal.describe)


@app.command()
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
        from suffice.data_files.source import table_source  # noqa: PLC0415
        from suffice.plots.style import footer_of  # noqa: PLC0415
        from suffice.plots.tables import plot_table  # noqa: PLC0415

        footer = footer_of(table_source(opened, statistic), [opened])
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


app.command()(catalogue.catalogue)
app.command()(posterior.posterior)
app.command()(publish.publish)
app.command()(calibration.calibrate)
make_strict(app)


@cache
def command() -> Callable[..., object]:
    """Return the whole command line; it is put together once."""
    return get_command(app)


_UNIT_BOUND = ("max_rows", "unit_nulls")


def _release_document(release: Release, public_keys: list[str] | None = None) -> dict[str, Any]:
    from suffice.pipeline.declaration.exact_numbers import format_epsilon  # noqa: PLC0415

    return {
        "name": release.name,
        "dataset": release.dataset,
        "window": release.window,
        **windows.window_fields(release),
        "release_id": release.release_id,
        "uri": release.uri,
        "epsilon": format_epsilon(release.epsilon),
        "neighboring": str(release.neighboring),
        "unit": release.unit,
        **{field: release.manifest[field] for field in _UNIT_BOUND if field in release.manifest},
        "status": "published",
        **trust.signature_fields(release.manifest, public_keys),
        "files": [
            {
                **file,
                "path": f"{release.uri}/{file['path']}",
                "rows_of": release.statistic(file["statistic"]).plan.rows_of,
            }
            for file in release.files
        ],
    }


def _print_release(document: dict[str, Any]) -> None:
    fields = ("name", "dataset", "window", "release_id", "uri", "epsilon", "neighboring", "unit")
    for field in (*fields, *_UNIT_BOUND, "status"):
        if field in document:
            say(f"{field:<18} {document[field]}")
    if "closed" in document:
        when = "after" if document["closed"] else "before"
        say(
            f"{'closed':<18} released {when} its window ended at {document['window_ended']}, as of "
            f"{document['released']}: rows that came later are not in it"
        )
    if document.get("amends"):
        say(f"{'amends':<18} release {document['amends']}, as amendment {document['amendment']}")
    if document.get("amended_by"):
        say(f"{'amended by':<18} release {document['amended_by']}, which replaces it")
    if document["signed_by"] is None:
        say(f"{'signed by':<18} nobody")
    else:
        say(f"{'signed by':<18} {document['signed_by']} ({document['signature'].replace('_', ' ')})")
    for file in document["files"]:
        name, digest = Path(file["path"]).name, file["sha256"][:16]
        of = f"; {file['rows_of']}" if file["rows_of"] is not None else ""
        say(f"{file['statistic']:<18} {file['rows']} rows in {name}, sha256 {digest}...{of}")


def _fail(name: str, message: str, status: int, *, as_json: bool) -> NoReturn:
    if as_json:
        say_json({"error": {"type": name, "message": message, "exit_status": status}}, indent=None)
    messages.show_error(name, message, status, as_text=not as_json)
    sys.exit(status)


def _interrupt(_signal: int, _frame: object) -> NoReturn:
    raise KeyboardInterrupt


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line, and exit with its status."""
    chosen, log = CHOSEN.set(None), log_lines.CURRENT.set(None)
    try:
        forget_withdrawn()
        _run(list(sys.argv[1:] if arguments is None else arguments))
    except SystemExit as end:
        if log_lines.CURRENT.get() is not None:
            log_lines.write("ended", exit_status=end.code if isinstance(end.code, int) else 0)
        raise
    finally:
        log_lines.CURRENT.reset(log)
        CHOSEN.reset(chosen)  # of this command alone, where a program runs several


def _run(words: list[str]) -> NoReturn:
    """Run one command, and exit with its status."""
    as_json = "--json" in words
    # A scheduler stops jobs with SIGTERM: treat it as an interrupt, so that the charge is settled.
    signal.signal(signal.SIGTERM, _interrupt)
    messages.show_warnings()
    try:
        status = command()(words, standalone_mode=False, prog_name="suffice")
    except SufficeError as error:
        _fail(type(error).__name__, str(error), error.exit_status, as_json=as_json)
    except TyperException as error:
        _fail("UsageError", bounded_message(own_words(error)), UsageError.exit_status, as_json=as_json)
    except KeyboardInterrupt:
        status = ReleaseInterruptedError.exit_status
    except MemoryError:
        _fail("MemoryError", "not enough memory: ask for fewer cells or draws", 1, as_json=as_json)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(1)
    except Exception as error:  # noqa: BLE001 - a text of ours, never one that could hold data
        _fail(type(error).__name__, f"internal error ({type(error).__name__})", 1, as_json=as_json)
    if status == ReleaseInterruptedError.exit_status:  # Typer returns it for an interrupt of its own
        text = (
            "interrupted; `suffice ledger show` lists what was ever charged, and the same command again "
            "settles what it left"
        )
        _fail(ReleaseInterruptedError.__name__, text, ReleaseInterruptedError.exit_status, as_json=as_json)
    sys.exit(status if isinstance(status, int) else 0)
