r"""Coverage, error and width of cells that borrow strength, over simulated releases; resumable.

    python benchmarks/pooled_study.py --out FILE [--data DIRECTORY] [--releases N] [--cells N ...] [...]
    python benchmarks/pooled_study.py --table FILE

The first appends one row for each release and method to a CSV file, whose releases are not simulated again;
each has a seed of its own. The second prints a line for each world. ``--data`` has ``adult``, ``fars`` and
``nycflights13``; without it, rates of real groups are left out.

Methods, of the very same releases: ``pooled`` as suffice answers by default, ``one spread`` of all sizes,
``sizes apart`` with the prior 1 / (N + 1) of each, the cell ``alone`` under the family's default prior,
``plug-in`` with hyperparameters at their posterior means, an ``oracle`` that knows the population, and
``Fay-Herriot`` on noisy direct estimates (`fay_herriot.py`). Worlds: `pooled_worlds.py`.
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import time
import zlib
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from fay_herriot import intervals
from pooled_worlds import BOUNDS, DEFAULTS, LINES, TRUTHS, Known, Simulated, Truth, real_truths, simulated

from suffice.pipeline.ask.borrowing.pool import UNIDENTIFIED
from suffice.pipeline.ask.inference import chosen_priors
from suffice.pipeline.ask.inference.pooled_sources import cells_source, pool_source
from suffice.pipeline.ask.posterior.choice_of_engine import posterior_of
from suffice.pipeline.math.engines.pooled.distribution import mixture_over
from suffice.pipeline.math.engines.pooled.hyperparameters import fitted
from suffice.pipeline.math.engines.pooled.hyperpriors import LOG_SPREAD_SD
from suffice.pipeline.math.engines.pooled.populations import DEFAULT, POPULATIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from suffice.pipeline.math.engines.pooled.distribution import PooledDistribution
    from suffice.typing import Floats

    Answers = dict[str, tuple[Floats, Floats, Floats]]

ENDS = (0.025, 0.975)
STRONG = 30.0
"""Records times epsilon from which on a cell is expected to speak for itself."""
LINE = ("family", "truth", "n0", "epsilon", "cells")
FIELDS = (
    *LINE, "release", "method", "covered", "small_covered", "weak", "weak_square", "strong", "strong_square",
    "width", "outliers", "outliers_covered", "unidentified", "settled", "seconds",
)  # fmt: skip
KEPT = {
    "line": LINE,
    "truth": ("family", "truth", "cells"),
    "setting": ("family", "n0", "epsilon", "cells"),
}
"""What a line of a table is of, by its name: all else is taken together."""
_OTHER_WAYS = ("one spread", "sizes apart")


def answers(release: Simulated, truth: Truth, family: str, n0: float) -> tuple[Answers, dict[str, Any]]:
    """Return means and ends of 95 % intervals by method, and what the pooled posterior says of itself."""
    statistic, line = release.statistic, LINES[family]
    started = time.process_time()
    n_prior = chosen_priors.n_prior_for(statistic, None)
    source = pool_source(statistic, n_prior)
    population = POPULATIONS[line][DEFAULT]
    hyper, blocks = fitted(source, population, line)
    rng = np.random.default_rng(0)  # no method draws

    def answer(distribution: PooledDistribution) -> tuple[Floats, Floats, Floats]:
        low, high = distribution.quantiles("x", ENDS, 0, rng).T
        return distribution.mean("x"), low, high

    pooled = mixture_over(hyper, blocks, population, "x", line)
    answered = {"pooled": answer(pooled)}
    seconds = time.process_time() - started
    answered["plug-in"] = answer(pooled.plug_in())
    of_one = fitted(source, population, line, has_spread_slope=False)
    answered["one spread"] = answer(mixture_over(*of_one, population, "x", line))
    apart = fitted(cells_source(statistic, n_prior), population, line)
    answered["sizes apart"] = answer(mixture_over(*apart, population, "x", line))

    def under(density: Callable[[Floats], Floats], slope: float) -> tuple[Floats, Floats, Floats]:
        ones = np.ones((1, 1))
        known = dataclasses.replace(
            hyper, slope=np.array([slope]), weight=ones, location=0.0 * ones, spread=ones,
            spread_slope=0.0 * ones,
            grid=dataclasses.replace(hyper.grid, origin=float(np.log1p(n0)), knots=(float(np.log1p(n0)),)),
        )  # fmt: skip
        return answer(mixture_over(known, blocks, Known(density), "x", line))

    if truth.density is not None and (source.has_sizes or not truth.slope):
        answered["oracle"] = under(truth.density, truth.slope)
    if family in DEFAULTS:
        answered["alone"] = under(DEFAULTS[family], 0.0)
    else:
        alone = posterior_of(statistic)
        low, high = alone.credible_interval(interval="central", rng=0).T
        answered["alone"] = alone.mean(), low, high
    if family != "exponential":
        answered["Fay-Herriot"] = intervals(statistic, float(BOUNDS[family].get("upper", 1)))
    said = {
        "unidentified": int(hyper.log_spread_sd > UNIDENTIFIED * LOG_SPREAD_SD),
        "settled": int(hyper.settled),
        "seconds": f"{seconds:.3f}",
    }
    return answered, said


def rows_of(key: tuple[str, ...], number: int, truth: Truth) -> Iterator[dict[str, Any]]:
    """Simulate one release of a line, and yield what each method says of it."""
    family, _, n0, epsilon, cells = key
    seed = zlib.crc32("|".join(key).encode())
    release = simulated(family, truth, float(n0), epsilon, int(cells), np.random.default_rng([seed, number]))
    is_small = np.argsort(np.argsort(release.size, kind="stable")) < int(cells) // 3
    is_strong = release.size * float(epsilon) > STRONG
    outliers = release.is_outlier & (release.size * float(epsilon) >= STRONG)
    answered, said = answers(release, truth, family, float(n0))
    for method, (mean, low, high) in answered.items():
        holds = (low <= release.parameter) & (release.parameter <= high)
        square = (mean - release.parameter) ** 2
        yield {
            **dict(zip(LINE, key, strict=True)), "release": number, "method": method,
            "covered": int(np.sum(holds)), "small_covered": int(np.sum(holds[is_small])),
            "weak": int(np.sum(~is_strong)), "weak_square": f"{np.sum(square[~is_strong]):.6g}",
            "strong": int(np.sum(is_strong)), "strong_square": f"{np.sum(square[is_strong]):.6g}",
            "width": f"{np.mean(high - low):.6g}", "outliers": int(np.sum(outliers)),
            "outliers_covered": int(np.sum(holds & outliers)), **said,
        }  # fmt: skip


def run(asked: argparse.Namespace) -> None:
    """Append the releases that are not there yet: some of every line, then more."""
    done: set[tuple[str, ...]] = set()
    if asked.out.exists():
        with asked.out.open(newline="") as file:
            done = {tuple(row[name] for name in (*LINE, "release")) for row in csv.DictReader(file)}
    truths = {**TRUTHS[asked.family], **(real_truths(asked.data) if asked.family == "bernoulli" else {})}
    chosen = {name: truth for name, truth in truths.items() if not asked.truths or name in asked.truths}
    lines = [
        (asked.family, name, n0, epsilon, cells)
        for cells, n0, epsilon, name in product(asked.cells, asked.sizes, asked.epsilons, chosen)
    ]
    with asked.out.open("a", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        if not file.tell():
            writer.writeheader()
        for first in range(0, asked.releases, asked.chunk):
            for line in lines:
                for number in range(first, min(first + asked.chunk, asked.releases)):
                    if (*line, str(number)) not in done:
                        writer.writerows(rows_of(line, number, chosen[line[1]]))
                file.flush()


@dataclasses.dataclass(frozen=True)
class Method:
    """What a method did in the releases of one line: a number for each release, by field."""

    rows: list[dict[str, str]]
    cells: int

    def of(self, field: str) -> Floats:
        """Return numbers of releases."""
        return np.array([float(row[field]) for row in self.rows])

    @property
    def coverage(self) -> Floats:
        """Of releases."""
        return self.of("covered") / self.cells

    @property
    def small(self) -> Floats:
        """Coverage of the smallest third of cells."""
        return self.of("small_covered") / (self.cells // 3)


def with_error(values: Floats) -> tuple[float, float]:
    """Return a mean, and its standard error."""
    return float(np.mean(values)), float(np.std(values, ddof=1)) / len(values) ** 0.5


def worst_tenth(coverage: Floats) -> tuple[float, float]:
    """Return the mean of the lowest tenth, and its standard error by the influence of each release.

    Of the mean below a quantile q it is (min(x, q) - q) / .1 + q (Rockafellar, Uryasev 2000).
    """
    n = max(len(coverage) // 10, 1)
    ordered = np.sort(coverage)
    influence = np.minimum(coverage - ordered[n - 1], 0.0) * len(coverage) / n
    return float(np.mean(ordered[:n])), with_error(influence)[1]


def ratio_of_errors(more: Floats, less: Floats) -> tuple[float, float]:
    """Return the ratio of root mean squared errors over releases, and its standard error to first order."""
    if not np.sum(less):
        return np.nan, np.nan
    ratio = float(np.sqrt(np.mean(more) / np.mean(less)))
    return ratio, 0.5 * ratio * with_error(more / np.mean(more) - less / np.mean(less))[1]


def _world(row: dict[str, str]) -> tuple[str, ...]:
    return tuple(row[name] for name in (*LINE, "release"))


def figures(by_method: dict[str, list[dict[str, str]]], cells: int) -> dict[str, tuple[float, float]]:
    """Return each figure of a line with its standard error."""
    methods = {name: Method(rows, cells) for name, rows in by_method.items()}
    pooled, alone = methods["pooled"], methods["alone"]
    known = {
        "mean": with_error(pooled.coverage),
        "small": with_error(pooled.small),
        "worst": worst_tenth(pooled.coverage),
        "alone": ratio_of_errors(alone.of("weak_square"), pooled.of("weak_square")),
        "strong": ratio_of_errors(pooled.of("strong_square"), alone.of("strong_square")),
        "plug-in": with_error(methods["plug-in"].coverage),
        "unidentified": with_error(pooled.of("unidentified")),
    }
    if "oracle" in methods:
        worlds = {_world(row) for row in by_method["oracle"]}
        beside = Method([row for row in pooled.rows if _world(row) in worlds], cells)
        known["oracle"] = float(np.sum(beside.of("width")) / np.sum(methods["oracle"].of("width"))), np.nan
    for name in _OTHER_WAYS:
        if name in methods:
            known[name] = with_error(methods[name].coverage)
            known[f"{name} small"] = with_error(methods[name].small)
    if "Fay-Herriot" in methods:
        other = methods["Fay-Herriot"]
        known["Fay-Herriot"] = with_error(other.coverage)
        known["Fay-Herriot small"] = with_error(other.small)
        known["Fay-Herriot error"] = ratio_of_errors(
            other.of("weak_square") + other.of("strong_square"),
            pooled.of("weak_square") + pooled.of("strong_square"),
        )
    if pooled.rows[0]["family"] not in DEFAULTS:
        # Means of rates under a prior that is nearly scale-free are those of its tail.
        del known["alone"], known["strong"]
    n = pooled.of("outliers")
    if np.sum(n) >= 20:
        share = float(np.sum(pooled.of("outliers_covered")) / np.sum(n))
        known["outliers"] = share, (share * (1.0 - share) / float(np.sum(n))) ** 0.5
    return known


def table(path: Path, least: int, by: str) -> Iterator[str]:
    """Yield a line of Markdown for each world, or for worlds taken together, that has so many releases."""
    lines: dict[tuple[str, ...], dict[str, list[dict[str, str]]]] = {}
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            key = tuple(row[name] if name in KEPT[by] else "all" for name in LINE)
            lines.setdefault(key, {}).setdefault(row["method"], []).append(row)
    columns = (
        "family", "truth", "N0", "epsilon", "cells", "releases", "covered", "small cells", "worst tenth",
        "one spread covers, small", "sizes apart cover, small",
        "error alone / pooled", "pooled / alone, n epsilon > 30", "width / oracle's", "plug-in covers",
        "Fay-Herriot covers, small", "its error / pooled", "outliers, n epsilon >= 30", "not identified",
    )  # fmt: skip
    yield f"| {' | '.join(columns)} |"
    yield "|---" * len(columns) + "|"

    def order(key: tuple[str, ...]) -> tuple[Any, ...]:
        family, truth, n0, epsilon, cells = key
        n0, epsilon = (number.replace("all", "0") for number in (n0, epsilon))
        return list(TRUTHS).index(family), float(cells), truth, float(n0), float(epsilon)

    for key in sorted(lines, key=order):
        by_method = lines[key]
        n = len(by_method["pooled"])
        if n < least:
            continue
        known = figures(by_method, int(key[4]))
        other, *of_ways = (
            " ".join(_shown(known.get(each), 3) for each in (name, f"{name} small")).strip()
            for name in ("Fay-Herriot", *_OTHER_WAYS)
        )
        cells = [
            *key, str(n), *(_shown(known[name], 3) for name in ("mean", "small", "worst")), *of_ways,
            *(_shown(known.get(name), 2) for name in ("alone", "strong", "oracle")),
            _shown(known["plug-in"], 3), other, _shown(known.get("Fay-Herriot error"), 2),
            _shown(known.get("outliers"), 2), f"{100 * known['unidentified'][0]:.0f} %",
        ]  # fmt: skip
        yield f"| {' | '.join(cells)} |"


def _shown(value: tuple[float, float] | None, digits: int) -> str:
    """Write a figure with its standard error in units of its last digit, as ``.951(3)``."""
    if value is None or np.isnan(value[0]):
        return ""
    text = f"{value[0]:.{digits}f}"
    if value[0] < 1.0:
        text = text.removeprefix("0")
    return text if np.isnan(value[1]) else f"{text}({value[1] * 10**digits:.0f})"


def main(words: Sequence[str] | None = None) -> None:
    """Run lines, or print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("pooled-study.csv"))
    parser.add_argument("--table", type=Path)
    parser.add_argument("--by", default="line", choices=list(KEPT), help="what a line of the table is of")
    parser.add_argument("--least", type=int, default=20, help="releases that a line of the table has")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--family", default="bernoulli", choices=list(TRUTHS))
    parser.add_argument("--truths", nargs="+", default=[])
    parser.add_argument("--releases", type=int, default=300)
    parser.add_argument(
        "--chunk", type=int, default=50, help="releases of a line before the next line's turn"
    )
    parser.add_argument("--cells", nargs="+", default=["100"])
    parser.add_argument("--sizes", nargs="+", default=["10", "30", "100", "300", "1000"])
    parser.add_argument("--epsilons", nargs="+", default=["0.1", "0.5", "1"])
    asked = parser.parse_args(words)
    if asked.table is None:
        run(asked)
    else:
        print("\n".join(table(asked.table, asked.least, asked.by)))


if __name__ == "__main__":
    main()
