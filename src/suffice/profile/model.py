"""``suffice.toml``, the deployment profile: its keys, and how its text is read."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, PlainValidator, ValidationError

from suffice.errors import ProfileError
from suffice.pipeline.cluster.stall_limits import LONGEST_STALL
from suffice.pipeline.terms.declaration.wording import UNKNOWN_KEY, first_complaint, rule_of
from suffice.profile.values import LOG_FORMATS, ledger_identity, store_uri

_RAW_KEY = re.compile(r"[0-9a-fA-F]{64}", re.ASCII)


def _text(value: object) -> str:
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        message = "must be one text of printable characters, and not empty"
        raise ValueError(message)
    return value


def _path(value: object) -> str:
    text = _text(value)
    if not Path(text).is_absolute():
        message = "must be an absolute path: a profile holds wherever commands are run"
        raise ValueError(message)
    return text


def _listed(value: object) -> list[object]:
    if not isinstance(value, list) or not value:
        message = "must be a list with at least one entry; leave the key out to pin nothing"
        raise ValueError(message)
    return value


def _store(value: object) -> str:
    text = _text(value)
    if ":/" not in text:
        _path(text)
    return store_uri(text)


def _ledger(value: object) -> str:
    text = _text(value)
    identity = ledger_identity(text)
    if identity.has_password:
        message = "holds a password: leave it out, and give it to the service by PGPASSFILE"
        raise ValueError(message)
    if identity.is_relative:
        message = "names no absolute place: write sqlite:////PATH, or postgresql://USER@HOST/DATABASE"
        raise ValueError(message)
    return text


def _key(value: object) -> str:
    text = _text(value)
    return text.lower() if _RAW_KEY.fullmatch(text) else _path(text)


def _log_format(value: object) -> str:
    if value not in LOG_FORMATS:
        message = "is neither text nor json"
        raise ValueError(message)
    return str(value)


def _seconds(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= LONGEST_STALL:
        message = f"must be a whole number of seconds from 1 to {LONGEST_STALL}"
        raise ValueError(message)
    return value


class DeploymentProfile(BaseModel):
    """What an operator pins. A key that is left out pins nothing.

    Attributes
    ----------
    ledger : str, optional
        The URL of the one ledger that runs may charge.
    spool : str, optional
        The directory that drawn releases wait in until they are published.
    witness : str, optional
        Where the head of the ledger is held outside of it.
    stores : tuple of str, optional
        Stores, or folders of stores, that runs may publish releases into, and that flows may read.
    publications : tuple of str, optional
        Stores, or folders of stores, that posteriors may be published into; `stores` where left out.
    tables : tuple of str, optional
        Public tables of covariates and neighbours, or folders of them, that flows may read; `stores` where
        left out.
    output_folders : tuple of str, optional
        Folders that flows may write files into, at any depth.
    clusters : tuple of str, optional
        ``threads``, ``local``, addresses of schedulers, and functions that return clients.
    cluster_certificates : str, optional
        The folder of the certificates with which runs open links to schedulers.
    spec_folders : tuple of str, optional
        Folders that released specs lie in, at any depth.
    public_keys : tuple of str, optional
        Files of public keys, or raw keys of 64 hex digits, of which readers demand one.
    log_format : str
        How progress, warnings and errors are written to standard error: ``text`` or ``json``.
    stall_seconds : int, optional
        How long a worker of a cluster may end no task before others get what it has.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    ledger: Annotated[str | None, PlainValidator(_ledger)] = None
    spool: Annotated[str | None, PlainValidator(_path)] = None
    witness: Annotated[str | None, PlainValidator(_store)] = None
    stores: Annotated[
        tuple[str, ...] | None, PlainValidator(lambda value: tuple(map(_store, _listed(value))))
    ] = None
    publications: Annotated[
        tuple[str, ...] | None, PlainValidator(lambda value: tuple(map(_store, _listed(value))))
    ] = None
    tables: Annotated[
        tuple[str, ...] | None, PlainValidator(lambda value: tuple(map(_store, _listed(value))))
    ] = None
    output_folders: Annotated[
        tuple[str, ...] | None, PlainValidator(lambda value: tuple(map(_path, _listed(value))))
    ] = None
    clusters: Annotated[
        tuple[str, ...] | None, PlainValidator(lambda value: tuple(map(_text, _listed(value))))
    ] = None
    cluster_certificates: Annotated[str | None, PlainValidator(_path)] = None
    spec_folders: Annotated[
        tuple[str, ...] | None, PlainValidator(lambda value: tuple(map(_path, _listed(value))))
    ] = None
    public_keys: Annotated[
        tuple[str, ...] | None, PlainValidator(lambda value: tuple(map(_key, _listed(value))))
    ] = None
    log_format: Annotated[str, PlainValidator(_log_format)] = LOG_FORMATS[0]
    stall_seconds: Annotated[int | None, PlainValidator(_seconds)] = None


def parse_profile(content: bytes, origin: str) -> DeploymentProfile:
    """Read a profile's text.

    Raises
    ------
    ProfileError
        Naming the file, the key, the rule and a way out; it quotes no value, which may hold a secret.
    """
    try:
        document = tomllib.loads(content.decode("utf-8"))
    except UnicodeDecodeError:
        raise ProfileError(origin, "the profile is not UTF-8 text", "save it as UTF-8") from None
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
        line = re.search(r"\(at line (\d+)", str(error))
        place = f"{origin}:{line[1]}" if line else origin
        raise ProfileError(
            place, "this is not valid TOML", 'as ledger = "sqlite:////srv/ledger.db"'
        ) from None
    try:
        return DeploymentProfile.model_validate(document)
    except ValidationError as error:
        first = first_complaint(error.errors(include_url=False))
    key = ".".join(map(str, first["loc"]))
    if first["type"] == UNKNOWN_KEY:
        known = ", ".join(DeploymentProfile.model_fields)
        raise ProfileError(f"{origin}: {key}", "unknown key", f"known keys: {known}")
    raise ProfileError(
        f"{origin}: {key}",
        rule_of(first),
        'the documentation\'s page "How to pin a deployment" shows a profile',
    )
