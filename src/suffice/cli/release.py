"""``suffice release``, ``show`` and ``rehearse``: make a release, show one, try one on generated rows."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict

import typer

from suffice.cli import adopt, messages, options, output, windows
from suffice.cli.output import in_line, note_withdrawn, say
from suffice.errors import AdoptedReleaseError, StorageError
from suffice.monitoring.records import counting_refusals
from suffice.pipeline.terms.declaration.documents import document, printed
from suffice.pipeline.terms.declaration.wording import counted
from suffice.profile.settings import settings

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from suffice.pipeline.ask.pooling.release import Release
    from suffice.pipeline.spec.about import About
    from suffice.pipeline.terms.declaration.documents import Count, Sha256, ShortId, UnitNullsName
    from suffice.pipeline.terms.declaration.privacy_loss import PrivacyLoss
    from suffice.releasing.rehearsal import Rehearsal
    from suffice.releasing.run import ReleaseStatus
    from suffice.storage.releases.release_store import ListedRelease
    from suffice.storage.signatures.signing import SignatureStatus


_UNIT_BOUND = ("max_rows", "max_rows_per_cell", "unit_nulls")


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
    made = MadeRelease(
        **_shown(outcome.release, None),
        status=outcome.status,
        charged=outcome.charged,
        remaining=outcome.remaining,
    )
    if as_json:
        output.print_json(document(made))
        return
    if outcome.status == "already_published":
        say("already published: the data were not read again, nothing was charged")
    _print_release(document(made))
    measure = outcome.remaining.measure
    if outcome.charged.measure is not outcome.release.loss.measure:
        say(f"{'charged':<18} {outcome.charged}, for the account counts {measure}")
    say(f"{f'remaining {measure}':<18} {outcome.remaining.text}")


def show(
    release: options.ReleaseArgument,
    store: options.StoreOption = options.DEFAULT_STORE,
    public_keys: options.PublicKeyOption = None,
    *,
    allow_withdrawn: options.AllowWithdrawnOption = False,
    as_json: options.JsonOption = False,
) -> None:
    """Show a release: what, for whom, at what price, signed by whom, which files."""
    try:
        opened = options.open_for_reading(release, store, public_keys, allow_withdrawn=allow_withdrawn)
    except AdoptedReleaseError:
        adopt.show(adopt.opened(release), as_json=as_json)
        return
    shown = document(ShownRelease(**_shown(opened, public_keys), status="published"))
    if as_json:
        output.print_json(shown)
        return
    for field, value in _said(opened.about):
        say(f"{field:<18} {in_line(value)}")
    _print_release(shown)
    say("\nwhat can be asked, with suffice table and suffice posterior:\n")
    output.print_rows(opened.statistics.table())
    for line in _further(opened, release):
        say(in_line(line))


def _further(opened: Release, release: str) -> Iterator[str]:
    """Give the commands that ask whole trees, and columns behind histograms."""
    for name, levels in opened.trees.items():
        groups = opened.plan_of(f"{name}.{levels[-1]}").groups
        where = "".join(f" --where {column}=KEY" for column in groups if column != levels[-1])
        yield f"{name}: {', '.join(levels)} together: suffice tree {release} {name}{where}"
    for row in opened.statistics.table():
        name = row["statistic"]
        if row["family"] == "histogram" and name not in opened.sampled:
            yield f"{name}: quantiles of its column: suffice quantiles {release} {name}"


def _said(about: About) -> Iterator[tuple[str, str]]:
    """Give what the owner of a release says of it, and what group columns are called."""
    for field in ("title", "description", "source", "licence", "contact"):
        if value := getattr(about, field):
            yield field, value
    for column in about.keys:
        if (called := about.column(column)) != column:
            yield f"cells by {column}", called


def list_releases(
    place: Annotated[
        str | None,
        typer.Argument(metavar="STORE", help="A path or URI of a store. Default: as --store says."),
    ] = None,
    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help="Every edition of this name alone.")
    ] = None,
    store: options.StoreOption = options.DEFAULT_STORE,
    *,
    as_json: options.JsonOption = False,
) -> None:
    """List the releases of a store: names, windows, and how to ask them."""
    from suffice.storage.releases.release_store import open_store

    if place is not None and adopt.listed(place, as_json=as_json):
        return
    opened = open_store(place or store)
    listed = opened.releases(name)
    if as_json:
        output.print_json(document(ReleaseList(store=opened.uri, releases=listed)))
        return
    if not listed:
        of = "" if name is None else f" of {name}"
        say(f"the store {opened.uri} holds no release{of}")
        return
    named: dict[str, list[str]] = {}
    for entry in listed:
        named.setdefault(entry.name, []).append(entry.edition)
    if name is None:
        titles = _titles(listed)
        output.print_rows(
            [
                {
                    "name": each,
                    **({"title": titles.get(each, "")} if any(titles.values()) else {}),
                    "releases": len(editions),
                    "first": editions[0],
                    "last": editions[-1],
                }
                for each, editions in named.items()
            ]
        )
    else:
        output.print_rows([{"edition": entry.edition, "release_id": entry.release_id} for entry in listed])
    first = next(iter(named))
    say(f"\nwhat can be asked: suffice show {first}; its editions: suffice list --name {first}")


_MOST_TITLES = 50
"""Names whose titles are looked up: two small files of the last release of each."""


def _titles(listed: Sequence[ListedRelease]) -> dict[str, str]:
    """Return the title of the last release of each name; empty where there is none to read."""
    from suffice.storage.releases.release_store import locate
    from suffice.storage.signatures.signing import pinned_keys

    titles: dict[str, str] = {}
    last = {entry.name: entry for entry in listed}
    for name, entry in list(last.items())[:_MOST_TITLES]:
        with contextlib.suppress(StorageError):  # who opens it is told
            location = locate(entry.uri)
            titles[name] = location.wording(*location.manifest(), pinned_keys()).about.title or ""
    return titles


class ReleaseList(TypedDict):
    """What ``suffice list`` prints."""

    store: str
    releases: Sequence[ListedRelease]


class ReleasedFile(TypedDict):
    """A file of a release."""

    statistic: str
    path: str
    sha256: Sha256
    rows: Count
    rows_of: str | None
    mechanism: Literal["discrete_laplace", "cone_noise", "exponential"]


class _Shown(TypedDict):
    release: Release
    of_window: windows.WindowOfRelease | None
    signature: SignatureStatus
    files: list[ReleasedFile]


_KEYS = (
    "name=release.name dataset=release.dataset window=release.window *of_window "
    "release_id=release.release_id uri=release.uri epsilon?=release.loss.epsilon "
    "rho?=release.loss.rho epsilon_at?=release.loss.epsilon_at neighboring=release.neighboring "
    "unit=release.unit max_rows? max_rows_per_cell? unit_nulls? contract audit "
    "one_unit=release.one_unit status signed_by signature about? files"
)


@printed(_KEYS)
@dataclass(frozen=True, slots=True, kw_only=True)
class ShownRelease:
    """What ``suffice show`` prints."""

    release: Release
    of_window: windows.WindowOfRelease | None
    status: ReleaseStatus
    signature: SignatureStatus
    files: list[ReleasedFile]

    @property
    def max_rows(self) -> Count | None:
        """How many rows of a unit enter at most; None where a row is the unit."""
        return self.release.manifest.get("max_rows")

    @property
    def max_rows_per_cell(self) -> Count | None:
        """How many rows of a unit enter a cell at most; None where that is not stated."""
        return self.release.manifest.get("max_rows_per_cell")

    @property
    def unit_nulls(self) -> UnitNullsName | None:
        """What becomes of rows without a unit; None where a row is the unit."""
        return self.release.manifest.get("unit_nulls")

    @property
    def contract(self) -> Sha256 | None:
        """Of the contract by which the data were read."""
        return self.release.manifest.get("contract")

    @property
    def audit(self) -> Sha256 | None:
        """Of the audit of the plan."""
        return self.release.manifest.get("audit")

    @property
    def about(self) -> dict[str, Any] | None:
        """What its owner says of it; None where that is nothing."""
        return self.release.about.document() or None

    @property
    def signed_by(self) -> ShortId | None:
        """The id of the key."""
        signature = self.release.manifest["signature"]
        return signature["key_id"] if signature else None


@printed(
    f"{_KEYS} charged_rho?=charged.rho remaining_epsilon?=remaining.epsilon remaining_rho?=remaining.rho"
)
@dataclass(frozen=True, slots=True, kw_only=True)
class MadeRelease(ShownRelease):
    """What ``suffice release`` prints."""

    charged: PrivacyLoss
    remaining: PrivacyLoss


def _shown(release: Release, public_keys: list[str] | None) -> _Shown:
    from suffice.storage.signatures.signing import pinned_keys, signature_status

    plans = {file["statistic"]: release.plan_of(file["statistic"]) for file in release.files}
    return {
        "release": release,
        "of_window": windows.window_of(release),
        "signature": signature_status(release.manifest, checked=pinned_keys(public_keys) is not None),
        "files": [
            {
                "statistic": file["statistic"],
                "path": f"{release.uri}/{file['path']}",
                "sha256": file["sha256"],
                "rows": file["rows"],
                "rows_of": plans[file["statistic"]].rows_of,
                "mechanism": plans[file["statistic"]].mechanism,
            }
            for file in release.files
        ],
    }


def _print_release(shown: dict[str, Any]) -> None:
    from suffice.pipeline.terms.declaration.row_rules import in_words  # --help needs no pydantic

    fields = ("name", "dataset", "window", "release_id", "uri", "epsilon", "rho", "neighboring", "unit")
    for field in (*fields, *_UNIT_BOUND, "status"):
        if field in shown:
            say(f"{field:<18} {in_words(shown[field]) if field == 'unit' else shown[field]}")
    if shown["unit"] != "row":
        say(f"{'ids':<18} those in floating point count below 2^53 only (2^24 in single precision)")
    without = "none: how files are typed, and which there are, could decide a status"
    say(f"{'contract':<18} {shown['contract'] or without}")
    say(f"{'audit':<18} {shown['audit'] or 'none of this plan is named by the grant'}")
    say(f"{'one unit':<18} {shown['one_unit'].removeprefix('one unit: ')}")
    if "closed" in shown:
        when = "after" if shown["closed"] else "before"
        say(
            f"{'closed':<18} released {when} its window ended at {shown['window_ended']}, as of "
            f"{shown['released']}: rows that came later are not in it"
        )
    if shown.get("amends"):
        say(f"{'amends':<18} release {shown['amends']}, as amendment {shown['amendment']}")
    if shown.get("amended_by"):
        say(f"{'amended by':<18} release {shown['amended_by']}, which replaces it")
    if "closed" in shown and shown["uri"].startswith(("https://", "http://")):
        say(f"{'amended by':<18} not known: a website lists no other release")
    if shown["signed_by"] is None:
        say(f"{'signed by':<18} nobody")
    else:
        say(f"{'signed by':<18} {shown['signed_by']} ({shown['signature'].replace('_', ' ')})")
    for file in shown["files"]:
        name, digest = Path(file["path"]).name, file["sha256"][:16]
        of = f"; {file['rows_of']}" if file["rows_of"] is not None else ""
        of += "; draws of a posterior sample" if file["mechanism"] == "exponential" else ""
        rows = counted(file["rows"], "row")
        say(f"{file['statistic']:<18} {rows} in {name}, sha256 {digest}...{of}")


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
    sample_is: options.SampleIsOption = None,
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
