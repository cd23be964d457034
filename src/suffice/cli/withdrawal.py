"""``suffice withdraw`` and ``suffice describe``: what is put beside a manifest, and changes nothing of it."""

from __future__ import annotations

import datetime as dt
from pathlib import Path  # noqa: TC003 - Typer reads it
from typing import TYPE_CHECKING, Annotated, TypedDict

import typer

from suffice.cli import output
from suffice.cli.files import check_file, new_file
from suffice.cli.options import DEFAULT_STORE, JsonOption, PublicKeyOption, ReleaseArgument, StoreOption
from suffice.cli.output import say
from suffice.errors import UsageError
from suffice.pipeline.terms.declaration.documents import document
from suffice.profile.settings import pinned_profile, setting

if TYPE_CHECKING:
    from collections.abc import Callable


def withdraw(
    release: ReleaseArgument,
    reason: Annotated[str, typer.Option("--reason", help="Why, in one line; every reader sees it.")],
    store: StoreOption = DEFAULT_STORE,
    *,
    as_json: JsonOption = False,
) -> None:
    """Mark a faulty release for its readers, for good; it stays where it is, and stays charged."""
    from suffice.storage.operations.withdrawing import withdraw as withdraw_release
    from suffice.storage.signatures.signing import signer_from_environment

    done = withdraw_release(
        release,
        reason=reason,
        created=dt.datetime.now(dt.UTC),
        store=store,
        signer=signer_from_environment(),
        allowed=_check_store,
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
    from suffice.storage.operations.publishing import describe_release, descriptions_of, mend_words

    if words is not None:
        written = _mend(release, words, out, store=store, public_keys=public_keys, mend=mend_words)
    elif out is None:
        written = describe_release(release, store=store, public_keys=public_keys, allowed=_check_store)
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


def _mend(
    release: str,
    words: Path,
    out: Path | None,
    *,
    store: str,
    public_keys: list[str] | None,
    mend: Callable[..., dict[str, str]],
) -> dict[str, str]:
    """Put the words of a spec, or of a file of words alone, beside a release's manifest."""
    from suffice.pipeline.spec.spec import load_about
    from suffice.storage.signatures.signing import signer_from_environment

    if out is not None:
        message = "--out: words are put beside the release's manifest: leave it out, or leave them out"
        raise UsageError(message)
    return mend(
        release,
        load_about(words),
        created=dt.datetime.now(dt.UTC),
        store=store,
        public_keys=public_keys,
        signer=signer_from_environment(),
        allowed=_check_store,
    )


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError):
        message = f"--out {folder}: the folder cannot be made"
        raise UsageError(message) from None


def _check_store(uri: str) -> None:
    """Refuse to write to a store that the deployment profile does not allow."""
    setting("store", uri, profile=pinned_profile(), option="--store")
