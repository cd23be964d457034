r"""Distributions of a sum S of T over N rows when the parameter is integrated out under its conjugate prior.

Each is written such that no two large log gammas cancel: sums and numbers of rows go up to 1e15.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar, Protocol, Self

import numpy as np

from suffice.pipeline.math.engines.multinomial.noisy_counts import log_rising

if TYPE_CHECKING:
    from suffice.typing import Floats


class Support(StrEnum):
    """Where a sum may lie, and so how sums over it are taken."""

    INTEGERS = "integers"
    """0, 1, 2, ...: summed."""
    POSITIVE = "positive"
    """Above 0: integrated over its logarithm, in which powers of it are smooth at 0."""
    REAL = "real"
    """Any real number: integrated."""


class Marginal(Protocol):
    """What is needed of the distribution of S given N."""

    @property
    def support(self) -> Support:
        """Where S may lie."""

    @property
    def most_per_row(self) -> float:
        """Upper bound of S / N; infinity where there is none."""

    def log_prob(self, total: Floats, n: Floats) -> Floats:
        """Log of p(S | N) inside of the support, N >= 1; arrays broadcast, and so does what is returned."""

    def typical(self, n: Floats) -> Floats:
        """A sum near the highest probability or density: where a search for the mode starts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BetaBinomial:
    r"""Successes among m N trials, of a probability with a :math:`\mathrm{Beta}(a, b)` prior.

    .. math:: p(S \mid N) = \frac{(a)_S}{S!} \frac{(b)_{mN - S}}{(mN - S)!} \frac{(mN)!}{(a + b)_{mN}}
    """

    concentration1: float
    concentration0: float
    trials: float
    support: ClassVar[Support] = Support.INTEGERS

    @property
    def most_per_row(self) -> float:
        """All trials."""
        return self.trials

    def log_prob(self, total: Floats, n: Floats) -> Floats:
        """Log probability."""
        trials = self.trials * n
        return (
            _rising(self.concentration1, total)
            + _rising(self.concentration0, trials - total)
            - _rising(self.concentration1 + self.concentration0, trials)
        )

    def typical(self, n: Floats) -> Floats:
        """The mode, where there is one."""
        a, b = max(self.concentration1 - 1.0, 0.0), max(self.concentration0 - 1.0, 0.0)
        share = (
            a / (a + b) if a + b > 0.0 else self.concentration1 / (self.concentration1 + self.concentration0)
        )
        return np.rint(share * self.trials * n)


@dataclass(frozen=True, slots=True, kw_only=True)
class GammaPoisson:
    r"""Sum of N Poisson counts of a rate with a :math:`\mathrm{Gamma}(a, b)` prior: a negative binomial.

    .. math:: p(S \mid N) = \frac{(a)_S}{S!} \Bigl(\frac{b}{b + N}\Bigr)^a \Bigl(\frac{N}{b + N}\Bigr)^S
    """

    concentration: float
    rate: float
    support: ClassVar[Support] = Support.INTEGERS
    most_per_row: ClassVar[float] = np.inf

    def log_prob(self, total: Floats, n: Floats) -> Floats:
        """Log probability."""
        return (
            _rising(self.concentration, total)
            - self.concentration * np.log1p(n / self.rate)
            - total * np.log1p(self.rate / n)
        )

    def typical(self, n: Floats) -> Floats:
        """The mode."""
        return np.floor(max(self.concentration - 1.0, 0.0) / self.rate * n)


@dataclass(frozen=True, slots=True, kw_only=True)
class BetaNegativeBinomial:
    r"""Failures before r N successes, of a probability of success with a :math:`\mathrm{Beta}(a, b)` prior.

    .. math:: p(S \mid N) = \frac{rN}{rN + S} \frac{(a)_{rN}}{\Gamma(rN + 1)} \frac{(b)_S}{S!}
        \frac{\Gamma(rN + S + 1)}{(a + b)_{rN + S}}
    """

    concentration1: float
    concentration0: float
    successes: float
    support: ClassVar[Support] = Support.INTEGERS
    most_per_row: ClassVar[float] = np.inf

    def log_prob(self, total: Floats, n: Floats) -> Floats:
        """Log probability."""
        successes = self.successes * n
        return (
            _rising(self.concentration1, successes)
            + _rising(self.concentration0, total)
            - _rising(self.concentration1 + self.concentration0, successes + total)
            - np.log1p(total / successes)
        )

    def typical(self, n: Floats) -> Floats:
        """About the mode."""
        ratio = max(self.concentration0 - 1.0, 0.0) / (self.concentration1 + 1.0)
        return np.floor(ratio * np.maximum(self.successes * n - 1.0, 0.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class GammaGamma:
    r"""Sum of shape k N and a rate with a :math:`\mathrm{Gamma}(a, b)` prior: a scaled beta prime.

    .. math:: p(S \mid N) = \frac{w}{B(kN, a)} \frac{b^a (w S)^{kN - 1}}{(b + w S)^{kN + a}}

    where w S given the rate r is :math:`\mathrm{Gamma}(kN, r)`.
    """

    concentration: float
    rate: float
    shape: float = 1.0
    share: float = 1.0
    support: ClassVar[Support] = Support.POSITIVE
    most_per_row: ClassVar[float] = np.inf

    def log_prob(self, total: Floats, n: Floats) -> Floats:
        """Log density."""
        shape, part = self.shape * n, self.share * total
        return (
            _rising(self.concentration, shape)
            + np.log(shape)
            - self.concentration * np.log1p(part / self.rate)
            - shape * np.log1p(self.rate / part)
            - np.log(total)
        )

    def typical(self, n: Floats) -> Floats:
        """The mode of the logarithm of S."""
        return self.rate * self.shape * n / self.concentration / self.share


@dataclass(frozen=True, slots=True, kw_only=True)
class SpreadGammaGamma:
    r"""The same of a mixture of :math:`\mathrm{Gamma}(a, b_j)` priors with weights :math:`w_j`.

    .. math:: p(S \mid N) = \sum_j w_j \, p_j(S \mid N), \qquad
              r \mid N, S, j \sim \mathrm{Gamma}(a + kN, b_j + w S)

    What :math:`b_j` adds is what a sum larger by :math:`(b_j - b_0) / w` would add to :math:`b_0`: given j, a
    pair (N, S) leads to the posterior that the first component has of a shifted pair.

    Parameters
    ----------
    weights, rates : tuple of float
        Of the components; rates ascend.
    """

    weights: tuple[float, ...]
    concentration: float
    rates: tuple[float, ...]
    shape: float = 1.0
    share: float = 1.0
    support: ClassVar[Support] = Support.POSITIVE
    most_per_row: ClassVar[float] = np.inf

    def log_prob(self, total: Floats, n: Floats) -> Floats:
        """Log density."""
        shape, part = self.shape * n, self.share * total
        power = -(self.concentration + shape)
        # The rate under which the sum is likeliest, between the components', bounds all their terms.
        nearest = np.clip(part * self.concentration / shape, self.rates[0], self.rates[-1])
        top = self.concentration * np.log(nearest) + power * np.log1p(nearest / part)
        mixed = np.zeros(top.shape)
        term = np.empty(top.shape)
        for weight, rate in zip(self.weights, self.rates, strict=True):
            np.divide(rate, part, out=term)
            np.log1p(term, out=term)
            term *= power
            term -= top
            np.exp(term, out=term)
            term *= weight * rate**self.concentration
            mixed += term
        log_density: Floats = (
            (_rising(self.concentration, shape) + np.log(shape))
            + (top + np.log(mixed))
            - (self.concentration * np.log(part) + np.log(total))
        )
        return log_density

    def tilted(self, power: int) -> Self:
        r"""Return the same under the prior times a power of the rate, over its integral.

        .. math::
            w_j \, r^p \, \mathrm{Gamma}(r; a, b_j) \propto w_j b_j^{-p} \, \mathrm{Gamma}(r; a + p, b_j)
        """
        smallest = self.rates[0]
        weights = [w * (rate / smallest) ** -power for w, rate in zip(self.weights, self.rates, strict=True)]
        whole = math.fsum(weights)
        return replace(
            self,
            weights=tuple(weight / whole for weight in weights),
            concentration=self.concentration + power,
        )

    def typical(self, n: Floats) -> Floats:
        """The mode of the logarithm of S under the heaviest component."""
        heaviest = self.rates[int(np.argmax(self.weights))]
        return heaviest * self.shape * n / self.concentration / self.share

    @property
    def shifts(self) -> Floats:
        """How much larger each component's posterior takes S for than the first one's."""
        return (np.array(self.rates) - self.rates[0]) / self.share

    def shares(self, total: Floats, n: Floats) -> Floats:
        """Posterior probabilities of the components given pairs (n_pairs,): (n_components, n_pairs)."""
        none = n < 1.0  # no records, whose sum is 0, tell nothing
        terms = self._log_terms(np.where(none, 1.0, total), self.shape * n)
        terms -= np.max(terms, axis=0)
        np.exp(terms, out=terms)
        terms[:, none] = 1.0
        terms *= np.array(self.weights)[:, None]
        terms /= np.sum(terms, axis=0)
        return terms

    def shifted(self, total: Floats, n: Floats, rng: np.random.Generator) -> Floats:
        """Shift sums as a component of every pair that is drawn by its share does, (n_pairs,)."""
        ends = np.cumsum(self.shares(total, n), axis=0)
        drawn = np.sum(rng.random(len(total)) > ends[:-1], axis=0)
        shifted: Floats = total + self.shifts[drawn]
        return shifted

    def _log_terms(self, total: Floats, shape: Floats) -> Floats:
        """What of the components' log densities depends on their rates, component by component."""
        part = self.share * total
        power = -(self.concentration + shape)
        log_terms = np.empty((len(self.rates), *part.shape))
        for j, rate in enumerate(self.rates):
            np.divide(rate, part, out=log_terms[j])
            np.log1p(log_terms[j], out=log_terms[j])
            log_terms[j] *= power
            log_terms[j] += self.concentration * math.log(rate)
        return log_terms


@dataclass(frozen=True, slots=True, kw_only=True)
class NormalNormal:
    r"""Sum of N normals of variance v and a mean with a :math:`\mathrm{Normal}(m, s)` prior.

    .. math:: S \mid N \sim \mathrm{Normal}(N m, \sqrt{N v + N^2 s^2})
    """

    loc: float
    scale: float
    variance: float
    support: ClassVar[Support] = Support.REAL
    most_per_row: ClassVar[float] = np.inf

    def log_prob(self, total: Floats, n: Floats) -> Floats:
        """Log density."""
        deviation = np.sqrt(n) * np.sqrt(self.variance + n * self.scale**2)
        standard = (total - n * self.loc) / deviation
        log_prob: Floats = -0.5 * standard * standard - np.log(deviation) - 0.5 * np.log(2.0 * np.pi)
        return log_prob

    def typical(self, n: Floats) -> Floats:
        """The mode."""
        return n * self.loc


def _rising(concentration: float, count: Floats) -> Floats:
    if concentration == 1.0:  # nothing, whatever the counts
        return np.zeros(())
    return log_rising(np.array([concentration]), count)
