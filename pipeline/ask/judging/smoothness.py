r"""The constants of robustness of a posterior's model and prior, over parameters that a consumer declares.

Model. L and C are those of ``families/shared/smoothness.py``. Of one parameter the prior's concentration is
about the natural parameter's prior median :math:`\eta_0`,

.. math:: c = \inf_{\ell > 0} -\log P(|\eta(\theta) - \eta_0| > \ell) \,/\, \ell, \qquad (1)

as factors of a record alone, :math:`e^{-\eta_0 T(x)}` among them, cancel from every posterior: with them L
of a single parameter is :math:`|\eta - \eta_0|`. Of D free parameters a prior with a bounded density leaves
no more than a multiple of :math:`\ell^D` to those within :math:`\ell` of any, so that for D of 2 or more
c is 0.

Symbols:

- c: ``concentration``; eta: the natural parameter

Method. (1) by quantiles of the prior down to 1e-9 on either side; heavier tails beyond are not seen.

References
----------
Dimitrakakis, Nelson, Mitrokotsa, Rubinstein. Robust and private Bayesian inference. ALT 2014 (Assumption 2).
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.errors import UsageError
from suffice.pipeline.ask.judging.bounded_prior import prior_distribution_of, quantiles_of_one
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.families.shared.smoothness import is_number, natural_parameter

if TYPE_CHECKING:
    from suffice.pipeline.ask.judging.judged import Judged
    from suffice.pipeline.families.shared.smoothness import Smoothness

_LEVELS = np.unique(np.concatenate([np.geomspace(1e-9, 0.5, 400), 0.5 - np.geomspace(1e-5, 0.4, 200)]))
"""Of quantiles up to the median, denser in the tail and next to it."""
SEVERAL = "of several parameters no prior with a bounded density has a c above 0"
TWO = "a share and the rest of it are one parameter: state it as bernoulli"


def smoothness(posterior: Judged, **parameters: tuple[float, float]) -> Smoothness:
    """Return how much one record can change the likelihood, over declared intervals of the parameters.

    Parameters
    ----------
    posterior : Posterior
        Tells the family, the bounds of its records, and the prior that c is of; what was released plays no
        part.
    **parameters : (float, float)
        Lowest and highest value of each parameter, as ``probability=(0.01, 0.99)``; of a table's
        probabilities those of each entry, of a covariance those of its eigenvalues. They have to be public:
        what follows holds for priors that give all else no mass.

    Raises
    ------
    UsageError
        Where an interval is missing, empty, of another parameter or beyond its range, or records have no
        distribution.
    """
    constants: Any = posterior.constants
    if constants is None:
        message = "smoothness: this posterior knows no bounds of records; ask that of a release"
        raise UsageError(message)
    family = FAMILIES[posterior.family]
    smooth = family.smoothness
    if reason := smooth.reason_against(constants):
        message = f"smoothness: {posterior.family} has none: {reason}"
        raise UsageError(message)
    spaces = {space.name: space.support.ends for space in family.parameter_spaces(constants)}
    names = smooth.names(constants)
    if set(parameters) != set(names):
        message = (
            f"smoothness: {posterior.family} takes an interval of {' and '.join(names)}, each as "
            f"{names[0]}=(low, high)"
        )
        raise UsageError(message)
    for name, ends in parameters.items():
        _check(name, ends, (0.0, math.inf) if name == "covariance" else spaces[name])
    smoothness_over = smooth.over(
        constants, {name: (float(low), float(high)) for name, (low, high) in parameters.items()}
    )
    concentration, reason = concentration_of(posterior)
    return dataclasses.replace(smoothness_over, concentration=concentration, reason=reason)


def _check(name: str, ends: Any, support: tuple[float, float]) -> None:
    low, high = support
    is_pair = isinstance(ends, tuple | list) and len(ends) == 2 and all(map(is_number, ends))
    if not is_pair or not low <= ends[0] <= ends[1] <= high:
        message = f"smoothness: {name} takes its lowest and its highest value, within {low:g}..{high:g}"
        raise UsageError(message)


def concentration_of(posterior: Judged) -> tuple[float | None, str]:
    """Return c of (1) of a posterior's prior, and why it is 0 or None."""
    family = FAMILIES[posterior.family]
    if family.sampled is None:
        return (None, TWO) if _is_one_share(posterior) else (0.0, SEVERAL)
    prior = prior_distribution_of(posterior)
    if prior is None:
        return None, "the prior is known by draws alone"
    constants: Any = posterior.constants
    levels = np.concatenate([_LEVELS, 1.0 - _LEVELS[-2::-1]])
    quantiles = quantiles_of_one(prior, levels)
    etas = [natural_parameter(family.sampled.natural, float(value), constants) for value in quantiles]
    away = np.abs(np.array(etas) - etas[len(_LEVELS) - 1])
    below, above = away[: len(_LEVELS)], away[len(_LEVELS) - 1 :][::-1]
    reached = np.unique(away[(away > 0.0) & np.isfinite(away)])
    if not reached.size:
        return math.inf, "the prior is a single value"
    # Distances fall with the level on either side: what is farther away than l is below a level of it.
    farther = sum(
        np.interp(reached, side[::-1], _LEVELS[::-1], left=0.5, right=_LEVELS[0]) for side in (below, above)
    )
    concentration = float(np.min(-np.log(np.minimum(farther, 1.0)) / reached))
    return max(concentration, 0.0), "" if concentration > 0.0 else "the prior holds too much far out"


def _is_one_share(posterior: Judged) -> bool:
    """Whether all parameters are two shares, which add up to 1."""
    constants: Any = posterior.constants
    spaces = FAMILIES[posterior.family].parameter_spaces(constants)
    return len(spaces) == 1 and bool(spaces[0].starts) and spaces[0].shape == (2,)
