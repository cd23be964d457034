r"""Noisy sums of a normal column, the linear functionals that they observe, and the conjugate prior.

With z = (x - centre) / half_range, t the sum of z and q that of its squares, every released component is
:math:`A N + B t + C q` plus Laplace noise, in records. In a cell of N records of mean m = t / N and mean
square deviation :math:`E = q / N - m^2` it is

.. math:: N (A + B m + C (m^2 + E)).
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Self

import numpy as np

from suffice.errors import PriorError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suffice.pipeline.math.priors.record_count import NPrior
    from suffice.pipeline.terms.released.noise_distribution import NoisyTotals
    from suffice.typing import Cells, Floats, Parts


BERNSTEIN = ((0.25, -0.5, 0.25), (0.5, 0.0, -0.5), (0.25, 0.5, 0.25))
"""(A, B, C) of ((1 - z) / 2)^2, 2 (1 - z) (1 + z) / 4 and ((1 + z) / 2)^2."""
MOMENTS = ((0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
"""(A, B, C) of t and q, beside a public N."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MomentsPrior:
    """A finite mixture of normal inverse gamma distributions of the mean and the variance of z.

    Attributes
    ----------
    weight, loc, precision, concentration, scale : ndarray of shape (n_parts,) or (1,), float64
        Numbers of every part, or one that all have. Weights sum to 1 over the parts.
    """

    weight: Floats
    loc: Floats
    precision: Floats
    concentration: Floats
    scale: Floats

    @classmethod
    def of(cls, parts: Sequence[tuple[float, float, float, float, float]]) -> Self:
        """Return the mixture of parts, each a weight, loc, precision, concentration and scale.

        Raises
        ------
        PriorError
            Where numbers are too large or too small for quadrature in float64.
        """
        columns = np.array(parts, dtype=np.float64).T
        for name, column in zip(("precision", "concentration", "scale"), columns[2:], strict=True):
            if not np.all((column >= 1e-15) & (column <= 1e12)):
                message = (
                    f"noise-aware posteriors need a prior whose {name} (in half ranges, from the centre) is "
                    "in 1e-15..1e12: choose another prior"
                )
                raise PriorError(message)
        if np.any(np.abs(columns[1]) > 1e6):
            message = (
                "noise-aware posteriors need a prior whose loc is within a million half ranges of the centre"
            )
            raise PriorError(message)
        columns[0] /= np.sum(columns[0])
        # What all parts share is not looked up part by part.
        weight, *others = (column[:1] if np.all(column == column[0]) else column for column in columns)
        loc, precision, concentration, scale = others
        return cls(weight=weight, loc=loc, precision=precision, concentration=concentration, scale=scale)

    @property
    def n_parts(self) -> int:
        """Number of parts."""
        return max(len(getattr(self, field.name)) for field in fields(self))

    def at(self, part: Parts) -> Self:
        """Return the numbers of the given parts: arrays like `part`, or (1,) where all share one."""
        return type(self)(
            **{
                field.name: value if len(value := getattr(self, field.name)) == 1 else value[part]
                for field in fields(self)
            }
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyMoments:
    """Noisy components and the distribution that they came from, in half ranges about the centre.

    Attributes
    ----------
    totals : NoisyTotals
        In records; coefficients are A, B and C.
    prior : MomentsPrior
        Of the mean and the variance of z.
    n_prior : NPrior
        The prior of N; ``Fixed`` where N is public.
    """

    totals: NoisyTotals
    prior: MomentsPrior
    n_prior: NPrior

    def take(self, cells: Cells) -> Self:
        """The given cells, in the given order."""
        return replace(self, totals=self.totals.take(cells))

    @property
    def least_concentration(self) -> float:
        """The least concentration that the variance's inverse gamma may have, given the latent sums."""
        return float(np.min(self.prior.concentration)) + self.n_prior.support[0] / 2.0

    def functionals(self) -> tuple[Floats, Floats]:
        r"""Functionals (n_rows, 3) and what was observed of them (n_cells, n_rows), in units of the noise.

        First the components, then the sums of each release's with every pattern of signs: as
        :math:`\sum_j |x_j| \ge |\sum_j \pm x_j|`, each of those bounds the log density of its noise as well,
        and one of them is it wherever no component changes sign.
        """
        scaled = self.totals.in_scales()
        rows, observed = scaled.coefficients, scaled.values
        rows_of_release = len(rows) // scaled.releases
        signs = np.array(
            [(1.0, *rest) for rest in itertools.product((1.0, -1.0), repeat=rows_of_release - 1)]
        )
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
