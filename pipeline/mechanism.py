"""The mechanism: exact totals in, noisy totals out, once. Claims and proof in ``mechanism.md``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.exact import to_python
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.noise import discrete_laplace

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from suffice.pipeline.exact import Sums
    from suffice.pipeline.plan import Plan
    from suffice.pipeline.spec import Spec


def privatize(sums: Sums, spec: Spec, plan: Plan) -> dict[str, NDArray[np.object_]]:
    r"""Add discrete Laplace noise to every component of every statistic in every cell.

    .. math:: Y = S + Z, \qquad Z_i \sim \mathrm{DLap}(b_j) \text{ independently}

    The exact totals exist in this function and in the memory of the cluster that summed them, nowhere else.
    Call it once per charge, after the charge entered ``drawing``.

    Parameters
    ----------
    sums : Sums
        What the pass over the data summed, exact.
    spec, plan : Spec, Plan
        The spec that was charged, and its plan.

    Returns
    -------
    dict of str to ndarray of object, shape (n_cells, n_components)
        Noisy components, Python integers in lattice units, by statistic.
    """
    # proof: draw-once
    exact = to_python(sums)
    noisy = {}
    for statistic in plan.statistics:
        entry = spec.statistics[statistic.name]
        totals = FAMILIES[statistic.family].totals(entry, statistic.design, exact[statistic.name])
        noise = discrete_laplace(
            totals.size,
            scale=statistic.scale,
            l1_sensitivity=statistic.l1_sensitivity,
            epsilon=statistic.epsilon,
        )
        noisy[statistic.name] = totals + np.array(noise, dtype=object).reshape(totals.shape)
    return noisy
