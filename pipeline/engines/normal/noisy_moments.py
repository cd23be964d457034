r"""Noisy sums of a normal column, the linear functionals that they observe, and the conjugate prior.

With z = (x - centre) / half_range, t the sum of z and q that of its squares, every released component is
:math:`A N + B t + C q` plus Laplace noise, in records. In a cell of N records of mean m = t / N and mean
square deviation :math:`E = q / N - m^2` it is

.. math:: N (A + B m + C (m^2 + E)).
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import numpy as np

from suffice.errors import PriorError

if TYPE_CHECKING:
    from suffice.pipeline.priors.record_count import NPrior
    from suffice.pipeline.released.noise_distribution import NoisyTotals
    from suffice.typing import Cells, Floats


BERNSTEIN = ((0.25, -0.5, 0.25), (0.5, 0.0, -0.5), (0.25, 0.5, 0.25))
"""(A, B, C) of ((1 - z) / 2)^2, 2 (1 - z) (1 + z) / 4 and ((1 + z) / 2)^2."""
MOMENTS = ((0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
"""(A, B, C) of t and q, beside a public N."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyMoments:
    """Noisy components and the distribution that they came from, in half ranges about the centre.

    Attributes
    ----------
    totals : NoisyTotals
        In records; coefficients are A, B and C.
    loc, precision, concentration, scale : float
        Of the normal inverse gamma prior of the mean and the variance of z.
    n_prior : NPrior
        The prior of N; ``Fixed`` where N is public.
    """

    totals: NoisyTotals
    loc: float
    precision: float
    concentration: float
    scale: float
    n_prior: NPrior

    def __post_init__(self) -> None:
        for name in ("precision", "concentration", "scale"):
            if not 1e-15 <= getattr(self, name) <= 1e12:
                message = (
                    f"noise-aware posteriors need a prior whose {name} (in half ranges, from the centre) is "
                    "in 1e-15..1e12: choose another prior"
                )
                raise PriorError(message)
        if abs(self.loc) > 1e6:
            message = (
                "noise-aware posteriors need a prior whose loc is within a million half ranges of the centre"
            )
            raise PriorError(message)

    def take(self, cells: Cells) -> Self:
        """The given cells, in the given order."""
        return replace(self, totals=self.totals.take(cells))

    @property
    def least_concentration(self) -> float:
        """The least concentration that the variance's inverse gamma may have, given the latent sums."""
        return self.concentration + self.n_prior.support[0] / 2.0

    def functionals(self) -> tuple[Floats, Floats]:
        r"""Functionals (n_rows, 3) and what was observed of them (n_cells, n_rows), in units of the noise.

        First the components, then the sums of each release's with every pattern of signs: as
        :math:`\sum_j |x_j| \ge |\sum_j \pm x_j|`, each of those bounds the log density of its noise as well,
        and one of them is it wherever no component changes sign.
        """
        scaled = self.totals.in_scales()
        rows, observed = scaled.coefficients, scaled.values
        own = len(rows) // scaled.releases
        signs = np.array([(1.0, *rest) for rest in itertools.product((1.0, -1.0), repeat=own - 1)])
        signs = np.kron(np.eye(scaled.releases), signs)
        return np.concatenate([rows, signs @ rows]), np.concatenate([observed, observed @ signs.T], axis=1)

    def estimates(self) -> Floats:
        """Unbiased N, t and q, (n_cells, 3): of several releases their mean by inverse variance."""
        scaled = self.totals.in_scales()
        rows, observed = scaled.coefficients, scaled.values
        if len(rows) == 3 * scaled.releases:
            return np.asarray(np.linalg.lstsq(rows, observed.T, rcond=None)[0].T, dtype=np.float64)
        n = float(self.n_prior.support[0])
        sums = np.linalg.lstsq(rows[:, 1:], (observed - n * rows[:, 0]).T, rcond=None)[0].T
        return np.concatenate([np.full((len(sums), 1), n), sums], axis=1)
