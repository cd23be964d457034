"""What a family is to the engine and the mechanism: its sums, its block of components, its totals."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from suffice.pipeline.sensitivity import Design, NeighboringRelation, bounded_records, first_transitions

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from suffice.pipeline.families.outside import Outside
    from suffice.pipeline.fields import StatisticSpec
    from suffice.pipeline.latent_sums.noisy import NoisySums
    from suffice.pipeline.laws import Law
    from suffice.pipeline.n_prior import NPrior
    from suffice.pipeline.priors import Prior
    from suffice.pipeline.release import NoisyStatistic
    from suffice.pipeline.simulation import SimulatedSums
    from suffice.pipeline.structure import CountTable, Label
    from suffice.pipeline.sums import Measure


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantity:
    r"""A number people ask for, as an exact linear map of a statistic's components.

    .. math:: \text{quantity} = \sum_j a_j \, \text{value}_j + a_N N

    Parameters
    ----------
    name : str
        ``n``, ``total``, ``total_of_squares``, or ``count`` of a category.
    category : str or None
        The category that a ``count`` is of.
    component : str or None
        The column, or the pair of columns, that it is of, where a statistic has several.
    labels : tuple of (str, str)
        Names and values that its rows carry beside, in order: the table and the categories that a
        ``count`` is of.
    coefficients : dict of int to Fraction
        ``a_j`` by the component's position, in the column's unit per lattice unit; 0 is left out.
    public_n_coefficient : Fraction
        ``a_N``, of the public number of records; 0 in a partition of unity.
    """

    name: str
    category: str | None = None
    component: str | None = None
    labels: Label = ()
    coefficients: Mapping[int, Fraction]
    public_n_coefficient: Fraction = Fraction(0)


def combination(
    name: str, parts: Sequence[tuple[Fraction, Quantity]], component: str | None = None
) -> Quantity:
    """Return a weighted sum of quantities as a quantity."""
    coefficients: dict[int, Fraction] = {}
    for weight, quantity in parts:
        for position, coefficient in quantity.coefficients.items():
            coefficients[position] = coefficients.get(position, Fraction(0)) + weight * coefficient
    return Quantity(
        name=name,
        component=component,
        coefficients={position: weight for position, weight in coefficients.items() if weight},
        public_n_coefficient=sum(
            (weight * quantity.public_n_coefficient for weight, quantity in parts), Fraction(0)
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One jointly calibrated vector of components on one lattice.

    Parameters
    ----------
    design : Design
        Partition of unity, bounded, or minimal beside a public N.
    components : tuple of str
        Their names, in the order released.
    largest_value : int
        The largest magnitude that one record adds to one component, in lattice units.
    record_l1 : int or None
        The largest L1 norm of what one record adds over all components, in lattice units; None for the
        minimal design.
    unit_l1 : int or None
        The largest L1 norm of what one unit adds, where the statistic bounds units by itself; None where it
        takes the rows that each unit keeps.
    minimal_sensitivity : int or None
        The sensitivity of the minimal design under ``replace_one``.
    moment_weight : Fraction or None
        The weight of second moments beside first ones, where the minimal design has one.
    quantities : tuple of Quantity
        The exact maps to the quantities of the family.
    """

    design: Design
    components: tuple[str, ...]
    largest_value: int
    record_l1: int | None = None
    unit_l1: int | None = None
    minimal_sensitivity: int | None = None
    moment_weight: Fraction | None = None
    quantities: tuple[Quantity, ...]

    @property
    def partition_total(self) -> int | None:
        """What every entering record adds over all components, for a partition of unity."""
        return self.record_l1 if self.design is Design.PARTITION_OF_UNITY else None

    def l1_sensitivity(self, neighboring: NeighboringRelation, max_rows: int = 1) -> int:
        """Return the block's joint sensitivity per unit of at most `max_rows` records, in lattice units."""
        if self.unit_l1 is not None:
            return first_transitions(self.unit_l1, neighboring)
        if self.record_l1 is not None:
            return bounded_records(self.record_l1, neighboring, max_rows)
        replaces = neighboring is NeighboringRelation.REPLACE_ONE
        if self.minimal_sensitivity is None or not replaces or max_rows != 1:
            message = "minimal statistics are for replace_one and single records only"
            raise ValueError(message)
        return self.minimal_sensitivity


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnBounds:
    """A column of a statistic of several, and the public bounds of its values."""

    name: str
    lower: Fraction
    upper: Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """The public constants that a family's posterior needs.

    Parameters
    ----------
    categories : tuple of str
        All released categories, ``other`` included; empty where there are none.
    lower, upper : Fraction or None
        Bounds of T on one record, in T's unit: of x where T is x, of log x where it is log x.
    lattice_bits : int or None
        The half range is ``2**lattice_bits`` lattice steps; the whole range where it begins at 0.
    constants : dict of str to Fraction
        Known parameters, as ``shape``, that the posterior needs beside the bounds.
    columns : tuple of ColumnBounds
        The columns of a statistic of several, in order; the outcome of a regression is the last.
    tables : tuple of CountTable
        The tables counted; the components are their entries, table by table.
    """

    categories: tuple[str, ...] = ()
    lower: Fraction | None = None
    upper: Fraction | None = None
    lattice_bits: int | None = None
    constants: Mapping[str, Fraction] = field(default_factory=dict)
    columns: tuple[ColumnBounds, ...] = ()
    tables: tuple[CountTable, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """One exponential family: what is released of it, and its posteriors.

    Parameters
    ----------
    name : str
        As written in a spec.
    spec : type of StatisticSpec
        The model of its entry in a spec.
    measure : callable
        The spec's entry -> what a pass over the data computes.
    block : callable
        The spec's entry, whether N is public -> the components released.
    totals : callable
        The spec's entry, the block's design, exact sums of shape (n_cells, n_sums), Python integers ->
        exact totals of shape (n_cells, n_components), Python integers.
    parameters : callable
        The spec's entry -> the constants of its posterior.
    prior : type
        Its conjugate prior.
    default_prior : callable
        The constants -> a prior that rests on them alone.
    plug_in : callable
        The noisy statistic, a prior -> the conjugate update that takes the projected statistic for exact.
    log_likelihood : callable
        The posterior's parameters in order, exact or projected sums, the constants -> the log likelihood
        but for what does not depend on the parameters; arrays broadcast.
    noise_aware : callable or None
        The noisy statistic, a prior, the prior of N -> the exact posterior given all its looks; None where
        there is none yet.
    latent : callable or None
        The noisy statistic, a prior, the prior of N -> the latent sums, and what N and S make of the prior;
        of families with one parameter, None of the others.
    simulate : callable or None
        The spec's entry, draws of the prior with one row a data set, its numbers of records, a generator ->
        the exact sums of data sets that the model draws; None where no data can be simulated yet.
    truth : callable
        The prior, the constants, how many, a generator -> draws of the prior, a row each, as ``simulate``
        takes them: the posterior's parameters in order, each with all its entries.
    least_rows : callable
        The constants -> the fewest rows that the noise-aware posterior believes possible.
    by_mcmc : callable
        The constants -> whether the noise-aware posterior takes MCMC.
    predicts : bool
        Whether new rows depend on nothing but its parameters.
    disjoint : callable or None
        Noisy statistics of data sets that share their parameters, a prior, the priors of N -> the posterior
        given all of them, where it is no product of the posteriors of each; None elsewhere.
    outside : callable or None
        Parameters in order, each (n_cells,), and the constants -> the share of the model's records beyond
        the bounds, and where clipping them moves the parameters; None where nothing is clipped, or where
        it is not worked out.
    clipped_record : callable or None
        The parameter, (n,), and the constants -> chances of one record's values once it is clipped,
        (n, upper + 1); None where posteriors do not model clipping.
    needs_unit : bool
        Whether it follows the rows of a column unit, and so needs one.
    n_categories : callable
        The spec's entry -> how many declared categories it counts in every cell; 1 where it counts none.
    tables : callable
        The spec's entry -> the tables that it counts.
    labels : callable
        The constants -> how the entries along the last axis of parameters are called, by name; nothing
        where parameters are one number a cell.
    """

    name: str
    spec: type[StatisticSpec]
    measure: Callable[[Any], Measure]
    block: Callable[[Any, bool], Block]
    totals: Callable[[Any, Design, NDArray[Any]], NDArray[Any]]
    parameters: Callable[[Any], Parameters]
    prior: type[Prior]
    default_prior: Callable[[Parameters], Prior]
    plug_in: Callable[[NoisyStatistic, Any], Law]
    log_likelihood: Callable[..., NDArray[np.float64]]
    noise_aware: Callable[[NoisyStatistic, Any, NPrior], Law] | None = None
    latent: (
        Callable[
            [NoisyStatistic, Any, NPrior],
            tuple[NoisySums, Callable[[NDArray[np.float64], NDArray[np.float64]], Law]],
        ]
        | None
    ) = None
    simulate: (
        Callable[[Any, NDArray[np.float64], NDArray[np.int64], np.random.Generator], SimulatedSums] | None
    ) = None
    truth: Callable[[Any, Parameters, int, np.random.Generator], NDArray[np.float64]] = field(
        default=lambda prior, _parameters, size, rng: prior.sample(size, rng)
    )
    least_rows: Callable[[Parameters], int] = field(default=lambda _parameters: 0)
    by_mcmc: Callable[[Parameters], bool] = field(default=lambda _parameters: False)
    predicts: bool = True
    disjoint: Callable[[Sequence[NoisyStatistic], Any, Sequence[NPrior]], Law] | None = None
    outside: Callable[..., Outside] | None = None
    clipped_record: Callable[[NDArray[np.float64], Parameters], NDArray[np.float64]] | None = None
    needs_unit: bool = False
    n_categories: Callable[[Any], int] = field(default=lambda _spec: 1)
    tables: Callable[[Any], tuple[CountTable, ...]] = field(default=lambda _spec: ())
    labels: Callable[[Parameters], Mapping[str, tuple[str | None, ...]]] = field(
        default=lambda _parameters: {}
    )
