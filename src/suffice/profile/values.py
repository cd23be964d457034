"""What a profile's values name: when two addresses are of one ledger or store, and formats of a log.

Addresses are shown without their secrets.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from suffice.storage.objects.address import read_address

LOG = "SUFFICE_LOG"
LOG_FORMATS = ("text", "json")

_SQLITE = "sqlite:///"
_POSTGRES = re.compile(r"postgresql(?:\+psycopg)?://", re.ASCII)
_POSTGRES_PORT = 5432
_SECRETS = frozenset({"password", "sslpassword", "passfile"})
_USER_INFO = re.compile(r"(://)[^?#]*:[^?#]*@")
_SECRET_QUERY = re.compile(
    r"([?&;]\s*(?:[\w-]*(?:password|secret|token|signature|credential)|passfile|pwd|key|sig)\s*=)[^&;#]*",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerIdentity:
    """What a ledger's URL names.

    Attributes
    ----------
    place : tuple
        Equal for two URLs of one ledger, whatever their passwords.
    user : str
        Whom it logs in as; empty where that is left to the environment.
    has_password : bool
    is_relative : bool
        Whether it depends on the current directory, or on an environment that names the server.
    """

    place: tuple[object, ...]
    user: str
    has_password: bool
    is_relative: bool


def ledger_identity(url: str) -> LedgerIdentity:
    """Read what a ledger's URL names.

    Raises
    ------
    ValueError
        Where it names no supported database; the text does not repeat the URL.
    """
    message = "is no URL of a ledger: write sqlite:////PATH, or postgresql://USER@HOST/DATABASE"
    if url.startswith(_SQLITE):
        database = url.removeprefix(_SQLITE)
        if not database or "\0" in database:
            raise ValueError(message)
        return LedgerIdentity(
            place=("sqlite", os.path.realpath(database)),
            user="",
            has_password=False,
            is_relative=not Path(database).is_absolute(),
        )
    if not _POSTGRES.match(url):
        raise ValueError(message)
    try:
        parts = urlsplit(url)
        port = parts.port or _POSTGRES_PORT
        query = parse_qsl(parts.query, keep_blank_values=True)
    except ValueError:
        raise ValueError(message) from None
    settings = tuple(sorted((name, value) for name, value in query if name not in _SECRETS))
    database = unquote(parts.path.removeprefix("/"))
    return LedgerIdentity(
        place=("postgresql", parts.hostname or "", port, database, settings),
        user=unquote(parts.username or ""),
        has_password=parts.password is not None or len(settings) < len(query),
        is_relative=not ((parts.hostname or dict(query).get("host")) and database),
    )


def same_ledger(url: str, pinned: str) -> bool:
    """Whether a URL names the pinned ledger; its user counts where the pinned URL states one."""
    try:
        given, allowed = ledger_identity(url), ledger_identity(pinned)
    except ValueError:
        return False
    return given.place == allowed.place and allowed.user in {"", given.user}


def store_uri(uri: str) -> str:
    """Return a store's address in its one spelling: an absolute path, links resolved, or a bucket's URI.

    Raises
    ------
    UsageError
        Where it is none.
    """
    return read_address(uri).uri


def is_inside(path: str, folder: str) -> bool:
    """Whether an address is `folder`, or lies below it; both in their one spelling."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def redacted(address: str) -> str:
    """Return an address as it may be shown: without the passwords and keys that it may hold."""
    return _SECRET_QUERY.sub(r"\1***", _USER_INFO.sub(r"\1***@", address))
