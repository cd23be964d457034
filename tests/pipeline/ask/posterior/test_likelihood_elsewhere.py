"""The pages' blocks in other samplers and languages, against quadrature and ``log_prob``."""

from __future__ import annotations

import json
import math
import re
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from suffice.pipeline.ask.posterior.likelihood import Likelihood, likelihood_of
from support.noisy import noisy_statistic, statistic_plan
from support.page_blocks import read_page

if TYPE_CHECKING:
    from suffice.typing import Floats

PAGES = Path(__file__).resolve().parents[4] / "docs" / "how-to"
THETA = np.array([1e-6, 0.01, 0.04, 0.3, 0.97])


def block(language: str, words: str = "") -> str:
    """The one block of the page in a language that has these words."""
    blocks = read_page(PAGES / "use-the-likelihood-elsewhere.md").blocks
    (text,) = [each.text for each in blocks if each.language == language and words in each.text]
    return text


@pytest.fixture(scope="module")
def likelihood() -> Likelihood:
    """Cancelled flights of three airports, one of which had few."""
    plan = statistic_plan({"family": "bernoulli"}, epsilon="0.5", public_n=False)
    rows = np.array([[870, 31], [409, 11], [22, 5]], dtype=object)
    statistic = noisy_statistic(plan, rows, groups={"origin": ["EWR", "JFK", "LGA"]})
    answer = likelihood_of(statistic, None, lambda posterior: posterior, "elsewhere")
    assert isinstance(answer, Likelihood)
    return answer


def pooled(likelihood: Likelihood, *, spread_of_prior: float = 1.0) -> tuple[Floats, Floats]:
    """Means and standard deviations of the probabilities, by quadrature over centre, spread and logits."""
    logit = np.linspace(-9.0, 3.0, 1201)
    probability = 1.0 / (1.0 + np.exp(-logit))
    of_cells = likelihood.log_prob(probability)
    of_cells = np.exp(of_cells - of_cells.max(axis=1, keepdims=True))
    log_weight, moments = [], []
    for centre in np.linspace(-7.0, 1.0, 81):
        # By the logarithm of the spread, whose density has the spread as a factor.
        for log_spread in np.linspace(-6.0, 1.6, 77):
            spread = math.exp(log_spread)
            density = np.exp(-0.5 * ((logit - centre) / max(spread, 0.02)) ** 2) / max(spread, 0.02)
            evidence = of_cells @ density
            firsts = (of_cells * probability) @ density / evidence
            seconds = (of_cells * probability**2) @ density / evidence
            prior = -0.5 * (centre + 3.0) ** 2 - 0.5 * (spread / spread_of_prior) ** 2 + log_spread
            log_weight.append(prior + np.sum(np.log(evidence)))
            moments.append((firsts, seconds))
    weight = np.exp(np.array(log_weight) - max(log_weight))
    first, second = np.tensordot(weight / weight.sum(), np.array(moments), axes=1)
    return first, np.sqrt(second - first**2)


def require_pooled(draws: Floats, likelihood: Likelihood) -> None:
    """Six standard errors of three means, a false alarm in 1e8; another prior of the spread is seen."""
    mean, sd = pooled(likelihood)
    # The variance of means of batches counts how draws hang together.
    batches = draws.reshape(40, -1, draws.shape[1]).mean(axis=1)
    error = batches.std(axis=0, ddof=1) / np.sqrt(40)
    assert np.all(error < 0.1 * sd)
    assert np.max(np.abs(draws.mean(axis=0) - mean) / error) < 6.0
    np.testing.assert_allclose(draws.std(axis=0), sd, rtol=0.15)
    other, _ = pooled(likelihood, spread_of_prior=0.1)
    assert np.max(np.abs(draws.mean(axis=0) - other) / error) > 6.0


@pytest.mark.slow
def test_numpyro_pools_as_quadrature_does(likelihood: Likelihood) -> None:
    pytest.importorskip("numpyro")
    space: dict[str, Any] = {"likelihood": likelihood}
    exec(compile(block("python", "# NumPyro"), "the page", "exec"), space)  # noqa: S102 - our own text
    require_pooled(np.asarray(space["probabilities"]), likelihood)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_pymc_pools_as_quadrature_does(likelihood: Likelihood) -> None:
    pytest.importorskip("pymc", reason="PyMC is not installed")
    space: dict[str, Any] = {"likelihood": likelihood}
    exec(compile(block("python", "# PyMC"), "the page", "exec"), space)  # noqa: S102 - our own text
    require_pooled(np.asarray(space["probabilities"]), likelihood)


@pytest.mark.audit
@pytest.mark.filterwarnings("ignore")
def test_stan_pools_as_quadrature_does(likelihood: Likelihood) -> None:
    """It is compiled, which takes a minute."""
    pytest.importorskip("stan", reason="PyStan is not installed")
    space: dict[str, Any] = {"likelihood": likelihood, "stan_model": block("stan")}
    exec(compile(block("python", "# PyStan"), "the page", "exec"), space)  # noqa: S102 - our own text
    require_pooled(np.asarray(space["probabilities"]), likelihood)


def as_python(stan: str) -> str:
    """The function of the model in Stan, line by line, in Python with numbers from 1."""
    stan = stan.partition("functions {\n")[2].partition("\n}")[0]
    text = re.sub(r"\b(real|int|vector|matrix) (?=\w)", "", stan).replace("&&", "and")
    lines = ["def tabled_lpdf(x, left, right, powers):"]
    for line in text.splitlines()[1:-1]:
        plain = re.sub(r"^while \((.*)\) (panel.*)$", r"while \1: \2", line.strip().rstrip(";"))
        lines.append("    " + re.sub(r"^for \(k in 1:(\d)\) (.*)$", r"for k in range(1, \1 + 1): \2", plain))
    return "\n".join(lines)


class FromOne:
    """A vector or a matrix whose numbers begin at 1."""

    def __init__(self, values: Floats) -> None:
        self.values = values

    def __getitem__(self, at: Any) -> float:
        index = tuple(each - 1 for each in at) if isinstance(at, tuple) else at - 1
        return float(self.values[index])


def test_the_function_for_stan_is_log_prob(likelihood: Likelihood) -> None:
    space: dict[str, Any] = {"fmin": min, "fmax": max, "rows": lambda vector: len(vector.values)}
    exec(compile(as_python(block("stan")), "the page", "exec"), space)  # noqa: S102 - our own text
    table = likelihood.tables.table
    for cell in range(len(likelihood)):
        of_cell = slice(table.start[cell], table.start[cell + 1])
        panels = [FromOne(each[of_cell]) for each in (table.left, table.right, table.powers)]
        position = np.log(THETA) - np.log1p(-THETA)
        got = [space["tabled_lpdf"](float(x), *panels) for x in position]
        np.testing.assert_allclose(got, likelihood.log_prob(THETA)[cell], atol=1e-9)


@pytest.mark.slow
def test_r_reads_what_log_prob_says(likelihood: Likelihood, tmp_path: Path) -> None:
    program = shutil.which("Rscript")
    if program is None:
        pytest.skip("Rscript is not installed")
    path, script, csv = (tmp_path / name for name in ("likelihood.parquet", "page.R", "likelihood.csv"))
    likelihood.to_parquet(path)
    # Without a package that reads Parquet: the same columns as text, to the last digit.
    pq.read_table(path).to_pandas().to_csv(csv, index=False, float_format="%.17g")
    theta = ", ".join(map(repr, THETA.tolist()))
    ask = (
        f'tables <- read.csv("{csv}")\n'
        f"for (cell in 0:2) cat(sprintf('%.17g', log_prob(tables, cell, c({theta}))), '\\n')\n"
    )
    script.write_text(block("r") + "\n" + ask, encoding="utf-8")
    done = subprocess.run([program, str(script)], check=True, capture_output=True, text=True, timeout=120)
    got = np.array([[float(word) for word in line.split()] for line in done.stdout.splitlines()])
    np.testing.assert_allclose(got, likelihood.log_prob(THETA), atol=1e-9)


def test_javascript_reads_what_log_prob_says(likelihood: Likelihood, tmp_path: Path) -> None:
    program = shutil.which("node")
    if program is None:
        pytest.skip("node is not installed")
    path, script = tmp_path / "likelihood.parquet", tmp_path / "page.mjs"
    likelihood.to_parquet(path)
    rows = pq.read_table(path).to_pylist()
    ask = (
        f"const table = {json.dumps(rows)};\n"
        f"const answers = [0, 1, 2].map((cell) => {json.dumps(THETA.tolist())}.map((theta) =>\n"
        "  logProb(table.filter((row) => row.cell === cell), theta)));\n"
        "console.log(JSON.stringify(answers));\n"
    )
    script.write_text(block("javascript") + "\n" + ask, encoding="utf-8")
    done = subprocess.run([program, str(script)], check=True, capture_output=True, text=True, timeout=120)
    np.testing.assert_allclose(json.loads(done.stdout), likelihood.log_prob(THETA), atol=1e-9)


def test_the_page_asks_tables_of_counts() -> None:
    """`carrier` of the page is a categorical."""
    plan = statistic_plan({"family": "categorical", "categories": ["a", "b"]}, epsilon="0.5", public_n=False)
    statistic = noisy_statistic(plan, np.array([[87, 31]], dtype=object))
    (text,) = [
        each.text for each in read_page(PAGES / "take-the-likelihood.md").blocks if "carrier" in each.text
    ]

    class Release:
        @staticmethod
        def likelihood(name: str) -> Any:
            return likelihood_of(statistic, None, lambda posterior: posterior, name)

    space: dict[str, Any] = {"release": Release(), "np": np}
    exec(compile(text, "the page", "exec"), space)  # noqa: S102 - our own text
    assert space["likelihood"].names == ("a", "b")
