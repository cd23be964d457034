"""Which noise a statistic of several columns has, where its spec does not say: that of the smaller error.

The error is predicted from what is public: `several_columns.cone_error` says of what, and of which columns. A
canonical plan names noise on a cone, and a plan that names none has Laplace noise, as all had before there
was another: so whoever reads a plan predicts nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from suffice.errors import SpecError
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.spec.compiled_statistics import n_may_be_public
from suffice.pipeline.terms.declaration.documents import one_of
from suffice.pipeline.terms.declaration.fields import NoiseOn

if TYPE_CHECKING:
    from fractions import Fraction

    from suffice.pipeline.spec.terms import Terms
    from suffice.pipeline.terms.declaration.fields import StatisticSpec
    from suffice.pipeline.terms.declaration.spec_text import Document


def cone_error(terms: Terms, statistic: StatisticSpec) -> Fraction | None:
    """Return the expected squared error by noise on a cone over that by Laplace noise.

    None where one of the two cannot be chosen.
    """
    family = FAMILIES[statistic.family]
    if family.cone_error is None or terms.privacy.loss.rho is not None:
        return None
    if getattr(statistic, "moment_weight", None) is not None:
        return None
    return family.cone_error(statistic, n_may_be_public(terms, statistic), terms.privacy.neighboring)


def with_noise(
    document: Document, terms: Terms, name: str, statistic: StatisticSpec, *, is_planned: bool = False
) -> StatisticSpec:
    """Return a statistic whose noise is settled: on a cone, or none named, which is Laplace noise.

    Parameters
    ----------
    document, terms, name, statistic
        The statistic, under its terms.
    is_planned : bool
        Whether it is read from a canonical plan, where nothing is left to choose.

    Raises
    ------
    SpecError
        Where it states noise on a cone that its other keys have no place beside.
    """
    if FAMILIES[statistic.family].cone_error is None:
        return statistic
    stated: NoiseOn | None = getattr(statistic, "noise", None)
    if stated is NoiseOn.CONE:
        _check_cone(document.location(("statistics", name, "noise")), terms, statistic)
        return statistic
    error = None if stated is NoiseOn.LAPLACE or is_planned else cone_error(terms, statistic)
    is_better = error is not None and error < 1
    return statistic.model_copy(update={"noise": NoiseOn.CONE if is_better else None})


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictedNoise:
    """Which noise a statistic has that may have either, and what is predicted of the two.

    Attributes
    ----------
    statistic : str
    noise : {"cone", "laplace"}
    of : {"coefficient", "correlation"}
        Whose error is predicted.
    cone_over_laplace : float
        The standard deviation that noise on a cone gives to it, over that by Laplace noise, where columns are
        unrelated and have their means in the middle of their bounds.
    """

    statistic: str
    noise: Annotated[str, one_of(*NoiseOn)]
    of: Annotated[str, one_of("coefficient", "correlation")]
    cone_over_laplace: float

    def __str__(self) -> str:
        assumed = (
            f"the noise of a {self.of} is {self.cone_over_laplace:.3g} times that of Laplace noise, of "
            "unrelated, centred columns"
        )
        if self.noise == NoiseOn.CONE:
            return f"{self.statistic}: noise on a cone: {assumed}; noise: laplace refuses it"
        return f"{self.statistic}: Laplace noise; on a cone {assumed}"


def predicted_noise(terms: Terms, name: str, statistic: StatisticSpec) -> PredictedNoise | None:
    """Return which noise a statistic has, and what it was predicted by; None where there was no choice."""
    error = cone_error(terms, statistic)
    if error is None:
        return None
    return PredictedNoise(
        statistic=name,
        noise=getattr(statistic, "noise", None) or NoiseOn.LAPLACE,
        of=FAMILIES[statistic.family].relates,
        cone_over_laplace=math.sqrt(error),
    )


def _check_cone(location: str, terms: Terms, statistic: StatisticSpec) -> None:
    if terms.privacy.loss.rho is not None:
        rule = "noise on a cone is of epsilon, and the spec states rho"
        way_out = "leave it out, or state epsilon: an account of rho takes it for epsilon^2 / 2"
        raise SpecError(location, rule, way_out)
    if getattr(statistic, "moment_weight", None) is not None:
        rule = "on a cone there is no weight of second moments: all are released beside each other"
        raise SpecError(location, rule, "leave out moment_weight, or the noise")
