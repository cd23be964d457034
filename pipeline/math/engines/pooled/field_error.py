r"""How far expectation propagation on a map is off, for one release.

Model. With the exact factors t and normal ones of ``field_propagation``, the exact law of the field is the
normal one times :math:`\exp \sum_c r_c(\eta_c)`,

.. math:: r_c(\eta) = \log t_c(\eta) - \nu_c \eta + \tfrac 1 2 \tau_c \eta^2. \qquad (1)

Propagation takes :math:`r_c` into account for cell c itself, and no other's. Those of neighbours matter most:
the error of a cell is what its mean and standard deviation change by when they are weighed too,

.. math:: \Delta_c = \operatorname{E}_{r_c + \sum_{i \sim c} r_i}(\eta_c) - \operatorname{E}_{r_c}(\eta_c).
    \qquad (2)

Method. Both are means of the same draws of the normal field, weighed by importance, so that their difference
is known better than either; r is tabulated at ``_PLACES`` places of each cell, with cubics between.

References
----------
Paquet, Winther, Opper. Perturbation corrections in approximate inference. J. Mach. Learn. Res. 10, 2009.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.math.engines.pooled.cells import cubic
from suffice.pipeline.math.engines.pooled.field_gaussian import GaussianField

if TYPE_CHECKING:
    from suffice.pipeline.math.engines.pooled.field_lattice import FieldModel, FieldPoint
    from suffice.typing import Cells, Floats

_PLACES, _REACH = 23, 5.5
_DRAWS = 1000
_MOST = 2_000_000
"""Draws of all cells together, but for a hundred of each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldError:
    """What propagation is off by, in standard deviations of each cell's sum of level and field.

    Attributes
    ----------
    mean : ndarray of shape (n_cells,), float64
        (2).
    sd : ndarray of shape (n_cells,), float64
        What the standard deviation changes by, as a share of it.
    """

    mean: Floats
    sd: Floats

    @property
    def typical(self) -> float:
        """The root mean square of what means are off by."""
        return float(np.sqrt(np.mean(self.mean**2)))

    @property
    def largest(self) -> float:
        """What 99 of 100 cells' means are not off by."""
        return float(np.quantile(np.abs(self.mean), 0.99))

    @property
    def of_sd(self) -> float:
        """The root mean square of what standard deviations are off by, as a share."""
        return float(np.sqrt(np.mean(self.sd**2)))


def field_error(model: FieldModel, point: FieldPoint, pairs: Cells, rng: np.random.Generator) -> FieldError:
    """Return (2) at one point of the hyperparameters.

    Parameters
    ----------
    model : FieldModel
    point : FieldPoint
    pairs : ndarray of shape (n_pairs, 2), int64
        Neighbours, each pair once.
    rng : Generator
    """
    from scipy.sparse import coo_array

    law = GaussianField.of(model.field_map, model.scale(point.theta), point.sites)
    n = len(law.mean)
    draws = int(np.clip(_MOST // n, 100, _DRAWS))
    eta = law.drawn(draws, rng).T
    r = _log_ratios(model, point, law, eta)
    i, j = pairs.T
    neighbours = coo_array((np.ones(2 * len(pairs)), (np.r_[i, j], np.r_[j, i])), shape=(n, n)).tocsr()
    sd = np.sqrt(law.variance)[:, None]
    places = (eta - law.mean[:, None]) / sd
    alone, together = (_moments(places, each) for each in (r, r + neighbours @ r))
    return FieldError(mean=(together[0] - alone[0]) / alone[1], sd=together[1] / alone[1] - 1.0)


def _moments(places: Floats, log_weight: Floats) -> tuple[Floats, Floats]:
    weight = np.exp(log_weight - np.max(log_weight, axis=1, keepdims=True))
    weight /= np.sum(weight, axis=1, keepdims=True)
    mean = np.sum(weight * places, axis=1)
    return mean, np.sqrt(np.sum(weight * (places - mean[:, None]) ** 2, axis=1))


def _log_ratios(model: FieldModel, point: FieldPoint, law: GaussianField, eta: Floats) -> Floats:
    """Return (1) at sums (n_cells, n_draws), but for a constant of each cell."""
    measures, sd = model.measures(point.slope), np.sqrt(law.variance)
    # Own parts narrower than nodes are apart cannot be told from none.
    own = [(share, np.maximum(variance, measures.least)) for share, variance in model.own(point.theta)]
    places = np.linspace(-_REACH, _REACH, _PLACES)
    table = np.empty((len(sd), _PLACES))
    for number, place in enumerate(places.tolist()):
        at = law.mean + place * sd
        parts = measures.moments(at, [variance for _, variance in own])
        log_t = np.logaddexp.reduce(
            [np.log(share) + part[0] for (share, _), part in zip(own, parts, strict=True)], axis=0
        )
        table[:, number] = log_t - point.sites.nu * at + 0.5 * point.sites.tau * at**2
    step = places[1] - places[0]
    where = np.clip(((eta - law.mean[:, None]) / sd[:, None] + _REACH) / step, 0.0, _PLACES - 1.001)
    first = np.clip(where.astype(np.int64) - 1, 0, _PLACES - 4)
    rows = np.arange(len(sd))[:, None]
    taps = cubic(where - first)
    result: Floats = sum(table[rows, first + tap] * weight for tap, weight in enumerate(taps))
    return result
