r"""Time posteriors beside two samplers of the same posterior, at equal error.

    PYTHONPATH=tests python benchmarks/posterior_rivals.py [--cells 32] [--draws 4000]

The question is the posterior mean of a parameter of each cell, within a hundredth of its standard deviation:
that is 10,000 effective draws. Ours is a whole summary (means, standard deviations, 95 % intervals), whose
error is less. N is known, as both rivals need it to be.

- **NumPyro**: NUTS over the parameters and the latent sums, taken for continuous, all cells in one model,
  which is compiled before it is timed.
- **Records drawn**: the data augmentation that needs no likelihood of sums (Ju, Awan, Gong and Rao, NeurIPS
  2022; the R package `dapper`), written anew with compiled loops: each record in turn is drawn from the model
  and kept by what the noise then says, and the parameters are drawn given all records.

Effective draws are those of `numpyro.diagnostics`, the fewest over a cell's parameters. Beside the seconds
is the median distance of means from ours, in standard deviations.
"""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numba
import numpy as np
import numpyro
from measuring import versions
from numpyro import distributions as dist
from numpyro.diagnostics import effective_sample_size
from numpyro.infer import MCMC, NUTS
from posteriors import simulated

from suffice.pipeline.ask.posterior.choice_of_engine import posterior_of
from suffice.pipeline.ask.posterior.summaries import summarise
from suffice.pipeline.families.normal import interval, noisy_moments
from suffice.pipeline.math.distributions.normal_inverse_gamma import NormalInverseGamma
from suffice.pipeline.math.priors.record_count import Fixed
from support.generative_models import generative_model_for

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

EFFECTIVE = 10_000
"""Draws whose mean is within a hundredth of a standard deviation."""
WARMUP = 1000
EPSILONS = ("1", "0.1")
SIZES = (100, 1000)


def main() -> None:
    """Print a line for each family, number of records and epsilon."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cells", type=int, default=32)
    parser.add_argument("--draws", type=int, default=4000)
    given = parser.parse_args()
    numpyro.enable_x64()
    rng = np.random.default_rng()
    print(versions() + f", numpyro {numpyro.__version__}, jax {jax.__version__}")
    print("| family | N | epsilon | ours, ms a cell | NumPyro, s | off | records drawn, s | off |")
    print("|---|---|---|---|---|---|---|---|")
    for family, problem_of in (("bernoulli", successes), ("normal", moments)):
        for n in SIZES:
            for epsilon in EPSILONS:
                problem = problem_of(n, epsilon, given.cells, rng)
                columns = [f"{1000.0 * problem['seconds'] / given.cells:.3g}"]
                for rival in (nuts, records_drawn):
                    seconds, away = rival(problem, given.draws, rng)
                    columns += [f"{seconds:.3g}", f"{away:.3f}"]
                print(f"| {family} | {n} | {epsilon} | " + " | ".join(columns) + " |", flush=True)


def released(family: str, n: int, epsilon: str, cells: int, rng: np.random.Generator) -> dict[str, Any]:
    """Simulate a release of known N, and our answer."""
    model = generative_model_for(family, n=n, epsilon=epsilon, public_n=True)
    noisy = simulated(model, np.full(cells, n), rng)
    # Nothing is loaded or compiled while it is timed.
    summarise(posterior_of(noisy, prior=model.prior, clipping="ignored"))
    start = time.process_time()
    posterior = posterior_of(noisy, prior=model.prior, clipping="ignored")
    summarise(posterior)
    seconds = time.process_time() - start
    return {
        "family": family,
        "n": n,
        "noisy": noisy,
        "prior": model.prior,
        "seconds": seconds,
        "mean": np.stack([posterior.mean(name) for name in posterior.parameters], axis=1),
        "sd": np.stack([posterior.sd(name) for name in posterior.parameters], axis=1),
    }


def successes(n: int, epsilon: str, cells: int, rng: np.random.Generator) -> dict[str, Any]:
    """A probability: a record is 0 or 1, and is released by its sum."""
    problem = released("bernoulli", n, epsilon, cells, rng)
    noisy = problem["noisy"]
    problem["observed"] = np.asarray(noisy.values, dtype=np.float64)
    problem["rows"] = np.array([[0.0, 1.0, 0.0]])
    problem["scale"] = np.array([float(noisy.plan.scale)])
    return problem


def moments(n: int, epsilon: str, cells: int, rng: np.random.Generator) -> dict[str, Any]:
    """A mean and a variance, in half ranges: a record is released by two sums of parabolas."""
    problem = released("normal", n, epsilon, cells, rng)
    inside = noisy_moments(problem["noisy"], problem["prior"], Fixed(n))
    totals = inside.totals
    problem["observed"], problem["rows"], problem["scale"] = totals.values, totals.coefficients, totals.scale
    problem["prior"] = NormalInverseGamma(
        loc=float(inside.prior.loc[0]),
        precision=float(inside.prior.precision[0]),
        concentration=float(inside.prior.concentration[0]),
        scale=float(inside.prior.scale[0]),
    )
    centre, half_range = interval(problem["noisy"].plan.parameters)
    problem["mean"] = (problem["mean"] - [centre, 0.0]) / [half_range, half_range**2]
    problem["sd"] = problem["sd"] / [half_range, half_range**2]
    return problem


def log_noise(problem: dict[str, Any], first: Any, second: Any) -> Any:
    """Log density of what was released, given the sum of records and of their squares (n_cells,)."""
    rows, scale = problem["rows"], problem["scale"]
    sums = problem["n"] * rows[:, 0] + first[:, None] * rows[:, 1] + second[:, None] * rows[:, 2]
    return -jnp.sum(jnp.abs(problem["observed"] - sums) / scale, axis=1)


def nuts(problem: dict[str, Any], draws: int, _: np.random.Generator) -> tuple[float, float]:
    """Processor seconds of a cell for the effective draws, and how far means are from ours."""
    n, cells, prior = problem["n"], len(problem["observed"]), problem["prior"]

    def of_successes() -> None:
        with numpyro.plate("cell", cells):
            rate = numpyro.sample("probability", dist.Beta(prior.concentration1, prior.concentration0))
            share = numpyro.sample("share", dist.Uniform(0.0, 1.0))
            total = n * share
            # The binomial's probability, by gamma functions: the sum is taken for continuous.
            log_binomial = (
                total * jnp.log(rate)
                + (n - total) * jnp.log1p(-rate)
                - jax.scipy.special.gammaln(total + 1.0)
                - jax.scipy.special.gammaln(n - total + 1.0)
            )
            numpyro.factor("latent", log_binomial)
            numpyro.factor("noise", log_noise(problem, total, total))

    def of_moments() -> None:
        with numpyro.plate("cell", cells):
            precision = numpyro.sample("tau", dist.Gamma(prior.concentration, prior.scale))
            variance = numpyro.deterministic("variance", 1.0 / precision)
            mean = numpyro.sample("mean", dist.Normal(prior.loc, jnp.sqrt(variance / prior.precision)))
            z = numpyro.sample("z", dist.Normal(0.0, 1.0))
            scatter = numpyro.sample("scatter", dist.Chi2(n - 1.0))
            average = mean + z * jnp.sqrt(variance / n)
            second = n * average**2 + scatter * variance
            numpyro.factor("noise", log_noise(problem, n * average, second))

    is_sum = problem["family"] == "bernoulli"
    sampler = MCMC(
        NUTS(of_successes if is_sum else of_moments),
        num_warmup=WARMUP,
        num_samples=draws,
        progress_bar=False,
    )
    names = ("probability",) if is_sum else ("mean", "variance")
    sampler.run(jax.random.key(0))
    start = time.process_time()
    sampler.run(jax.random.key(1))
    chains = sampler.get_samples(group_by_chain=True)
    jax.block_until_ready(chains)
    seconds = time.process_time() - start
    return judged(problem, np.stack([np.asarray(chains[name])[0] for name in names], axis=2), seconds)


@numba.njit(cache=False)
def sweep(x: Floats, drawn: Floats, uniform: Floats, y: Floats, rows: Floats, scale: Floats) -> None:
    """Draw every record of a cell anew, and keep it by what the noise then says."""
    sums = np.zeros(len(y))
    for j in range(len(y)):
        for i in range(len(x)):
            sums[j] += rows[j, 0] + rows[j, 1] * x[i] + rows[j, 2] * x[i] * x[i]
    for i in range(len(x)):
        change = 0.0
        for j in range(len(y)):
            step = rows[j, 1] * (drawn[i] - x[i]) + rows[j, 2] * (drawn[i] ** 2 - x[i] ** 2)
            change += (abs(y[j] - sums[j]) - abs(y[j] - sums[j] - step)) / scale[j]
        if np.log(uniform[i]) < change:
            for j in range(len(y)):
                sums[j] += rows[j, 1] * (drawn[i] - x[i]) + rows[j, 2] * (drawn[i] ** 2 - x[i] ** 2)
            x[i] = drawn[i]


def records_drawn(problem: dict[str, Any], draws: int, rng: np.random.Generator) -> tuple[float, float]:
    """Processor seconds of a cell for the effective draws, and how far means are from ours."""
    n, cells = problem["n"], len(problem["observed"])
    step: Callable[..., tuple[Floats, Floats]] = of_coins if problem["family"] == "bernoulli" else of_normals
    chains = np.empty((draws, cells, problem["mean"].shape[1]))
    seconds = 0.0
    for cell in range(cells):
        x = np.zeros(n) if problem["family"] == "bernoulli" else np.full(n, problem["mean"][cell, 0])
        for k in range(-WARMUP, draws):
            start = time.process_time() if k > -WARMUP else None  # compiled by the first sweep
            parameters, drawn = step(x, problem["prior"], rng)
            sweep(x, drawn, rng.random(n), problem["observed"][cell], problem["rows"], problem["scale"])
            if k >= 0:
                chains[k, cell] = parameters
            if start is not None:
                seconds += time.process_time() - start
    return judged(problem, chains, seconds)


def of_coins(x: Floats, prior: Any, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Draw a probability given all records, and records given it."""
    rate = rng.beta(prior.concentration1 + x.sum(), prior.concentration0 + len(x) - x.sum())
    return np.array([rate]), (rng.random(len(x)) < rate).astype(np.float64)


def of_normals(x: Floats, prior: Any, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Draw a mean and a variance given all records, and records given them."""
    n, average = len(x), x.mean()
    precision = prior.precision + n
    shrunk = prior.precision * n / precision
    scale = prior.scale + 0.5 * ((x - average) ** 2).sum() + 0.5 * shrunk * (average - prior.loc) ** 2
    variance = scale / rng.gamma(prior.concentration + n / 2.0)
    loc = (prior.precision * prior.loc + n * average) / precision
    mean = rng.normal(loc, np.sqrt(variance / precision))
    return np.array([mean, variance]), rng.normal(mean, np.sqrt(variance), n)


def judged(problem: dict[str, Any], chains: Floats, seconds: float) -> tuple[float, float]:
    """Seconds a cell for the effective draws, by the median cell, and the distance of means in sds."""
    effective = effective_sample_size(chains[None])
    needed = seconds / len(problem["observed"]) * EFFECTIVE / np.min(effective, axis=1)
    away = np.abs(chains.mean(axis=0) - problem["mean"]) / problem["sd"]
    return float(np.median(needed)), float(np.median(away))


if __name__ == "__main__":
    main()
