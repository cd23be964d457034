"""Prices of one width with and without counts of moved records: the sums' noise is the same at each."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pytest

from suffice.pipeline.ask.planning.epsilon_search import counts_beside
from suffice.pipeline.spec.plan import compile_plan
from suffice.pipeline.spec.spec import load_spec

if TYPE_CHECKING:
    from suffice.pipeline.spec.spec import Spec


def spec_of(neighboring: str, epsilon: str = "1", **entry: Any) -> Spec:
    return load_spec(
        {
            "name": "planned",
            "dataset": "planned",
            "source": {"parquet": "rows/"},
            "privacy": {"epsilon": epsilon, "neighboring": neighboring},
            "statistics": {"delay": {"column": "d", **entry}},
        }
    )


NORMAL: dict[str, Any] = {"family": "normal", "lower": "-60", "upper": "180"}


@pytest.mark.parametrize("neighboring", ["add_or_remove_one", "replace_one"])
@pytest.mark.parametrize("stated", [None, "0.1"])
def test_the_noise_of_the_sums_is_the_same_at_every_price(neighboring: str, stated: str | None) -> None:
    counted: dict[str, Any] = {} if stated is None else {"count_clipped": {"weight": stated}}
    found = counts_beside(spec_of(neighboring, **NORMAL, **counted), "delay", Fraction(1, 10))
    assert found is not None
    assert found.stated == (None if stated is None else Fraction(stated))
    weights = [price.weight for price in found.prices]
    own = [] if stated is None else [Fraction(stated)]
    assert weights == sorted([Fraction(1, 16), Fraction(1, 4), Fraction(1), *own])

    def sd_of(quantity: str, epsilon: Fraction, **entry: Any) -> float:
        (plan,) = compile_plan(spec_of(neighboring, f"{float(epsilon):.6f}", **NORMAL, **entry)).statistics
        (chosen,) = (each for each in plan.quantities if each.name == quantity)
        return plan.quantity_noise_sd(chosen)

    alone = sd_of("total", found.epsilon_without)
    for price in found.prices:
        entry = {"count_clipped": {"weight": f"{float(price.weight)}"}}
        assert sd_of("total", price.epsilon, **entry) == pytest.approx(alone, rel=1e-4)
        assert sd_of("n_above", price.epsilon, **entry) == pytest.approx(price.noise_sd, rel=1e-4)
    (as_stated,) = [price.epsilon for price in found.prices if price.weight == found.stated] or [
        found.epsilon_without
    ]
    assert as_stated == Fraction(1, 10)
    # A control: at the price without counts a release with them has noisier sums.
    assert sd_of("total", found.epsilon_without, count_clipped={"weight": "1"}) > 1.5 * alone


def test_families_that_count_nothing_have_no_such_prices() -> None:
    spec = spec_of("add_or_remove_one", family="bernoulli")
    assert counts_beside(spec, "delay", Fraction(1)) is None
