"""Rows drawn by variable elimination against the joint law, summed over all combinations."""

from __future__ import annotations

import numpy as np
from scipy.stats import chisquare

from suffice.pipeline.math.engines.elimination import Factor, drawn_rows

ROWS, FALSE_ALARM = 40_000, 1e-7
SIZES = {"a": 2, "b": 3, "c": 2, "d": 3}


def circle(rng: np.random.Generator) -> list[Factor]:
    """Return factors of two draws around a circle of four variables, with one impossible pair."""
    names = list(SIZES)
    factors = []
    for first, second in zip(names, [*names[1:], names[0]], strict=True):
        values = rng.gamma(2.0, size=(2, 1, SIZES[first], SIZES[second]))
        factors.append(Factor(variables=(first, second), values=values))
    factors[0].values[:, :, 0, 0] = 0.0
    return factors


def test_rows_have_the_joint_law_of_each_draw() -> None:
    """Chi-square of two laws of which every state expects 23 or more: below 1e-6, skewness included."""
    factors = circle(np.random.default_rng(7))
    codes = drawn_rows(factors, ROWS, np.random.default_rng())
    assert list(codes) == list(SIZES)
    joint = np.einsum("mab,mbc,mcd,mda->mabcd", *(factor.values[:, 0] for factor in factors))
    shape = tuple(SIZES.values())
    seen = []
    for draw in range(2):
        law = (joint[draw] / joint[draw].sum()).ravel()
        number = np.ravel_multi_index(tuple(codes[name][draw] for name in SIZES), shape)
        counts = np.bincount(number, minlength=law.size)
        assert not counts[law == 0.0].any()
        assert chisquare(counts[law > 0.0], ROWS * law[law > 0.0]).pvalue > FALSE_ALARM
        seen.append((counts, law))
    # The control: rows of one draw do not have the law of the other.
    counts, law = seen[0][0], seen[1][1]
    assert chisquare(counts[law > 0.0], ROWS * law[law > 0.0]).pvalue < FALSE_ALARM


def test_a_variable_alone_is_drawn_by_itself() -> None:
    factors = [
        Factor(variables=("a",), values=np.array([[[1.0, 3.0]]])),
        Factor(variables=("b",), values=np.array([[[0.0, 2.0]]])),
    ]
    codes = drawn_rows(factors, ROWS, np.random.default_rng())
    assert (codes["b"] == 1).all()
    # 6 standard errors: 2e-9.
    assert abs(codes["a"].mean() - 0.75) < 6 * np.sqrt(0.75 * 0.25 / ROWS)
