"""Receipts of parts: what a publisher that signs has written itself, and may go on from.

Whoever may write to a folder of publications can leave a part there that has its name and its hash, and wrong
numbers; whoever publishes after that would sign them. A receipt is a file of the same folder, signed with the
publisher's key, that names one part by its content.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from suffice.errors import SignatureError
from suffice.pipeline.terms.declaration import canonical_json
from suffice.storage.publications.manifest_model import RECEIPT
from suffice.storage.signatures.signing import PART, check_signature, is_signature_value

if TYPE_CHECKING:
    from suffice.storage.publications.publication import PublishedFile
    from suffice.storage.publications.publication_store import PublicationStore
    from suffice.storage.signatures.signing import Signer

_SIGNED = {"algorithm", "key_id", "value"}


def put_receipt(store: PublicationStore, publication_id: str, file: PublishedFile, signer: Signer) -> None:
    """Write that this publisher has written a part.

    Raises
    ------
    PublicationCorruptError, StoreError
        As :meth:`PublicationStore.put_file`.
    """
    content = _content(publication_id, file)
    signed = {**content, "signature": signer.sign(content, PART)}
    store.put_file(publication_id, RECEIPT, canonical_json.encode(signed))


def with_receipts(store: PublicationStore, publication_id: str, signer: Signer | None) -> list[PublishedFile]:
    """Return the whole files of a folder that a publisher may go on from.

    Of one that signs, those of which a receipt says that it has written them itself; of one that does not,
    all: nobody vouches for what it publishes.

    Raises
    ------
    StoreError
        Where a file cannot be read.
    """
    standing = list(store.files(publication_id))
    if signer is None:
        return standing
    signed = [
        content
        for file in standing
        if file.name == RECEIPT
        and (content := _read(store.read_file(publication_id, file.path) or b"", signer)) is not None
    ]
    return [file for file in standing if _content(publication_id, file) in signed]


def _content(publication_id: str, file: PublishedFile) -> dict[str, Any]:
    return {"publication_id": publication_id, "path": file.path, "sha256": file.sha256, "signature": None}


def _read(data: bytes, signer: Signer) -> dict[str, Any] | None:
    """Return what a receipt of this publisher says; None of anything else."""
    try:
        content: Any = canonical_json.decode(data)
        signature = content["signature"]
        if signature.keys() != _SIGNED or not is_signature_value(signature["value"]):
            return None
        check_signature(content, [signer.public_key], PART)
    except (ValueError, TypeError, KeyError, AttributeError, SignatureError):
        return None
    return {**content, "signature": None}
