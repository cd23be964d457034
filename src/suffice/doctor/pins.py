"""Whether installed packages are those that this version was made for.

Prefect runs no flow with some versions of what it admits itself; the bounds stand in the metadata of suffice.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from importlib.metadata import PackageNotFoundError, requires, version
from typing import TYPE_CHECKING, Any

from suffice.doctor.contract import ok, problem, skipped

if TYPE_CHECKING:
    from collections.abc import Iterator

    from suffice.doctor.contract import Fact
    from suffice.profile.settings import Settings

_NOT_INSTALLATIONS = frozenset({"dev", "bench", "docs"})


def check(_: Settings) -> Iterator[Fact]:
    """Hold installed versions against the bounds of the base, and of each extra that is there as a whole."""
    try:
        from packaging.requirements import Requirement  # comes with the extras that need it
    except ImportError:
        yield skipped("the package packaging is not installed, and neither is anything that has pins")
        return
    by_extra: dict[str, list[Any]] = defaultdict(list)
    for text in requires("suffice") or ():
        requirement = Requirement(text)
        extra = _extra(requirement)
        if requirement.name != "suffice" and extra not in _NOT_INSTALLATIONS:
            by_extra[extra].append(requirement)
    whole = [extra for extra, wanted in by_extra.items() if not extra or all(map(_is_there, wanted))]
    broken = 0
    for extra in whole:
        for requirement in by_extra[extra]:
            version = installed_version(requirement.name)
            if version is None or not requirement.specifier.contains(version, prereleases=True):
                broken += 1
                wanted = f"suffice[{extra}]" if extra else "suffice"
                yield problem(
                    f"{requirement.name} is {version or 'missing'}, and {wanted} needs "
                    f"{requirement.specifier}",
                    f"pip install '{wanted}'",
                )
    if not broken:
        extras = ", ".join(sorted(filter(None, whole))) or "none"
        yield ok(f"every package is within its bounds; extras that are installed: {extras}")


def _extra(requirement: Any) -> str:
    """Return the extra that a requirement is of; empty where it is of the base."""
    marker = str(requirement.marker or "")
    return marker.rpartition('extra == "')[2].partition('"')[0] if "extra ==" in marker else ""


def _is_there(requirement: Any) -> bool:
    return installed_version(requirement.name) is not None


@cache
def installed_version(name: str) -> str | None:
    """Return the version of an installed package; None where it is not installed."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None
