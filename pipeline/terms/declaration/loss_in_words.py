r"""What a loss of rho means, in words: approximate privacy at three deltas, and how well anybody can guess.

Who holds two neighbouring data sets x, x' as equally likely, and sees what M released, tells them apart with
a chance of at most

.. math::
    \frac12 + \frac{\mathrm{TV}(M(x), M(x'))}{2}, \qquad
    \mathrm{TV} \le \min\Bigl(\sqrt{\mathrm{KL} / 2}, \sqrt{1 - e^{-\mathrm{KL}}}\Bigr), \qquad
    \mathrm{KL}(M(x) \,\|\, M(x')) \le \rho

by Pinsker's inequality and that of Bretagnolle and Huber (1979); the last one is the limit of rho's
definition for alpha towards 1.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from suffice.pipeline.terms.declaration.delta import shown_epsilons

if TYPE_CHECKING:
    from fractions import Fraction

    from suffice.pipeline.terms.declaration.privacy_loss import PrivacyLoss


def with_epsilons(loss: PrivacyLoss) -> str:
    """Return a loss as people read it; of rho, with the epsilon at three deltas.

    Examples
    --------
    >>> from fractions import Fraction
    >>> from suffice.pipeline.terms.declaration.privacy_loss import PrivacyLoss
    >>> with_epsilons(PrivacyLoss.of_rho(Fraction("0.02435")))
    'rho 0.02435: (epsilon, delta) at most (1, 1e-6), (1.29, 1e-9), (1.53, 1e-12)'
    """
    return str(loss) if loss.rho is None else f"{loss}: (epsilon, delta) at most {shown_epsilons(loss.rho)}"


def factor_of_rho(rho: Fraction) -> str:
    """Say how far a change of one unit moves what is released, after "with or without it,".

    Examples
    --------
    >>> from fractions import Fraction
    >>> factor_of_rho(Fraction("0.02435"))[-88:]
    'for (epsilon, delta) = (1, 1e-6), (1.29, 1e-9), (1.53, 1e-12), and so on for every delta'
    """
    return (
        "no set of possible releases is more probable than e to the epsilon times what it is otherwise, plus "
        f"delta: for (epsilon, delta) = {shown_epsilons(rho)}, and so on for every delta"
    )


def guessing_chance(rho: Fraction) -> float:
    """Return the most often that anybody is right about one unit that is as likely there as not.

    Parameters
    ----------
    rho : Fraction, > 0

    Returns
    -------
    float
        A probability from 0.5 to 1, rounded up.

    Examples
    --------
    >>> from fractions import Fraction
    >>> round(guessing_chance(Fraction("0.02435")), 3)
    0.555
    """
    divergence = float(rho)
    distance = min(math.sqrt(divergence / 2), math.sqrt(-math.expm1(-divergence)))
    return min(1.0, (0.5 + distance / 2) * (1 + 1e-12))


def guessing_text(rho: Fraction) -> str:
    """Return :func:`guessing_chance` as a percentage, rounded up: ``55.6 %``.

    Examples
    --------
    >>> from fractions import Fraction
    >>> guessing_text(Fraction("0.02435"))
    '55.6 %'
    """
    return f"{math.ceil(1000 * guessing_chance(rho)) / 10:g} %"
