r"""How strongly the variables of a field go together, pair by pair, and whether its tables agree.

The effects of an edge ij over categories sum to 0 over each variable. Its strength is their standard
deviation over the pairs of categories,

.. math:: s_{ij} = \lVert\theta_{ij}\rVert / \sqrt{K_i K_j}

which is 0 where the two variables are independent given all others, and never negative: a central interval of
it does not hold 0, and says nothing of independence. Read it beside the prior's. With coefficients
Normal(0, s^2) of orthonormal contrasts,

.. math:: s_{ij} \sim \frac{s}{\sqrt{K_i K_j}} \, \chi_d, \qquad d = (K_i - 1)(K_j - 1)

Log odds ratios have a sign. Of categories a and b, against the first ones of both variables,

.. math:: \lambda(a, b) = \theta_{ij}(a, b) - \theta_{ij}(a, 0) - \theta_{ij}(0, b) + \theta_{ij}(0, 0)

whatever the others are. Of two variables of two categories each, the strength is a quarter of its size.

How well tables agree with each other is a posterior predictive chance (Gelman, Meng, Stern 1996): that of
noise with a larger sum of sizes, over entries of a table, than what lies between released and latent counts,

.. math:: P\bigl(\mathrm{Gamma}(K, 1) > \textstyle\sum_k |y_k - (M m)_k| / b\bigr)

So it is of all tables together, which neither chains nor where a contradiction lies can move. The smallest of
these chances, times their number, bounds the chance of so small a one where tables agree.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.errors import UsageError
from suffice.pipeline.ask.models.rows_and_draws import DrawnQuantity
from suffice.pipeline.math.engines.field import contrasts
from suffice.pipeline.math.parameters import arguments

if TYPE_CHECKING:
    from collections.abc import Mapping

    from suffice.pipeline.terms.statistics.count_table import CountTable, Variable
    from suffice.typing import Floats

BELOW = 0.1
"""The strength that edges are compared with: of two categories each, odds ratios of 0.67 and 1.49."""
DOUBTED, REFUSED = 1e-3, 1e-6
"""Bounds of the chance below which tables are said to disagree, and are refused."""
TOGETHER = "all tables together"
STRENGTH = (
    "strength: standard deviation of a pair's effects over categories, 0 where independent given all others; "
    "of two categories each, a quarter of the log odds ratio's size"
)
LOG_ODDS = (
    "log odds ratio: of these categories against the first of both, given all others; 0 where independent"
)


def of_below(below: float, draws: int) -> str:
    """Return in words what the probabilities of strengths are of."""
    return (
        f"probability_below: that the strength is below {below:g}, of {draws} draws; prior_...: the same "
        "numbers by the prior alone, without the release"
    )


def strength_row(
    part: Floats, sizes: tuple[int, int], sd: float, mass: float, below: float
) -> dict[str, float]:
    """Summarise the strength of an edge, beside the prior's.

    Parameters
    ----------
    part : ndarray of shape (n_draws, d), float64
        Coefficients of the edge.
    sizes : (int, int)
        Numbers of categories.
    sd : float
        The prior standard deviation of a coefficient.
    mass, below : float
    """
    from scipy.stats import chi

    # Contrasts are orthonormal: the norm of coefficients is that of effects.
    root = math.sqrt(math.prod(sizes))
    strength = DrawnQuantity(draws=np.linalg.norm(part, axis=1) / root)
    prior = chi(part.shape[1], scale=sd / root)
    lower, upper = prior.ppf(arguments.ends_of(mass))
    return {name: float(value) for name, value in strength.summary(mass).items()} | {
        "probability_below": float(np.mean(strength.draws < below)),
        "prior_lower": float(lower),
        "prior_upper": float(upper),
        "prior_probability_below": float(prior.cdf(below)),
    }


def log_odds_rows(part: Floats, variables: tuple[Variable, Variable], mass: float) -> list[dict[str, Any]]:
    """Summarise the log odds ratios of an edge, a row each; coefficients (n_draws, d)."""
    first, second = (variable.categories for variable in variables)
    rows_of, columns_of = contrasts(len(first)), contrasts(len(second))
    coefficients = part.reshape(len(part), len(first) - 1, len(second) - 1)
    ratios = (rows_of[1:] - rows_of[0]) @ coefficients @ (columns_of[1:] - columns_of[0]).T
    drawn = DrawnQuantity(draws=ratios)
    numbers, above = drawn.summary(mass), drawn.probability(above=0.0)
    return [
        {
            "first": variables[0].name,
            "second": variables[1].name,
            "first_category": first[i + 1],
            "second_category": second[j + 1],
            **{name: float(values[i, j]) for name, values in numbers.items()},
            "probability_above": float(above[i, j]),
        }
        for i, j in itertools.product(range(len(first) - 1), range(len(second) - 1))
    ]


def agreement_of(
    counts: Floats, scales: Floats, latent: Floats, tables: Mapping[str, CountTable]
) -> tuple[dict[str, float], float]:
    """Return the chance of more noise, of each table and of all together.

    Counts and scales are (K,), latent entries (n_draws, K).
    """
    from scipy.special import gammaincc

    sizes = np.abs(counts - latent) / scales
    parts = np.split(sizes, np.cumsum([table.size for table in tables.values()])[:-1], axis=1)
    each, together = (
        [float(np.mean(gammaincc(part.shape[1], part.sum(axis=1)))) for part in several]
        for several in (parts, [sizes])
    )
    return dict(zip(tables, each, strict=True)), together[0]


def worst_of(agreement: Mapping[str, float], together: float) -> tuple[str, float, float]:
    """Return what agrees least, its chance, and a bound of the chance of so small a one."""
    chances = {**agreement, TOGETHER: together}
    name = min(chances, key=lambda each: chances[each])
    return name, chances[name], min(1.0, chances[name] * len(chances))


def disagreement(agreement: Mapping[str, float], together: float) -> str:
    """Say that tables disagree; empty where nothing says so."""
    name, chance, bound = worst_of(agreement, together)
    if not bound < DOUBTED:
        return ""
    return (
        f"tables DISAGREE, and intervals are not to be relied on: noise has a chance of {chance:.1e} to lie "
        f"as far from any field as {name}; they may be of different rows, as where a column has nulls"
    )


def require_agreement(agreement: Mapping[str, float], together: float) -> None:
    """Refuse tables that contradict each other."""
    name, chance, bound = worst_of(agreement, together)
    if bound < REFUSED:
        message = (
            f"the tables contradict each other: noise has a chance of {chance:.1e} to lie as far from any "
            f"field as {name} (refused below {REFUSED / (len(agreement) + 1):.1e}). They are of different "
            "rows, as where a column has nulls: release tables of the same rows, with a category for nulls, "
            "or name tables that share no variable"
        )
        raise UsageError(message)
