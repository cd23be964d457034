"""Whether the released levels of a tree can be of the same rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from suffice.errors import UsageError

if TYPE_CHECKING:
    from suffice.pipeline.math.engines.tree.pieces import PiecewisePosterior
    from suffice.pipeline.math.engines.tree.posterior import TreePosterior
    from suffice.pipeline.terms.declaration.key_tree import KeyTree

_CUT = 1e-3
"""Chances that are cut from messages: more of them would move an interval."""
_ROUNDED = 1e-6
"""Above it one part of a tree leaves less than 1e-9 of what the others say, next to what is cut."""
_FURTHEST = 20.0
"""Standard deviations, sqrt(2) b: noise is further with a chance of exp(-28), which is what is cut."""


def check_agreement(tree: KeyTree, posterior: TreePosterior | PiecewisePosterior, component: str) -> None:
    """Refuse levels whose differences noise does not explain: tails that were cut would be the answer.

    Raises
    ------
    UsageError
    """
    distance, place, node = max(
        (float(far.max()), place, int(far.argmax()))
        for place, far in enumerate(posterior.tree.contradictions())
    )
    is_cut = posterior.cut > _CUT and distance > _FURTHEST
    if not is_cut and posterior.rounding <= _ROUNDED:
        return
    message = (
        f"the released levels of {component} contradict each other further than noise explains, so that no "
        f"answer would be right: {tree.keys[place][node]!r} of the level {tree.levels[place]} is "
        f"{distance:.2g} standard deviations of the noise from what was released below it. Check that "
        "levels are of the same rows and each node is below its parent, or leave a level out"
    )
    raise UsageError(message)
