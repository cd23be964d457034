"""Dimitrakakis Algorithm 1, Example 1: conditional expectations, each answered by a draw of its own.

Incomes of the census (`adult`): y, an income above 50,000; z, sex and degree, four groups. The parameter is
the joint distribution of (y, z), a Dirichlet posterior on all distributions with entries of at least a0 = 1
/ (M K); a query asks E(y | z). Each answer costs its part of epsilon. Beside it: one release of eight
counts with Laplace noise, from which any number of queries is answered at no further cost. Without the
data, a distribution like it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from studies.mechanisms.posterior_sampling import sample_dirichlet
from studies.plotting import draw_line, logarithmic, picture
from studies.result import Result, Row, Verdict, conclude
from studies.robustness import lipschitz, privacy_of_posterior_sampling
from suffice.errors import SchemaError
from suffice.pipeline.terms.statistics.simulated_sums import discrete_laplace

if TYPE_CHECKING:
    from studies.result import Size
    from suffice.typing import Counts, Floats

BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"
"""Where public data stand; SUFFICE_SHARED_DATA says where else."""
DEGREES = ("Bachelors", "Masters", "Prof-school", "Doctorate")
GROUPS = ("woman, no degree", "woman, degree", "man, no degree", "man, degree")
LIKE_ADULT = (11_800, 800, 2_600, 900, 19_100, 5_000, 3_700, 4_900)
"""Counts of a distribution like that of `adult`, rounded: (group, income) in order."""
EPSILON = 1.0
MULTIPLE = 10.0
QUERIES = (1, 10, 100, 1000)
NUMBERS = ("one query", "10 queries", "100 queries", "1,000 queries")
CONCLUSION = (
    "Theorem 2(i) gives the price, 2 L rho a query. Within epsilon 1, answers by draws get worse with the "
    "number of queries, which share epsilon; one Laplace release answers all of them with a tenth or less of "
    "a single draw's error."
)


def load_counts() -> tuple[Counts, str]:
    """Return the counts of (group, income), shape (4, 2), and where they come from."""
    path = Path(os.environ.get("SUFFICE_SHARED_DATA", BESIDE)) / "adult" / "adult.parquet"
    if not path.exists():
        return np.array(LIKE_ADULT).reshape(4, 2), "a distribution like adult"
    import pyarrow as pa  # only where the data are
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path, columns=["sex", "education", "income"]).to_pydict()
    except (pa.ArrowException, OSError):
        message = "adult.parquet: cannot be read; mend it, or take it away, and a study simulates some"
        raise SchemaError(message) from None
    group = 2 * np.array([value.strip() == "Male" for value in table["sex"]])
    group = group + np.array([value.strip() in DEGREES for value in table["education"]])
    income = np.array([value.strip().startswith(">") for value in table["income"]])
    return np.bincount(2 * group + income, minlength=8).reshape(4, 2), "adult"


def answers(joint: Floats) -> Floats:
    """Return E(y | z) of joint distributions (..., 8), shape (..., 4)."""
    pairs = joint.reshape(*joint.shape[:-1], 4, 2)
    shares: Floats = pairs[..., 1] / pairs.sum(axis=-1)
    return shares


def errors_of_draws(
    counts: Counts, queries: int, repeats: int, rng: np.random.Generator
) -> tuple[float, float]:
    """Return the mean error of answers by a draw each, within epsilon for all, and its standard error."""
    truth = answers(counts.reshape(-1) / counts.sum())
    least = 1.0 / (MULTIPLE * counts.size)
    # Repeats of one draw, each for epsilon / queries: the function shares its epsilon among its draws.
    drawn = sample_dirichlet(
        counts.reshape(-1), epsilon=EPSILON / queries * repeats, least=least, draws=repeats, rng=rng
    )
    errors = np.abs(answers(drawn.draws) - truth).mean(axis=-1)
    return float(errors.mean()), float(errors.std() / np.sqrt(repeats))


def errors_of_release(counts: Counts, repeats: int, rng: np.random.Generator) -> tuple[float, float]:
    """Return the mean error of answers from counts with Laplace noise, and its standard error."""
    flat = counts.reshape(-1)
    noisy = np.maximum(flat + discrete_laplace(2.0 / EPSILON, (repeats, flat.size), rng), 0) + 1.0
    errors = np.abs(answers(noisy) - answers(flat / flat.sum())).mean(axis=-1)
    return float(errors.mean()), float(errors.std() / np.sqrt(repeats))


def run(out: Path, seed: int, size: Size) -> Result:
    """Answer 1 to 1,000 queries within epsilon 1."""
    repeats = size.pick(smallest=200, usual=5_000, full=50_000)
    rng = np.random.default_rng(seed)
    counts, source = load_counts()
    smoothness = lipschitz("network", {"least_probability": (1.0 / (MULTIPLE * counts.size), 1.0)}, "degrees")
    price = privacy_of_posterior_sampling(smoothness, 1.0, 1).value
    drawn = [errors_of_draws(counts, queries, repeats, rng) for queries in QUERIES]
    released = errors_of_release(counts, repeats, rng)
    rows = [
        Row(
            quantity="L of a joint distribution with entries of at least 1/80",
            ours=smoothness.value,
            note="log(1 / least)",
            digits=5,
        ),
        Row(
            quantity="2 L rho of one query, one entry replaced",
            ours=price,
            digits=5,
        ),
        Row(
            quantity="2 L rho of a hundred queries",
            ours=privacy_of_posterior_sampling(smoothness, 1.0, 100).value,
            digits=5,
        ),
    ]
    rows += [
        Row(
            quantity=f"mean error of E(y given z), {words} by draws, epsilon 1, {source}",
            ours=value,
            error=error,
            verdict=Verdict.ADDED,
            digits=3,
        )
        for words, (value, error) in zip(NUMBERS, drawn, strict=True)
    ]
    rows.append(
        Row(
            quantity=f"mean error of E(y given z), any number of queries, one Laplace release, {source}",
            ours=released[0],
            error=released[1],
            verdict=Verdict.ADDED,
            digits=3,
        )
    )
    path = out / "query_model.png"
    with picture(
        path,
        title="Answers by draws get worse with every query",
        subtitle=f"Mean error of E(income > 50,000 | sex, degree), $\\varepsilon$ = {EPSILON:g}; {source}",
        footer=f"Dimitrakakis et al. 2014, Algorithm 1, Example 1; {repeats:,} repeats.",
        width=6.4,
    ) as (axis,):
        draw_line(axis, QUERIES, [value for value, _ in drawn], "a draw for each query", 1)
        draw_line(axis, QUERIES, [released[0]] * len(QUERIES), "one Laplace release", 0)
        logarithmic(axis, x=True, y=True)
        axis.set_xlabel("queries")
        axis.set_ylabel("mean error of an answer")
        axis.legend(loc="center right")
    curves = {
        "queries": QUERIES,
        "mean error, a draw for each query": tuple(value for value, _ in drawn),
        "mean error, a draw for each query, standard error": tuple(error for _, error in drawn),
        "mean error, one Laplace release": (released[0],) * len(QUERIES),
        "mean error, one Laplace release, standard error": (released[1],) * len(QUERIES),
    }
    return conclude(out, "query_model", rows, pictures=[path], curves=curves)
