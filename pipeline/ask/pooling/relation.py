"""What two releases have to do with each other, told from their manifests alone."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any

from suffice.errors import UsageError
from suffice.pipeline.spec.terms import ALL
from suffice.pipeline.terms.declaration.derived_columns import needed, read_derived
from suffice.pipeline.terms.declaration.domains import Every, next_period, period_start
from suffice.pipeline.terms.statistics.sensitivity import Design

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Sequence

    from suffice.pipeline.ask.pooling.release import Release


_OF_NOISE_ALONE = frozenset({"share", "moment_weight", "count_clipped"})
"""Keys of a statistic's entry on which its exact sums do not depend."""


class Relation(StrEnum):
    """``disjoint``: no row is in both. ``same_data``: the exact statistics are the same numbers."""

    DISJOINT = "disjoint"
    SAME_DATA = "same_data"
    OVERLAPPING = "overlapping"
    UNKNOWN = "unknown"


def relation_of(first: Release, second: Release, statistic: str) -> tuple[Relation, str]:
    """Tell how the data behind a statistic of two releases are related, and why.

    Two releases of one dataset are disjoint where their windows of one date column are, and of the same data
    where window, unit, groups and the statistic's entry in the spec are the same. A manifest does not state
    the source: that equal datasets mean equal rows is what a dataset's name promises.

    Parameters
    ----------
    first, second : Release
    statistic : str
        Its name in both.
    """
    if first.dataset != second.dataset:
        return Relation.UNKNOWN, f"they are of different datasets, {first.dataset} and {second.dataset}"
    ours, others = (release.manifest["plan"]["window"] for release in (first, second))
    days = ("column", "time_zone")  # a zone's days may begin in the middle of another's
    if ours is not None and others is not None and all(ours[key] == others[key] for key in days):
        (start, end), (other_start, other_end) = (
            _period(release.window, Every(grid["every"]))
            for release, grid in ((first, ours), (second, others))
        )
        if end <= other_start or other_end <= start:
            return Relation.DISJOINT, f"their windows {first.window} and {second.window} do not meet"
    if ours != others or first.window != second.window:
        return Relation.OVERLAPPING, f"their windows {first.window} and {second.window} may share rows"
    for reason, same in (
        ("an amendment read rows that came late", not first.amendment and not second.amendment),
        ("their units differ", _unit(first) == _unit(second)),
        ("their groups differ", first.manifest["groups"] == second.manifest["groups"]),
        ("their entries in the spec differ", entry(first, statistic) == entry(second, statistic)),
        ("every release chooses anew which rows of a unit enter", _unit(first) == "row"),
    ):
        if not same:
            return Relation.OVERLAPPING, f"they are of the same window, and {reason}"
    return Relation.SAME_DATA, f"both are of window {first.window} of {first.dataset}"


def require(releases: Sequence[Release], statistic: str, claimed: Relation, *, vouched: bool) -> None:
    """Refuse releases that are not related as claimed, unless the consumer vouches for it.

    Raises
    ------
    UsageError
        Where there are fewer than two, one stands there twice, their statistics do not agree, or the
        manifests say otherwise or nothing.
    """
    if len(releases) < 2:
        message = f"{claimed}: name at least two releases"
        raise UsageError(message)
    first = releases[0]
    for position, one in enumerate(releases):
        require_agreement(first, one, statistic)
        for other in releases[:position]:
            if one.release_id == other.release_id:
                message = f"release {one.release_id} is given twice: its noise would count as two"
                raise UsageError(message)
            if _are_editions(other, one):
                message = (
                    f"{other.label} ({other.release_id}) and {one.label} ({one.release_id}) are editions of "
                    "one release: one replaces the other, about the same rows; name the newest alone"
                )
                raise UsageError(message)
            found, reason = relation_of(other, one, statistic)
            if found is claimed:
                continue
            names = f"{other.release_id} and {one.release_id}"
            if found in {Relation.DISJOINT, Relation.SAME_DATA}:
                message = f"{names} are {found}, not {claimed}: {reason}"
                raise UsageError(message)
            if not vouched:
                message = (
                    f"{names} are not known to be {claimed}: {reason}. "
                    "If you know better, say so with vouched=True, or --vouched"
                )
                raise UsageError(message)


def require_agreement(first: Release, second: Release, statistic: str) -> None:
    """Refuse statistics that differ in family, column, bounds, lattice, null policy, order or public N.

    Their shares of epsilon, the weights of their moments and whether moved records are counted beside them
    may differ: these scale the noise alone. On another lattice values are rounded otherwise, so that the
    exact sums are others. Components and parameters follow the declared order of columns.

    Raises
    ------
    UsageError
        Naming the keys that differ.
    """
    one, other = entry(first, statistic), entry(second, statistic)
    differing = sorted(key for key in {*one, *other} if one.get(key) != other.get(key))
    differing += sorted(
        f"the order of {key}"
        for key, value in one.items()
        if key not in differing and isinstance(value, dict) and [*value] != [*other[key]]
    )
    designs = [release.statistic(statistic).plan.design for release in (first, second)]
    if len({design is Design.MINIMAL for design in designs}) > 1:
        differing.append("whether the number of records is public")
    if differing:
        message = f"{statistic} differs between the releases in {', '.join(differing)}"
        raise UsageError(message)


def entry(release: Release, statistic: str) -> dict[str, Any]:
    """Return a statistic's entry in the spec, but for what only its noise depends on.

    With it stand the derived columns that it and its groups rest on: one name may be derived in two ways.
    """
    stated = release.entry(statistic)
    derived = _derived(
        release, [*release.manifest["plan"]["groups"], *release.statistic(statistic).plan.columns]
    )
    return {
        **{key: value for key, value in stated.items() if key not in _OF_NOISE_ALONE},
        **({"derived": derived} if derived else {}),
    }


def _derived(release: Release, columns: Sequence[str]) -> dict[str, Any]:
    """Return the derived columns that these columns are or rest on, as the canonical plan states them."""
    stated = release.manifest["plan"]["derived"]
    derived = {name: read_derived(name, entry, None) for name, entry in stated.items()}
    return {name: stated[name] for name in sorted(needed(columns, derived))}


def _are_editions(first: Release, second: Release) -> bool:
    """Tell whether one of two releases amends the other, or both amend a third."""
    return first.amendment != second.amendment and all(
        one == other
        for one, other in (
            (first.dataset, second.dataset),
            (first.name, second.name),
            (first.window, second.window),
        )
    )


def _unit(release: Release) -> object:
    return release.manifest["plan"]["privacy"]["unit"]


def _period(label: str, every: Every) -> tuple[dt.date, dt.date]:
    if label == ALL:
        message = "a release with a window is of one period"
        raise ValueError(message)
    start = period_start(label, every)
    return start, next_period(start, every)
