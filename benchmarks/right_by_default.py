"""Ask, with default options, what once was answered wrongly: A to I of the table in CALIBRATION.md.

    python benchmarks/right_by_default.py [--diamonds FILE] [--data DIRECTORY] [--seed N] [A B ...]

Another version of the code is asked in the same way, of the same noise:

    PYTHONPATH=CHECKOUT/src python benchmarks/right_by_default.py [...]

``--diamonds`` is the file diamonds.csv of the package plotnine, ``--data`` has ``adult/adult.parquet``, and
``--demo`` is where ``suffice demo`` has worked; what is not there is left out and named. Noise is simulated.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import time
import warnings
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.csv
import pyarrow.parquet

from suffice.errors import SufficeError
from suffice.pipeline.ask.pooling.roll_up import roll_up
from suffice.pipeline.ask.posterior.choice_of_engine import posterior_of
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.math.priors.density import Density
from suffice.pipeline.spec.plan import compile_plan
from suffice.pipeline.spec.spec import load_spec
from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
from suffice.pipeline.terms.statistics.simulated_sums import discrete_laplace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    Numbers = NDArray[Any]

CELLS = 300
FEW_CELLS = 24
ROOT = Path(__file__).resolve().parents[1]


def _of_this_checkout(path: str) -> Any:
    """Load a file of this checkout, whatever version is asked: the records are summed by the same code."""
    loader = SourceFileLoader(Path(path).stem, str(ROOT / path))
    module = ModuleType(loader.name)
    loader.exec_module(module)
    return module


RECORD_SUMS = _of_this_checkout("pipeline/ask/calibration/record_worlds.py")


def released_and_exact(
    entry: dict[str, Any],
    cells: Sequence[Numbers],
    rng: np.random.Generator,
    *,
    epsilon: str = "1",
    groups: Mapping[str, list[str | int]] | None = None,
) -> tuple[NoisyStatistic, NDArray[np.object_]]:
    """Release a statistic of cells of numbers or codes, with simulated noise; beside it the exact sums."""
    spec = load_spec(
        {
            "name": "x",
            "dataset": "x",
            "source": {"parquet": "x/"},
            "privacy": {"epsilon": epsilon, "neighboring": "add_or_remove_one", "unit": "row"},
            "statistics": {"x": {"column": "x", **entry}},
        }
    )
    (plan,) = compile_plan(spec).statistics
    stated, family = spec.statistics["x"], FAMILIES[entry["family"]]
    measure = family.measure(stated)
    sums = np.stack([RECORD_SUMS.sums_of_each(measure, records).sum(axis=0) for records in cells])
    totals = family.totals(stated, plan.design, RECORD_SUMS.python_integers(sums))
    noise = discrete_laplace(float(plan.scale), totals.shape, rng)
    values = np.clip(totals + noise.astype(object), *plan.value_limits)
    released = NoisyStatistic(
        plan=plan,
        values=values,
        groups={"cell": list(range(len(cells)))} if groups is None else dict(groups),
        public_n=None,
        max_total_rows=10**12,
    )
    return released, totals


def noisy(
    entry: dict[str, Any], cells: Sequence[Numbers], rng: np.random.Generator, epsilon: str = "1"
) -> NoisyStatistic:
    """Release a statistic of cells, a group each."""
    return released_and_exact(entry, cells, rng, epsilon=epsilon)[0]


def held(posterior: Any, parameter: str, truth: Numbers, **asked: Any) -> NDArray[np.bool_]:
    """Tell which 95 % intervals hold the truth."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ends = posterior.credible_interval(parameter, rng=0, **asked)
    inside: NDArray[np.bool_] = (ends[..., 0] <= truth) & (truth <= ends[..., 1])
    return inside


def out_of(inside: NDArray[np.bool_]) -> str:
    """Say how many."""
    return f"{int(inside.sum())} of {inside.size}"


def percent(inside: NDArray[np.bool_]) -> str:
    """Say what share."""
    return f"{100 * inside.mean():.0f} %"


# Each of these yields what was asked, and what came.


def bounded_columns(given: argparse.Namespace) -> Iterator[tuple[str, str]]:
    """A: normal and lognormal columns whose natural bounds clip nothing."""
    rng = np.random.default_rng(given.seed)
    if given.diamonds is None:
        yield "diamonds", "left out: --diamonds"
    else:
        table = pyarrow.csv.read_csv(given.diamonds)
        cut = np.array(table["cut"].to_pylist())
        for column, upper in (("price", "20000"), ("carat", "6")):
            values = table[column].to_numpy()
            cells = [values[cut == name] for name in np.unique(cut)]
            entry = {"family": "normal", "lower": "0", "upper": upper}
            posterior = posterior_of(noisy(entry, cells, rng))
            inside = held(posterior, "mean", np.array([cell.mean() for cell in cells]))
            worst = np.argmin(posterior.mean("mean") / [cell.mean() for cell in cells])
            yield (
                f"diamonds, {column} by cut, bounds 0..{upper}: means held",
                f"{out_of(inside)}; {posterior.mean('mean')[worst]:,.4g} for {cells[worst].mean():,.4g}",
            )
        cells = [rng.choice(table["price"].to_numpy(), 3000) for _ in range(FEW_CELLS)]
        posterior = posterior_of(noisy({"family": "normal", "lower": "0", "upper": "20000"}, cells, rng))
        inside = held(posterior, "mean", table["price"].to_numpy().mean())
        yield "price, 3,000 diamonds: means held", out_of(inside)
    adult = given.data / "adult" / "adult.parquet"
    if not adult.exists():
        yield "capital gain", "left out: --data"
    else:
        values = pyarrow.parquet.read_table(adult)["capital-gain"].to_numpy()
        posterior = posterior_of(noisy({"family": "normal", "lower": "0", "upper": "100000"}, [values], rng))
        yield (
            "capital gain (adult), bounds 0..100,000",
            f"{posterior.mean('mean')[0]:,.0f} for {values.mean():,.0f}",
        )
    cells = [np.minimum(rng.lognormal(3.0, 1.2, 3000), 1000.0) for _ in range(12)]
    posterior = posterior_of(noisy({"family": "normal", "lower": "0", "upper": "1000"}, cells, rng))
    means = np.array([cell.mean() for cell in cells])
    yield (
        "a lognormal column as normal, bounds 0..1,000: means held",
        f"{out_of(held(posterior, 'mean', means))}; {posterior.mean('mean')[0]:,.0f} for {means[0]:,.0f}",
    )


def scales(given: argparse.Namespace) -> Iterator[tuple[str, str]]:
    """B: six families whose default prior decided: 95 % intervals, truths from a hundredth to a third."""
    entries: dict[str, tuple[dict[str, Any], str, Callable[..., Numbers], Callable[[Numbers], Numbers]]] = {
        "exponential": ({"upper": "100"}, "rate", lambda rng, s, n: rng.exponential(s, n), lambda s: 1 / s),
        "gamma": (
            {"shape": "2", "upper": "100"},
            "rate",
            lambda rng, s, n: rng.gamma(2, s / 2, n),
            lambda s: 2 / s,
        ),
        "weibull": (
            {"shape": "1.7", "upper": "100"},
            "rate",
            lambda rng, s, n: s * rng.weibull(1.7, n),
            lambda s: s**-1.7,
        ),
        "pareto": (
            {"minimum": "1", "upper": "1000"},
            "shape",
            lambda rng, s, n: 1 + rng.pareto(10 / s, n),
            lambda s: 10 / s,
        ),
        "laplace": (
            {"location": "0", "half_range": "100"},
            "scale",
            lambda rng, s, n: rng.laplace(0, s, n),
            lambda s: s,
        ),
        "normal_known_mean": (
            {"mean": "0", "half_range": "100"},
            "variance",
            lambda rng, s, n: rng.normal(0, s, n),
            lambda s: s**2,
        ),
    }
    rng = np.random.default_rng(given.seed)
    scale = np.geomspace(1, 10, CELLS)
    for family, (entry, parameter, draw, truth) in entries.items():
        shares = []
        for n, epsilon in ((30, "1"), (300, "0.1"), (300, "1")):
            cells = [draw(rng, s, rng.integers(n // 2, 3 * n // 2)) for s in scale]
            posterior = posterior_of(noisy({"family": family, **entry}, cells, rng, epsilon=epsilon))
            shares.append(percent(held(posterior, parameter, truth(scale))))
        yield f"{family}: N0 30, 300 at epsilon .1, 300", ", ".join(shares)


def categories(given: argparse.Namespace) -> Iterator[tuple[str, str]]:
    """D: a rare category, a rare event."""
    rng = np.random.default_rng(given.seed)
    shares = np.array([0.7, 0.2, 0.05, 0.03, 0.01, 0.008, 0.0019, 0.0001])
    cells = [rng.choice(8, 300, p=shares) for _ in range(CELLS)]
    entry = {"family": "categorical", "categories": list("abcdefgh")}
    inside = held(posterior_of(noisy(entry, cells, rng)), "probability", shares)
    yield "eight categories, 300 records: a share of .0001 held", percent(inside[:, -1])
    yield "the same: all eight shares held", percent(inside)
    cells = [(rng.random(3000) < 0.0001).astype(int) for _ in range(CELLS)]
    inside = held(posterior_of(noisy({"family": "bernoulli"}, cells, rng)), "probability", np.array(0.0001))
    yield "a rate of .0001, 3,000 records: held", percent(inside)


def clipped(given: argparse.Namespace) -> Iterator[tuple[str, str]]:
    """E: waiting times of which five in a hundred are beyond the bound."""
    rng = np.random.default_rng(given.seed)
    entries: dict[str, tuple[dict[str, Any], Numbers, Callable[[Numbers], float]]] = {
        "exponential": ({"upper": "30"}, rng.exponential(10, 10**6), lambda t: 1 / t.mean()),
        "gamma": ({"shape": "2", "upper": "24"}, rng.gamma(2, 5, 10**6), lambda t: 2 / t.mean()),
        "weibull": (
            {"shape": "1.7", "upper": "19"},
            10 * rng.weibull(1.7, 10**6),
            lambda t: 1 / (t**1.7).mean(),
        ),
    }
    for family, (entry, pool, rate) in entries.items():
        upper = float(entry["upper"])
        cells = [rng.choice(pool, 2000) for _ in range(CELLS)]
        posterior = posterior_of(noisy({"family": family, **entry}, cells, rng))
        says = getattr(posterior, "estimand", None)
        left = held(posterior, "rate", np.array(rate(np.minimum(pool, upper))))
        before = held(posterior, "rate", np.array(rate(pool)))
        yield (
            f"{family}, {100 * (pool > upper).mean():.1f} % clipped: rate of clipped records, of all, held",
            f"{percent(left)}, {percent(before)}; {'says which' if says else 'does not say which'}",
        )


def densities(given: argparse.Namespace) -> Iterator[tuple[str, str]]:
    """F: a prior with a spike, and a prior on a table."""
    from scipy import stats

    records = np.zeros(20_000, dtype=int)
    records[:6123] = 1
    released = noisy({"family": "bernoulli"}, [records], np.random.default_rng(given.seed), epsilon="100")
    spike = stats.norm(0.3, 1e-5)
    prior = Density(lambda p: np.log(0.5 * spike.pdf(p) + 0.5), 0.0, 1.0)
    exact = _spiked_mean(spike)
    yield (
        "20,000 records, prior .5 N(.3, 1e-5) + .5: posterior mean",
        f"{_outcome(lambda: posterior_of(released, prior=prior))}; exactly {exact:.6f}",
    )
    points = np.linspace(0.0, 1.0, 11)
    table = Density(lambda p: np.where(np.isin(p, points), 0.0, -np.inf), 0.0, 1.0)
    yield "a density at 11 points alone", _outcome(lambda: posterior_of(released, prior=table))
    shares = np.diff(stats.beta.cdf(points, 2, 5))
    histogram = stats.rv_histogram((shares, points)).freeze()
    yield "a histogram of ten bins", _outcome(lambda: posterior_of(released, prior=histogram))


def _spiked_mean(spike: Any) -> float:
    p = np.union1d(np.linspace(0.27, 0.33, 600_001), np.linspace(0.2999, 0.3001, 400_001))
    log = 6123 * np.log(p) + 13877 * np.log1p(-p)
    weight = np.exp(log - log.max()) * (0.5 * spike.pdf(p) + 0.5)
    return float(np.trapezoid(p * weight, p) / np.trapezoid(weight, p))


def _outcome(ask: Callable[[], Any]) -> str:
    try:
        return f"{ask().mean('probability')[0]:.6f}"
    except SufficeError as error:
        return f"{type(error).__name__}: {error}"
    except Exception as error:  # noqa: BLE001 - that is what is looked for
        return f"raw {type(error).__name__}"


def roll_ups(given: argparse.Namespace) -> Iterator[tuple[str, str]]:
    """G: states of 60 counties whose rates rise with their size."""
    rng = np.random.default_rng(given.seed)
    states, counties = 40, 60
    size = rng.lognormal(4.0, 1.0, (states, counties)).astype(int) + 1
    standard = (np.log(size) - 4.0) / 1.0
    effect = 0.5 * standard + np.sqrt(0.75) * rng.standard_normal(size.shape)
    rate = 1 / (1 + np.exp(1.0 - effect))
    groups: dict[str, list[str | int]] = {
        "state": np.repeat(np.arange(states), counties).tolist(),
        "county": np.tile(np.arange(counties), states).tolist(),
    }
    numbers = {
        "bernoulli": ({}, lambda n, p: (rng.random(n) < p).astype(int)),
        "categorical": ({"categories": list("abcdefgh")}, lambda n, p: rng.binomial(7, p, n)),
        "binomial": ({"trials": "5"}, lambda n, p: rng.binomial(5, p, n)),
        "poisson": ({"upper": "40"}, lambda n, p: rng.poisson(9 * p, n)),
        "geometric": ({"upper": "40"}, lambda n, p: rng.geometric(1 - 0.8 * p, n) - 1),
        "negative_binomial": (
            {"successes": "2.5", "upper": "40"},
            lambda n, p: rng.negative_binomial(2.5, 1 - 0.8 * p, n),
        ),
        "exponential": ({"upper": "60"}, lambda n, p: rng.exponential(20 * p, n)),
        "gamma": ({"shape": "2", "upper": "60"}, lambda n, p: rng.gamma(2, 10 * p, n)),
        "weibull": ({"shape": "1.7", "upper": "60"}, lambda n, p: 20 * p * rng.weibull(1.7, n)),
        "pareto": ({"minimum": "1", "upper": "1000"}, lambda n, p: 1 + rng.pareto(1 / p, n)),
        "laplace": ({"location": "0", "half_range": "60"}, lambda n, p: rng.laplace(0, 10 * p, n)),
        "normal": ({"lower": "0", "upper": "100"}, lambda n, p: rng.normal(30 + 30 * p, 10, n)),
        "lognormal": ({"lower": "1", "upper": "1000"}, lambda n, p: rng.lognormal(2 + p, 0.7, n)),
        "normal_known_mean": ({"mean": "0", "half_range": "60"}, lambda n, p: rng.normal(0, 20 * p, n)),
        "normal_known_variance": (
            {"variance": "100", "lower": "0", "upper": "100"},
            lambda n, p: rng.normal(30 + 30 * p, 10, n),
        ),
    }
    for family, (entry, draw) in numbers.items():
        cells = [draw(n, p) for n, p in zip(size.ravel(), rate.ravel(), strict=True)]
        released, exact = released_and_exact(
            {"family": family, **entry}, cells, rng, epsilon="0.5", groups=groups
        )
        yield f"{family}, {states} states of {counties} counties", _rolled(released, exact, states)


def _rolled(released: NoisyStatistic, exact: Numbers, states: int) -> str:
    """Hold what merged cells are said to have against the sums of their records."""
    started = time.process_time()
    try:
        posterior = roll_up(released, "county").posterior()
        names = [name for name in ("share", "mean") if name in posterior.parameters]
        name = names[0] if names else posterior.parameters[0]
        ends = posterior.credible_interval(name, rng=0)
    except SufficeError as error:
        return f"{type(error).__name__}: {error}"
    seconds = f"{time.process_time() - started:.1f} s"
    sums = exact.reshape(states, -1, exact.shape[1]).sum(axis=1)
    if released.plan.family == "categorical":
        truth = (sums / sums.sum(axis=1, keepdims=True)).astype(float)
    elif names or released.plan.family == "bernoulli":
        maps = {quantity.name: quantity.coefficients for quantity in released.plan.quantities}
        n, total = (
            np.array([sum(float(weight) * row[at] for at, weight in maps[of].items()) for row in sums])
            for of in ("n", "total")
        )
        truth = total / n / (float(released.plan.parameters.upper or 1) if name == "share" else 1.0)
    else:
        return f"{name} of one shared parameter; {seconds}"
    inside = (ends[..., 0] <= truth) & (truth <= ends[..., 1])
    return f"{name} held in {out_of(inside)}, width {np.median(ends[..., 1] - ends[..., 0]):.3g}; {seconds}"


def conflicts(given: argparse.Namespace) -> Iterator[tuple[str, str]]:
    """H: a prior of .8 for a rate of .024, of the release that ``suffice demo`` makes."""
    from suffice.storage.releases.release_store import open_release

    if given.demo is None:
        yield "a prior of .8 for cancelled flights", "left out: --demo"
        return
    (manifest,) = given.demo.glob("releases/flights-*/*/*/manifest.json")
    prior = "Beta(800, 200)"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        open_release(manifest.parent).posterior("cancelled", prior=prior).credible_interval("probability")
    said = [" ".join(str(each.message).split())[:120] for each in caught]
    yield "a prior of .8 for a rate of .024, Python: a warning", said[0] if said else "none"
    asked = ("posterior", str(manifest.parent), "cancelled", "--prior", prior)
    printed, document = _suffice(*asked), _suffice(*asked, "--json")
    yield (
        "the command: a warning",
        next((line for line in printed.splitlines() if "rior" in line), "none")[:120],
    )
    yield "its JSON", "states it" if re.search(r'"conflicts": \[\s*"', document) else "says nothing"


def advice(given: argparse.Namespace) -> Iterator[tuple[str, str]]:
    """I: what a calibration advises of a Weibull column, of the flights of ``suffice demo``."""
    if given.demo is None:
        yield "advice of a calibration", "left out: --demo"
        return
    spec = given.demo / "air_time.yaml"
    spec.write_text(AIR_TIME.format(source=given.demo.resolve() / "flights"), encoding="utf-8")
    store = ("--store", str(given.demo / "releases"))
    _suffice("release", str(spec), *store, "--ledger", f"sqlite:///{given.demo.resolve() / 'ledger.db'}")
    printed = _suffice("calibrate", "air-time", "air_time", *store, *ADVISED, "--seed", str(given.seed))
    said = [
        line for line in printed.splitlines() if line.startswith(("clipping:", "what helps:", "no change"))
    ]
    yield f"calibrate weibull {' '.join(ADVISED)}", " ".join(said)[:500] or printed[-300:]


AIR_TIME = """\
name: air-time
dataset: nycflights13
source: {{parquet: {source}/}}
privacy: {{epsilon: "0.05", neighboring: add_or_remove_one, unit: row}}
statistics:
  air_time: {{family: weibull, column: air_time, shape: "1.7", upper: 200}}
"""
ADVISED = ("--method", "plug-in", "--n-prior", "300", "--simulations", "400")


def _suffice(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "suffice", *arguments], capture_output=True, text=True, check=False
    )
    return done.stdout + done.stderr


QUESTIONS: dict[str, Callable[[argparse.Namespace], Iterator[tuple[str, str]]]] = {
    "A": bounded_columns,
    "B": scales,
    "D": categories,
    "E": clipped,
    "F": densities,
    "G": roll_ups,
    "H": conflicts,
    "I": advice,
}


def main() -> None:
    """Print a line for each question."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("questions", nargs="*", metavar="LETTER")
    parser.add_argument("--diamonds", type=Path)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--demo", type=Path, help="Where suffice demo has worked.")
    parser.add_argument("--seed", type=int, default=26)
    given = parser.parse_args()
    for letter in given.questions or QUESTIONS:
        for asked, came in QUESTIONS[letter](given):
            print(f"| {letter} | {asked} | {came} |", flush=True)


if __name__ == "__main__":
    main()
