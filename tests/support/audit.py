"""The calibration audit: every family with a noise-aware posterior, over N, epsilon and both relations.

``python tests/support/audit.py bernoulli categorical`` measures these families (all, where none is named) and
replaces their rows of the table in ``benchmarks/CALIBRATION.md``.
"""

from __future__ import annotations

import dataclasses
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from suffice.pipeline.ask.calibration.simulation import simulate
from suffice.pipeline.ask.calibration.verdict import LEFT_OUT, TOLERANCE
from suffice.pipeline.ask.inference.posterior_terms import NOISE_AWARE
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.math.priors.record_count import Fixed
from support.generative_models import generative_model_for, most_clipped, noise_aware_families

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from suffice.pipeline.ask.calibration.verdict import Ranks

SIMULATIONS = 4000
ROWS = (20, 100, 1000, 10_000)
EPSILONS = ("0.1", "0.5", "1")

TABLE = Path(__file__).resolve().parents[2] / "benchmarks" / "CALIBRATION.md"
HEADING = "| family | parameter | N | N0 |"


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One problem of the audit.

    Attributes
    ----------
    family : str
    public_n : bool
        ``replace_one`` beside a public N, or ``add_or_remove_one`` with N uniform on ``0..2 n``.
    n : int
    epsilon : str
    """

    family: str
    public_n: bool
    n: int
    epsilon: str

    def __str__(self) -> str:
        return f"{self.family}-{'public' if self.public_n else 'latent'}-{self.n}-{self.epsilon}"


def designs(family: str) -> tuple[bool, ...]:
    """Whether N is public: both, but for sequences of units, whose transitions are never."""
    return (False,) if FAMILIES[family].needs_unit else (False, True)


def problems(
    families: Sequence[str], rows: Sequence[int] = ROWS, epsilons: Sequence[str] = EPSILONS
) -> list[Problem]:
    """Return the problems of these families."""
    return [
        Problem(family=family, public_n=public_n, n=n, epsilon=epsilon)
        for family in families
        for public_n in designs(family)
        for n in rows
        for epsilon in epsilons
    ]


def ranks_of(
    problem: Problem,
    *,
    method: str = NOISE_AWARE,
    simulations: int = SIMULATIONS,
    noise: float = 1.0,
    n_is_fixed: bool = False,
    conditions: tuple[dict[str, Any], str | None] | None = None,
) -> tuple[Ranks, ...]:
    """Simulate a problem: the ranks of every parameter, and of the first of several categories.

    Parameters
    ----------
    problem : Problem
    method : str
    simulations : int
    noise : float
        The scale of the noise that is simulated, over the one that the posterior believes.
    n_is_fixed : bool
        Every simulation has the same N, while the posterior's prior of N stays uniform.
    conditions : tuple of dict and str, optional
        As in ``generative_model_for``.
    """
    generative_model = generative_model_for(
        problem.family,
        n=problem.n,
        epsilon=problem.epsilon,
        public_n=problem.public_n,
        method=method,
        conditions=conditions,
    )
    generative_model = dataclasses.replace(generative_model, scale=generative_model.scale * noise)
    if n_is_fixed:
        generative_model = dataclasses.replace(generative_model, n_prior=Fixed(problem.n))
    simulation = simulate(generative_model, simulations, np.random.default_rng())
    assert simulation.clipped_share < most_clipped(simulations, problem.n)
    return tuple(
        ranks for ranks in simulation.clipped if ranks.category in {None, simulation.clipped[0].category}
    )


def within(ranks: Ranks) -> bool:
    """Tell whether every coverage is nominal but for its tolerance."""
    return all(abs(ranks.coverage(mass) - mass) <= tolerance for mass, tolerance in TOLERANCE.items())


def table_rows(family: str, simulations: int = SIMULATIONS) -> Iterator[str]:
    """Measure a family, and give its rows of the table in ``benchmarks/CALIBRATION.md``."""
    for public_n in designs(family):
        for n in ROWS:
            cells: dict[str, list[str]] = {}
            for fixed in (False, True):
                for epsilon in EPSILONS:
                    problem = Problem(family=family, public_n=public_n, n=n, epsilon=epsilon)
                    if fixed and public_n:
                        for row in cells.values():
                            row.append("")
                        continue
                    for ranks in ranks_of(problem, simulations=simulations, n_is_fixed=fixed):
                        name = ranks.parameter if ranks.category is None else f"{ranks.parameter}[first]"
                        cells.setdefault(name, []).append(
                            " / ".join(f"{100 * ranks.coverage(mass):.1f}" for mass in LEFT_OUT)
                        )
            for name, row in cells.items():
                kind = "public" if public_n else "latent"
                yield f"| {family} | {name} | {kind} | {n} | {' | '.join(row)} |"


def replace_rows(family: str, rows: Sequence[str]) -> None:
    """Put a family's rows where its old ones stood, else below the table."""
    lines = TABLE.read_text(encoding="utf-8").split("\n")
    first = next(index for index, line in enumerate(lines) if line.startswith(HEADING)) + 2
    last = next(index for index in range(first, len(lines)) if not lines[index].startswith("|"))
    others = [line for line in lines[first:last] if not line.startswith(f"| {family} |")]
    TABLE.write_text("\n".join([*lines[:first], *others, *rows, *lines[last:]]), encoding="utf-8")


if __name__ == "__main__":
    for chosen in sys.argv[1:] or [*noise_aware_families(), *noise_aware_families(by_mcmc=True)]:
        replace_rows(chosen, list(table_rows(chosen)))
