r"""How far expectation propagation on a map is off, for one release.

Model. With the exact factors t and normal ones of ``field_propagation``, the exact law of the field is the
normal one times :math:`\exp \sum_c r_c(\eta_c)`,

.. math:: r_c(\eta) = \log t_c(\eta) - \nu_c \eta + \tfrac 1 2 \tau_c \eta^2, \qquad (1)

where levels have such a term of their hyperprior. Propagation takes :math:`r_c` into account for cell c
itself, and no other's. The error of a cell is what its mean and standard deviation change by when others are
weighed too,

.. math::
    \Delta_c = \operatorname{E}_{r_c + \sum_{i \in A} r_i}(\eta_c) - \operatorname{E}_{r_c}(\eta_c).
    \qquad (2)

A is all cells and levels where weights allow: where the draws are worth at least ``_LEAST`` of as many
without weights. Of larger maps it is the cells within two steps.

Method. Both are means of the same draws, weighed by importance, so that their difference is known better than
either; r is tabulated at ``_PLACES`` places of each cell, with cubics between. Draws are an even mixture of
the normal law and of ones that are wider by :math:`1 + k / \sqrt n`, k of ``_WIDER`` and n its dimension:
they reach the long tails of what cells say, and no weight is more than three times that under the normal
law. Of four cells under noise larger than their counts (2) is .04 and 7 to 10 %, as by quadrature.

References
----------
Paquet, Winther, Opper. Perturbation corrections in approximate inference. J. Mach. Learn. Res. 10, 2009.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.math.engines.pooled.cells import cubic
from suffice.pipeline.math.engines.pooled.field_gaussian import GaussianField, Sites

if TYPE_CHECKING:
    from suffice.pipeline.math.engines.pooled.field_lattice import FieldModel, FieldPoint
    from suffice.typing import Cells, Floats

_PLACES, _REACH = 45, 11.0
_WIDER = (0.0, 2.0, 4.0)
_DRAWS, _LEAST = 20_000, 0.1
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
    is_of_all : bool
        Whether all cells were weighed; those within two steps otherwise.
    """

    mean: Floats
    sd: Floats
    is_of_all: bool

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
    from scipy.sparse import coo_array, eye_array

    law = GaussianField.of(model.field_map, model.scale(point.theta), point.sites)
    n = len(law.mean)
    draws = int(np.clip(_MOST // n, 100, _DRAWS))
    sites = point.sites
    eta, levels, of_draws = _drawn(law, sites, draws, rng)
    r = _log_ratios(model, point, law, eta)
    of_levels = model.prior.log_density(levels) - sites.level_nu * levels + 0.5 * sites.level_tau * levels**2
    whole = np.sum(r, axis=0) + np.sum(of_levels, axis=1) + of_draws
    weight = np.exp(whole - np.max(whole))
    is_of_all = bool(np.sum(weight) ** 2 > _LEAST * draws * np.sum(weight**2))
    if is_of_all:
        others = np.broadcast_to(whole, r.shape)
    else:
        i, j = pairs.T
        step = coo_array((np.ones(2 * len(pairs)), (np.r_[i, j], np.r_[j, i])), shape=(n, n)).tocsr()
        near = step + step @ step + eye_array(n)
        near.data[:] = 1.0
        others = np.asarray(near @ r) + of_draws
    sd = np.sqrt(law.variance)[:, None]
    places = (eta - law.mean[:, None]) / sd
    alone, together = (_moments(places, each) for each in (r + of_draws, others))
    return FieldError(
        mean=(together[0] - alone[0]) / alone[1], sd=together[1] / alone[1] - 1.0, is_of_all=is_of_all
    )


def _drawn(
    law: GaussianField, sites: Sites, draws: int, rng: np.random.Generator
) -> tuple[Floats, Floats, Floats]:
    """Return sums (n_cells, draws), levels (draws, n_levels), and log weights under the normal law."""
    sums, levels = law.drawn(draws, rng)
    n = law.n_dimensions
    widths = 1.0 + np.array(_WIDER) / n**0.5
    each = np.resize(widths, draws)[:, None]
    sums, levels = law.mean + each * (sums - law.mean), law.level_mean + each * (levels - law.level_mean)
    half = 0.5 * law.distance(sums, levels, sites)
    log_density = np.logaddexp.reduce([-half / width**2 - n * np.log(width) for width in widths], axis=0)
    return sums.T, levels, -half - log_density


def _moments(places: Floats, log_weight: Floats) -> tuple[Floats, Floats]:
    weight = np.exp(log_weight - np.max(log_weight, axis=1, keepdims=True))
    weight /= np.sum(weight, axis=1, keepdims=True)
    mean = np.sum(weight * places, axis=1)
    return mean, np.sqrt(np.sum(weight * (places - mean[:, None]) ** 2, axis=1))


def _log_ratios(model: FieldModel, point: FieldPoint, law: GaussianField, eta: Floats) -> Floats:
    """Return (1) at sums (n_cells, n_draws), but for a constant of each cell."""
    measures, sd = model.measures(point.slope), np.sqrt(law.variance)
    # Own parts narrower than nodes are apart cannot be told from none.
    residuals = [
        (share, np.maximum(variance, measures.least)) for share, variance in model.residuals(point.theta)
    ]
    places = np.linspace(-_REACH, _REACH, _PLACES)
    table = np.empty((len(sd), _PLACES))
    for number, place in enumerate(places.tolist()):
        at = law.mean + place * sd
        parts = measures.moments(at, [variance for _, variance in residuals])
        log_t = np.logaddexp.reduce(
            [np.log(share) + part[0] for (share, _), part in zip(residuals, parts, strict=True)], axis=0
        )
        table[:, number] = log_t - point.sites.nu * at + 0.5 * point.sites.tau * at**2
    step = places[1] - places[0]
    where = np.clip(((eta - law.mean[:, None]) / sd[:, None] + _REACH) / step, 0.0, _PLACES - 1.001)
    first = np.clip(where.astype(np.int64) - 1, 0, _PLACES - 4)
    rows = np.arange(len(sd))[:, None]
    taps = cubic(where - first)
    result: Floats = sum(table[rows, first + tap] * weight for tap, weight in enumerate(taps))
    return result
