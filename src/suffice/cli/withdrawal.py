"""``suffice withdraw`` and ``suffice describe``: what is put beside a manifest, and changes nothing of it."""

from __future__ import annotations

import datetime as dt
from pathlib import Path  # noqa: TC003 - Typer reads it
from typing import Annotated, TypedDict

import typer

from suffice.cli import output
from suffice.cli.files import check_file, new_file
from suffice.cli.options import DEFAULT_STORE, JsonOption, PublicKeyOption, ReleaseArgument, StoreOption
from suffice.cli.output import say
from suffice.errors import UsageError
from suffice.pipeline.terms.declaration.documents import document


def withdraw(
    release: ReleaseArgument,
    reason: Annotated[str, typer.Option("--reason", help="Why, in one line; every reader sees it.")],
    store: StoreOption = DEFAULT_STORE,
    *,
    as_json: JsonOption = False,
) -> None:
    """Mark a faulty release for its readers, for good; it stays where it is, and stays charged."""
    from suffice.releasing.describing import check_store
    from suffice.storage.operations.withdrawing import withdraw as withdraw_release
    from suffice.storage.signatures.signing import signer_from_environment

    done = withdraw_release(
        release,
        reason=reason,
        created=dt.datetime.now(dt.UTC),
        store=store,
        signer=signer_from_environment(),
        allowed=check_store,
    )
    if as_json:
        output.print_json(document(done))
    elif done.status == "withdrawn":
        say(f"{done.label} (release {done.release_id}) is {done.withdrawal}")
        say("it stays charged; readers are refused, unless they ask for it with --allow-withdrawn")
    else:
        say(f"{done.label} was withdrawn before, for the same reason: {done.withdrawal}")


class DescribedFile(TypedDict):
    """A description of a release, and whether it was written."""

    file: str
    status: str


def describe(
    release: ReleaseArgument,
    words: Annotated[
        Path | None,
        typer.Argument(metavar="[SPEC_OR_ABOUT.yaml]", help="Words that replace those the release has."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="Write the two here; else beside the release's manifest."),
    ] = None,
    store: StoreOption = DEFAULT_STORE,
    public_keys: PublicKeyOption = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """Mend a release's title, labels and units; write missing datapackage.json and croissant.json."""
    from suffice.releasing.describing import check_store
    from suffice.storage.operations.publishing import describe_release, descriptions_of

    if words is not None:
        written = _mend(release, words, out, store=store, public_keys=public_keys)
    elif out is None:
        written = describe_release(release, store=store, public_keys=public_keys, allowed=check_store)
    else:
        made = descriptions_of(release, store=store, public_keys=public_keys)
        for name in made:
            check_file("--out", out / name, overwrite=False)
        _make_folder(out)
        written = {}
        for name, data in made.items():
            with new_file("--out", out / name, overwrite=False) as file:
                file.write_bytes(data)
            written[str(out / name)] = "written"
    if as_json:
        files = [DescribedFile(file=file, status=status) for file, status in written.items()]
        output.print_json({"files": files})
        return
    for place, status in written.items():
        say(f"{status.replace('_', ' ')}: {place}")
    if "of_earlier_words" in written.values():
        say("\nwhat is of earlier words stays, as nothing in a store is replaced: a catalogue writes it anew")


def _mend(
    release: str, words: Path, out: Path | None, *, store: str, public_keys: list[str] | None
) -> dict[str, str]:
    """Put the words of a spec, or of a file of words alone, beside a release's manifest."""
    if out is not None:
        message = "--out: words are put beside the release's manifest: leave it out, or leave them out"
        raise UsageError(message)
    from suffice.releasing.describing import put_words

    return put_words(release, words, store=store, public_keys=public_keys)


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError):
        message = f"--out {folder}: the folder cannot be made"
        raise UsageError(message) from None
