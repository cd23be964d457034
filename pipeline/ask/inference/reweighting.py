"""What posteriors by reweighted draws share: how many are kept, and errors where nothing rests on them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from suffice.errors import PriorError
from suffice.pipeline.math.distributions.reweighted import FEWEST_EFFECTIVE, LARGEST_SHAPE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suffice.pipeline.math.distributions.reweighted import WeighedCell
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic

KEPT = 8000
"""Draws of a cell that are kept, resampled by their weights."""
LARGEST_R_HAT = 1.05
"""Of islands of particles that an answer may rest on."""


def too_few(statistic: NoisyStatistic, prior: object, draws: int) -> PriorError:
    """Return the error of a cell of which too few draws count."""
    message = (
        f"prior {prior} and the released values of {statistic.plan.name} are so far apart in some cell that "
        f"of {draws} draws fewer than {FEWEST_EFFECTIVE:.0f} count: give a prior closer to what is "
        "possible, or keep other cells with where"
    )
    return PriorError(message)


def require_light(statistic: NoisyStatistic, prior: object, cells: Sequence[WeighedCell]) -> None:
    """Refuse weights with so heavy a tail that no average can be relied on.

    Raises
    ------
    PriorError
    """
    heavy = [cell.shape for cell in cells if cell.shape > LARGEST_SHAPE]
    if heavy:
        message = (
            f"prior {prior}: in {len(heavy)} of {len(cells)} cells of {statistic.plan.name} few draws "
            f"would decide the answer: the weights' Pareto k is up to {max(heavy):.2f}, and above "
            f"{LARGEST_SHAPE} no average can be relied on; give a prior that is less steep where the release "
            "leaves room"
        )
        raise PriorError(message)


def unsettled(statistic: NoisyStatistic, prior: object) -> PriorError:
    """Return the error of a cell in which neither draws nor particles tempered from them agree."""
    message = (
        f"prior {prior} and the released values of {statistic.plan.name} leave some cell without an answer: "
        "few draws under the default prior count, and islands of particles that were tempered from them do "
        "not agree; give a prior closer to what is possible, or keep other cells with where"
    )
    return PriorError(message)
