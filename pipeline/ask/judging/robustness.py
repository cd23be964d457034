r"""How far a posterior moves with its prior: ranges for every cell.

Model. Of a family with one parameter the likelihood of what was released is known, given the parameter alone:
(1) of ``inference/any_prior.py``. Prior and likelihood at the nodes of a rule give ranges over neighbourhoods
of the prior, by ``math/priors/neighbourhoods.py``. Of other families, and of priors with point masses, draws
give those of the neighbourhood within a factor: the extremes of what is asked of one parameter are attained
by factors that depend on it alone.

One record more or less, of the lowest or the highest value that it can have, changes the released components
by its contribution c; where the number of records is public one is replaced, and the sum changes by R:

.. math:: l(x; y \pm c), \quad c \in \{(0, R), (R, 0)\}, \qquad \text{or} \quad l(x; y \pm R). \qquad (1)

The noise is as it was: (1) are likelihoods of what would then have been released.

Symbols:

- x: ``position``; l: likelihood
- y: ``values``, (n_cells, n_components), in lattice units
- R: what a record adds to the components together

Method. Numerical: nodes of the Gauss rule on panels about the prior, moved as far as is asked for, and about
the likelihood. One reference is the posterior under a wide prior, whose likelihood is resolved wherever it is
high; others are added until all but 1e-5 of the posterior, and of those under the prior moved farthest, lies
where one is resolved, else there is an error.
"""

from __future__ import annotations

import dataclasses
import math
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.errors import UsageError
from suffice.pipeline.ask.inference.any_prior import (
    LINES,
    NARROWEST,
    alike,
    conjugate_default,
    likelihood,
    references_of,
)
from suffice.pipeline.ask.judging.bounded_prior import is_restricted, prior_distribution_of, quantiles_of_one
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.math.distributions.mixed import MixedDistribution
from suffice.pipeline.math.distributions.quadrature import integral_rule
from suffice.pipeline.math.priors.neighbourhoods import (
    ParameterOnNodes,
    Ranges,
    contaminated,
    draws_within_factor,
    shifted,
    within_factor,
)
from suffice.pipeline.terms.statistics.sensitivity import Design

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from suffice.pipeline.ask.inference.any_prior import Reference
    from suffice.pipeline.ask.judging.judged import Judged
    from suffice.pipeline.math.distributions.distribution import Line
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.typing import Floats


AS_STATED, ONE_RECORD, REPLACED = "as stated", "one record more or less", "one record replaced"
_WIDE = 3.0
"""Width on the line of the reference that sees the likelihood wherever it is."""
_DEEP, _HIDDEN = 16.0, 1e-5
_PANEL_WIDTHS = np.linspace(-9.0, 9.0, 37)
_OCTAVES = np.exp2(np.arange(4.0, 12.0))
_LEVELS = (0.1, 0.5, 0.9)
_MOST_ROUNDS = 6


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Neighbourhoods:
    """How wide the neighbourhoods are.

    Parameters
    ----------
    share : float
        Of the prior that is anything: 0 or more, below 1.
    factor : float
        By which the prior's density may be wrong on either side: from 1 to 10.
    shift : float
        By how many of its standard deviations, on the line, the prior may be moved: from 0 to 10.

    Raises
    ------
    UsageError
        Where a number is anything else.
    """

    share: float = 0.1
    factor: float = 2.0
    shift: float = 1.0

    def __post_init__(self) -> None:
        # Of the posterior 1e-5 may be unresolved, which a factor of 10 weighs up to 100 times as much.
        for name, least, most, rule in (
            ("share", 0.0, math.nextafter(1.0, 0.0), "0 or more, and below 1"),
            ("factor", 1.0, 10.0, "from 1 to 10"),
            ("shift", 0.0, 10.0, "from 0 to 10"),
        ):
            value = getattr(self, name)
            is_number = isinstance(value, Real) and not isinstance(value, bool)
            if not is_number or not least <= value <= most:
                message = f"robustness: {name} is a number, {rule}"
                raise UsageError(message)
            object.__setattr__(self, name, float(value))

    @property
    def names(self) -> tuple[str, str, str]:
        """What the neighbourhoods are called."""
        return (
            f"{100.0 * self.share:g} % any other",
            f"density within a factor {self.factor:g}",
            f"moved by {self.shift:g} sd",
        )


def ranges_of(
    posterior: Judged, parameter: str, asked: Neighbourhoods, draws: int, rng: np.random.Generator
) -> Iterator[list[tuple[str, Ranges]]]:
    """Give the ranges of every cell and entry in turn: as stated, then of each neighbourhood that is known.

    Parameters
    ----------
    posterior : Posterior
    parameter : str
    asked : Neighbourhoods
    draws, rng
        Of the posterior, where there is nothing but draws.
    """
    any_other, within, moved = asked.names
    if reason_against_nodes(posterior):
        drawn = posterior.distribution.sample(draws, rng)[parameter]
        for of_entry in np.moveaxis(drawn, 0, -1).reshape(-1, len(drawn)):
            ordered = np.sort(of_entry)
            yield [
                (AS_STATED, draws_within_factor(ordered, 1.0)),
                (within, draws_within_factor(ordered, asked.factor)),
            ]
        return
    (statistic,) = posterior.observed
    record = REPLACED if statistic.plan.design is Design.MINIMAL else ONE_RECORD
    changed = [cells_on_nodes(posterior, each, 0.0) for each in one_record(statistic)]
    for cell, *others in zip(cells_on_nodes(posterior, statistic, asked.shift), *changed, strict=True):
        yield [
            (AS_STATED, within_factor(cell, 1.0)),
            (any_other, contaminated(cell, asked.share)),
            (within, within_factor(cell, asked.factor)),
            (moved, shifted(cell, asked.shift)),
            (record, Ranges.over([within_factor(each, 1.0) for each in (cell, *others)])),
        ]


def reason_against_nodes(posterior: Judged) -> str:
    """Return why nothing but the neighbourhood within a factor is known; empty where all are."""
    family = FAMILIES[posterior.family]
    modelled = posterior.models_clipping
    reasons = {
        "it has several parameters": family.latent is None,
        "it is of several data sets": len(posterior.observed) != 1,
        "it takes the released values for exact": posterior.n_prior is None,
        "it models clipping": modelled is not None and bool(modelled.any()),
        "it counts rows of one unit as fewer": posterior.design_effect is not None,
        "its prior has no density": family.latent is not None and prior_on_line(posterior) is None,
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


def one_record(statistic: NoisyStatistic) -> list[NoisyStatistic]:
    """Return what would have been released with one record more or less, or another one, (1)."""
    plan = statistic.plan
    if plan.design is Design.MINIMAL:
        (step,) = (each.coefficients[0] for each in plan.quantities if each.coefficients)
        lower, upper = plan.parameters.lower or 0, plan.parameters.upper or 0
        # A true value has no bounds: it counts one.
        contributions = [[int((upper - lower) / step) or 1]]
    else:
        reach = int(plan.partition_total or 1)
        contributions = [[0, reach], [reach, 0]]
    # Counts of what clipping moved stand behind the sums: a record at a bound was not moved.
    beside = [0] * (len(plan.components) - len(contributions[0]))
    return [
        dataclasses.replace(statistic, values=statistic.values + sign * np.array([*contribution, *beside]))
        for contribution in contributions
        for sign in (-1, 1)
    ]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PriorOnLine:
    """The density of a prior of one parameter on its line.

    Attributes
    ----------
    line : Line
    distribution : Distribution
        The prior.
    lower, upper : float
        Ends of what the parameter can be, in its unit.
    centre, width : float
        Median, and the distance of two quantiles as of a normal distribution.
    """

    line: Line
    distribution: Any
    lower: float
    upper: float
    centre: float
    width: float

    def log_density(self, position: Floats) -> Floats:
        """Return log densities of the whole prior at positions (n,); nodes lie within the ends."""
        (name,) = self.distribution.parameters
        with np.errstate(divide="ignore"):
            log_density = np.log(self.distribution.density(name, self.line.parameter(position)[None])[0])
        return np.asarray(log_density + self.line.log_slope(position))


def prior_on_line(posterior: Judged) -> PriorOnLine | None:
    """Return the prior of a posterior's one parameter; None where it has point masses."""
    prior: Any = prior_distribution_of(posterior)
    if prior is None or isinstance(prior, MixedDistribution):
        return None
    constants: Any = posterior.constants
    family = FAMILIES[posterior.family]
    line = LINES[family.prior]
    lower, upper = line.domain
    if family.limits is not None and is_restricted(posterior):
        lower, upper = family.limits(constants)
    quantiles = quantiles_of_one(prior, np.array(_LEVELS))
    first, middle, last = line.position(np.clip(quantiles, *line.parameter(np.array(line.ends))))
    return PriorOnLine(
        line=line,
        distribution=prior,
        lower=lower,
        upper=upper,
        centre=float(middle),
        # The tenth and the ninetieth percentile of a normal are 2.563 standard deviations apart.
        width=float(last - first) / 2.563,
    )


def cells_on_nodes(posterior: Judged, statistic: NoisyStatistic, shift: float) -> Iterator[ParameterOnNodes]:
    """Give prior and likelihood of every cell at the nodes of a rule.

    Raises
    ------
    UsageError
        Where the prior, or one that is moved so far, and released values are so far apart that the
        likelihood is not resolved at both.
    """
    prior = prior_on_line(posterior)
    assert prior is not None  # noqa: S101 - by `reason_against_nodes`
    family = FAMILIES[posterior.family]
    latent: Any = family.latent
    first, further = _conjugates(family, statistic, prior)
    by_prior = [references_of(latent(statistic, each, posterior.n_prior)) for each in first]
    for cell, known in enumerate(zip(*by_prior, strict=True)):
        references = list(known)
        on_nodes = _on_nodes(prior, references, shift)
        while on_nodes is None and len(references) < len(first) + len(further):
            more = latent(
                statistic.take(np.array([cell])), further[len(references) - len(first)], posterior.n_prior
            )
            references += references_of(more)
            on_nodes = _on_nodes(prior, references, shift)
        if on_nodes is None:
            whose, remedy = "prior", "a prior closer to what is possible"
            if shift > 0.0 and _on_nodes(prior, references, 0.0) is not None:
                whose, remedy = "a prior that is moved so far", "a smaller shift"
            message = (
                f"{posterior.statistic}: {whose} and released values disagree so much that how far the "
                f"answer moves is not resolved: give {remedy}"
            )
            raise UsageError(message)
        yield on_nodes


def _conjugates(family: Any, statistic: NoisyStatistic, prior: PriorOnLine) -> tuple[list[Any], list[Any]]:
    """Return the default, a wide prior and one like the stated one; and then ones farther and farther out."""
    default = conjugate_default(family, statistic.plan.parameters)
    wide = alike(family.prior, prior.centre, _WIDE * max(prior.width, 1.0))
    widths = prior.width * 3.0 ** np.arange(1, _MOST_ROUNDS + 1)
    further = [
        alike(family.prior, prior.centre + side * width, width)
        for width in widths.tolist()
        for side in (-1.0, 1.0)
    ]
    return [default, wide, alike(family.prior, prior.centre, prior.width)], further


def _on_nodes(prior: PriorOnLine, references: Sequence[Reference], shift: float) -> ParameterOnNodes | None:
    """Return prior and likelihood at nodes; None where no reference resolves the likelihood."""
    line = prior.line
    ends = np.clip(line.position(np.array([prior.lower, prior.upper])), *line.ends)
    around_prior = prior.width * np.concatenate([(1.0 + shift / 9.0) * _PANEL_WIDTHS, -_OCTAVES, _OCTAVES])
    edges = [prior.centre + around_prior, ends]
    edges += [each.middle + max(each.spread, NARROWEST) * _PANEL_WIDTHS for each in references]
    panels = np.unique(np.clip(np.concatenate(edges), *ends))
    nodes, weights = (each.ravel() for each in integral_rule(panels[:-1], panels[1:]))
    log_likelihood, depth = likelihood(references, nodes)
    is_hidden = depth < -_DEEP
    for moved in {0.0, -shift, shift}:
        log_mass = log_likelihood + prior.log_density(nodes - moved * prior.width) + np.log(weights)
        highest = np.max(log_mass)
        if not np.isfinite(highest):
            continue  # moved off the line
        mass = np.exp(log_mass - highest)
        if np.sum(mass[is_hidden]) > _HIDDEN * np.sum(mass):
            return None
    return ParameterOnNodes(
        position=nodes,
        parameter=line.parameter(nodes),
        weight=weights,
        log_likelihood=np.where(is_hidden, -np.inf, log_likelihood),
        log_prior=prior.log_density,
        ends=(prior.lower, prior.upper),
    )
