"""Counts of the records that clipping moved: what counts, what it costs, and what is refused."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

from suffice.errors import SpecError
from suffice.pipeline.rows.chunk import kernels
from suffice.pipeline.spec.compiled_statistics import block_of
from suffice.pipeline.spec.plan import compile_plan, measures
from suffice.pipeline.spec.spec import load_spec
from suffice.pipeline.terms.statistics.measure import LatticeColumn
from suffice.pipeline.terms.statistics.sensitivity import Design, NeighboringRelation
from support.record_vectors import record_vectors, squared_change

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from suffice.pipeline.spec.spec import Spec

NORMAL = {"family": "normal", "column": "x", "lower": "-1", "upper": "1"}
BY_CUSTOMER = {"column": "u", "max_rows": "3"}


def spec_of(entry: Mapping[str, Any], neighboring: str = "add_or_remove_one", **more: Any) -> Spec:
    return load_spec(
        {
            "name": "n",
            "dataset": "d",
            "source": {"parquet": "/x"},
            "privacy": {"epsilon": "1", "neighboring": neighboring, **more.pop("privacy", {})},
            "statistics": {"s": {"count_clipped": "true", **entry}},
            **more,
        }
    )


def records(spec: Spec, values: pa.Array) -> NDArray[Any]:
    """Return the totals of each record: each in a cell of its own."""
    return record_vectors(spec, pa.record_batch({"x": values}))


def counts(spec: Spec, values: Sequence[Any], kind: pa.DataType | None = None) -> list[tuple[int, int]]:
    """Return what each value adds to n_below and n_above, by the released quantities' maps."""
    plan = compile_plan(spec).statistics[0]
    totals = records(spec, pa.array(values, kind or pa.float64(), from_pandas=False))
    below, above = (
        [sum(row[position] * weight for position, weight in quantity.coefficients.items()) for row in totals]
        for quantity in plan.quantities
        if quantity.name in {"n_below", "n_above"}
    )
    return list(zip(map(int, below), map(int, above), strict=True))


NEITHER, BELOW, ABOVE = (0, 0), (1, 0), (0, 1)


@pytest.mark.parametrize("weight", ["0.0625", "0.3", "1"])
def test_what_lies_strictly_beyond_a_bound_counts_once_on_its_side(weight: str) -> None:
    spec = spec_of({**NORMAL, "count_clipped": {"weight": weight}})
    values = [-np.inf, -1.1, np.nextafter(-1.0, -2.0), -1.0, 0.0, 1.0, np.nextafter(1.0, 2.0), np.inf, np.nan]
    expected = [BELOW] * 3 + [NEITHER] * 3 + [ABOVE] * 2 + [NEITHER]
    assert counts(spec, values) == expected


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64(), pa.decimal128(9, 3), pa.float16()])
def test_a_value_written_as_the_bound_is_at_it_in_any_width(kind: pa.DataType) -> None:
    spec = spec_of({**NORMAL, "lower": "0.1", "upper": "0.7"})
    written = [0.1, 0.7] if pa.types.is_floating(kind) else ["0.1", "0.7"]
    values = pa.array(
        np.array(written, np.float16) if kind == pa.float16() else written,
        pa.string() if pa.types.is_decimal(kind) else kind,
    ).cast(kind)
    plan = compile_plan(spec).statistics[0]
    assert not records(spec, values)[:, -2:].any(), plan.name


@pytest.mark.parametrize(
    ("entry", "inside", "below", "above"),
    [
        ({"family": "lognormal", "lower": "0.5", "upper": "8"}, [0.5, 8.0], [-1.0, 0.0, 0.49], [8.01]),
        ({"family": "poisson", "upper": "3"}, [0, 3], [-1], [4, 99]),
        ({"family": "geometric", "upper": "3"}, [0, 3], [-1], [4]),
        ({"family": "negative_binomial", "successes": "2", "upper": "3"}, [0, 3], [-1], [4]),
        ({"family": "binomial", "trials": "3"}, [0, 3], [-1], [4]),
        ({"family": "exponential", "upper": "2"}, [0.0, 2.0], [-0.1], [2.1]),
        ({"family": "gamma", "shape": "2", "upper": "2"}, [0.0, 2.0], [-0.1], [2.1]),
        ({"family": "weibull", "shape": "1.7", "upper": "3"}, [0.0, 3.0], [-0.1], [3.1]),
        ({"family": "pareto", "minimum": "2", "upper": "9"}, [2.0, 9.0], [0.0, 1.9], [9.1]),
        ({"family": "normal_known_variance", "variance": "1", "lower": "1", "upper": "3"}, [1, 3], [0], [4]),
    ],
)
def test_every_family_counts_by_the_bounds_of_its_column(
    entry: dict[str, str], inside: list[float], below: list[float], above: list[float]
) -> None:
    spec = spec_of({"column": "x", **entry})
    expected = [NEITHER] * len(inside) + [BELOW] * len(below) + [ABOVE] * len(above)
    assert counts(spec, [*inside, *below, *above]) == expected


def test_a_null_counts_as_its_value_does() -> None:
    assert counts(spec_of(NORMAL), [None, np.nan]) == [NEITHER] * 2
    for value, side in (("0", NEITHER), ("1", NEITHER), ("1.5", ABOVE), ("-2", BELOW)):
        assert counts(spec_of({**NORMAL, "nulls": {"value": value}}), [None, np.nan, 0.5]) == [
            side,
            side,
            NEITHER,
        ]
        assert counts(spec_of({**NORMAL, "nulls": {"value": value}}), [None, None]) == [side] * 2


@pytest.mark.slow
def test_a_record_counts_only_where_its_lattice_value_is_the_end() -> None:
    """A bound's logarithm is rounded to 2^-32: just above it a value may lie below the end."""
    missed = 0
    for step in range(200):
        upper = f"1.0000{100 + step}"
        spec = spec_of(
            {"family": "lognormal", "column": "x", "lower": "1", "upper": upper, "lattice_bits": "24"}
        )
        (of, _) = measures(spec)["s"].reads
        assert isinstance(of, LatticeColumn)
        assert of.transform is not None
        just_above = np.nextafter([float(upper)], np.inf)
        at_end = of.quantiser.quantise(of.transform.apply(just_above))[0] == 1 << 24
        missed += not at_end
        assert counts(spec, just_above.tolist()) == [ABOVE if at_end else NEITHER]
    assert missed, "no bound was hard: nothing was tested"


DESIGNS = {
    "private": ("add_or_remove_one", {}),
    "replaced": ("replace_one", {}),
    "public": ("replace_one", {"nulls": {"value": "0"}}),
}


def largest_change(vectors: NDArray[Any], neighboring: str) -> int:
    if neighboring == "add_or_remove_one":
        return int(np.abs(vectors).sum(axis=1).max())
    return int(max(np.abs(vectors - vector).sum(axis=1).max() for vector in vectors))


@pytest.mark.parametrize("weight", ["0.0625", "0.25", "0.36", "0.37", "1"])
@pytest.mark.parametrize("bits", [2, 3, 4])
@pytest.mark.parametrize("design", DESIGNS)
def test_the_sensitivity_is_that_of_all_neighbours(design: str, bits: int, weight: str) -> None:
    """M = 4, 8, 16: every lattice value, and values moved to each end."""
    neighboring, more = DESIGNS[design]
    entry = {**NORMAL, "lattice_bits": str(bits), "count_clipped": {"weight": weight}, **more}
    spec = spec_of(entry, neighboring)
    plan, steps = compile_plan(spec).statistics[0], 1 << bits
    assert (plan.design is Design.MINIMAL) == (design == "public")
    values = pa.array([*(step / steps for step in range(-steps, steps + 1)), -2.0, 2.0])
    vectors = records(spec, values)
    assert largest_change(vectors, neighboring) == plan.l1_sensitivity
    block = block_of(spec.statistics["s"], n_may_be_public=design == "public")
    from_none = np.concatenate([np.zeros_like(vectors[:1]), vectors])
    squared = squared_change(from_none if design == "private" else vectors, neighboring)
    assert squared == block.l2_squared(NeighboringRelation(neighboring))
    share = Fraction(weight)
    base = 25 * steps**2 // 16 if design == "public" else 4 * steps**2
    a = -(-base * share // 1)
    assert plan.counted is not None
    assert plan.counted.weight == a
    expected = {
        "private": base + a,
        "replaced": 2 * base + 2 * a,
        "public": base + a if a <= Fraction(9, 16) * steps**2 else steps**2 + 2 * a,
    }
    assert plan.l1_sensitivity == expected[design]


@pytest.mark.parametrize("mutant", ["both sides", "weight of two", "counted at the end"])
@pytest.mark.parametrize("design", DESIGNS)
def test_counting_otherwise_is_caught(monkeypatch: pytest.MonkeyPatch, design: str, mutant: str) -> None:
    neighboring, more = DESIGNS[design]
    spec = spec_of({**NORMAL, "lattice_bits": "2", **more}, neighboring)
    values = pa.array([*(step / 4 for step in range(-4, 5)), -2.0, 2.0])
    plan = compile_plan(spec).statistics[0]
    if mutant == "counted at the end":

        def at_the_end(lattice: Any, _sides: Any, lowest: int, highest: int, out: NDArray[Any]) -> None:
            out[:] = np.select([lattice == lowest, lattice == highest], [0, 1], -1)

        monkeypatch.setattr(kernels, "keep_sides_at_ends", at_the_end)
        assert records(spec, values)[:, -2:].astype(bool).sum() > 2, "natural bounds would count"
        return
    vectors = records(spec, values)
    moved = vectors[:, -2:].copy()
    vectors[:, -2:] = moved + moved[:, ::-1] if mutant == "both sides" else 2 * moved
    if (mutant, design) == ("both sides", "replaced"):
        # From one end to the other such counts stay; what a record adds by itself is too much all the same.
        assert largest_change(vectors, "add_or_remove_one") > plan.l1_sensitivity // 2
        return
    assert largest_change(vectors, neighboring) > plan.l1_sensitivity


def test_what_is_not_counted_is_the_same_plan_as_ever() -> None:
    plain = {**NORMAL, "count_clipped": "false"}
    without = load_spec(
        {
            "name": "n",
            "dataset": "d",
            "source": {"parquet": "/x"},
            "privacy": {"epsilon": "1", "neighboring": "add_or_remove_one"},
            "statistics": {"s": NORMAL},
        }
    )
    assert compile_plan(spec_of(plain)).canonical == compile_plan(without).canonical
    in_words = compile_plan(spec_of(NORMAL))
    in_numbers = compile_plan(spec_of({**NORMAL, "count_clipped": {"weight": "0.0625"}}))
    assert in_words.plan_hash == in_numbers.plan_hash
    assert in_words.plan_hash != compile_plan(without).plan_hash


@pytest.mark.parametrize(
    ("entry", "more", "said"),
    [
        ({"family": "bernoulli", "column": "x"}, {}, "bernoulli does not count what clipping moved"),
        (
            {"family": "laplace", "column": "x", "location": "0", "half_range": "1"},
            {},
            "laplace does not count what clipping moved",
        ),
        ({**NORMAL, "rows_of": "units"}, {"privacy": {"unit": BY_CUSTOMER}}, "each unit counts once"),
        ({**NORMAL, "within_unit": "true"}, {"privacy": {"unit": BY_CUSTOMER}}, "within_unit is stated too"),
        (
            {
                "family": "poisson",
                "column": "x",
                "upper": "5",
                "sample": {"draws": "1", "within": ["0.1", "2"], "grid": "9"},
            },
            {},
            "sample is stated too",
        ),
        ({**NORMAL, "count_clipped": {"weight": "0"}}, {}, "between 0.001 and 1"),
        ({**NORMAL, "count_clipped": {"weight": "1.5"}}, {}, "between 0.001 and 1"),
        ({**NORMAL, "count_clipped": {"share": "1"}}, {}, "weight: 0.25"),
        ({**NORMAL, "count_clipped": "instead"}, {}, "neither true nor false"),
    ],
)
def test_what_cannot_be_counted_is_refused_by_name(
    entry: dict[str, Any], more: dict[str, Any], said: str
) -> None:
    with pytest.raises(SpecError, match=said) as refused:
        spec_of(entry, **more)
    assert "count_clipped" in str(refused.value)
