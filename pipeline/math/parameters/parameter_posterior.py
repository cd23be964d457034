r"""What is known of parameters: moments, quantiles, probabilities, and contrasts between cells.

With F the marginal posterior distribution function of a parameter and f its density, a cell has

.. math:: q \mapsto F^{-1}(q), \qquad [F^{-1}(\tfrac{1 - m} 2), F^{-1}(\tfrac{1 + m} 2)],
    \qquad P(l < \theta < u) = F(u) - F(l), \qquad (1)

a quantile, the central interval of mass m, and the probability of a range.

Symbols:

- q: ``q``, in 0..1
- m: ``mass``, in 0..1
- l, u: ``above`` and ``below``, in the parameter's unit

Method. As exact as the distribution. Where quantiles are those of n independent draws, that of q has the
standard error :math:`\sqrt{q (1 - q) / n} / f`, and a probability p that of :math:`\sqrt{p (1 - p) / n} \le 1
/ 2 \sqrt n`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.errors import UnknownNameError, UsageError
from suffice.pipeline.math.distributions.composite import blocks_of, from_draws
from suffice.pipeline.math.distributions.interval_kinds import CENTRAL
from suffice.pipeline.math.distributions.intervals import Ends, shortest_intervals
from suffice.pipeline.math.parameters import contrasts, marginal
from suffice.pipeline.math.parameters.arguments import (
    checked_draws,
    ends_of,
    generator,
    is_integer,
    points_for,
)
from suffice.pipeline.math.parameters.marginal import Marginal
from suffice.pipeline.terms.declaration.wording import not_a_name
from suffice.pipeline.terms.statistics.count_table import entry_names

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import ArrayLike

    from suffice.pipeline.math.distributions.distribution import Distribution
    from suffice.pipeline.math.distributions.intervals import Range
    from suffice.typing import Floats


DRAWS, MASS = marginal.DRAWS, marginal.MASS
"""Draws, and the mass of an interval, where nothing is asked for."""
_MOST_VALUES = 20_000_000
"""Of draws that are ordered at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterPosterior(Mapping[str, Marginal]):
    """The joint distribution of a statistic's parameters in every cell; attributes as in ``Posterior``.

    A mapping of parameters' names to their marginals. Methods that are of one parameter take its name first,
    and do without where there is only one.
    """

    statistic: str
    groups: Mapping[str, list[str | int]] = field(repr=False)
    label_columns: Mapping[str, tuple[str | None, ...]]
    distribution: Distribution = field(repr=False)
    components: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def parameters(self) -> tuple[str, ...]:
        """The parameters' names."""
        return self.distribution.parameters

    def __getitem__(self, parameter: str) -> Marginal:
        """Return what is known of one parameter."""
        return Marginal(posterior=self, parameter=self._known(parameter))

    def __iter__(self) -> Iterator[str]:
        """Give the parameters' names."""
        return iter(self.parameters)

    def __len__(self) -> int:
        """Return how many parameters there are; ``n_groups`` is the number of cells."""
        return len(self.parameters)

    if not TYPE_CHECKING:  # a type checker knows what there is

        def __getattr__(self, name: str) -> Any:
            raise not_a_name(type(self), name, marginal.CALLED_HERE)

    def _ipython_key_completions_(self) -> list[str]:
        return list(self.parameters)

    @property
    def default_interval(self) -> str:
        """The kind of its intervals where none is asked for: ``central`` or ``highest-density``."""
        return CENTRAL

    def ends_of(self, parameter: str) -> Range:  # noqa: ARG002 - families know, bare distributions do not
        """Return the ends of a parameter's range; infinite where it has none."""
        return -math.inf, math.inf

    def interval_kind(self, interval: str | None) -> str:
        """Return the kind of interval that is asked for, or else the default.

        Raises
        ------
        UsageError
            Where there is no such kind.
        """
        return self.default_interval if interval is None else contrasts.require_interval(interval)

    @property
    def categories(self) -> tuple[str, ...]:
        """What each entry along the last axis of parameters is of, in words; empty where there is none."""
        return entry_names(self.label_columns)

    @property
    def n_groups(self) -> int:
        """The number of selected cells."""
        for keys in self.groups.values():
            return len(keys)
        if hasattr(self.distribution, "n_cells"):  # where means take long to work out
            return int(self.distribution.n_cells)
        return len(self.distribution.mean(self.parameters[0]))

    @property
    def diagnostics(self) -> dict[str, Any]:
        """What a sampled distribution rests on; empty where draws are independent.

        Of pooled posteriors: ``sampler`` (importance), ``draws`` (a cell), ``fewest_effective_draws`` (in the
        worst cell). Of MCMC: ``sampler``, ``chains``, ``draws`` (over all chains, for each cell),
        ``largest_r_hat`` (over parameters and cells; 1 where chains agree) and ``fewest_effective_draws``.
        Of Bayesian networks also ``not_reconciled``: tables that share margins with others which their
        posterior does not use.
        """
        return dict(getattr(self.distribution, "diagnostics", {}))

    def sample(self, draws: int = DRAWS, rng: np.random.Generator | int | None = None) -> dict[str, Floats]:
        """Draw the parameters jointly and independently.

        Parameters
        ----------
        draws : int, > 0
            How many.
        rng : numpy.random.Generator or int, optional
            A generator or the seed of one; a fresh one otherwise.

        Returns
        -------
        dict of str to ndarray of shape (draws, n_groups), float64
            By parameter, in the column's unit; (draws, n_groups, n_categories) where there are categories,
            and (draws, n_groups, len(components[parameter])) where the parameter is of several columns.
        """
        return self.distribution.sample(checked_draws(draws), generator(rng))

    def mean(self, parameter: str | None = None) -> Floats:
        """Posterior means, in the column's unit: (n_groups,), categories or components as a last axis.

        Parameters
        ----------
        parameter : str, optional
            Its name; the only one's where it is left out.

        Raises
        ------
        UsageError
            Where it is unknown, or left out of several.
        """
        return self.distribution.mean(self._known(parameter))

    def sd(self, parameter: str | None = None) -> Floats:
        """Posterior standard deviations, shaped and measured as ``mean``; infinite where there is none."""
        return self.distribution.sd(self._known(parameter))

    def quantile(
        self,
        parameter: str | float | Sequence[float],
        q: float | Sequence[float] | None = None,
        *,
        draws: int = DRAWS,
        rng: np.random.Generator | int | None = None,
    ) -> Floats:
        """Posterior quantiles, shaped as ``mean``; of several q they are a last axis.

        ``quantile("mean", 0.9)``, or ``quantile(0.9)`` where there is one parameter.

        Exact under ``plug-in``. Under ``noise-aware`` those of families with one sum (Bernoulli as well), of
        normal and lognormal statistics and under densities rest on no draws: the probability below them
        is right to about 0.001, 0.01 at worst; in the long tail of few records 0.001 is some 0.02 sd. Those
        of counts of categories, and of several columns, are quantiles of draws, so that two calls differ
        unless `rng` is the same. The standard error is sqrt(q (1 - q) / draws) over the density: 0.04 sd
        for the ends of a 95 % interval of 4000 independent draws.

        Raises
        ------
        UsageError
            Where q is not between 0 and 1, or the parameter is unknown.
        """
        named, wanted = (None, parameter) if q is None else (parameter, q)
        is_one = isinstance(wanted, str) or np.ndim(wanted) == 0
        each: Any = [wanted] if is_one else wanted
        levels = tuple(contrasts.require_share("q", level) for level in each)
        quantiles = self.distribution.quantiles(
            self._known(named), levels, checked_draws(draws), generator(rng)
        )
        return quantiles[..., 0] if is_one else quantiles

    def interval(
        self,
        mass: float = MASS,
        parameter: str | None = None,
        *,
        interval: str | None = None,
        draws: int = DRAWS,
        rng: np.random.Generator | int | None = None,
    ) -> Ends:
        """Return the ends of ``credible_interval`` apart: ``lower, upper = posterior.interval(0.95)``.

        Each is shaped as ``mean``. The mass comes first, as in ``scipy.stats``; else as there.
        """
        ends = self.credible_interval(parameter, mass, interval=interval, draws=draws, rng=rng)
        return Ends(ends[..., 0], ends[..., 1])

    def credible_interval(
        self,
        parameter: str | None = None,
        mass: float = MASS,
        *,
        interval: str | None = None,
        draws: int = DRAWS,
        rng: np.random.Generator | int | None = None,
    ) -> Floats:
        """Credible intervals, (n_groups, 2) or (n_groups, n_categories, 2); see ``quantile``.

        A central one leaves the same probability out on either side, and so never reaches an end of the
        parameter's range. A highest-density one is the shortest: it reaches 0, or 1, or what the public
        bounds limit the parameter to, where the density is highest there. Both have the mass. Its length is
        within 1 % of the shortest, but for the error of draws where quantiles rest on them. It depends on
        the scale: the shortest interval of a variance is not the square of that of a standard deviation. Of
        a density with several modes it is one interval. Where the prior has point masses, intervals are
        closed and hold at least the mass: a central one has at most half of the rest beyond either end.

        Parameters
        ----------
        parameter : str, optional
            Its name; the only one's where it is left out.
        mass : float, in (0, 1)
            Posterior probability of an interval.
        interval : {"central", "highest-density"}, optional
            The family's ``default_interval`` otherwise.
        draws, rng
            As in ``quantile``.

        Raises
        ------
        UsageError
            Where the mass is not between 0 and 1, or the parameter or the kind is unknown.
        """
        return self._between(parameter, mass, self.interval_kind(interval), draws, rng)

    def _between(
        self, parameter: str | None, mass: float, kind: str, draws: int, rng: np.random.Generator | int | None
    ) -> Floats:
        known, ends = self._known(parameter), ends_of(mass)
        draws, source = checked_draws(draws), generator(rng)
        if kind == CENTRAL:
            return self.distribution.quantiles(known, ends, draws, source)
        return shortest_intervals(self.distribution, known, mass, self.ends_of(known), draws, source)

    def five_numbers(
        self,
        parameter: str,
        mass: float = MASS,
        *,
        interval: str | None = None,
        draws: int = DRAWS,
        rng: np.random.Generator | int | None = None,
    ) -> Floats:
        """Lower end, quartile, median, quartile, upper end: shaped as ``mean`` with 5 as a last axis.

        The ends are those of ``credible_interval``, the quartiles always quantiles.
        """
        known, ends, kind = self._known(parameter), ends_of(mass), self.interval_kind(interval)
        draws, source = checked_draws(draws), generator(rng)
        levels = (ends[0], 0.25, 0.5, 0.75, ends[1])
        quantiles = self.distribution.quantiles(known, levels, draws, source)
        if kind != CENTRAL:
            # Ends of the shortest interval; the quartiles remain quantiles.
            quantiles[..., [0, -1]] = self._between(known, mass, kind, draws, source)
        return quantiles

    def density(self, parameter: str | ArrayLike, points: ArrayLike | None = None) -> Floats | None:
        """Marginal posterior densities: smooth, and resting on no draws.

        Of plug-in posteriors in closed form; of noise-aware ones by sums or integrals over what is latent:
        of families with one sum, of counts of categories and under densities right to some 1e-3 of the
        highest. Of means with variances, and under design effects, they are smoothed where nodes would show,
        over up to a fifth of their spread.

        Parameters
        ----------
        parameter : str
            Its name; where there is one parameter the points may stand in its place.
        points : array_like
            Values of the parameter, in its unit: (n_points,) for all cells, or shaped as ``mean`` with
            n_points as a last axis. Of a probability that is 0 or 1 the density is that next to it.

        Returns
        -------
        ndarray of shape (n_groups, n_points), float64, or None
            In one over the parameter's unit; (n_groups, n_categories, n_points) where there are categories,
            and with components likewise. 0 outside of the parameter's range. None where the law is known
            by draws alone: of MCMC, of covariances, and of some count tables and pooled releases.

        Raises
        ------
        UsageError
            Where the parameter is unknown, or the points are shaped otherwise.
        """
        if points is None:
            parameter, points = self._known(None), parameter
        known = self._known(parameter)
        return self.distribution.density(known, points_for(points, self.distribution.mean(known).shape))

    def probability(
        self,
        parameter: str | None = None,
        *,
        above: float | None = None,
        below: float | None = None,
        at: float | None = None,
        draws: int = DRAWS,
        rng: np.random.Generator | int | None = None,
    ) -> Floats:
        """Posterior probabilities that a parameter lies in a range, or is a value, shaped as ``mean``.

        Of a range shares of independent draws; their standard error is at most 0.5 / sqrt(draws). That a
        parameter is a value has a probability where the prior has a point mass there, without draws but for
        those of coefficients.

        Parameters
        ----------
        parameter : str, optional
            Its name; the only one's where it is left out.
        above, below : float, optional
            Bounds in the parameter's unit; both of them for what lies between.
        at : float, optional
            A value, in the place of bounds.
        draws, rng
            As in ``sample``.

        Raises
        ------
        UsageError
            Where no bound is given, nothing lies between them, or the parameter is unknown.
        """
        known, draws, source = self._known(parameter), checked_draws(draws), generator(rng)
        if at is not None:
            if above is not None or below is not None:
                message = "state at alone, or above, below or both for a range"
                raise UsageError(message)
            masses = self.point_masses
            if masses or not from_draws(self.distribution):
                return masses.get(float(at), np.zeros(self.mean(known).shape))
            # Of several parameters, which may have point masses in draws alone.
            parts = (block.sample(draws, source)[known] for block in blocks_of(self.distribution))
            return np.concatenate([np.mean(part == at, axis=0) for part in parts])
        return np.concatenate(
            [
                # (1), as a share of draws.
                contrasts.share_between(block.sample(draws, source)[known], above, below)
                for block in blocks_of(self.distribution)
            ]
        )

    @property
    def point_masses(self) -> dict[float, Floats]:
        """The posterior probability of every value at which the prior has a point mass, (n_groups,) each.

        Empty where it has none.
        """
        from suffice.pipeline.math.distributions.mixed import point_masses_of  # few priors have any

        by_block = [point_masses_of(block) for block in blocks_of(self.distribution)]
        return {
            value: np.concatenate([masses[value] for masses in by_block])
            for value in (by_block[0] if by_block else ())
        }

    def among_highest(
        self,
        k: int,
        parameter: str | None = None,
        *,
        draws: int = DRAWS,
        rng: np.random.Generator | int | None = None,
    ) -> Floats:
        """Probabilities that a cell is among the k with the largest values, shaped as ``mean``.

        Shares of joint draws: cells are independent, and in each draw their values are ordered. Cells that
        tie for the last place all count. The standard error is at most 0.5 / sqrt(draws).

        Parameters
        ----------
        k : int
            At least 1, and fewer than there are cells.
        parameter : str, optional
            Its name; the only one's where it is left out.
        draws, rng
            As in ``sample``.

        Raises
        ------
        UsageError
            Where there is one cell, or k or the parameter does not fit.
        """
        known, left, source = self._known(parameter), checked_draws(draws), generator(rng)
        if not is_integer(k, 1) or k >= self.n_groups:
            message = f"k must be an integer in 1..{self.n_groups - 1}, below the number of cells, not {k!r}"
            if self.n_groups == 1:
                message = "there is one cell, and it is the highest: ask of several"
            raise UsageError(message)
        counted, most = np.zeros(self.mean(known).shape), max(1, _MOST_VALUES // self.mean(known).size)
        while left > 0:
            values = self.distribution.sample(min(left, most), source)[known]
            last = np.partition(values, -k, axis=1)[:, -k]
            counted += np.sum(values >= last[:, np.newaxis], axis=0)
            left -= most
        return np.asarray(counted / draws)

    def difference(
        self,
        parameter: str | Mapping[str, object],
        first: Mapping[str, object],
        second: Mapping[str, object] | None = None,
        *,
        draws: int = DRAWS,
        rng: np.random.Generator | int | None = None,
    ) -> contrasts.Contrast:
        """Compare cells: a parameter of the first minus that of the second.

        Parameters
        ----------
        parameter : str
            Its name; left out, as in ``difference(first, second)``, where there is one parameter.
        first, second : mapping
            Keys of the same group columns, as ``{"origin": "JFK"}`` and ``{"origin": "LGA"}``. Cells are
            paired where their other keys agree: one pair for every month, say.
        draws, rng
            As in ``sample``.

        Raises
        ------
        UsageError
            Where the keys do not name such pairs, or the parameter is unknown.
        """
        return self._contrast(contrasts.DIFFERENCE, parameter, first, second, draws, rng)

    def ratio(
        self,
        parameter: str | Mapping[str, object],
        first: Mapping[str, object],
        second: Mapping[str, object] | None = None,
        *,
        draws: int = DRAWS,
        rng: np.random.Generator | int | None = None,
    ) -> contrasts.Contrast:
        """Compare cells: a parameter of the first over that of the second; see ``difference``."""
        return self._contrast(contrasts.RATIO, parameter, first, second, draws, rng)

    def _contrast(
        self,
        kind: str,
        parameter: str | Mapping[str, object],
        first: Mapping[str, object],
        second: Mapping[str, object] | None,
        draws: int,
        rng: np.random.Generator | int | None,
    ) -> contrasts.Contrast:
        if isinstance(parameter, Mapping):
            first, second, parameter = parameter, first, self._known(None)
        if any(isinstance(side, str) for side in (first, second)):
            message = f"{kind} takes the keys of cells, as {kind}({{'origin': 'JFK'}}, {{'origin': 'LGA'}})"
            raise UsageError(message)
        known = self._known(parameter)
        if second is None:
            message = (
                f"{kind} compares two cells: {kind}('{known}', {{'origin': 'JFK'}}, {{'origin': 'LGA'}})"
            )
            raise UsageError(message)
        left, right, shared = contrasts.paired_cells(self.groups, first, second)
        return contrasts.contrast(
            kind,
            known,
            (self, left),
            (self, right),
            names=(contrasts.in_words(first), contrasts.in_words(second)),
            groups=shared,
            draws=checked_draws(draws),
            rng=generator(rng),
        )

    def labels(self, parameter: str) -> tuple[str, Sequence[str]]:
        """Return ``category`` or ``component``, and the names of the entries of a parameter's last axis.

        The former is empty where no parameter has such an axis, the names where this one has none.
        """
        return contrasts.entry_labels(parameter, self.categories, self.components)

    def entry_names(self, parameter: str) -> list[str]:
        """Return a name for every entry of every cell in turn: its keys, and its category or component.

        Empty texts where there is one cell without keys.
        """
        cells = [", ".join(str(keys[cell]) for keys in self.groups.values()) for cell in range(self.n_groups)]
        _, names = self.labels(parameter)
        return [", ".join(filter(None, (cell, name))) for cell in cells for name in names] if names else cells

    def _known(self, parameter: object) -> str:
        """Return a parameter's name, the only one's for None."""
        known = ", ".join(self.parameters)
        if parameter is None:
            if len(self.parameters) > 1:
                message = f"{self.statistic} has several parameters, {known}: name one"
                raise UsageError(message)
            return self.parameters[0]
        if not isinstance(parameter, str) or parameter not in self.parameters:
            hint = self._hint(parameter)
            if isinstance(parameter, Real):
                hint = f"; numbers are named, as mass={parameter} or above={parameter}"
            elif isinstance(parameter, str) and {"<", ">"} & set(parameter):
                hint = "; limits are stated as above=, below= or both"
            message = f"{self.statistic} has no parameter {parameter!r}: it has {known}{hint}"
            raise UnknownNameError(message)
        return parameter

    def _hint(self, _parameter: object) -> str:
        """What else to say to who asks for a parameter that there is not."""
        return ""
