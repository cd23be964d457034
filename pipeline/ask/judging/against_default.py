r"""How many times as probable what was released is under the family's default prior as under the stated one.

With y the released values of a cell, :math:`\pi` the stated prior and :math:`\pi_0` the default, which is
spread over scales,

.. math:: B = \frac{p(y \mid \pi_0)}{p(y \mid \pi)}, \qquad E(B \mid \pi) = 1 .

So whatever the default is, :math:`P(B \ge 1 / \alpha \mid \pi) \le \alpha` by Markov's inequality. The
same holds of the product over cells whose parameters were drawn from the stated prior, each by itself.

Tails of the prior predictive judge every cell alone. A prior that noise multiplies moves every interval by
its width, while no cell alone is as far out as one in thousands. All together they tell.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from suffice.errors import UsageError
from suffice.pipeline.ask.judging.evidence import log_evidence_of, noise_constant
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.math.engines.one_sum.nodes import batches, resolve
from suffice.pipeline.math.priors.mixtures import SpreadScale

if TYPE_CHECKING:
    from suffice.pipeline.ask.judging.judged import Judged
    from suffice.typing import Floats


MOST = 1024
"""Cells that are compared; of more, so many evenly spaced ones: some two seconds of one processor."""


def log_bayes_factors(posterior: Judged) -> tuple[str, Floats]:
    """Return the default prior as text, and log B of the cells that are compared, (n_cells_compared,).

    Empty where the family's default is not spread over scales, is the stated prior itself, or where the
    posterior has no evidence.
    """
    family = FAMILIES.get(posterior.family)
    if family is None or family.latent is None or len(posterior.observed) != 1:
        return "", np.zeros(0)
    (statistic,) = posterior.observed
    default = family.default_prior(statistic.plan.parameters)
    if not isinstance(default, SpreadScale) or default == posterior.prior or posterior.n_prior is None:
        return "", np.zeros(0)
    try:
        stated = log_evidence_of(posterior)
    except UsageError:
        return "", np.zeros(0)
    cells = np.unique(np.linspace(0, len(stated) - 1, min(MOST, len(stated))).astype(np.int64))
    sums, _ = family.latent(statistic.take(cells), default, posterior.n_prior)
    of_default = np.concatenate([resolve(sums.take(batch)).log_evidence for batch in batches(sums)])
    return str(default), of_default + noise_constant(statistic) - stated[cells]
