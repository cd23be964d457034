"""One published release, verified: its bytes against its manifest, its manifest against keys and ledger."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from suffice.errors import NameTakenError, ReleaseCorruptError, SignatureError
from suffice.pipeline.spec.windows_and_amendments import edition
from suffice.storage.ledger.charge import ChargeState
from suffice.storage.ledger.replay import sha256
from suffice.storage.releases.about_file import MOST_WORDINGS, Wording, about_name
from suffice.storage.releases.descriptions import DESCRIPTIONS, describe
from suffice.storage.releases.location import MANIFEST
from suffice.storage.releases.release_store import locate
from suffice.storage.releases.withdrawal import WITHDRAWN
from suffice.storage.signatures.signing import check_signature, pinned_keys, signature_status

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suffice.pipeline.terms.released.withdrawal import Withdrawal
    from suffice.storage.ledger.ledger import Ledger
    from suffice.storage.releases.location import Location
    from suffice.storage.releases.manifest_model import Manifest
    from suffice.storage.signatures.signing import KeyReference, PublicKey, SignatureStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """What a verification found.

    Attributes
    ----------
    ok : bool
        Whether there is no problem.
    problems : tuple of str
        One sentence each.
    ledger : str
        ``checked``, or ``not_checked`` where none was given.
    signature : str
        ``checked`` against pinned keys; ``not_checked`` where none were pinned, or the manifest cannot
        be read; ``unsigned``: whoever can write to the store could have put a consistent release of
        their own there. The ledger tells such a release apart.
    withdrawn : Withdrawal or None
        Why it was withdrawn, where it was: that is no problem of its bytes.
    """

    ok: bool
    problems: tuple[str, ...]
    ledger: Literal["checked", "not_checked"]
    signature: SignatureStatus
    withdrawn: Withdrawal | None


def verify_release(
    reference: str,
    *,
    store: str | None = None,
    ledger: Ledger | None = None,
    public_keys: Sequence[KeyReference] | None = None,
) -> Verification:
    """Check a release's manifest and files, its signature and, where given, the ledger's record of it.

    Whatever bytes stand there, this returns; what it raises is about where to look.

    Parameters
    ----------
    reference, store, public_keys
        As for :func:`suffice.open_release`.
    ledger : Ledger, optional
        The ledger that is said to have paid for the release.

    Raises
    ------
    UsageError, ReleaseMissingError, StoreError
        Where no release stands there, it cannot be read, or `public_keys` holds no key.
    LedgerError
        Where the ledger cannot be read.
    """
    pinned = pinned_keys(public_keys)
    location = locate(reference, store)
    status: SignatureStatus = "not_checked"
    withdrawn = None
    try:
        data, manifest = location.manifest()
    except ReleaseCorruptError as error:
        problems = [str(error)]
        ledger = None  # nothing could be compared
    else:
        content = json.loads(data)
        status = signature_status(content, checked=pinned is not None)
        wording, badly_worded = _wording(location, data, manifest, pinned)
        problems = [
            *_check_signature(content, pinned),
            *badly_worded,
            *_check_files_of_release(location, manifest, wording),
            *_check_owner(location, manifest),
            *_check_amended(location, manifest),
            *_check_descriptions(location, data, manifest, wording),
        ]
        withdrawn, wrong = _withdrawal(location, data, manifest, pinned)
        problems += wrong
        if ledger is not None:
            problems += _check_ledger(ledger, location, manifest, data)
    return Verification(
        ok=not problems,
        problems=tuple(problems),
        ledger="not_checked" if ledger is None else "checked",
        signature=status,
        withdrawn=withdrawn,
    )


def _check_signature(content: dict[str, Any], pinned: tuple[PublicKey, ...] | None) -> list[str]:
    if pinned is None:
        return []
    try:
        check_signature(content, pinned)
    except SignatureError as error:
        return [str(error)]
    return []


def _wording(
    location: Location, data: bytes, manifest: Manifest, pinned: tuple[PublicKey, ...] | None
) -> tuple[Wording | None, list[str]]:
    """Return the words that stand there; None, and why, where they are none."""
    try:
        return location.wording(data, manifest, pinned), []
    except (ReleaseCorruptError, SignatureError) as error:
        return None, [str(error)]


def _check_files_of_release(location: Location, manifest: Manifest, wording: Wording | None) -> list[str]:
    problems = []
    for index in range(len(manifest.files)):
        try:
            location.values(manifest, index)
        except ReleaseCorruptError as error:
            problems.append(str(error))
    n_words = MOST_WORDINGS if wording is None else wording.number
    words = map(about_name, range(1, n_words + 1))
    known = {MANIFEST, WITHDRAWN, *words, *DESCRIPTIONS, *(file.path for file in manifest.files)}
    extra = set(location.objects.keys("")) - known if location.is_listed else set()
    problems += [f"{name!r} is beside the manifest, which does not name it" for name in sorted(extra)]
    return problems


def _check_descriptions(
    location: Location, data: bytes, manifest: Manifest, wording: Wording | None
) -> list[str]:
    """Compare the descriptions that stand there with what the manifest gives; none need stand there.

    They may be of any words that the release ever had.
    """
    made = [describe(data, manifest, about) for about in (wording or Wording()).ever]
    problems = []
    for name in DESCRIPTIONS:
        possible = [each[name] for each in made]
        stored = location.objects.get(name, at_most=max(map(len, possible)) + 1)
        if stored is not None and stored not in possible and wording is not None:
            problems.append(f"{name} is not what `suffice describe` makes of the manifest")
    return problems


def _withdrawal(
    location: Location, data: bytes, manifest: Manifest, pinned: tuple[PublicKey, ...] | None
) -> tuple[Withdrawal | None, list[str]]:
    try:
        withdrawal = location.withdrawal(data, manifest, pinned)
    except ReleaseCorruptError as error:
        return None, [str(error)]
    if withdrawal is not None and withdrawal.signature == "wrong":
        return withdrawal, [f"{WITHDRAWN} is not signed by a key that is demanded"]
    return withdrawal, []


def _check_owner(location: Location, manifest: Manifest) -> list[str]:
    if location.store is not None and location.store.ledger_id != manifest.ledger_id:
        return [
            f"the store belongs to ledger {location.store.ledger_id}, the release to {manifest.ledger_id}"
        ]
    return []


def _check_amended(location: Location, manifest: Manifest) -> list[str]:
    """Look in the release's store for the one that it amends: an earlier edition, as it was linked."""
    if location.store is None or manifest.amends is None:
        return []
    for number in range(manifest.amendment):
        manifest_found = location.store.read_manifest(
            manifest.name, edition(manifest.window, number), manifest.amends.release_id
        )
        if manifest_found is not None:
            same = sha256(manifest_found) == manifest.amends.manifest_sha256
            return [] if same else ["the manifest of the release that it amends is another than it names"]
    return [f"the release {manifest.amends.release_id}, which it amends, is not in the store"]


def _check_ledger(ledger: Ledger, location: Location, manifest: Manifest, data: bytes) -> list[str]:
    if ledger.ledger_id != manifest.ledger_id:
        return [f"the release belongs to ledger {manifest.ledger_id}, not to this one, {ledger.ledger_id}"]
    try:
        charge = ledger.find(manifest.dataset, manifest.name, manifest.window, amendment=manifest.amendment)
    except NameTakenError as error:
        return [f"the ledger knows this name otherwise: {error}"]
    if charge is None:
        return ["the ledger has no charge for this release"]
    lost = next((each for each in ledger.reconciled() if each.charge_id == charge.charge_id), None)
    drawing = lost or charge
    compared = {
        "release id": (manifest.release_id, charge.release_id),
        "privacy loss": (manifest.plan.loss_in(charge.loss.measure), charge.loss),
        "plan": (manifest.plan_hash, charge.plan_hash),
        "amended release": (manifest.amends, charge.amends),
        "drawing entry": (
            (manifest.drawing_sequence, manifest.drawing_hash),
            (drawing.drawing_sequence, drawing.drawing_hash),
        ),
        "hash of that entry": (
            manifest.drawing_hash,
            drawing.drawing_hash if lost else ledger.entry_hash(manifest.drawing_sequence),
        ),
        "manifest": (sha256(data), charge.manifest_sha256),
    }
    problems = [
        f"its {what} is not the one in the ledger"
        for what, (stated, paid) in compared.items()
        if stated != paid
    ]
    if location.store is not None and location.store.store_id != charge.store_id:
        here = location.store
        problems.append(
            f"it was charged for the store {charge.store_id} at {charge.store_uri}, and is in "
            f"{here.store_id} at "
            f"{here.uri}: if that store was moved, `suffice store adopt {here.uri}` says how to repair it"
        )
    if charge.state is not ChargeState.PUBLISHED:
        problems.append(f"the ledger has its charge as {charge.state}, not as published")
    return problems
