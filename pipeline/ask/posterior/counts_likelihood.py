r"""The released likelihood of the probabilities of a table of counts, as an object.

Model. As in ``likelihood``, of the probabilities :math:`p_1, \dots, p_K` of categories, or of a table's
entries, with latent counts and a latent N integrated out:

.. math:: \ell(p) = \log p(y \mid p). \qquad (1)

Symbols:

- p: ``probabilities``, on the last axis in the order of ``names``
- l: ``log_prob``, in nats

Method. ``several_counts``: each count has a table of its own, and (1) is one sum over the mean of N, worked
out where it is asked for.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.errors import UsageError
from suffice.pipeline.ask.inference.counted_likelihood import constant_of, several_counts
from suffice.pipeline.ask.posterior.likelihood_tables import real_numbers
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.terms.statistics.count_table import entry_names

if TYPE_CHECKING:
    from collections.abc import Mapping

    from suffice.pipeline.math.engines.several_counts import SeveralCounts
    from suffice.pipeline.math.priors.record_count import NPrior
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.typing import Floats

_ROUNDING = 1e-9
_DEPTH = 60.0
"""Single counts are tabulated to 100 nats, and terms that are 37 nats lower count."""
_POINTS = 1 << 18
"""Points that are worked out together."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CountsLikelihood:
    """The log likelihood of the probabilities of a table's entries in every cell of a released statistic.

    Attributes
    ----------
    statistic, family : str
    names : tuple of str
        Of the entries, in the order of their probabilities.
    groups : dict of str to list
        The key of each cell, by group column.
    n_prior : NPrior
        The prior of N.
    counts : SeveralCounts
    constant : float
        Added to every value.
    """

    statistic: str
    family: str
    names: tuple[str, ...]
    groups: Mapping[str, list[str | int]] = field(repr=False)
    n_prior: NPrior
    counts: SeveralCounts = field(repr=False)
    constant: float = field(repr=False)

    def __len__(self) -> int:
        """Return how many cells there are."""
        return len(self.counts.row)

    def __repr__(self) -> str:
        return (
            f"<Likelihood of {len(self.names)} probabilities of {self.statistic} ({self.family}): "
            f"{len(self)} cells, error at most {float(np.max(self.error)):.1g} nats>"
        )

    @property
    def error(self) -> Floats:
        """Nats that single counts' tables miss by, (n_cells,); ``log_prob_and_error`` adds what sums miss."""
        return self.counts.error

    @property
    def depth(self) -> Floats:
        """Nats below its highest value within which ``error`` holds, (n_cells,)."""
        return np.full(len(self), _DEPTH)

    def log_prob(self, probabilities: Any) -> Floats:
        """Return log likelihoods, (n_cells, n), but for a constant of the release.

        Parameters
        ----------
        probabilities : array of float64
            The same for all cells, (n, K), or each cell's own, (n_cells, n, K): at least 0, with the sum 1.

        Raises
        ------
        UsageError
            Where the array has another shape, or its rows are no probabilities.
        """
        return self.log_prob_and_error(probabilities)[0]

    def log_prob_and_error(self, probabilities: Any) -> tuple[Floats, Floats]:
        """Return log likelihoods and what they may miss by, (n_cells, n) each, in nats.

        Parameters and errors are those of ``log_prob``.
        """
        cells, entries = len(self), len(self.names)
        given = real_numbers(probabilities, "probabilities")
        if (
            given.ndim not in {2, 3}
            or given.shape[-1] != entries
            or (given.ndim == 3 and len(given) != cells)
        ):
            message = (
                f"probabilities have to be of shape (n, {entries}) or ({cells}, n, {entries}), "
                f"not {given.shape}"
            )
            raise UsageError(message)
        if not np.all(given >= 0.0) or np.any(np.abs(np.sum(given, axis=-1) - 1.0) > _ROUNDING):
            message = "probabilities have to be at least 0, with the sum 1 on the last axis"
            raise UsageError(message)
        with np.errstate(divide="ignore"):
            log_probability = np.log(given)
        shape = (cells, given.shape[-2])
        value, miss = np.empty(shape[0] * shape[1]), np.empty(shape[0] * shape[1])
        flat = log_probability.reshape(-1, entries)
        for first in range(0, len(value), _POINTS):
            part = np.arange(first, min(first + _POINTS, len(value)))
            cell, point = np.divmod(part, shape[1])
            value[part], miss[part] = self.counts.log_likelihood(
                cell, flat[part if given.ndim == 3 else point]
            )
        return (value + self.constant).reshape(shape), miss.reshape(shape) + self.error[:, None]


def counts_likelihood(statistic: NoisyStatistic, n_prior: NPrior) -> CountsLikelihood:
    """Return the likelihood of a table's probabilities.

    Raises
    ------
    UsageError
        Where the prior of N is no mixture of Poisson laws, or ends near what was released.
    """
    plan = statistic.plan
    counts = several_counts(statistic, n_prior)
    if counts is None:
        message = (
            f"{plan.name}: a likelihood of {plan.family} needs a private N with the prior Reciprocal(max) or "
            "Uniform(0, max), whose max is far above all counts, and noise that is not far wider than they "
            f"are; not {n_prior}. suffice.numpyro.log_likelihood takes others"
        )
        raise UsageError(message)
    family = FAMILIES[plan.family]
    return CountsLikelihood(
        statistic=plan.name,
        family=plan.family,
        names=entry_names(family.labels(plan.parameters)),
        groups=statistic.groups,
        n_prior=n_prior,
        counts=counts,
        constant=constant_of(statistic, n_prior),
    )
