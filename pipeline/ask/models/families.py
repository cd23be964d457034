"""Which statistics of a release a model can be made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from suffice.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suffice.pipeline.ask.pooling.release import Release


def require_family(release: Release, statistic: str, families: Sequence[str], model: str) -> None:
    """Refuse a statistic that a model is not made of, and name those of the release that fit.

    Parameters
    ----------
    release : Release
        That holds the statistic.
    statistic : str
        Its name.
    families : sequence of str
        Those that fit.
    model : str
        What is to be made, as ``a chain``.

    Raises
    ------
    UsageError
        Where the release has no such statistic, or it is of another family.
    """
    family = release.statistic(statistic).plan.family
    if family in families:
        return
    fitting = [name for name, fitted in release.statistics.items() if fitted.plan.family in families]
    *others, last = families
    wanted = f"{', '.join(others)} or {last}" if others else last
    message = f"{statistic} is {family}, and {model} is made of {wanted}: " + (
        f"in this release that is {', '.join(fitting)}" if fitting else "this release has none"
    )
    raise UsageError(message)
