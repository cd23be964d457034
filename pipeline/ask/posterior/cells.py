"""What a posterior is of: the chosen cells, or all of them together where parameters are of the release."""

from __future__ import annotations

from typing import TYPE_CHECKING

from suffice.errors import UsageError
from suffice.pipeline.families import FAMILIES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic


def cells_of(statistic: NoisyStatistic, where: Mapping[str, object] | None) -> NoisyStatistic:
    """Keep the cells with these keys; or sum all cells of a statistic whose parameters are of the release.

    Raises
    ------
    UsageError
        Where no cell has these keys, or the parameters are of no cell.
    """
    if not FAMILIES[statistic.plan.family].of_release:
        return statistic.where(where)
    if where:
        raise _of_the_release(statistic, "leave where out")
    return statistic.summed()


def require_whole(statistic: NoisyStatistic) -> None:
    """Refuse single cells of a statistic whose parameters are of the release.

    Raises
    ------
    UsageError
    """
    if FAMILIES[statistic.plan.family].of_release and statistic.groups:
        raise _of_the_release(statistic, "ask Release.posterior, without where")


def refuse_shared(statistic: NoisyStatistic) -> None:
    """Refuse to pool disjoint data, or merged cells, of which none has a parameter of its own to share.

    Raises
    ------
    UsageError
    """
    if FAMILIES[statistic.plan.family].of_release:
        raise _of_the_release(statistic, "ask each release for its posterior")


def _of_the_release(statistic: NoisyStatistic, way_out: str) -> UsageError:
    plan = statistic.plan
    message = (
        f"{plan.name} is {plan.family}: a unit's rows are counted over the whole release, in the cell of one "
        f"of them, and its parameters are of the release, not of single cells: {way_out}"
    )
    return UsageError(message)
