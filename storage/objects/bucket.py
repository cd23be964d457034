"""Objects in a bucket of S3, Google Cloud Storage or Azure Blob Storage, or of a server that speaks like one.

Credentials, regions and endpoints come from the environment, as the client library reads it
(``AWS_...``, ``GOOGLE_...``, ``AZURE_...``). Its errors may repeat requests: only a status and a fixed
text leave this module.
"""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

from obstore import delete, get, head, list_with_delimiter, put
from obstore import list as list_objects
from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    InvalidPathError,
    NotSupportedError,
    PermissionDeniedError,
    PreconditionError,
    UnauthenticatedError,
)

from suffice.buckets import connect
from suffice.errors import ObjectExistsError, StoreError
from suffice.storage.objects.object_store import SILENT, Reason, checked_key, of_answer

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterator, Sequence
    from typing import BinaryIO

    from obstore import UpdateVersion
    from obstore.store import ObjectStore as Client

_PAUSES = (0.2, 1.0, 4.0)
"""Seconds between the attempts of one put."""

_REFUSED = (
    FileNotFoundError,
    InvalidPathError,
    NotSupportedError,
    PermissionDeniedError,
    UnauthenticatedError,
)
"""Answers which mean that nothing was written."""

_FAILURES = (BaseError, OSError, ValueError)
_STATUS = re.compile(r"status code: (\d{3})")
_CODE = re.compile(r"<Code>([A-Za-z]{1,60})</Code>")


class Bucket:
    """The objects below a prefix of a bucket.

    An object is created by one conditional request, which the server carries out once or not at all.
    Whether it did is not always known: the answer may be lost, and what was lost may still arrive. So a
    put is tried once, without the client's own retries; after an answer that does not settle it, what
    stands at the key decides, and where nothing stands, the same bytes are put again.

    Parameters
    ----------
    reader : obstore.store.ObjectStore
        May retry by itself.
    writer : obstore.store.ObjectStore
        Of the same place; never retries by itself: a second try would meet the object of the first, and
        take it for another writer's.
    uri : str
        For messages; holds no credentials.
    pauses : sequence of float
        Seconds between the attempts of one put.
    """

    def __init__(
        self, reader: Client, writer: Client, *, uri: str, pauses: Sequence[float] = _PAUSES
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._uri = uri
        self._pauses = pauses

    def put_new(self, key: str, data: bytes) -> None:
        """Create an object.

        Raises
        ------
        ObjectExistsError
            Where `key` is taken. An object of the very same bytes counts as the one that was put where
            an answer was lost on the way, for then nobody can tell them apart.
        StoreError
            Where it cannot be written, or nobody knows whether it was.
        """
        checked_key(key)
        unknown = False
        for pause in (*self._pauses, None):
            try:
                put(self._writer, key, data, mode="create", use_multipart=False)
            except AlreadyExistsError:
                standing = self.get(key, at_most=len(data) + 1)
                if standing is None:  # two requests met, and the server refused both: neither wrote
                    failure = self._error(key, "written", of_answer(409))
                else:
                    self._settle(key, data, standing, unknown=unknown)
                    return
            except _REFUSED as error:
                if not unknown:
                    raise self._error(key, "written", _reason(error)) from None
                failure = self._unknown(key, _reason(error))
                break
            except _FAILURES as error:
                unknown = True
                failure = self._unknown(key, _reason(error))
                standing = self._standing(key, len(data) + 1, failure)
                if standing is not None:
                    self._settle(key, data, standing, unknown=True)
                    return
            else:
                return
            if pause is not None:
                time.sleep(pause)
        raise failure

    def get(self, key: str, *, at_most: int) -> bytes | None:
        """Return an object's first `at_most` bytes, or None where there is no such object.

        Raises
        ------
        StoreError
            Where it cannot be read.
        """
        checked_key(key)
        try:
            response = get(self._reader, key)
            if response.meta["size"] <= at_most:
                return bytes(response.bytes())
            data = bytearray()
            for chunk in response.stream(min_chunk_size=1):
                data += chunk
                if len(data) >= at_most:
                    break
            return bytes(data[:at_most])
        except FileNotFoundError:
            return None
        except _FAILURES as error:
            raise self._error(key, "read", _reason(error)) from None

    def copy(self, key: str, sink: BinaryIO, *, at_most: int) -> bool:
        """Write an object's first `at_most` bytes to a file; False where there is no such object.

        Raises
        ------
        StoreError
            Where it cannot be read, or the file cannot be written.
        """
        checked_key(key)
        try:
            for chunk in get(self._reader, key).stream():
                piece = bytes(chunk)[:at_most]
                sink.write(piece)
                at_most -= len(piece)
                if at_most <= 0:
                    break
        except FileNotFoundError:
            return False
        except _FAILURES as error:
            raise self._error(key, "read", _reason(error)) from None
        return True

    def keys(self, prefix: str) -> list[str]:
        """Return the sorted keys below `prefix`, which is empty or ends with ``/``."""
        try:
            chunks = list_objects(self._reader, prefix=prefix or None)
            paths = [entry["path"] for chunk in chunks for entry in chunk]
        except _FAILURES as error:
            raise self._error(prefix, "listed", _reason(error)) from None
        return sorted(paths)

    def keys_after(self, prefix: str, key: str) -> Iterator[str]:
        """Give the keys below `prefix` that sort after `key`, in order: the listing begins there."""
        try:
            for chunk in list_objects(self._reader, prefix=prefix or None, offset=key or None):
                for entry in chunk:
                    if entry["path"] > key:  # a server may not know where to begin
                        yield entry["path"]
        except _FAILURES as error:
            raise self._error(prefix, "listed", _reason(error)) from None

    def replace(self, key: str, data: bytes, *, expected: bytes) -> None:
        """Replace an object, if it still holds `expected`: by one conditional request.

        Raises
        ------
        ObjectExistsError
            Where it holds anything else, or is gone.
        StoreError
            Where it cannot be written, or nobody knows whether it was.
        """
        checked_key(key)
        try:
            response = get(self._reader, key)
            same = response.meta["size"] == len(expected) and bytes(response.bytes()) == expected
        except FileNotFoundError:
            same = False
        except _FAILURES as error:
            raise self._error(key, "read", _reason(error)) from None
        if not same:
            raise self._changed(key)
        version: UpdateVersion = {}
        if response.meta["e_tag"] is not None:
            version["e_tag"] = response.meta["e_tag"]
        if response.meta["version"] is not None:
            version["version"] = response.meta["version"]
        try:
            put(self._writer, key, data, mode=version, use_multipart=False)
        except (PreconditionError, AlreadyExistsError):
            raise self._changed(key) from None
        except _REFUSED as error:
            raise self._error(key, "replaced", _reason(error)) from None
        except _FAILURES as error:
            failure = self._unknown(key, _reason(error))
            if self._standing(key, len(data) + 1, failure) != data:
                raise failure from None

    def names(self, prefix: str) -> list[str]:
        """Return the sorted names right below `prefix`, which is empty or ends with ``/``."""
        try:
            listing = list_with_delimiter(self._reader, prefix=prefix or None)
        except _FAILURES as error:
            raise self._error(prefix, "listed", _reason(error)) from None
        below = [*listing["common_prefixes"], *(entry["path"] for entry in listing["objects"])]
        return sorted(path.rstrip("/").rsplit("/", 1)[-1] for path in below)

    def delete(self, key: str) -> None:
        """Remove an object, if it is there."""
        checked_key(key)
        try:
            delete(self._reader, key)
        except FileNotFoundError:
            return
        except _FAILURES as error:
            raise self._error(key, "removed", _reason(error)) from None

    def modified(self, key: str) -> dt.datetime | None:
        """Return when an object was written, by the server's clock; None where there is no such object.

        Raises
        ------
        StoreError
            Where it cannot be looked at.
        """
        checked_key(key)
        try:
            return head(self._reader, key)["last_modified"]
        except FileNotFoundError:
            return None
        except _FAILURES as error:
            raise self._error(key, "read", _reason(error)) from None

    def sweep_hidden(self, before: dt.datetime) -> list[str]:  # noqa: ARG002 - as directories do it
        """Return nothing: a server shows no object that is not whole."""
        return []

    def sweep(self, prefix: str, *, keep: str) -> list[str]:
        """Remove what stands below `prefix` but `keep`, and return the keys removed."""
        removed = [key for key in self.keys(prefix) if key != keep]
        for key in removed:
            self.delete(key)
        return removed

    def _settle(self, key: str, data: bytes, standing: bytes, *, unknown: bool) -> None:
        """Tell one's own object, of which the answer was lost, from another writer's."""
        if not unknown or standing != data:
            message = f"{self._uri}/{key} exists, and is never overwritten"
            raise ObjectExistsError(message) from None

    def _standing(self, key: str, at_most: int, failure: StoreError) -> bytes | None:
        try:
            return self.get(key, at_most=at_most)
        except StoreError:
            raise failure from None

    def _changed(self, key: str) -> ObjectExistsError:
        return ObjectExistsError(f"{self._uri}/{key} is no longer what it was")

    def _error(self, key: str, action: str, reason: Reason) -> StoreError:
        message = f"{self._uri}/{key} cannot be {action}: {reason.text}"
        return StoreError(message, reason=reason.text, may_pass=reason.may_pass)

    def _unknown(self, key: str, reason: Reason) -> StoreError:
        message = f"{self._uri}/{key} may or may not have been written: {reason.text}"
        return StoreError(message, reason=reason.text, may_pass=reason.may_pass)


def open_bucket(bucket: str, prefix: str) -> Bucket:
    """Open the objects below a prefix of a bucket, with what the environment says of it.

    Parameters
    ----------
    bucket : str
        ``s3://NAME``, ``gs://NAME``, ``az://CONTAINER`` or ``az://CONTAINER@ACCOUNT``.
    prefix : str
        Without a ``/`` at its ends; may be empty.

    Raises
    ------
    StoreError
        Where the environment's settings cannot be used.
    """
    try:
        reader, writer = (connect(bucket, prefix or None, retries=retries) for retries in (4, 0))
    except _FAILURES:
        kind = bucket.partition("://")[0]
        message = f"the environment's settings for {kind}:// cannot be used"
        raise StoreError(message) from None
    return Bucket(reader, writer, uri=f"{bucket}/{prefix}".rstrip("/"))


def _reason(error: Exception) -> Reason:
    """Say what a client's error is about, without its text."""
    text = str(error)
    status, code = _STATUS.search(text), _CODE.search(text)
    if status is not None:
        return of_answer(int(status[1]), code[1] if code else None)
    if isinstance(error, UnauthenticatedError):
        return of_answer(401)
    if isinstance(error, PermissionDeniedError):
        return of_answer(403)
    return SILENT
