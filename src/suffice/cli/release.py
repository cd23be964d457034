"""``suffice release``, ``show`` and ``rehearse``: make a release, show one, try one on generated rows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from suffice.cli import messages, options, output, trust, windows
from suffice.cli.output import note_withdrawn, say
from suffice.monitoring.records import counting_refusals
from suffice.pipeline.terms.declaration.documents import document
from suffice.pipeline.terms.declaration.wording import counted
from suffice.profile.settings import settings

if TYPE_CHECKING:
    from suffice.pipeline.ask.pooling.release import Release
    from suffice.releasing.rehearsal import Rehearsal


_UNIT_BOUND = ("max_rows", "unit_nulls")


def release(
    spec: options.SpecArgument,
    window: Annotated[
        str, typer.Option("--window", metavar="W", help="A window label, as 2013-01, or latest-complete.")
    ] = "all",
    amendment: Annotated[
        int, typer.Option("--amendment", metavar="N", help="Release the window again, as its N-th amendment.")
    ] = 0,
    store: options.StoreOption = options.DEFAULT_STORE,
    ledger: options.LedgerOption = options.DEFAULT_LEDGER,
    cluster: options.ClusterOption = "threads",
    witness: options.WitnessOption = None,
    as_of: options.AsOfOption = None,
    *,
    new_attempt: Annotated[
        bool, typer.Option("--new-attempt", help="Charge again after a spent attempt.")
    ] = False,
    publish_timeout: options.PublishTimeoutOption = options.PUBLISH_TIMEOUT,
    wait: options.WaitOption = False,
    allow_open: options.AllowOpenOption = False,
    as_json: options.JsonOption = False,
) -> None:
    """Charge the ledger, compute exact statistics, add noise once, publish."""
    with counting_refusals():
        settings(store=store, ledger=ledger, cluster=cluster, spec_path=spec)  # before the spec is opened
        from suffice.pipeline.spec.spec import load_spec
        from suffice.releasing.release import carry_out

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


def show(
    release: options.ReleaseArgument,
    store: options.StoreOption = options.DEFAULT_STORE,
    public_keys: options.PublicKeyOption = None,
    *,
    allow_withdrawn: options.AllowWithdrawnOption = False,
    as_json: options.JsonOption = False,
) -> None:
    """Show a release: what, for whom, at what price, signed by whom, which files."""
    document = _release_document(
        options.open_for_reading(release, store, public_keys, allow_withdrawn=allow_withdrawn), public_keys
    )
    if as_json:
        output.print_json(document)
    else:
        _print_release(document)


def _release_document(release: Release, public_keys: list[str] | None = None) -> dict[str, Any]:
    from suffice.pipeline.terms.declaration.exact_numbers import format_epsilon

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
        "contract": release.manifest.get("contract"),
        "audit": release.manifest.get("audit"),
        "one_unit": release.one_unit,
        "status": "published",
        **trust.signature_fields(release.manifest, public_keys),
        "files": [
            {
                **file,
                "path": f"{release.uri}/{file['path']}",
                "rows_of": (plan := release.plan_of(file["statistic"])).rows_of,
                "mechanism": "discrete_laplace" if plan.sample is None else "exponential",
            }
            for file in release.files
        ],
    }


def _print_release(document: dict[str, Any]) -> None:
    fields = ("name", "dataset", "window", "release_id", "uri", "epsilon", "neighboring", "unit")
    for field in (*fields, *_UNIT_BOUND, "status"):
        if field in document:
            say(f"{field:<18} {document[field]}")
    if document["unit"] != "row":
        say(f"{'ids':<18} those in floating point count below 2^53 only (2^24 in single precision)")
    without = "none: how files are typed, and which there are, could decide a status"
    say(f"{'contract':<18} {document['contract'] or without}")
    say(f"{'audit':<18} {document['audit'] or 'none of this plan is named by the grant'}")
    say(f"{'one unit':<18} {document['one_unit'].removeprefix('one unit: ')}")
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
        of += "; draws of a posterior sample" if file["mechanism"] == "exponential" else ""
        say(f"{file['statistic']:<18} {file['rows']} rows in {name}, sha256 {digest}...{of}")


def rehearse(
    spec: options.SpecArgument,
    window: Annotated[
        str, typer.Option("--window", metavar="W", help="A window label, as 2013-01, or latest-complete.")
    ] = "all",
    store: options.StoreOption = options.DEFAULT_STORE,
    ledger: options.LedgerOption = options.DEFAULT_LEDGER,
    cluster: options.ClusterOption = "threads",
    witness: options.WitnessOption = None,
    as_of: options.AsOfOption = None,
    sample: Annotated[
        str | None,
        typer.Option("--sample", metavar="FILE", help="Count how much of this file fits the spec."),
    ] = None,
    sample_is: Annotated[
        str | None,
        typer.Option(
            "--sample-is",
            metavar="public|synthetic",
            help="What its owner declares the sample to be: its counts are exact.",
        ),
    ] = None,
    *,
    allow_open: options.AllowOpenOption = False,
    keep: Annotated[
        bool, typer.Option("--keep", help="Leave in the store what it drew; it is no release.")
    ] = False,
    as_json: options.JsonOption = False,
) -> None:
    """Try every stage of a release on generated rows; reads no row, charges nothing."""
    settings(store=store, ledger=ledger, cluster=cluster, spec_path=spec)  # before the spec is opened
    from suffice.pipeline.spec.spec import load_spec
    from suffice.releasing.rehearsal import rehearse as run

    done = run(
        load_spec(spec),
        store=store,
        ledger=ledger,
        cluster=cluster,
        window=window,
        as_of=as_of,
        allow_open=allow_open,
        witness=witness,
        keep=keep,
        sample=sample,
        sample_is=sample_is,
    )
    if as_json:
        output.print_json(document(done))
    else:
        _print_sample(done)
        output.print_rows(
            [
                {"stage": stage.name, "seconds": f"{stage.seconds:.1f}", "tried": stage.tried or "failed"}
                for stage in done.stages
            ]
        )
    if done.failure is None:
        if not as_json:
            say("\nrehearsed: every stage works; no row was read, nothing was charged")
            say(output.unchecked_text(done.unchecked))
        return
    status = done.failure.exit_status
    messages.show_error(type(done.failure).__name__, str(done.failure), status, as_text=not as_json)
    raise typer.Exit(status)


def _print_sample(done: Rehearsal) -> None:
    """Show how much of a sample fits the spec."""
    fit = done.sample
    if fit is None:
        return
    say(f"{fit.sample}, declared {fit.declared}: {counted(fit.rows, 'row')}")
    checks = [{**document(check), "does_not_fit": check.values - check.fit} for check in fit.checks]
    output.print_rows(checks, limit=len(checks))
    say("")
