"""Released samples against the law that their manifest states, and the test against wrong laws.

A chi-square statistic over points of the grid that are merged until 25 draws are expected in each; the law
that is claimed fails with chance 1e-6, and the number of draws is one at which a wrong one passes with
chance 1e-7.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import opendp.prelude as dp
import pytest
from scipy import stats

from suffice.pipeline.rows.chunk.exact_sums import ExactTotals, Table
from suffice.pipeline.rows.mechanism.mechanism import privatize
from suffice.pipeline.rows.mechanism.sampling import CellSampler, Selector
from suffice.pipeline.spec.plan import compile_plan
from support.exact import collected
from support.samples import drawn, log_law, permute_and_flip, sample_of, sampled_spec

if TYPE_CHECKING:
    from suffice.pipeline.terms.statistics.sample_plan import SamplePlan
    from suffice.typing import Cells, Floats

FALSE_ALARM, MISSED = 1e-6, 1e-7
LEAST_EXPECTED = 25.0
TRUE, ALL = 6, 20
MEANS = {"add_or_remove_one": (0.350172, 0.0969), "replace_one": (0.386630, 0.1245)}


def merged(weights: Floats, law: Floats, size: int) -> Floats:
    """Add up neighbouring points until the law expects enough draws in each bin."""
    bins: list[float] = []
    expected = total = 0.0
    for weight, probability in zip(weights.tolist(), law.tolist(), strict=True):
        expected, total = expected + probability * size, total + weight
        if expected >= LEAST_EXPECTED:
            bins.append(total)
            expected = total = 0.0
    bins[-1] += total
    return np.array(bins)


def p_value(cells: Cells, law: Floats) -> float:
    """Return the chance of draws that are as far from a law as these."""
    size = cells.size
    counts = np.bincount(cells.ravel(), minlength=len(law)).astype(np.float64)
    observed, expected = merged(counts, law, size), merged(law, law, size) * size
    return float(stats.chi2.sf(((observed - expected) ** 2 / expected).sum(), len(expected) - 1))


def draws_needed(law: Floats, wrong: Floats) -> int:
    """Return how many draws a wrong law needs to be seen."""
    size = 500
    while True:
        true, other = merged(law, law, size), merged(wrong, law, size)
        limit = stats.chi2.isf(FALSE_ALARM, len(true) - 1)
        if stats.ncx2.cdf(limit, len(true) - 1, size * ((other - true) ** 2 / true).sum()) <= MISSED:
            return size
        size = size * 5 // 4


def posterior(sample: SamplePlan, temperature: float) -> Floats:
    """Return the tempered posterior of 6 of 20, from its formula."""
    points = sample.values()
    log_likelihood = TRUE * np.log(points) + (ALL - TRUE) * np.log1p(-points)
    return np.exp(log_law(log_likelihood, temperature, _log_prior(sample)))


def _log_prior(sample: SamplePlan) -> Floats:
    of = {"Beta(1, 1)": stats.beta(1, 1), "Beta(2, 1)": stats.beta(2, 1)}[sample.prior]
    logs: Floats = of.logpdf(sample.values())
    return logs


def released(size: int, **entry: Any) -> tuple[Cells, SamplePlan]:
    """Draw in many cells that all hold 6 of 20, by the mechanism itself."""
    neighboring = entry.pop("neighboring", "add_or_remove_one")
    draws = int(entry["draws"])
    n_cells = -(-size // draws)
    spec = sampled_spec(
        {"flag": drawn(**entry)},
        neighboring=neighboring,
        epsilon=str(draws),
        groups={"g": {"range": ["1", str(n_cells)]}},
    )
    plan = compile_plan(spec)
    sums = {"flag": Table(low=np.tile(np.array([[ALL - TRUE, TRUE]]), (n_cells, 1)))}
    return collected(privatize(ExactTotals(sums), spec, plan))["flag"], sample_of(plan)


def draw_like(entry: dict[str, Any], size: int, *, mutant: str) -> Cells:
    """Draw by the sampler with a wrong scale, or by OpenDP's other measure."""
    stated = dict(entry)
    neighboring = stated.pop("neighboring", "add_or_remove_one")
    spec = sampled_spec({"flag": drawn(**stated)}, neighboring=neighboring)
    plan = compile_plan(spec)
    sampler = CellSampler.of(plan.statistics[0], spec.statistics["flag"])
    scores = sampler.scores(np.array([[ALL - TRUE, TRUE]], dtype=object))[0]
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.linf_distance(T="i64")
    measure, divisor = dp.zero_concentrated_divergence(), 2.0
    if mutant == "permute and flip":
        measure, divisor = dp.max_divergence(), 1.0
    scale = sample_of(plan).scale / divisor
    out = np.zeros(size, np.int64)
    Selector(dp.m.make_noisy_max(*space, measure, scale=scale)).draw_into(scores, out)
    return out


def laws(entry: dict[str, Any]) -> tuple[SamplePlan, Floats, dict[str, Floats]]:
    """Return the law that a sample's plan claims, and those of two mutants."""
    _, sample = released(1, **entry)
    temperature = float(sample.temperature)
    law = posterior(sample, temperature)
    flipped = permute_and_flip(temperature * np.log(law), temperature)
    return sample, law, {"permute and flip": flipped, "half": posterior(sample, temperature / 2)}


@pytest.mark.slow
@pytest.mark.parametrize(("grid", "mutants"), [("5", ["permute and flip", "half"]), ("33", ["half"])])
def test_a_sample_is_of_the_tempered_posterior(grid: str, mutants: list[str]) -> None:
    entry = {"grid": grid, "draws": "1", "prior": "Beta(2, 1)"}
    _, law, wrong = laws(entry)
    size = max(draws_needed(law, wrong[mutant]) for mutant in mutants)
    cells, _ = released(size, **entry)
    assert p_value(cells, law) > FALSE_ALARM
    for mutant in mutants:
        assert p_value(draw_like(entry, size, mutant=mutant), law) <= FALSE_ALARM, mutant


@pytest.mark.audit
def test_on_a_fine_grid_no_number_of_draws_could_tell_permute_and_flip() -> None:
    """The largest of very many exponential variables is all but a Gumbel one; coarse grids tell."""
    _, law, wrong = laws({"grid": "1025", "draws": "1", "prior": "Beta(2, 1)"})
    assert abs(wrong["permute and flip"] / law - 1).max() > 0
    assert draws_needed(law, wrong["permute and flip"]) > 10**8


@pytest.mark.audit
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("neighboring", MEANS)
def test_a_hundred_thousand_draws_on_1025_points(neighboring: str) -> None:
    entry = {"grid": "1025", "draws": "1", "prior": "Beta(1, 1)", "neighboring": neighboring}
    size = 100_000
    sample, law, wrong = laws(entry)
    assert draws_needed(law, wrong["half"]) <= size
    cells, _ = released(size, **entry)
    assert p_value(cells, law) > FALSE_ALARM
    assert p_value(draw_like(entry, size // 10, mutant="half"), law) <= FALSE_ALARM
    points = sample.values()
    mean = float((law * points).sum())
    sd = float(np.sqrt((law * (points - mean) ** 2).sum()))
    assert mean == pytest.approx(MEANS[neighboring][0], abs=1e-6)
    assert sd == pytest.approx(MEANS[neighboring][1], abs=1e-4)
    values = points[cells]
    assert abs(values.mean() - mean) <= 5 * sd / np.sqrt(size)
    assert abs(values.std() - sd) <= 5 * sd / np.sqrt(size)
