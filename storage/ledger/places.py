"""Where an account's rows and releases may be, and which accounts may hold the same rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from suffice.errors import GuaranteeError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MOST_SHOWN = 3
"""Places that a message lists."""


def check_store(dataset: str, uri: str, stores: Sequence[str], *, only_at: bool = False) -> None:
    """Refuse a release into a store that the account's owner does not allow.

    Parameters
    ----------
    dataset, uri : str
    stores : sequence of str
        The allowed places; empty for any.
    only_at : bool
        Whether what is below one is not allowed: a fresh store there would show no older ledger.

    Raises
    ------
    GuaranteeError
    """
    if stores and not any(uri == prefix if only_at else is_under(prefix, uri) for prefix in stores):
        shown = ", ".join(stores[:MOST_SHOWN]) + ", ..." * (len(stores) > MOST_SHOWN)
        message = f"the account {dataset} does not allow the store {uri}: the owner granted {shown}"
        raise GuaranteeError(message)


def overlapping(accounts: Mapping[str, Sequence[str]], dataset: str) -> tuple[str, ...]:
    """Say which accounts may be charged for the same rows as one account: their epsilon adds up.

    Parameters
    ----------
    accounts : mapping
        Allowed sources by data set.
    dataset : str
        One of them.

    Returns
    -------
    tuple of str
        A sentence for each other account whose sources overlap, or cannot be told apart.
    """
    these_sources = accounts[dataset]
    overlaps = []
    for other, sources in accounts.items():
        shared = next((f"{a} and {b}" for a in these_sources for b in sources if _overlap(a, b)), "")
        if other == dataset:
            continue
        if these_sources and sources and shared:
            overlaps.append(
                f"the accounts {dataset} and {other} allow overlapping sources ({shared}): whoever has rows "
                "in both loses what both lose; one population needs one account"
            )
        elif not (these_sources and sources):
            open_ones = " and ".join(name for name in (dataset, other) if not accounts[name])
            overlaps.append(
                f"{open_ones} may be charged for any source: whether the accounts {dataset} and {other} "
                "protect the same people cannot be told; name their sources with --source"
            )
    return tuple(overlaps)


def _overlap(first: str, second: str) -> bool:
    """Tell whether a path can be under both prefixes; of a pattern, the part before its signs counts."""
    first, second = _fixed(first), _fixed(second)
    return is_under(first, second) or is_under(second, first)


def _fixed(prefix: str) -> str:
    parts = prefix.split("/")
    signs = (number for number, part in enumerate(parts) if any(sign in part for sign in "*?["))
    return "/".join(parts[: next(signs, len(parts))]) or "/"


def is_under(prefix: str, source: str) -> bool:
    """Compare on the boundaries of path components; a path that climbs is under nothing."""
    stem = prefix.rstrip("/")
    if ".." in source.split("/"):
        return False
    return source in {stem, prefix} or source.startswith(f"{stem}/")
