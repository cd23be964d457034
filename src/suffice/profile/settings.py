"""What a run works with: each value from a parameter, a variable, the profile or a default, and checked.

The profile is the administrator's at its fixed place, or one that is named. Operators pin, callers choose
among what is pinned. A value outside of the profile is refused, never replaced in silence, and before
anything is opened. Of flows that read releases, the operator also pins what they may read and write.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from suffice.errors import PinnedError, UsageError
from suffice.pipeline.cluster.addresses import client_address
from suffice.pipeline.cluster.stall_limits import LONGEST_STALL, STALL_SECONDS
from suffice.profile.finding import find_profile
from suffice.profile.values import LOG, LOG_FORMATS, is_inside, same_ledger, store_uri

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from suffice.pipeline.cluster.addresses import AnyCluster
    from suffice.profile.model import DeploymentProfile


def released_reference(reference: str, *, profile: DeploymentProfile | None, option: str = "release") -> str:
    """Return what a flow may open as a release: NAME[@WINDOW], or a place inside of the pinned stores.

    Raises
    ------
    PinnedError
        Where it is a path or URI outside of them.
    UsageError
        Where it is no text of a parameter.
    """
    from suffice.storage.releases.location import is_path  # numpy is slow to import

    check_text(option, reference)
    if not is_path(reference) or profile is None or profile.stores is None:
        return reference
    return _inside(option, store_uri(reference), profile.stores)


def publication_store(to: str | None, *, store: str, profile: DeploymentProfile | None) -> str:
    """Return the store that posteriors are published into.

    Parameters
    ----------
    to : str or None
        What the caller asks for. Left out, the one that the profile pins for publications, and without
        such a pin the store of the releases.
    store : str
        The store of the releases.
    profile : DeploymentProfile or None

    Raises
    ------
    PinnedError
        Where it lies outside of what the profile allows, or several are pinned and none is named.
    UsageError
        As for :func:`released_reference`.
    """
    if to is not None:
        check_text("to", to)
    pinned = None if profile is None else profile.publications or profile.stores
    if pinned is None:
        return store if to is None else to
    if to is None and profile is not None and profile.publications is not None:
        if len(pinned) > 1:
            message = "to: the deployment profile allows several stores of publications: name one"
            raise PinnedError(message)
        return pinned[0]
    return _inside("to", store_uri(store if to is None else to), pinned)


def output_folder(folder: str, *, profile: DeploymentProfile | None) -> Path:
    """Return a folder that a flow may write into, links resolved where the profile pins folders.

    Raises
    ------
    PinnedError
        Where it lies outside of what the profile allows.
    UsageError
        As for :func:`released_reference`.
    """
    check_text("out", folder)
    if profile is None or profile.output_folders is None:
        return Path(folder)
    real = os.path.realpath(folder)
    return Path(_inside("out", real, [os.path.realpath(pinned) for pinned in profile.output_folders]))


def _inside(option: str, place: str, pinned: Sequence[str]) -> str:
    if not any(is_inside(place, folder) for folder in pinned):
        raise outside(option)
    return place


VARIABLES = {
    "ledger": "SUFFICE_LEDGER",
    "store": "SUFFICE_STORE",
    "cluster": "SUFFICE_CLUSTER",
    "cluster_certificates": "SUFFICE_CLUSTER_CERTIFICATES",
    "spool": "SUFFICE_SPOOL",
    "witness": "SUFFICE_WITNESS",
}
DEFAULTS = {"ledger": "sqlite:///ledger.db", "store": "releases", "cluster": "threads"}
"""Values that hold where no one states another; a spool, a witness and certificates have none."""

PUBLIC_KEYS = "SUFFICE_PUBLIC_KEYS"
STALL = "SUFFICE_STALL_SECONDS"
_SECONDS = re.compile(r"[0-9]{1,5}", re.ASCII)
_FOLDERS = frozenset({"spool", "cluster_certificates"})
_NO_TEXT = re.compile("[\0\ud800-\udfff]")
_LONGEST_TEXT = 2**16
"""Characters of a parameter; priors with thousands of numbers fit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One value, and where it came from: ``parameter``, ``environment``, ``profile`` or ``default``."""

    value: str | None
    origin: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a run works with, after everything was checked against the profile."""

    ledger: str
    store: str
    cluster: AnyCluster
    cluster_certificates: str | None
    spool: str | None
    witness: str | None


def settings(
    *,
    ledger: str | None = None,
    store: str | None = None,
    cluster: AnyCluster | None = None,
    cluster_certificates: str | None = None,
    spool: str | None = None,
    witness: str | None = None,
    spec_path: str | os.PathLike[str] | None = None,
) -> Settings:
    """Return what a run works with.

    Parameters
    ----------
    ledger, store, cluster, cluster_certificates, spool, witness : str, optional
        What the caller asks for. Left out, the variables ``SUFFICE_LEDGER``, ``SUFFICE_STORE``,
        ``SUFFICE_CLUSTER``, ``SUFFICE_CLUSTER_CERTIFICATES``, ``SUFFICE_SPOOL`` and ``SUFFICE_WITNESS``, the
        profile, and last the defaults. A cluster may also be a client.
    spec_path : path, optional
        The spec that is to be released, or the folder that it lies in.

    Raises
    ------
    PinnedError
        Where a value lies outside of the profile.
    ProfileError
        Where there is a profile that cannot be used.
    UsageError
        Where a value is empty, or no text.
    """
    profile = pinned_profile()
    if spec_path is not None:
        _check_spec_path(profile, os.fspath(spec_path))

    def chosen(name: str, given: str | None) -> str | None:
        return setting(name, given, profile=profile).value

    return Settings(
        ledger=chosen("ledger", ledger) or "",
        store=chosen("store", store) or "",
        cluster=cluster_setting(cluster, profile=profile),
        cluster_certificates=chosen("cluster_certificates", cluster_certificates),
        spool=chosen("spool", spool),
        witness=chosen("witness", witness),
    )


def cluster_setting(given: AnyCluster | None, *, profile: DeploymentProfile | None) -> AnyCluster:
    """Return where Dask runs; a client stands for its scheduler's address.

    Raises
    ------
    PinnedError, UsageError
        As for :func:`settings`.
    ClusterError
        Where the client is closed.
    """
    if given is None or isinstance(given, str):
        return setting("cluster", given, profile=profile).value or ""
    setting("cluster", client_address(given), profile=profile)
    return given


def pinned_profile() -> DeploymentProfile | None:
    """Return the profile that holds, if there is one."""
    in_force = find_profile()
    return in_force.profile if in_force else None


def setting(name: str, given: str | None, *, profile: DeploymentProfile | None, option: str = "") -> Setting:
    """Return one value with its origin.

    Parameters
    ----------
    name : str
        A key of `VARIABLES`.
    given : str or None
        What the caller asks for.
    profile : DeploymentProfile or None
    option : str
        How the caller names it, for messages; `name` where left out.

    Raises
    ------
    PinnedError, UsageError
        As for :func:`settings`.
    """
    place = option or name
    if given is not None:
        if not isinstance(given, str):
            message = f"{place}: a {type(given).__name__} is given, and a text is needed"
            raise UsageError(message)
        check_text(place, given)
        origin = "parameter"
    else:
        place, origin = VARIABLES[name], "environment"
        given = os.environ.get(place) or None
    pinned = _pinned(profile, name)
    if given is None:
        return _unasked(name, pinned)
    if pinned is None:
        return Setting(value=given, origin=origin)
    chosen = _as_pinned(name, given, pinned)
    if chosen is None:
        raise outside(place)
    return Setting(value=chosen, origin=origin)


def check_text(place: str, text: str) -> None:
    """Refuse what no value of a parameter is: an empty text, one that no system takes, or one without end.

    Raises
    ------
    UsageError
        Naming the place.
    """
    if not text.strip():
        message = f"{place}: the value is empty: state one, or leave it out"
        raise UsageError(message)
    if _NO_TEXT.search(text):
        message = f"{place}: the value holds NUL or bytes that are no UTF-8: write it as text"
        raise UsageError(message)
    if len(text) > _LONGEST_TEXT:
        message = f"{place}: the value is longer than {_LONGEST_TEXT} characters: shorten it"
        raise UsageError(message)


def pinned_certificates() -> str | None:
    """Return the folder of a client's certificate, of the profile or ``SUFFICE_CLUSTER_CERTIFICATES``.

    Raises
    ------
    PinnedError
        Where the variable names another folder than the profile.
    """
    return setting("cluster_certificates", None, profile=pinned_profile()).value


def public_keys(given: Sequence[str] | None, *, profile: DeploymentProfile | None) -> list[str] | None:
    """Return the public keys of which a reader demands one; None where none is pinned and none is given.

    Raises
    ------
    PinnedError
        Where one of them is not among those of the profile.
    """
    if profile is None or profile.public_keys is None:
        return None if given is None else list(given)
    place = "--public-key"
    if given is None:
        place = PUBLIC_KEYS
        given = [part for part in os.environ.get(place, "").split(os.pathsep) if part]
    allowed = {_key_identity(key) for key in profile.public_keys}
    if not all(_key_identity(key) in allowed for key in given):
        raise outside(place)
    return list(given or profile.public_keys)


def log_format() -> str:
    """Return how progress, warnings and errors are written: ``text`` or ``json``.

    Raises
    ------
    UsageError
        Where ``SUFFICE_LOG`` is neither ``text`` nor ``json``.
    ProfileError
        Where there is a profile that cannot be used.
    """
    return log_setting().value or LOG_FORMATS[0]


def log_setting() -> Setting:
    """Return how a log is written, with its origin; raises as :func:`log_format`.

    The format decides nothing about a run, so a caller may choose another than the profile's.
    """
    if stated := os.environ.get(LOG):
        if stated not in LOG_FORMATS:
            message = f"{LOG}: this is neither text nor json: set one of them, or leave it unset"
            raise UsageError(message)
        return Setting(value=stated, origin="environment")
    profile = pinned_profile()
    if profile is None or "log_format" not in profile.model_fields_set:
        return Setting(value=LOG_FORMATS[0], origin="default")
    return Setting(value=profile.log_format, origin="profile")


def stall_seconds() -> float:
    """Return how long a worker of a cluster may end no task before others get what it has.

    Raises
    ------
    UsageError
        Where ``SUFFICE_STALL_SECONDS`` is no number of seconds of at least 1.
    ProfileError
        Where there is a profile that cannot be used.
    """
    return float(stall_setting().value or STALL_SECONDS)


def stall_setting() -> Setting:
    """Return the seconds of :func:`stall_seconds`, with their origin; raises as it does.

    They decide nothing about a release, so a caller may choose others than the profile's.
    """
    if stated := os.environ.get(STALL):
        if not _SECONDS.fullmatch(stated) or not 1 <= int(stated) <= LONGEST_STALL:
            message = f"{STALL}: this is no whole number of seconds from 1 to {LONGEST_STALL}: set one"
            raise UsageError(message)
        return Setting(value=stated, origin="environment")
    profile = pinned_profile()
    if profile is None or profile.stall_seconds is None:
        return Setting(value=f"{STALL_SECONDS:.0f}", origin="default")
    return Setting(value=str(profile.stall_seconds), origin="profile")


def _pinned(profile: DeploymentProfile | None, name: str) -> tuple[str, ...] | None:
    """Return what a profile allows for a value; None where it pins nothing."""
    if profile is None:
        return None
    if name in {"store", "cluster"}:
        return profile.stores if name == "store" else profile.clusters
    value: str | None = getattr(profile, name)
    return None if value is None else (value,)


def _unasked(name: str, pinned: tuple[str, ...] | None) -> Setting:
    """Return what holds where no one asks: the default among what is pinned, or the one that is pinned."""
    default = DEFAULTS.get(name)
    chosen = default if pinned is None or default is None else _as_pinned(name, default, pinned)
    if pinned is None or chosen is not None:
        return Setting(value=chosen, origin="default")
    if len(pinned) > 1:
        message = (
            f"{name}: the deployment profile allows several and none is named: name one with --{name} or "
            f"{VARIABLES[name]}; `suffice config show` lists them"
        )
        raise PinnedError(message)
    return Setting(value=pinned[0], origin="profile")


def _as_pinned(name: str, value: str, pinned: Sequence[str]) -> str | None:
    """Return what a value names, in a spelling in which no link of the caller's stands; None if none is it.

    A link may lead elsewhere by the time at which it is opened.
    """
    if "\0" in value:
        return None
    if name == "store":
        uri = store_uri(value)
        return uri if any(is_inside(uri, place) for place in pinned) else None
    if name == "ledger":
        allowed = next((place for place in pinned if same_ledger(value, place)), None)
        is_server = allowed is not None and not allowed.startswith("sqlite:")
        return value if is_server else allowed  # who logs in, and how, is the caller's to say
    if name == "cluster":
        return next((place for place in pinned if value.rstrip("/") == place.rstrip("/")), None)
    spelled: Callable[[str], str] = os.path.realpath if name in _FOLDERS else store_uri
    uri = spelled(value)
    return next((place for place in pinned if uri == spelled(place)), None)


def _key_identity(key: str) -> str:
    return key.lower() if len(key) == 64 and "/" not in key else os.path.realpath(key)


def _check_spec_path(profile: DeploymentProfile | None, path: str) -> None:
    if profile is None or profile.spec_folders is None:
        return
    if "\0" in path:
        raise outside("the spec")
    real = os.path.realpath(path)
    if not any(is_inside(real, os.path.realpath(folder)) for folder in profile.spec_folders):
        raise outside("the spec")


def outside(place: str) -> PinnedError:
    """Return the error of a value that lies outside of the profile; it does not repeat the value."""
    return PinnedError(
        f"{place}: this lies outside of what the deployment profile allows; nothing was opened "
        "(leave it out or choose what `suffice config show` lists)"
    )
