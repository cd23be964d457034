r"""What the families with one bounded sum share: how the total depends on the parameter; what is released.

.. math:: p(x \mid \theta) = h(x) e^{\theta T(x) - A(\theta)}, \quad T(x) \in [l, u]

On the lattice T is an integer X in ``lowest..highest``. Sensitivity in `sensitivity.md`:
partition-of-unity ``(X - lowest, highest - X)``, or minimal-sum (X).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from suffice.pipeline.families.shared.contract import ColumnType, Example, Family, GenerativeCase, OfUnits
from suffice.pipeline.families.shared.parameter_space import SampledParameter
from suffice.pipeline.families.shared.smoothness import of_one_sum
from suffice.pipeline.math.distributions.interval_kinds import CENTRAL
from suffice.pipeline.terms.declaration.fields import LatticeBits, Nulls, NullsField, SampledColumnSpec
from suffice.pipeline.terms.released.noise_distribution import NoisyTotals
from suffice.pipeline.terms.statistics.lattice import DEFAULT_BITS, Quantiser
from suffice.pipeline.terms.statistics.measure import LatticeColumn, PowerSums
from suffice.pipeline.terms.statistics.sensitivity import Block, Constants, Design, Quantity, minimal_sum
from suffice.pipeline.terms.statistics.simulated_sums import power_sums

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from suffice.pipeline.families.shared.clipped_record import ClippedRecord, Outside
    from suffice.pipeline.families.shared.parameter_space import Natural, ParameterSpace
    from suffice.pipeline.math.distributions.distribution import Distribution, Prior
    from suffice.pipeline.math.engines.jax_sums import Total
    from suffice.pipeline.math.engines.one_sum.noisy_sum import Marginal, NoisySums
    from suffice.pipeline.math.priors.record_count import NPrior
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.pipeline.terms.statistics.lattice import Transform
    from suffice.pipeline.terms.statistics.statistic_plan import StatisticPlan
    from suffice.typing import Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class OneSum:
    """Sums of a statistic with one sum.

    Attributes
    ----------
    n, total : ndarray, float64
        Rows, and the sum of T in T's unit.
    """

    n: Floats
    total: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class SumModel:
    """The total's distribution, and what is conjugate to it.

    Parameters
    ----------
    parameter : ParameterSpace
    prior : type
        Its conjugate prior.
    default_prior : callable
        The constants -> a prior that rests on them alone.
    update : callable
        A prior, sums, the constants -> the posterior given exact sums.
    marginal : callable
        A prior, the constants -> the distribution of the total given N, the parameter integrated out.
    log_likelihood : callable
        The parameter, sums, the constants -> the log likelihood but for what does not depend on the
        parameter; arrays broadcast.
    natural : callable
        The parameter, a logarithm, the constants -> its natural parameter and the log normaliser of a record,
        in exact numbers.
    in_jax : callable
        The parameter, N and the constants -> the distribution of the total given them, traced by JAX. What
        a record adds to the total is counted from T's lower bound.
    outside, limits : callable or None
    clipped_record : ClippedRecord or None
        As in ``Family``.
    interval : {"central", "highest-density"}
        As in ``Family``.
    """

    parameter: ParameterSpace
    prior: type[Prior]
    default_prior: Callable[[Constants], Any]
    update: Callable[[Any, OneSum, Constants], Distribution]
    marginal: Callable[[Any, Constants], Marginal]
    log_likelihood: Callable[[Any, OneSum, Constants], Floats]
    natural: Natural
    in_jax: Callable[[Any, Any, Constants], Total]
    outside: Callable[[Floats, Constants], Outside] | None = None
    clipped_record: ClippedRecord | None = None
    limits: Callable[[Constants], tuple[float, float]] | None = None
    interval: str = CENTRAL


def bounds(parameters: Constants) -> tuple[float, float]:
    """Return T's bounds on one record, in T's unit."""
    return float(parameters.lower or 0), float(parameters.upper or 0)


def _range_of_t(parameters: Constants) -> float:
    lower, upper = bounds(parameters)
    return upper - lower


def exact_bounds(parameters: Constants) -> tuple[Fraction, Fraction]:
    """Return T's bounds on one record, in T's unit, exactly."""
    return parameters.lower or Fraction(0), parameters.upper or Fraction(0)


def known_exactly(value: float | str, parameters: Constants) -> Fraction:
    """Return a number that a model knows as `known` does, exactly."""
    return parameters.constants[value] if isinstance(value, str) else Fraction(value)


def known(value: float | str, parameters: Constants) -> float:
    """Return a number that a model knows: stated itself, or by the name of the constant that it is."""
    return float(parameters.constants[value]) if isinstance(value, str) else value


LARGEST_RATE = 1e18
"""NumPy draws no Poisson count of a larger mean."""
SpecType = TypeVar("SpecType", bound="SumSpec")


class SumSpec(SampledColumnSpec):
    """A numeric column; nulls and NaN do not enter, or count as a public value."""

    nulls: NullsField = Nulls()


class LatticeSumSpec(SumSpec):
    """A numeric column whose T is rounded to a lattice."""

    lattice_bits: LatticeBits = DEFAULT_BITS


@dataclass(frozen=True, slots=True, kw_only=True)
class SumLattice:
    """How T becomes an integer X, and what X stands for.

    Parameters
    ----------
    quantiser : Quantiser
        Its bounds are those of X.
    transform : Transform or None
        What is taken of a value before the lattice.
    lower, upper : Fraction
        T at the lowest and the highest X, in T's unit.
    bits : int or None
        ``lattice_bits`` where the spec has them; None for counts.
    """

    quantiser: Quantiser
    transform: Transform | None = None
    lower: Fraction = Fraction(0)
    upper: Fraction
    bits: int | None = None

    @classmethod
    def counting(cls, upper: int) -> SumLattice:
        """Return the lattice of a count in ``0..upper``: T is the value itself."""
        return cls(quantiser=Quantiser.counting(upper), upper=Fraction(upper))

    @classmethod
    def from_zero(cls, upper: Fraction, bits: int) -> SumLattice:
        """Return the lattice of a value in ``0..upper``."""
        return cls(quantiser=Quantiser.from_zero(upper, bits), upper=upper, bits=bits)

    @classmethod
    def transformed(cls, transform: Transform, upper: Fraction, bits: int) -> SumLattice:
        """Return the lattice of T in ``0..upper`` whose transform lies in 0..1."""
        quantiser = Quantiser.from_zero(Fraction(1), bits)
        return cls(quantiser=quantiser, transform=transform, upper=upper, bits=bits)

    @property
    def range(self) -> int:
        """What one record adds to both components, in lattice units."""
        return self.quantiser.highest - self.quantiser.lowest


def one_sum_family(
    *,
    name: str,
    spec: type[SpecType],
    lattice: Callable[[SpecType], SumLattice],
    model: SumModel,
    draw: Callable[[SpecType, Floats, np.random.Generator], Floats],
    example: Mapping[str, str],
    generative_case: Mapping[str, str],
    generative_prior: str | None = None,
    constants: Callable[[SpecType], Mapping[str, Fraction]] = lambda _spec: {},
    of_units: OfUnits | None = None,
    clipping_bounds: Callable[[SpecType], tuple[Fraction, Fraction]] | None = None,
    mean: str = "",
) -> Family:
    """Return the family with this lattice of T and this model of T's total.

    `draw` gives a value of the column for every value of the parameter, `constants` what the model knows of
    an entry; `example`, and the generative case with its prior, state an entry's keys beside the column;
    `mean` is ``Family.mean``.
    """

    def measure(entry: SpecType) -> PowerSums:
        entry_lattice = lattice(entry)
        column = LatticeColumn.of(
            entry.column, entry_lattice.quantiser, nulls=entry.nulls.value, transform=entry_lattice.transform
        )
        return PowerSums(of=column, degree=1)

    def parameters(entry: SpecType) -> Constants:
        entry_lattice = lattice(entry)
        return Constants(
            lower=entry_lattice.lower,
            upper=entry_lattice.upper,
            lattice_bits=entry_lattice.bits,
            constants=constants(entry),
        )

    def plug_in(statistic: NoisyStatistic, prior: Prior) -> Distribution:
        return model.update(prior, project(statistic), statistic.plan.parameters)

    def latent(
        statistic: NoisyStatistic, prior: Prior, n_prior: NPrior
    ) -> tuple[NoisySums, Callable[[Floats, Floats], Distribution]]:
        from suffice.pipeline.math.priors.mixtures import SpreadScale  # consumers only

        known = statistic.plan.parameters
        first = prior.components[0] if isinstance(prior, SpreadScale) else prior
        return (
            noisy_sums(statistic, model.marginal(prior, known), n_prior),
            lambda n, total: model.update(first, OneSum(n=n, total=total), known),
        )

    def noise_aware(statistic: NoisyStatistic, prior: Prior, n_prior: NPrior) -> Distribution:
        from suffice.pipeline.math.engines.one_sum.sum_posterior import LatentSumPosterior  # consumers only

        return LatentSumPosterior.of(*latent(statistic, prior, n_prior))

    def jax_likelihood(
        statistic: NoisyStatistic, n_prior: NPrior, given: Mapping[str, Any], _latent: None
    ) -> Any:
        from suffice.pipeline.math.engines.jax_sums import one_sum  # an extra

        known = statistic.plan.parameters
        parameter = given[model.parameter.name]
        return one_sum(statistic, n_prior, parameter, lambda value, n: model.in_jax(value, n, known))

    return Family(
        name=name,
        spec=spec,
        measure=measure,
        block=lambda entry, n_is_public: block(
            lattice(entry), minimal=n_is_public and entry.nulls.value is not None
        ),
        totals=lambda entry, design, sums: totals(lattice(entry), design, sums),
        parameters=parameters,
        prior=model.prior,
        default_prior=model.default_prior,
        plug_in=plug_in,
        log_likelihood=model.log_likelihood,
        simulate=lambda entry, truth, sizes, rng: power_sums(
            measure(entry), sizes, lambda record: draw(entry, truth[record], rng)
        ),
        noise_aware=noise_aware,
        latent=latent,
        parameter_spaces=lambda _parameters: (model.parameter,),
        jax_likelihood=jax_likelihood,
        smoothness=of_one_sum(model.parameter.name, model.natural, _range_of_t),
        example=Example(entry={"column": "x", **example}, columns={"x": ColumnType.NUMBER}),
        generative_case=GenerativeCase(entry={"column": "x", **generative_case}, prior=generative_prior),
        outside=model.outside,
        clipping_bounds=clipping_bounds,
        clipped_record=model.clipped_record,
        limits=model.limits,
        interval=model.interval,
        mean=mean,
        of_units=of_units,
        sampled=SampledParameter(
            natural=model.natural,
            totals=lambda entry, sums: records_and_total(lattice(entry), sums),
        ),
    )


def block(lattice: SumLattice, *, minimal: bool) -> Block:
    """Release the sums of ``X - lowest`` and ``highest - X``, or that of X where N is public."""
    lowest, highest, width = lattice.quantiser.lowest, lattice.quantiser.highest, lattice.range
    value, bound = ("x", "C") if lattice.bits is None else ("X", "M")
    if minimal:
        step = (lattice.upper - lattice.lower) / width
        return Block(
            design=Design.MINIMAL,
            components=(f"sum({value})",),
            largest_value=lattice.quantiser.largest_magnitude,
            minimal_sensitivity=minimal_sum(lowest, highest),
            between_ends=minimal_sum(lowest, highest),
            quantities=(
                Quantity(name="n", coefficients={}, public_n_coefficient=Fraction(1)),
                Quantity(
                    name="total",
                    coefficients={0: step},
                    public_n_coefficient=lattice.lower - step * lowest,
                ),
            ),
        )
    ends = {0: lattice.upper / width, 1: lattice.lower / width}
    return Block(
        design=Design.PARTITION_OF_UNITY,
        components=(f"sum({bound} + {value})" if lowest else f"sum({value})", f"sum({bound} - {value})"),
        largest_value=width,
        record_l1=width,
        quantities=(
            Quantity(name="n", coefficients={0: Fraction(1, width), 1: Fraction(1, width)}),
            Quantity(
                name="total", coefficients={component: weight for component, weight in ends.items() if weight}
            ),
        ),
    )


def totals(lattice: SumLattice, design: Design, sums: NDArray[Any]) -> NDArray[Any]:
    """Form the components from n and sum X, in Python integers."""
    n, total = sums[:, 0], sums[:, 1]
    if design is Design.MINIMAL:
        return sums[:, 1:]
    return np.stack([total - lattice.quantiser.lowest * n, lattice.quantiser.highest * n - total], axis=1)


def records_and_total(lattice: SumLattice, sums: NDArray[Any]) -> NDArray[Any]:
    """Return n and the sum of X from its lowest value, of n and sum X, in Python integers."""
    n, total = sums[:, 0], sums[:, 1]
    return np.stack([n, total - lattice.quantiser.lowest * n], axis=1)


def project(statistic: NoisyStatistic) -> OneSum:
    """Return N and total, each (n_cells,): ``n >= 0`` and ``lower * n <= total <= upper * n``."""
    n, _ = statistic.quantity("n")
    total, _ = statistic.quantity("total")
    n = np.maximum(n, 0.0)
    lower, upper = bounds(statistic.plan.parameters)
    return OneSum(n=n, total=np.clip(total, lower * n, upper * n))


def noisy_sums(statistic: NoisyStatistic, marginal: Marginal, n_prior: NPrior) -> NoisySums:
    """Return the raw noisy components, counted from the lowest lattice value, and their distribution."""
    from suffice.pipeline.math.engines.one_sum.noisy_sum import NoisySums  # consumers only

    plan = statistic.plan
    lower, upper = bounds(plan.parameters)
    if plan.design is Design.MINIMAL:
        # total = step sum(X) + (lower - step lowest) N
        total = _total(plan)
        lowest = ((plan.parameters.lower or 0) - total.public_n_coefficient) / total.coefficients[0]
        totals = NoisyTotals.of(statistic, np.array([[0.0, 1.0]]), shift=int(lowest) * statistic.known_n)
        step = float(total.coefficients[0])
    else:
        reach = float(plan.partition_total or 1)
        totals = NoisyTotals.of(statistic, np.array([[0.0, 1.0], [reach, -1.0]]))
        step = (upper - lower) / reach
    return NoisySums(totals=totals, step=step, lower=lower, marginal=marginal, n_prior=n_prior)


def _total(plan: StatisticPlan) -> Quantity:
    return next(quantity for quantity in plan.quantities if quantity.name == "total")
