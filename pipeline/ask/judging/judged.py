r"""What judging asks of a posterior, and what it is of; and the worlds of its prior.

Worlds. A quantity's part T of a record has, given the parameter, the mean m, the variance v and the third
central moment t:

.. math::
    \begin{array}{llll}
    \text{Binomial}(k, p) & k p & k p (1 - p) & k p (1 - p)(1 - 2 p) \\
    \text{Poisson}(\lambda) & \lambda & \lambda & \lambda \\
    \text{failures before } r \text{ successes} & r (1 - p) / p & r (1 - p) / p^2 & r (1 - p)(2 - p) / p^3 \\
    \text{Gamma}(k, 1 / \theta) & k \theta & k \theta^2 & 2 k \theta^3 \\
    \text{Normal}(\mu, \sigma) & \mu & \sigma^2 & 0 \\
    \text{its square} & \sigma^2 + \mu^2 & 2 \sigma^2 (\sigma^2 + 2 \mu^2) & 8 \sigma^4 (\sigma^2 + 3 \mu^2)
    \end{array} \qquad (1)

and those of a clipped record are sums over its lattice.

Symbols:

- p, lambda: ``value``, (n_worlds,)
- k, r: ``trials``, ``shape`` or ``successes``
- mu, sigma^2: ``mean`` and ``variance``, (n_worlds,), in the column's unit and its square

Method. (1) is exact. Clipped normal records are summed over 181 points in
-9..9 standard deviations, and joint priors of mean and variance over grids.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from suffice.pipeline.ask.inference.any_prior import LINES, conjugate_default, on_line
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.math.distributions.dirichlet import Dirichlet
from suffice.pipeline.math.distributions.distribution import Line
from suffice.pipeline.math.distributions.gamma import InverseGamma
from suffice.pipeline.math.distributions.normal_inverse_gamma import NormalInverseGamma
from suffice.pipeline.math.distributions.normal_inverse_wishart import NormalInverseWishart
from suffice.pipeline.math.engines.one_sum import noisy_sum
from suffice.pipeline.math.priors.composed import ComposedOnLine, OfOneNumber
from suffice.pipeline.math.priors.density import DensityOnLine
from suffice.pipeline.math.priors.mixtures import Mixture
from suffice.pipeline.math.priors.record_count import Fixed
from suffice.pipeline.math.priors.worlds import FINE, LEAST, ROUGH, Worlds, between, conjugate_levels, levels

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from suffice.pipeline.ask.inference.model import Model
    from suffice.pipeline.math.distributions.distribution import Prior
    from suffice.pipeline.math.priors.coefficients import NonConjugate
    from suffice.pipeline.math.priors.record_count import NPrior
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.pipeline.terms.statistics.count_table import Label
    from suffice.pipeline.terms.statistics.sensitivity import Constants, Quantity
    from suffice.typing import Floats, Mask


_NORMAL = np.arange(-8.0, 8.25, 0.5)
_RECORD = np.arange(-9.0, 9.05, 0.1)


class Judged(Protocol):
    """A posterior, with what it is of; attributes as in ``Posterior``."""

    @property
    def statistic(self) -> str: ...  # noqa: D102 - as in Posterior, and so below

    @property
    def family(self) -> str: ...  # noqa: D102

    @property
    def prior(self) -> Prior | Mixture | NonConjugate: ...  # noqa: D102

    @property
    def n_prior(self) -> NPrior | None: ...  # noqa: D102

    @property
    def predictor_prior(self) -> str | None: ...  # noqa: D102

    @property
    def groups(self) -> Mapping[str, list[str | int]]: ...  # noqa: D102

    @property
    def distribution(self) -> Any: ...  # noqa: D102

    @property
    def model(self) -> Model | None: ...  # noqa: D102

    @property
    def models_clipping(self) -> Mask | None: ...  # noqa: D102

    @property
    def before_clipping(self) -> bool: ...  # noqa: D102

    @property
    def constants(self) -> Constants | None: ...  # noqa: D102

    @property
    def design_effect(self) -> Floats | None: ...  # noqa: D102

    @property
    def observed(self) -> tuple[NoisyStatistic, ...]: ...  # noqa: D102

    @property
    def parameters(self) -> tuple[str, ...]: ...  # noqa: D102

    @property
    def n_groups(self) -> int: ...  # noqa: D102

    @property
    def method(self) -> str: ...  # noqa: D102

    def mean(self, parameter: str) -> Floats: ...  # noqa: D102

    def sample(self, draws: int, rng: np.random.Generator) -> dict[str, Floats]: ...  # noqa: D102


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEvidence:
    """The log probability of the released values in every cell.

    Attributes
    ----------
    log : ndarray of shape (n_cells,), float64
    standard_error : ndarray of shape (n_cells,), float64, or None
        Of an estimate by Monte Carlo: two of them are a 95 % interval. None of all others.
    """

    log: Floats
    standard_error: Floats | None


def estimand_text(posterior: Judged) -> str:
    """Say which records parameters are of, before clipping or after; empty where nothing is clipped."""
    family, constants = FAMILIES[posterior.family], posterior.constants
    is_bounded = family.outside is not None or (constants is not None and bool(constants.columns))
    if not is_bounded:
        return ""
    from suffice.pipeline.ask.inference.clipped_cells import can_be_modelled  # its engines are slow to import

    modelled = posterior.models_clipping
    number = 0 if modelled is None else int(modelled.sum())
    if number == 0 and posterior.before_clipping and can_be_modelled(family, posterior.observed):
        cells = f"none of {posterior.n_groups} cells" if posterior.n_groups > 1 else "no cell"
        return f"of records before clipping: in {cells} does clipping make a difference that matters"
    after = "of the records as the public bounds leave them: a value beyond a bound counts as that bound"
    if number == 0:
        return after
    how = "" if family.mean_and_variance is None else ", approximately, by four moments"
    if family.clipped_record is not None and not family.clipped_record.is_exact:
        how = ", approximately, on a lattice of its values"
    cells = f"{number} of {posterior.n_groups} cells"
    before = f"of records before clipping in {cells}, where clipping is modelled{how}"
    if number == posterior.n_groups:
        return before
    if posterior.before_clipping:
        return f"{before}; in the others clipping makes no difference that matters"
    return f"{before}; in the others, {after}"


def worlds_of(
    statistic: NoisyStatistic,
    prior: Prior | Mixture | NonConjugate,
    quantity: Quantity,
    *,
    is_clipped: bool,
) -> Worlds | None:
    """Return the worlds of a quantity; None where this prior and quantity are not worked out.

    Parameters
    ----------
    statistic : NoisyStatistic
        Its plan and constants alone are used.
    prior : Prior, Mixture, or another
    quantity : Quantity
        Not that of n.
    is_clipped : bool
        Whether records are taken for clipped to their bounds.
    """
    if isinstance(prior, Mixture):
        components = [
            worlds_of(statistic, component, quantity, is_clipped=is_clipped) for component in prior.components
        ]
        return _mixed(prior.weights, components)
    family, constants = FAMILIES[statistic.plan.family], statistic.plan.parameters
    if family.latent is not None:
        return _of_one_sum(statistic, prior, is_clipped=is_clipped)
    if family.mean_and_variance is not None:
        bounds = (float(constants.lower or 0), float(constants.upper or 0)) if is_clipped else None
        return _of_moments(*_means_and_variances(statistic, prior), quantity, bounds)
    if isinstance(prior, Dirichlet):
        return _of_counts(statistic, prior, quantity)
    return _of_one_column(constants, prior, quantity) if isinstance(prior, NormalInverseWishart) else None


def _mixed(weights: Sequence[float], components: Sequence[Worlds | None]) -> Worlds | None:
    parts = [part for part in components if part is not None]
    if len(parts) < len(components):
        return None
    # The mixture over components: weights times the components' weights.
    columns = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("mean", "variance", "third")
    )
    together = [part.weight * weight for part, weight in zip(parts, weights, strict=True)]
    return Worlds.of(np.concatenate(together), *columns).merged()


def _of_one_sum(statistic: NoisyStatistic, prior: Prior | NonConjugate, *, is_clipped: bool) -> Worlds:
    family, constants = FAMILIES[statistic.plan.family], statistic.plan.parameters
    line, latent = LINES[family.prior], family.latent
    assert latent is not None  # noqa: S101 - the caller has looked
    if isinstance(prior, OfOneNumber):
        weight, position = _of_one_number(on_line(prior, family, constants))
    else:
        weight, position = conjugate_levels(
            latent(statistic, prior, Fixed(0))[1](np.zeros(1), np.zeros(1)), line
        )
    value = line.parameter(position)
    if is_clipped and family.clipped_record is not None:
        reach = family.clipped_record.reach(constants)
        chances = family.clipped_record.chances(value, constants, reach)
        return Worlds.of(weight, *_of_chances(chances, float(constants.upper or 0) / reach))
    sums, _ = latent(statistic, conjugate_default(family, constants), Fixed(0))
    # Records of a scale are worked out by its reciprocal, a rate.
    rate = 1.0 / value if family.prior is InverseGamma else value
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        return Worlds.of(weight, *_record(sums.marginal, rate))


def _of_one_number(prior: DensityOnLine | ComposedOnLine) -> tuple[Floats, Floats]:
    """Return weights and positions that stand for a prior: every atom, and levels of densities."""
    if isinstance(prior, DensityOnLine):
        return levels(prior.log_density, prior.edges, FINE)
    weight, position = np.exp(prior.log_chance), prior.positions
    if prior.together is not None:
        of_levels, at_levels = levels(prior.together.log_density, prior.together.edges, FINE)
        weight = np.concatenate([weight, np.exp(prior.log_rest) * of_levels / np.sum(of_levels)])
        position = np.concatenate([position, at_levels])
    return weight, position


def _record(marginal: noisy_sum.Marginal, value: Floats) -> tuple[Floats, Floats, Floats]:
    """Mean, variance and third central moment of T of one record, given the parameter."""
    match marginal:
        case noisy_sum.BetaBinomial(trials=trials):
            # (2).
            variance = value * (1.0 - value)
            return trials * value, trials * variance, trials * variance * (1.0 - 2.0 * value)
        case noisy_sum.GammaPoisson():
            return value, value, value
        case noisy_sum.BetaNegativeBinomial(successes=successes):
            # (2): r (1 - p) / p, divided by p and by p^2.
            failures = successes * (1.0 - value) / value
            return failures, failures / value, failures * (2.0 - value) / value**2
        case noisy_sum.GammaGamma(shape=shape, share=share):
            scale = 1.0 / value / share
            return shape * scale, shape * scale**2, 2.0 * shape * scale**3
        case noisy_sum.NormalNormal(variance=variance):
            return value, np.full_like(value, variance), np.zeros_like(value)
        case _:
            raise TypeError(type(marginal).__name__)


def _of_chances(chances: Floats, step: float) -> tuple[Floats, Floats, Floats]:
    """Moments of 0, 1, ... steps with these chances, (n, n_values)."""
    values = step * np.arange(float(chances.shape[1]))
    mean = chances @ values
    # Central moments of a lattice.
    gap = values - mean[:, None]
    return mean, np.sum(chances * gap**2, axis=1), np.sum(chances * gap**3, axis=1)


def _means_and_variances(statistic: NoisyStatistic, prior: Any) -> tuple[Floats, Floats, Floats]:
    """Weights, means and variances of a normal column, in its unit."""
    if isinstance(prior, NormalInverseGamma):
        return _conjugate_pairs(prior.loc, prior.precision, prior.concentration, prior.scale)
    from suffice.pipeline.math.engines.mean_variance.prior_on_grid import DensityOnGrid  # rarely needed

    mean_and_variance = FAMILIES[statistic.plan.family].mean_and_variance
    assert mean_and_variance is not None  # noqa: S101 - the caller has looked
    centre, half_range = mean_and_variance.interval(statistic.plan.parameters)
    on_grid = DensityOnGrid.of(prior, centre, half_range)
    first, second = (between(edges, 12) for edges in on_grid.edges)
    log_mass = on_grid.log_density(first[None], second[None])[0]
    # The density times the area that a point of the grid stands for.
    log_mass = log_mass + np.log(np.gradient(first))[:, None] + np.log(np.gradient(second))
    weight = np.exp(log_mass - np.max(log_mass))
    kept = weight > LEAST * np.sum(weight)
    row, column = np.nonzero(kept)
    return weight[kept], centre + half_range * first[row], half_range**2 * np.exp(second[column])


def _conjugate_pairs(
    loc: float, precision: float, concentration: float, scale: float
) -> tuple[Floats, Floats, Floats]:
    variance_prior = InverseGamma(concentration, scale)
    weight, position = conjugate_levels(variance_prior.distribution(), Line.LOGARITHM, ROUGH)
    variance = np.exp(position)
    # m given v is normal of standard deviation sqrt(v / kappa), at half deviations.
    of_mean = np.exp(-0.5 * _NORMAL**2)
    together = np.outer(weight, of_mean / np.sum(of_mean))
    mean = loc + np.sqrt(variance / precision)[:, None] * _NORMAL
    # Pairs of a weight up to 1e-17 are left out: no tail that counts is as small.
    kept = together > LEAST
    return together[kept], mean[kept], np.broadcast_to(variance[:, None], mean.shape)[kept]


def _of_moments(
    weight: Floats,
    mean: Floats,
    variance: Floats,
    quantity: Quantity,
    bounds: tuple[float, float] | None,
) -> Worlds:
    """A normal record's part in the total, or in that of squares."""
    is_square = quantity.name == "total_of_squares"
    if bounds is None:
        if is_square:
            moments = (
                variance + mean**2,
                2.0 * variance * (variance + 2.0 * mean**2),
                8.0 * variance**2 * (variance + 3.0 * mean**2),
            )
        else:
            moments = (mean, variance, np.zeros_like(mean))
        return Worlds.of(weight, *moments).merged()
    # A normal record at tenths of its standard deviation, then clipped.
    chance = np.exp(-0.5 * _RECORD**2)
    chance /= np.sum(chance)
    record = np.clip(mean[:, None] + np.sqrt(variance)[:, None] * _RECORD, *bounds)
    # x or x^2 of a clipped record; its central moments are sums.
    part = record**2 if is_square else record
    average = part @ chance
    gap = part - average[:, None]
    return Worlds.of(weight, average, gap**2 @ chance, gap**3 @ chance).merged()


def _of_counts(statistic: NoisyStatistic, prior: Dirichlet, quantity: Quantity) -> Worlds | None:
    """A record's chance of being counted: a beta number, or a product of two."""
    plan = statistic.plan
    given = np.array(prior.concentration, dtype=np.float64)
    if plan.family in {"categorical", "contingency"}:
        concentration = np.broadcast_to(given, (len(plan.components),))
        (position,) = quantity.coefficients
        return _chance(concentration, position)
    layout = _LAYOUTS.get(plan.family)
    if layout is None:
        return None
    rows = layout(plan.parameters, prior)[quantity.labels]
    if len(rows) == 1:
        return _chance(*rows[0])
    parts = [_chance(*row, step=ROUGH) for row in rows]
    # P(class) P(value | class), which are independent under the prior.
    weight = np.multiply.outer(parts[0].weight, parts[1].weight).ravel()
    chance = np.multiply.outer(parts[0].mean, parts[1].mean).ravel()
    kept = weight > LEAST
    return Worlds.of_chances(weight[kept], chance[kept]).merged()


def _chance(concentration: Floats, position: int, step: float = FINE) -> Worlds:
    """Worlds of one entry of a Dirichlet vector."""
    from suffice.pipeline.math.distributions.dirichlet import Beta  # counts only

    # An entry of a Dirichlet vector is Beta(a_k, A - a_k).
    alpha, others = float(concentration[position]), float(np.sum(concentration) - concentration[position])
    if others <= 0.0:
        return Worlds.of_chances(np.ones(1), np.ones(1))
    weight, place = conjugate_levels(Beta(alpha, others).distribution(), Line.LOGIT, step)
    return Worlds.of_chances(weight, Line.LOGIT.parameter(place))


def _rows_of_tables(
    first: Sequence[Floats], tables: Sequence[Any], rows: Sequence[Floats]
) -> dict[Label, tuple[tuple[Floats, int], ...]]:
    """By entry of tables (class, value): the class's distribution and the value's given the class."""
    return {
        label: (
            (first[0], index // table.shape[-1]),
            (concentration_of_table[index // table.shape[-1]], index % table.shape[-1]),
        )
        for table, concentration_of_table in zip(tables, rows, strict=True)
        for index, label in enumerate(table.labels())
    }


def _naive_bayes(constants: Constants, prior: Dirichlet) -> Mapping[Label, tuple[tuple[Floats, int], ...]]:
    from suffice.pipeline.families.naive_bayes import estimated_tables  # of this family only
    from suffice.pipeline.families.shared.counted_tables import concentrations

    outcome, *tables = estimated_tables(constants)
    of_class, *rows = concentrations(prior, [outcome, *tables])
    classes = {label: ((of_class[0], index),) for index, label in enumerate(outcome.labels())}
    return {**classes, **_rows_of_tables([of_class[0]], tables, rows)}


def _markov_chain(constants: Constants, prior: Dirichlet) -> Mapping[Label, tuple[tuple[Floats, int], ...]]:
    from suffice.pipeline.families.shared.counted_tables import concentrations

    # As in the posterior: how often each state is left has a flat prior over the states.
    left = np.ones(constants.tables[0].shape[0])
    return _rows_of_tables([left], constants.tables, concentrations(prior, constants.tables))


_LAYOUTS: dict[str, Callable[[Constants, Dirichlet], Mapping[Label, tuple[tuple[Floats, int], ...]]]] = {
    "naive_bayes": _naive_bayes,
    "markov_chain": _markov_chain,
}


def _of_one_column(constants: Constants, prior: NormalInverseWishart, quantity: Quantity) -> Worlds | None:
    """A column's own mean and variance, which are normal inverse gamma; None of products of two."""
    names = [column.name for column in constants.columns]
    if quantity.name not in {"total", "total_of_squares"}:
        return None
    loc, precision, df, scale = prior.of(len(names))
    place = names.index(str(quantity.component))
    pairs = _conjugate_pairs(
        # Of Sigma, a variance is InverseGamma((nu - d + 1) / 2, Psi_jj / 2).
        float(loc[place]),
        precision,
        (df - len(names) + 1.0) / 2.0,
        float(scale[place, place]) / 2.0,
    )
    return _of_moments(*pairs, quantity, None)


def names_of(quantities: Sequence[Quantity]) -> tuple[str, ...]:
    """Return what quantities are called, as ``count[UA]`` or ``total[x]``."""
    return tuple(
        quantity.name
        + (f"[{inner}]" if (inner := quantity.category or quantity.component or _entry(quantity)) else "")
        for quantity in quantities
    )


def _entry(quantity: Quantity) -> str:
    return ", ".join(f"{name}={value}" for name, value in itertools.islice(quantity.labels, 6))
