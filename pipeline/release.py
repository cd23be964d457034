"""A release: noisy statistics and the law of their noise. Public; everything here is post-processing."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.errors import UsageError
from suffice.pipeline.structure import label_names

if TYPE_CHECKING:
    from fractions import Fraction

    from numpy.typing import NDArray

    from suffice.pipeline.densities import ScipyDistribution
    from suffice.pipeline.families.contract import Quantity
    from suffice.pipeline.mixtures import AnyDensity, Mixture
    from suffice.pipeline.n_prior import NPrior
    from suffice.pipeline.plan import StatisticPlan
    from suffice.pipeline.pooling.roll_up import RolledUp
    from suffice.pipeline.posterior import Posterior
    from suffice.pipeline.priors import Prior
    from suffice.pipeline.sensitivity import NeighboringRelation

_KEYS_NAMED = 10
"""How many known keys the refusal of an unknown one names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyStatistic:
    """One statistic's noisy components in every cell, and their law.

    Attributes
    ----------
    plan : StatisticPlan
        Components, scale, maps to quantities, constants.
    values : ndarray of object, shape (n_cells, n_components)
        Python integers: exact total plus discrete Laplace noise of scale ``plan.scale``.
    groups : dict of str to list
        The key of each cell, by group column; int for ``range`` domains, else text.
    public_n : int or None
        The public number of records, where there is one.
    max_total_rows : int
        Public bound on a cell's number of records.
    again : tuple of NoisyStatistic
        Other releases' noisy values of the very same exact totals, cells in the same order.
    """

    plan: StatisticPlan = field(repr=False)
    values: NDArray[np.object_] = field(repr=False)
    groups: Mapping[str, list[str | int]] = field(repr=False)
    public_n: int | None
    max_total_rows: int
    again: tuple[NoisyStatistic, ...] = field(default=(), repr=False)

    @property
    def looks(self) -> tuple[NoisyStatistic, ...]:
        """All noisy values of the exact totals: these, then those of other releases."""
        return (self, *self.again)

    def take(self, cells: NDArray[np.int64]) -> NoisyStatistic:
        """Return the given cells, in the given order."""
        return dataclasses.replace(
            self,
            values=self.values[cells],
            groups={column: [keys[cell] for cell in cells.tolist()] for column, keys in self.groups.items()},
            again=tuple(look.take(cells) for look in self.again),
        )

    @property
    def known_n(self) -> int:
        """The public number of records.

        Raises
        ------
        ValueError
            Where it is private.
        """
        if self.public_n is None:
            message = "the number of records is private"
            raise ValueError(message)
        return self.public_n

    def estimates(self, quantity: Quantity) -> NDArray[np.float64]:
        """Return the unbiased estimates of a quantity, shape (n_cells,), in the column's unit.

        The map is carried out in integers and rounded once, so nothing cancels.
        """
        coefficients = (*quantity.coefficients.values(), quantity.public_n_coefficient)
        denominator = math.lcm(*(coefficient.denominator for coefficient in coefficients))
        *weights, public = (int(coefficient * denominator) for coefficient in coefficients)
        numerator = np.full(len(self.values), public * (self.public_n or 0), dtype=object)
        for component, weight in zip(quantity.coefficients, weights, strict=True):
            numerator = numerator + self.values[:, component] * weight
        return np.array([entry / denominator for entry in numerator], dtype=np.float64)

    @property
    def n_saturated(self) -> int:
        """Number of values at an end of their type: there were more records than ``max_total_rows``."""
        lowest, highest = self.plan.value_limits
        return sum(not lowest < value < highest for value in self.values.ravel().tolist())

    def quantity(self, name: str, component: str | None = None) -> tuple[NDArray[np.float64], float]:
        """Return a quantity's estimates, shape (n_cells,), and the standard deviation of their noise.

        Parameters
        ----------
        name : str
            ``n``, ``total``, ``total_of_squares`` or ``total_of_products``, as the family has it.
        component : str, optional
            The column, or the pair as ``x, y``, where the statistic is of several columns.

        Raises
        ------
        UsageError
            Where the family has no such quantity.
        """
        for quantity in self.plan.quantities:
            if (quantity.name, quantity.component, quantity.category) == (name, component, None) and (
                not quantity.labels
            ):
                return self.estimates(quantity), self.plan.quantity_noise_sd(quantity)
        known = ", ".join(sorted({quantity_label(quantity) for quantity in self.plan.quantities}))
        wanted = name if component is None else f"{name}[{component}]"
        message = f"{self.plan.name} has no quantity {wanted!r}: it has {known}"
        raise UsageError(message)

    def where(self, where: Mapping[str, object] | None) -> NoisyStatistic:
        """Keep the cells whose keys equal the given ones as text; nothing is ever summed.

        Raises
        ------
        UsageError
            Where a column is no group of the release, several keys are given for one, or no cell is left.
        """
        if not where:
            return self
        if not isinstance(where, Mapping):
            message = f"where maps group columns to keys, as {{'origin': 'JFK'}}, not {where!r}"
            raise UsageError(message)
        keep = np.ones(len(self.values), dtype=bool)
        for column, key in where.items():
            if column not in self.groups:
                known = ", ".join(self.groups) or "none"
                message = f"the release has no group {column!r}: its groups are {known}"
                raise UsageError(message)
            if isinstance(key, Iterable) and not isinstance(key, str):
                example = {column: str(self.groups[column][0])}
                message = (
                    f"where takes one key for {column}, as {example}, not several: ask for one after the "
                    f"other, or leave {column} out and choose among the rows"
                )
                raise UsageError(message)
            found = np.array([str(entry) == str(key) for entry in self.groups[column]], dtype=bool)
            if not found.any():
                keys = [str(entry) for entry in dict.fromkeys(self.groups[column])]
                more = f" and {len(keys) - _KEYS_NAMED} more" if len(keys) > _KEYS_NAMED else ""
                message = (
                    f"no cell of the release has {column}={key}: its keys are "
                    f"{', '.join(keys[:_KEYS_NAMED])}{more}"
                )
                raise UsageError(message)
            keep &= found
        if not keep.any():
            message = "no cell of the release has " + ", ".join(
                f"{column}={key}" for column, key in where.items()
            )
            raise UsageError(message)
        return self.take(np.flatnonzero(keep))

    def roll_up(self, *columns: str) -> RolledUp:
        """Merge cells over some group columns: their sums with noise counted right, and pooled posteriors.

        Parameters
        ----------
        *columns : str
            The group columns that disappear.

        Raises
        ------
        UsageError
            Where a column is no group of the release.
        """
        from suffice.pipeline.pooling.roll_up import rolled_up  # noqa: PLC0415 - scipy is slow to import

        return rolled_up(self, columns)

    def table(self) -> list[dict[str, Any]]:
        """Return one row per cell and quantity: group keys, quantity, labels, estimate, noise_sd.

        A ``count`` has its ``category``; or ``table`` and one key per variable, None where the table
        lacks the variable.

        Statistics of several columns have a ``component`` as well: the column, or the pair as ``x, y``; it
        is empty for n.

        Estimates are unbiased and in the column's unit; they may lie outside what is possible, as a
        negative count, because the noise is not cut off.
        """
        columns = [
            (quantity, self.estimates(quantity), self.plan.quantity_noise_sd(quantity))
            for quantity in self.plan.quantities
        ]
        several = any(quantity.component is not None for quantity in self.plan.quantities)
        names = label_names(quantity.labels for quantity, _, _ in columns)
        labels = {
            quantity.labels: {**dict.fromkeys(names), **dict(quantity.labels)} for quantity, _, _ in columns
        }
        return [
            {
                **{column: keys[cell] for column, keys in self.groups.items()},
                "quantity": quantity.name,
                **({"category": quantity.category} if quantity.category is not None else {}),
                **({"component": quantity.component or ""} if several else {}),
                **labels[quantity.labels],
                "estimate": float(estimates[cell]),
                "noise_sd": noise_sd,
            }
            for cell in range(len(self.values))
            for quantity, estimates, noise_sd in columns
        ]


def quantity_label(quantity: Quantity) -> str:
    """Return a quantity's name with what it is of, as ``total[x]``."""
    return quantity.name if quantity.component is None else f"{quantity.name}[{quantity.component}]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """A published release, as its manifest and its verified files tell it.

    Attributes
    ----------
    name, dataset, window, release_id : str
        Which release: the series, the protected population, the window label, 16 hex digits.
    uri : str
        Where it stands.
    epsilon : Fraction
        Of the whole release, in nats.
    neighboring : NeighboringRelation
        The neighbouring relation of the guarantee.
    unit : str
        The privacy unit.
    public_n : int or None
        The public number of records, where there is one.
    statistics : dict of str to NoisyStatistic
        In declared order.
    manifest : dict
        The manifest as parsed.
    """

    name: str
    dataset: str
    window: str
    release_id: str
    uri: str
    epsilon: Fraction
    neighboring: NeighboringRelation
    unit: str
    public_n: int | None
    statistics: Mapping[str, NoisyStatistic] = field(repr=False)
    manifest: Mapping[str, Any] = field(repr=False)

    @property
    def files(self) -> list[dict[str, Any]]:
        """The data files: statistic, path beside the manifest, sha256, rows."""
        return [
            {field: file[field] for field in ("statistic", "path", "sha256", "rows")}
            for file in self.manifest["files"]
        ]

    def statistic(self, name: str) -> NoisyStatistic:
        """Return one statistic.

        Raises
        ------
        UsageError
            Where the release has none of that name.
        """
        if name not in self.statistics:
            message = f"the release has no statistic {name!r}: it has {', '.join(self.statistics)}"
            raise UsageError(message)
        return self.statistics[name]

    def table(self, statistic: str, where: Mapping[str, object] | None = None) -> list[dict[str, Any]]:
        """Return a statistic's unbiased estimates; see :meth:`NoisyStatistic.table`."""
        return self.statistic(statistic).where(where).table()

    def posterior(
        self,
        statistic: str,
        prior: Prior | Mixture | AnyDensity | ScipyDistribution | str | None = None,
        where: Mapping[str, object] | None = None,
        method: str = "noise-aware",
        n_prior: NPrior | int | str | None = None,
        clipping: str = "modelled",
    ) -> Posterior:
        """Return the posterior of a statistic's parameters, vectorised over cells. Costs no privacy.

        Parameters
        ----------
        statistic : str
            Its name in the release.
        prior : prior object or str, optional
            The same prior for every cell, as ``suffice.Beta(1, 9)`` or ``"Beta(1, 9)"``, or a mixture of
            such, as ``"Mixture(0.3, Beta(1, 9), 0.7, Beta(9, 1))"``; for families with one parameter also a
            frozen distribution of ``scipy.stats`` or a ``suffice.Density``; for a mean and a variance two
            priors, ``suffice.Independent``, or a ``suffice.JointDensity``. The family's default otherwise.
        where : mapping, optional
            Keep the cells with these group keys.
        method : {"noise-aware", "plug-in"}
            The exact posterior given the noise, or the conjugate update that takes projected noisy
            statistics for exact, which is not calibrated. There is never a silent fallback.
        n_prior : optional
            The public prior of a latent number of records; see ``suffice.pipeline.priors``.
        clipping : {"modelled", "ignored"}
            Whether noise-aware posteriors of Poisson, geometric and negative binomial counts take records
            for clipped to their public bound, wherever that can matter, or for never clipped.

        Raises
        ------
        UsageError, PriorError
            Where the method or the prior does not fit.
        """
        from suffice.pipeline.inference import posterior_of  # noqa: PLC0415 - scipy is slow to import
        from suffice.pipeline.predictive import Model  # noqa: PLC0415

        chosen = self.statistic(statistic).where(where)
        posterior = posterior_of(chosen, method=method, prior=prior, n_prior=n_prior, clipping=clipping)
        model = Model.of(chosen, self.manifest["plan"]["statistics"][statistic])
        return dataclasses.replace(posterior, model=model)
