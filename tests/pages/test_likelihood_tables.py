"""Tables of likelihoods that pages carry: what the explorer makes of them beside Python's posteriors."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import suffice
from suffice.pages import likelihood_tables
from suffice.pages.explored import explored
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.spec.spec import load_spec
from suffice.pipeline.terms.statistics.simulated_sums import discrete_laplace
from support.javascript import node
from support.making import mapping
from support.releases import make_plan, publish

READER = Path(__file__).parents[2] / "readers" / "javascript"
TRUTH = {"few": (60, 8.0, 900.0), "many": (900, 3.0, 1400.0), "most": (20_000, -5.0, 400.0)}
"""Records of each cell, their mean and variance."""
OF_MEANS, OF_SDS, OF_ENDS = 0.006, 0.006, 0.03
"""In standard deviations, and shares of these."""
PRIORS = (
    "",
    "NormalInverseGamma(0, 1, 3, 3000)",
    "NormalInverseGamma(20, 50, 10, 9000)",
    "Mixture(1, NormalInverseGamma(0, 5, 3, 900), 2, NormalInverseGamma(30, 5, 3, 900))",
)
"""The third contradicts the largest cell."""
ASK = """
import { readPage } from "./explorer/page-data.js";
import { reading } from "./explorer/reading.js";
const { page, asked } = JSON.parse(await new Response(process.stdin).text());
const reader = reading(readPage(JSON.stringify(page)));
const answers = [];
for (const { cell, method, prior } of asked) {
  try {
    const found = await reader.posterior("delay", [cell], { prior, nPrior: "", method, parameters: [] });
    answers.push({
      prior: found.prior,
      conflict: found.conflict.lines,
      laws: found.parameters.map((name) => [found.mean(name), found.sd(name), ...found.interval(0.95, name)]),
      masses: found.parameters.map((name) => {
        // In steps of the logarithm where the parameter is above 0: it may be of any size.
        const isMean = name === "mean";
        const [to, from] = isMean ? [(x) => x, (x) => x] : [Math.log, Math.exp];
        const [low, high] = [0.0005, 0.9995].map((share) => to(found.quantile(share, name)));
        const places = Array.from({ length: 4001 }, (_, i) => from(low + ((high - low) * i) / 4000));
        const parts = found.density(name, places).map((one, i) => one * (isMean ? 1 : places[i]));
        return (parts.reduce((sum, one) => sum + one, 0) * (high - low)) / 4000;
      }),
    });
  } catch (error) {
    if (!error.code) throw error;
    answers.push({ refused: error.code });
  }
}
console.log(JSON.stringify(answers));
"""


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> suffice.Release:
    """A release of a few cells: of normal records, clipped and rounded, with noise of a fixed seed."""
    entry = {"family": "normal", "column": "delay", "lower": -60, "upper": 180}
    changes: dict[str, Any] = {
        "groups": {"size": list(TRUTH)},
        "privacy": {"epsilon": "1", "neighboring": "add_or_remove_one"},
        "statistics": {"delay": entry},
    }
    plan, spec = make_plan(**changes), load_spec(mapping("data", **changes))
    (statistic,) = plan.statistics
    rng = np.random.default_rng(5)
    sizes, means, variances = map(np.array, zip(*TRUTH.values(), strict=True))
    simulate: Any = FAMILIES["normal"].simulate
    declared = spec.statistics["delay"]
    sums = simulate(declared, np.stack([means, variances], axis=1), sizes, rng).clipped
    totals = FAMILIES["normal"].totals(declared, statistic.design, sums)
    noisy = totals + discrete_laplace(statistic.scale, totals.shape, rng).astype(object)
    path = publish(tmp_path_factory.mktemp("tables"), plan, {"delay": noisy})
    return suffice.open_release(str(path))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::suffice.errors.ConflictWarning")
def test_posteriors_are_those_of_python(release: suffice.Release) -> None:
    asked = [
        {"cell": cell, "method": method, "prior": prior}
        for prior in PRIORS
        for cell in TRUTH
        for method in ("noise-aware", "plug-in")
    ]
    conflicts = []
    for question, answer in zip(asked, _asked(release, asked), strict=True):
        posterior = release.posterior(
            "delay",
            prior=question["prior"] or None,
            where={"size": question["cell"]},
            method=question["method"],
        )
        assert answer["prior"] == str(posterior.prior)
        for parameter, law, mass in zip(posterior.parameters, answer["laws"], answer["masses"], strict=True):
            mean, sd = posterior.mean(parameter)[0], posterior.sd(parameter)[0]
            about = (question, parameter)
            assert law[0] == pytest.approx(mean, abs=OF_MEANS * sd), about
            assert law[1] == pytest.approx(sd, rel=OF_SDS), about
            ends = posterior.credible_interval(parameter, 0.95)[0]
            assert law[2:] == pytest.approx(ends, abs=OF_ENDS * sd), about
            assert mass == pytest.approx(0.999, abs=1e-3), about
        said = posterior.conflict.lines()
        assert bool(answer["conflict"]) == bool(said), question
        conflicts += [question] if said else []
    assert [(conflict["cell"], conflict["prior"]) for conflict in conflicts] == [("most", PRIORS[2])] * 2


@pytest.mark.slow
def test_a_prior_beyond_the_table_is_refused(release: suffice.Release) -> None:
    far = {"cell": "most", "method": "noise-aware", "prior": "NormalInverseGamma(100, 1e9, 1e6, 1e6)"}
    assert _asked(release, [far]) == [{"refused": "resolution"}]


def test_tables_of_too_many_cells_are_left_out_with_a_reason(
    release: suffice.Release, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(likelihood_tables, "MOST_CELLS", len(TRUTH) - 1)
    tables = likelihood_tables.likelihood_tables(release.statistic("delay"))
    assert tables == {"reason": "tables of 3 likelihoods are too many for a page"}


def test_a_table_is_small(release: suffice.Release) -> None:
    tables = likelihood_tables.likelihood_tables(release.statistic("delay"))
    assert tables is not None
    sizes = [len(json.dumps(cell)) for cell in tables["cells"]]
    assert max(sizes) < 19_000
    assert max(sizes) * likelihood_tables.MOST_CELLS < 8e6


def _asked(release: suffice.Release, asked: list[dict[str, str]]) -> list[dict[str, Any]]:
    files = {path.name: path.read_bytes() for path in Path(release.uri).iterdir()}
    done = subprocess.run(
        [node(), "--input-type=module", "--eval", ASK],
        cwd=READER,
        input=json.dumps({"page": explored(release, files, "release"), "asked": asked}),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    answers: list[dict[str, Any]] = json.loads(done.stdout)
    return answers
