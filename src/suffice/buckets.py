"""Buckets of S3, Google Cloud Storage and Azure Blob Storage: how URLs name them, and clients of them.

Credentials, regions and endpoints come from the environment, as the client library reads it
(``AWS_...``, ``GOOGLE_...``, ``AZURE_...``). Keys of S3 may also come from a file, which the client does not
read by itself: that of ``AWS_SHARED_CREDENTIALS_FILE``.
"""

from __future__ import annotations

import os
import re
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from suffice.errors import UsageError

if TYPE_CHECKING:
    from obstore.store import ObjectStore, RetryConfig

BUCKET_SCHEMES = {
    "s3": "s3",
    "s3a": "s3",
    "gs": "gs",
    "az": "az",
    "azure": "az",
    "adl": "az",
    "abfs": "az",
    "abfss": "az",
}
"""Every spelling of a bucket's scheme, and the one that it is known under."""

VARIABLES = {"s3": "AWS_", "gs": "GOOGLE_", "az": "AZURE_"}
"""How the variables of the environment begin."""

_TIMEOUT = "5m"
"""Of one request, the transfer of its bytes included; ``AWS_TIMEOUT`` and the like say otherwise."""

_BUCKET = re.compile(r"[a-z0-9][a-z0-9._-]{1,221}", re.ASCII)
_ACCOUNT = re.compile(r"([a-z0-9]{3,24})\.(?:dfs|blob)\.core\.windows\.net", re.ASCII)
_RETRIED_FOR = timedelta(minutes=1)


def read_bucket(scheme: str, authority: str) -> str:
    """Return a bucket as addresses name it.

    Parameters
    ----------
    scheme : str
        Of `BUCKET_SCHEMES`.
    authority : str
        What stands between ``//`` and the next ``/`` of the URL.

    Returns
    -------
    str
        ``s3://NAME``, ``gs://NAME``, ``az://CONTAINER``, or ``az://CONTAINER@ACCOUNT`` where the URL names
        the storage account.

    Raises
    ------
    UsageError
        Where it is no bucket's name, or could hold a credential; the text does not repeat it.
    """
    user, at, host = authority.rpartition("@")
    if at and BUCKET_SCHEMES[scheme] == "az" and _BUCKET.fullmatch(user):
        account = _ACCOUNT.fullmatch(host) or re.fullmatch(r"([a-z0-9]{3,24})", host)
        if account is not None:
            return f"az://{user}@{account[1]}"
    if at:
        message = f"the {scheme}:// URI has a user before its host: credentials come from the environment"
        raise UsageError(message)
    if not _BUCKET.fullmatch(host):
        message = f"the {scheme}:// URI names no bucket: write {BUCKET_SCHEMES[scheme]}://NAME/PREFIX"
        raise UsageError(message)
    return f"{BUCKET_SCHEMES[scheme]}://{host}"


def connect(bucket: str, prefix: str | None = None, *, retries: int) -> ObjectStore:
    """Return a client of the objects below a prefix of a bucket, with what the environment says of it.

    Parameters
    ----------
    bucket : str
        As `read_bucket` returns it.
    prefix : str, optional
        Without a ``/`` at its ends.
    retries : int
        How often the client tries a request again by itself.

    Raises
    ------
    obstore.exceptions.BaseError, OSError, ValueError
        Where the environment's settings cannot be used; the texts may hold credentials.
    """
    from obstore.store import AzureStore, GCSStore, S3Store  # local files need no client

    kind, _, name = bucket.partition("://")
    container, _, account = name.partition("@")
    retry: RetryConfig = {"max_retries": retries, "retry_timeout": _RETRIED_FOR}
    # As client_options these would put aside what the environment says of the client.
    settings: Any = {"account_name": account} if account else {}
    if f"{VARIABLES[kind]}TIMEOUT" not in os.environ:
        settings["timeout"] = _TIMEOUT
    if kind == "s3":
        settings |= _keys_of_file()
        # Not every server that speaks S3 knows the request that removes many objects at once.
        settings |= {"conditional_put": "etag", "disable_bulk_delete": True}
        return S3Store(container, prefix=prefix, config=settings, retry_config=retry)
    store = GCSStore if kind == "gs" else AzureStore
    return store(container, prefix=prefix, config=settings, retry_config=retry)


def _keys_of_file() -> dict[str, str]:
    """Return the keys of S3 that a file of credentials holds; none where the environment has some.

    Raises
    ------
    OSError, ValueError
        Where it cannot be used.
    """
    path = os.environ.get("AWS_SHARED_CREDENTIALS_FILE")
    if not path or os.environ.get("AWS_ACCESS_KEY_ID"):
        return {}
    import configparser  # few have such a file

    parser = configparser.ConfigParser(interpolation=None, default_section="")
    try:
        with open(path, encoding="utf-8") as file:  # noqa: PTH123 - the path is as the variable has it
            parser.read_file(file)
        section = parser[os.environ.get("AWS_PROFILE") or "default"]
    except (configparser.Error, KeyError):
        message = "AWS_SHARED_CREDENTIALS_FILE holds no such profile"
        raise ValueError(message) from None
    names = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token")
    keys = {name.removeprefix("aws_"): section[name] for name in names if name in section}
    if not {"access_key_id", "secret_access_key"} <= keys.keys():
        message = "the profile in AWS_SHARED_CREDENTIALS_FILE lacks a key"
        raise ValueError(message)
    return keys
