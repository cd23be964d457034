"""Commands of trust: is a release what was published, is a ledger whole, what may the public know of both."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path  # noqa: TC003 - Typer reads it
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, TypedDict

import typer

from suffice.cli import adopt, options, output
from suffice.cli.files import check_file, write_new
from suffice.cli.output import in_line, note_resting, say, say_line
from suffice.errors import LedgerCorruptError, LedgerError, StorageError, UsageError
from suffice.monitoring.records import note_audit
from suffice.pipeline.terms.declaration.documents import (
    Compared,
    Count,
    CountOrNone,
    Sha256,
    document,
    printed,
)
from suffice.pipeline.terms.declaration.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from suffice.storage.ledger.chain import Head
    from suffice.storage.ledger.ledger import Ledger
    from suffice.storage.ledger.replay import Export
    from suffice.storage.operations.verify_store import PublicationVerification
    from suffice.storage.operations.withdrawing import RestingRelease


def verify(
    release: options.ReleaseArgument,
    store: options.StoreOption = options.DEFAULT_STORE,
    ledger: Annotated[
        str | None, typer.Option("--ledger", metavar="URL", help="Compare with this ledger too.")
    ] = None,
    public_keys: options.PublicKeyOption = None,
    publication_keys: options.PublicationKeyOption = None,
    *,
    as_json: options.JsonOption = False,
) -> None:
    """Check the files, manifest and signature of a release or publication, and the ledger's record."""
    from suffice.storage.operations.verify_release import verify_release
    from suffice.storage.publications.publication_store import locate_publication

    if adopt.verified(release, ledger, as_json=as_json):
        return
    folder = locate_publication(release)
    if folder is not None:
        if ledger is not None:
            message = "--ledger: a publication cost nothing, so that no ledger knows of it: leave it out"
            raise UsageError(message)
        place, publication_id = folder
        verify_publication_of(
            place.parent.uri, publication_id, publication_keys, releases=store, as_json=as_json
        )
        return
    if ledger is None:
        verification = verify_release(release, store=store, public_keys=public_keys)
    else:
        from suffice.storage.ledger.opening import open_ledger

        with open_ledger(ledger, reading_only=True) as opened:
            verification = verify_release(release, store=store, ledger=opened, public_keys=public_keys)
    if as_json:
        output.print_json(document(verification))
    else:
        for problem in verification.problems:
            say(problem)
        if verification.withdrawn is not None:
            say(verification.withdrawn)
        looked = f"ledger {verification.ledger}, signature {verification.signature}".replace("_", " ")
        say("ok" if verification.ok else "not ok", "-", looked)
    if not verification.ok:
        raise typer.Exit(StorageError.exit_status)


@printed(
    "ok=verification.ok problems=verification.problems ledger signature=verification.signature "
    "files=verification.files left_files=verification.left releases"
)
@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedPublication:
    """What a verification of a publication found, and how the releases stand that it rests on."""

    ledger: ClassVar[Literal["not_checked"]] = "not_checked"
    verification: PublicationVerification
    releases: Sequence[RestingRelease]


def verify_publication_of(
    store_uri: str, publication_id: str, publication_keys: list[str] | None, *, releases: str, as_json: bool
) -> None:
    """Check what stands in the folder of a publication; its releases are looked for in `releases` too."""
    from suffice.storage.operations.verify_store import verify_publication
    from suffice.storage.operations.withdrawing import resting_releases
    from suffice.storage.publications.publication_store import PublicationStore

    store = PublicationStore.open(store_uri, publication_keys=publication_keys)
    verification = verify_publication(store, publication_id)
    resting = list(resting_releases(filter(None, [verification.publication]), [releases]).values())
    note_resting(resting)
    if as_json:
        output.print_json(document(VerifiedPublication(verification=verification, releases=resting)))
    else:
        for problem in verification.problems:
            say(problem)
        print_resting(resting)
        looked = f"{counted(verification.files, 'file')}, signature {verification.signature}".replace(
            "_", " "
        )
        say("ok" if verification.ok else "not ok", "-", looked)
    if not verification.ok:
        raise typer.Exit(StorageError.exit_status)


def print_resting(releases: Iterable[RestingRelease]) -> None:
    """Say of the releases that a publication rests on which do not stand, as far as that is known."""
    for release in releases:
        if release.state != "stands":
            say(f"{in_line(release.label)} (release {release.release_id}), which it rests on: {release}")


def disclose(
    release: options.ReleaseArgument,
    store: options.StoreOption = options.DEFAULT_STORE,
    public_keys: options.PublicKeyOption = None,
    *,
    allow_withdrawn: options.AllowWithdrawnOption = False,
    as_json: options.JsonOption = False,
) -> None:
    """Write a draft for the OpenDP registry of deployments; a person states what no manifest knows."""
    from suffice.storage.operations.disclosure import disclosure, to_yaml

    document = disclosure(
        options.open_for_reading(release, store, public_keys, allow_withdrawn=allow_withdrawn).manifest
    )
    if as_json:
        output.print_json(document)
    else:
        say(to_yaml(document), end="")


def verify_ledger(
    ledger: options.LedgerOption = options.DEFAULT_LEDGER,
    store: Annotated[
        str | None, typer.Option("--store", metavar="URI", help="Compare with this store too, both ways.")
    ] = None,
    export: Annotated[
        Path | None,
        typer.Option("--export", metavar="FILE", help="Check what `ledger export` wrote; no ledger needed."),
    ] = None,
    witness: options.WitnessOption = None,
    *,
    full: Annotated[
        bool, typer.Option("--full", help="Recompute everything, not only what follows the last checkpoint.")
    ] = False,
    checkpoint: Annotated[
        bool, typer.Option("--checkpoint", help="Where all is well, let later checks go on from here.")
    ] = False,
    as_json: options.JsonOption = False,
) -> None:
    """Check the chain of entries, that accounts and charges follow from it, and that the store agrees."""
    if export is not None:
        if checkpoint:
            message = "--checkpoint goes into a ledger, and --export names none"
            raise UsageError(message)
        verified = export_document(_read_export(export), store)
    else:
        from suffice.storage.ledger.opening import open_ledger

        with open_ledger(ledger, reading_only=not checkpoint) as opened:
            verified = ledger_document(opened, store, witness, full=full, checkpoint=checkpoint)
        is_whole = verified["store"] == "checked" and not verified["charges_elsewhere"]
        if is_whole or not verified["ok"]:  # a look at a part does not undo what an audit of all found
            note_audit(ok=verified["ok"])
    if as_json:
        output.print_json(verified)
    else:
        for problem in verified["problems"]:
            say(problem)
        since = f" since the checkpoint at entry {verified['since']}" if verified["since"] else ""
        say(
            f"{'ok' if verified['ok'] else 'not ok'} - entries up to {verified['sequence']}{since}, "
            f"sealed by {verified['hash']}; store {verified['store'].replace('_', ' ')}"
            + (", witness checked" if verified["witness"] == "checked" else "")
        )
        if verified["charges_elsewhere"]:
            elsewhere = counted(verified["charges_elsewhere"], "charge")
            say(f"not compared, for other stores: {elsewhere}")
    if not verified["ok"]:
        raise typer.Exit(LedgerError.exit_status)


class WrittenExport(TypedDict):
    """A file with a ledger's export, and how many entries it has."""

    out: str
    entries: Count


def export_ledger(
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Write here; else to standard output.")
    ] = None,
    ledger: options.LedgerOption = options.DEFAULT_LEDGER,
    *,
    as_json: options.JsonOption = False,
) -> None:
    """Write the chain for the public, a JSON line per entry: `ledger verify --export` checks it anywhere."""
    check_file("--out", out, overwrite=None)
    from suffice.storage.ledger.opening import open_ledger
    from suffice.storage.ledger.replay import export_lines

    with open_ledger(ledger, reading_only=True) as opened:
        lines = list(export_lines(opened.entries()))
    if out is not None:
        write_new(out, "".join(f"{line}\n" for line in lines))
    if as_json:
        entries = [json.loads(line) for line in lines]
        output.print_json(WrittenExport(out=str(out), entries=len(lines)) if out else {"entries": entries})
    elif out is not None:
        say(f"wrote {counted(len(lines), 'entry', 'entries')} to {out}")
    else:
        for line in lines:
            say_line(line)


def witness_ledger(
    witness: Annotated[str, typer.Argument(metavar="URI", help="A file elsewhere, or an object.")],
    ledger: options.LedgerOption = options.DEFAULT_LEDGER,
    *,
    as_json: options.JsonOption = False,
) -> None:
    """Put a witness of the ledger's head, or move it on: `release --witness` refuses an older copy by it."""
    from suffice.storage.ledger.opening import open_ledger
    from suffice.storage.operations.witness import make_witness

    with open_ledger(ledger) as opened:
        made = make_witness(opened, witness)
    if as_json:
        output.print_json(document(made))
    else:
        say(f"{made.uri} holds entry {made.head.sequence}, {made.head.hash}")


class LedgerVerification(TypedDict):
    """What a verification of a ledger found."""

    ok: bool
    problems: list[str]
    sequence: Count
    since: Count
    hash: Sha256 | None
    store: Compared
    witness: Compared
    charges_elsewhere: CountOrNone


def ledger_document(
    ledger: Ledger,
    store: str | None,
    witness: str | None = None,
    *,
    full: bool = False,
    checkpoint: bool = False,
) -> LedgerVerification:
    """Return what ``ledger verify --json`` prints of a ledger.

    Nothing is sealed where the store or the witness says that the ledger is not whole.
    """
    if checkpoint and (store or witness):
        verified = ledger_document(ledger, store, witness, full=full)
        if not verified["ok"]:
            return verified
    examination = ledger.add_checkpoint(full=full) if checkpoint else ledger.examine(full=full)
    verified = _verification_document(
        ledger, examination.problems, examination.head, examination.since, store
    )
    if not witness:
        return verified
    problems = [*verified["problems"], *_witness_problems(ledger, witness)]
    return {**verified, "ok": not problems, "problems": problems, "witness": "checked"}


def export_document(export: Export, store: str | None) -> LedgerVerification:
    """Return what ``ledger verify --export --json`` prints."""
    return _verification_document(export, export.verify(), export.head, 0, store)


def _verification_document(
    chain: Ledger | Export, problems: tuple[str, ...], head: Head, since: int, store: str | None
) -> LedgerVerification:
    from suffice.storage.operations.verify_ledger import compare_with_store
    from suffice.storage.releases.release_store import open_store

    comparison = compare_with_store(chain, open_store(store)) if store and not problems else None
    every_problem = [*problems, *(comparison.problems if comparison else ())]
    return {
        "ok": not every_problem,
        "problems": every_problem,
        "sequence": head.sequence,
        "hash": head.hash if head.sequence else None,
        "since": since,
        "store": "checked" if comparison else "not_checked",
        "witness": "not_checked",
        "charges_elsewhere": comparison.elsewhere if comparison else None,
    }


def _witness_problems(ledger: Ledger, witness: str) -> list[str]:
    from suffice.storage.operations.witness import check_witness

    try:
        check_witness(ledger, witness)
    except LedgerCorruptError as error:
        return [str(error)]
    return []


def _read_export(path: Path) -> Export:
    from suffice.storage.ledger.replay import read_export

    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError):
        message = f"--export {path}: the file cannot be read"
        raise UsageError(message) from None
    return read_export(text)
