"""Draws of a grid point: OpenDP's map before them, their law between two candidates, and whole samples."""

from __future__ import annotations

import dataclasses
import math
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import opendp.prelude as dp
import pytest

from suffice.errors import SpecError
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.families.shared.one_sum import OneSum
from suffice.pipeline.rows.chunk.exact_sums import ExactTotals
from suffice.pipeline.rows.chunk.partition import chunk_job
from suffice.pipeline.rows.mechanism import held_noise, sampling
from suffice.pipeline.rows.mechanism.mechanism import privatize
from suffice.pipeline.rows.mechanism.noise import Sampler
from suffice.pipeline.rows.mechanism.sampling import CellSampler, Selector, exponential_mechanism
from suffice.pipeline.rows.reduce.tree import zero_sums
from suffice.pipeline.spec.plan import compile_plan
from suffice.pipeline.terms.statistics.exponential_draws import LARGEST_SAMPLE_SCALE
from suffice.pipeline.terms.statistics.sample_plan import ScoreTables, grid_values
from support.exact import collected
from support.samples import drawn, sample_of, sampled_spec

if TYPE_CHECKING:
    from suffice.pipeline.rows.chunk.exact_sums import Table

N_CELLS = 7
GROUPS = {"g": {"range": ["1", str(N_CELLS)]}}
SAMPLED = [name for name, family in FAMILIES.items() if family.sampled is not None]


@pytest.mark.parametrize("range_sensitivity", [2, 1_453_636, 10**9])
@pytest.mark.parametrize("epsilon", ["1", "0.1", "0.3", "7"])
def test_opendps_map_agrees_with_the_smallest_scale_and_refuses_less(
    range_sensitivity: int, epsilon: str
) -> None:
    allowed = Fraction(epsilon)
    scale = math.floor(range_sensitivity / allowed) + 1
    made = exponential_mechanism(scale=scale, range_sensitivity=range_sensitivity, rho=allowed**2 / 8)
    assert isinstance(made, Selector)
    larger = math.ceil(scale * allowed) + 2
    with pytest.raises(ValueError, match="privacy map exceeds"):
        exponential_mechanism(scale=scale, range_sensitivity=larger, rho=allowed**2 / 8)
    with pytest.raises(ValueError, match="privacy map exceeds"):
        exponential_mechanism(
            scale=scale,
            range_sensitivity=range_sensitivity,
            rho=(range_sensitivity / Fraction(scale + 1)) ** 2 / 8,
        )


@pytest.mark.parametrize("scale", [0, -1, LARGEST_SAMPLE_SCALE + 1])
def test_a_scale_out_of_range_is_refused(scale: int) -> None:
    with pytest.raises(ValueError, match="out of range"):
        exponential_mechanism(scale=scale, range_sensitivity=2, rho=Fraction(10**12))


def test_the_largest_scale_has_a_map_that_float64_resolves() -> None:
    """The scale is above the range over epsilon by one part in 2^46."""
    bound = LARGEST_SAMPLE_SCALE - 2
    exponential_mechanism(scale=LARGEST_SAMPLE_SCALE - 1, range_sensitivity=bound, rho=Fraction(1, 8))


def test_each_of_several_draws_is_checked_at_its_own_part_of_epsilon() -> None:
    """A scale that fits one draw of two would pay for half of them."""
    spec = sampled_spec({"flag": drawn("f")})
    (statistic,) = compile_plan(spec).statistics
    sample = sample_of(compile_plan(spec))
    assert sample.draws == 2
    colder = dataclasses.replace(statistic, sample=dataclasses.replace(sample, scale=sample.scale // 2 + 1))
    CellSampler.of(statistic, spec.statistics["flag"])
    with pytest.raises(ValueError, match="privacy map"):
        CellSampler.of(colder, spec.statistics["flag"])


@pytest.mark.parametrize("digits", [10, 15, 18, 25])
def test_an_epsilon_of_many_digits_leaves_the_map_its_room(digits: int) -> None:
    """A share that puts the range over epsilon just below an integer: the draw would be refused, charged."""
    statistics: dict[str, Any] = {"flag": drawn("f"), "other": {"family": "bernoulli", "column": "o"}}
    bound = sample_of(compile_plan(sampled_spec(statistics))).range_sensitivity
    of_flag = Fraction(2 * bound, 4 * bound + 1)  # of epsilon 1, for two draws
    share = math.ceil(of_flag / (1 - of_flag) * 10**digits)
    statistics["flag"]["share"] = f"{share // 10**digits}.{share % 10**digits:0{digits}d}"
    spec = sampled_spec(statistics)
    CellSampler.of(compile_plan(spec).statistics[0], spec.statistics["flag"])


@pytest.mark.parametrize(("end", "refused"), [("4e12", False), ("5e12", True)])
def test_a_range_that_opendps_map_cannot_take_is_refused_before_a_charge(end: str, *, refused: bool) -> None:
    sample = {"draws": "1", "within": ["1", end], "grid": "3", "prior": "Gamma(1, 1e-12)"}
    statistics = {"flag": {"family": "poisson", "column": "n", "upper": "9", "sample": sample}}
    spec = sampled_spec(statistics, epsilon="1000000")
    if refused:
        with pytest.raises(SpecError, match="more than 2\\^42 nats"):
            compile_plan(spec)
    else:
        CellSampler.of(compile_plan(spec).statistics[0], spec.statistics["flag"])


def share_of_the_better(measurement: Any, size: int) -> float:
    return float(np.mean([measurement([0, -1000]) == 0 for _ in range(size)]))


def test_of_two_candidates_one_scale_apart_the_better_wins_as_the_exponential_mechanism_says() -> None:
    """3,000 draws: the laws are 11 standard errors apart, bands of 5 each miss with chance 6e-7."""
    size = 3000
    exponential, flipped = 1 / (1 + math.exp(-1)), 1 - math.exp(-1) / 2
    made = exponential_mechanism(scale=1000, range_sensitivity=2, rho=Fraction(1, 8))
    spread = 5 * math.sqrt(exponential * (1 - exponential) / size)
    assert exponential == pytest.approx(0.731, abs=1e-3)
    assert flipped == pytest.approx(0.816, abs=1e-3)
    assert abs(share_of_the_better(made.measurement, size) - exponential) <= spread
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.linf_distance(T="i64")
    pure = dp.m.make_noisy_max(*space, dp.max_divergence(), scale=1000.0)
    share = share_of_the_better(pure, size)
    assert abs(share - flipped) <= 5 * math.sqrt(flipped * (1 - flipped) / size)
    assert abs(share - exponential) > spread, "permute-and-flip must be seen"


def test_scores_and_prior_at_their_ends_fit_in_64_bits() -> None:
    made = exponential_mechanism(scale=LARGEST_SAMPLE_SCALE, range_sensitivity=2, rho=Fraction(1, 8))
    scores = np.full(5, -(2**62) - 700 * LARGEST_SAMPLE_SCALE, np.int64)
    scores[3] = 0
    out = np.full(20, -1, np.int64)
    made.draw_into(scores, out)
    assert out.tolist() == [3] * 20  # another index has chance 4 exp(-2^16) a draw


def filled(spec: Any, n_rows: int, share: float) -> tuple[dict[str, Table], dict[str, float]]:
    """Sums of rows that all have about this share of T's range; and that share, by statistic."""
    sums, shares = {}, {}
    for name, table in zero_sums(chunk_job(spec)).items():
        low = table.low
        entry = spec.statistics[name]
        family = FAMILIES[entry.family]
        if table.high is None:
            low[:, 0], low[:, 1] = n_rows - round(n_rows * share), round(n_rows * share)
            shares[name] = round(n_rows * share) / n_rows
        else:
            width = family.block(entry, False).record_l1 or 0  # noqa: FBT003
            x = round(width * share)
            lowest = -width // 2 if entry.family == "normal_known_variance" else 0
            total = n_rows * (x + lowest)
            low[:, 0] = n_rows
            low[:, 1], table.high[:, 1] = total % 2**48, total // 2**48
            shares[name] = x / width
        sums[name] = table
    return sums, shares


ENDS = {
    **{key: ["0.05", "0.95"] for key in ("bernoulli", "binomial", "geometric", "negative_binomial")},
    "poisson": ["100", "900"],
    "exponential": ["0.005", "0.2"],
    "gamma": ["0.005", "0.2"],
    "weibull": ["0.0005", "0.02"],
    "pareto": ["0.1", "5"],
    "laplace": ["5", "40"],
    "normal_known_mean": ["300", "3000"],
    "normal_known_variance": ["0", "97"],
}


def entry_of(name: str) -> dict[str, Any]:
    sample = {"draws": "2", "within": ENDS[name], "grid": "97"}
    return {"family": name, **FAMILIES[name].example.entry, "sample": sample}


@pytest.mark.parametrize("name", SAMPLED)
def test_with_very_many_rows_every_draw_is_where_the_likelihood_is_highest(name: str) -> None:
    """From exact sums to the grid, through every family; at scores that differ by hundreds of scales."""
    spec = sampled_spec({"x": entry_of(name)}, epsilon="100", groups=GROUPS)
    plan = compile_plan(spec)
    sample = sample_of(plan)
    n_rows, parameters = 10**9, plan.statistics[0].parameters
    sums, shares = filled(spec, n_rows, 0.31)
    collected_x = collected(privatize(ExactTotals(sums), spec, plan))["x"]
    lower, upper = float(parameters.lower or 0), float(1 if parameters.upper is None else parameters.upper)
    mean = lower + (upper - lower) * shares["x"]
    family = FAMILIES[name]
    points = grid_values(sample.within, sample.grid)
    if name == "bernoulli":
        counts = np.array([(1 - mean) * n_rows, mean * n_rows])
        likelihood = family.log_likelihood(points, counts, parameters)
    else:
        sums_of_t = OneSum(n=np.array(float(n_rows)), total=np.array(mean * n_rows))
        likelihood = family.log_likelihood(points, sums_of_t, parameters)
    best, second = np.sort(likelihood)[::-1][:2]
    assert (best - second) / float(sample.temperature) > 200  # missed with chance 2 * 7 * 97 exp(-200)
    assert collected_x.shape == (N_CELLS, 2)
    assert collected_x.dtype == np.int64
    assert (collected_x == likelihood.argmax()).all()


MIXED = {
    "noisy": {"family": "bernoulli", "column": "f"},
    "flag": drawn("f", draws="3"),
    "count": {"family": "poisson", "column": "c", "upper": "5"},
    "units": drawn("h", within=["0.05", "0.95"], draws="1"),
}


def test_samples_and_noise_stand_in_one_release_in_the_plans_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held_noise, "BLOCK_DRAWS", 66)  # two cells of 33 points, 33 of two components
    spec = sampled_spec(MIXED, groups=GROUPS)
    blocks = [(name, block.shape) for name, block in privatize(no_rows(spec), spec, compile_plan(spec))]
    assert [name for name, _ in blocks] == ["noisy", *["flag"] * 4, "count", *["units"] * 4]
    assert [shape for name, shape in blocks if name == "flag"] == [(2, 3)] * 3 + [(1, 3)]
    assert sum(shape[0] for name, shape in blocks if name == "units") == N_CELLS


def no_rows(spec: Any) -> ExactTotals:
    return ExactTotals(zero_sums(chunk_job(spec)))


class Selected:
    """Keeps what draws are made by, and what they are."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.scores: list[Any] = []
        self.copies: list[Any] = []
        self.out: list[Any] = []
        original = Selector.draw_into

        def noted(selector: Selector, scores: Any, out: Any) -> None:
            self.copies.append(scores.copy())
            original(selector, scores, out)
            self.scores.append(scores)
            self.out.append(out)

        monkeypatch.setattr(Selector, "draw_into", noted)


def test_every_draw_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    selected = Selected(monkeypatch)
    spec = sampled_spec(MIXED, groups=GROUPS)
    collected(privatize(no_rows(spec), spec, compile_plan(spec)))
    assert sorted(map(len, selected.out)) == [1] * N_CELLS + [3] * N_CELLS


def test_every_map_is_checked_before_anything_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sample at the end of the plan whose scale is too small refuses the whole release."""
    selected, noise = Selected(monkeypatch), []
    monkeypatch.setattr(Sampler, "draw_into", lambda _, out: noise.append(out))
    spec = sampled_spec(MIXED, groups=GROUPS)
    plan, cheaper = (
        compile_plan(sampled_spec(MIXED, groups=GROUPS, epsilon=epsilon)) for epsilon in ("1", "2")
    )
    last = dataclasses.replace(plan.statistics[-1], sample=cheaper.statistics[-1].sample)
    with pytest.raises(ValueError, match="privacy map"):
        privatize(no_rows(spec), spec, dataclasses.replace(plan, statistics=(*plan.statistics[:-1], last)))
    assert not selected.out
    assert not noise


@pytest.mark.parametrize("end", ["taken", "closed", "a draw fails", "scores fail"])
def test_totals_scores_and_draws_are_overwritten_however_it_ends(
    monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    """Every array that scores stand in, also of a cell whose block never came to be drawn."""
    monkeypatch.setattr(held_noise, "BLOCK_DRAWS", 2 * 33)
    monkeypatch.setattr(held_noise, "CHUNK", 33)
    selected, written, calls = Selected(monkeypatch), [], []
    spec = sampled_spec({"flag": drawn("f")}, groups=GROUPS)
    sums, _ = filled(spec, 1000, 0.3)
    original_scores, original_draw = ScoreTables.scores, Selector.draw_into
    empty = np.zeros

    def zeros(shape: Any, kind: Any) -> Any:
        written.append(empty(shape, kind))
        return written[-1]

    def scores(tables: ScoreTables, n: int, total: int) -> list[int]:
        calls.append(n)
        if end == "scores fail" and len(calls) == 4:  # the second cell of the second block
            raise MemoryError
        return original_scores(tables, n, total)

    def draw_into(selector: Selector, scores: Any, out: Any) -> None:
        original_draw(selector, scores, out)
        if end == "a draw fails" and len(selected.out) > 2:
            raise MemoryError

    blocks = privatize(ExactTotals(sums), spec, compile_plan(spec))
    monkeypatch.setattr(sampling, "np", SimpleNamespace(zeros=zeros, rint=np.rint, int64=np.int64))
    monkeypatch.setattr(ScoreTables, "scores", scores)
    monkeypatch.setattr(Selector, "draw_into", draw_into)
    if end == "closed":
        next(blocks)
        blocks.close()
    elif end == "taken":
        for _, block in blocks:
            block.fill(0)  # as whoever writes it does
    else:
        with pytest.raises(MemoryError):
            list(blocks)
    assert not any(table.low.any() for table in sums.values())
    assert all(copy.any() for copy in selected.copies), "scores were there to be overwritten"
    of_scores = [array for array in written if array.shape[1] == 33]
    assert len(of_scores) >= 2 or end == "closed"
    assert not any(array.any() for array in of_scores)
    if end != "a draw fails":  # there, draws of a block taken before are the caller's
        assert not any(array.any() for array in selected.out)


def test_draws_are_independent_of_each_other() -> None:
    """Of 33 equal points: 200 draws are of more than 10, in every thread's cell."""
    spec = sampled_spec({"flag": drawn("f", prior="Beta(1, 1)")})
    sampler = CellSampler.of(compile_plan(spec).statistics[0], spec.statistics["flag"])
    scores, out = np.zeros((4, 33), np.int64), np.full((4, 200), -1, np.int64)
    with ThreadPoolExecutor(2) as threads:
        for draw in sampler.start(scores, out, threads):
            draw.result()
    assert out.min() >= 0
    assert out.max() <= 32
    assert all(len(np.unique(cell)) > 10 for cell in out)
    assert not (out[0] == out[1]).all()
