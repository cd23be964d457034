"""What a calibration found: ranks, coverage, and a conclusion with a stated rate of false alarms."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.pipeline.declaration.exact_numbers import format_epsilon
from suffice.pipeline.released.text_table import text_table

if TYPE_CHECKING:
    from fractions import Fraction

    from numpy.typing import NDArray

DRAWS = 199
"""Posterior draws that a truth is ranked among: 200 ranks, so that the intervals below are exact."""
LEFT_OUT = {0.5: 50, 0.8: 20, 0.95: 5}
"""By mass of a central interval, how many ranks it leaves out on either side."""
BINS = 20
"""Of the histogram: 10 ranks each."""

CALIBRATED = "calibrated"
CLIPPING = "calibrated but for clipping"
NOT_CALIBRATED = "not calibrated"
UNITS_LEFT_OUT = (
    "rows are simulated as independent, and their posteriors take them for that: the widening by what rows "
    "of one unit have in common, which is approximate, is not tested here"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranks:
    """How often the truth had each rank among the draws of its posterior.

    Attributes
    ----------
    parameter : str
    category : str or None
        The category, where the parameter has one value for each.
    counts : tuple of int
        By rank, ``0..DRAWS``.
    """

    parameter: str
    category: str | None
    counts: tuple[int, ...] = field(repr=False)

    @property
    def simulations(self) -> int:
        """How many truths were ranked."""
        return int(sum(self.counts))

    @property
    def histogram(self) -> tuple[int, ...]:
        """Counts in ``BINS`` bins of equally many ranks."""
        return tuple(int(count) for count in np.reshape(self.counts, (BINS, -1)).sum(axis=1))

    def covered(self, mass: float) -> int:
        """How many central intervals of this mass held the truth."""
        out = LEFT_OUT[mass]
        return int(sum(self.counts[out : DRAWS + 1 - out]))

    def coverage(self, mass: float) -> float:
        """The share of central intervals of this mass that held the truth."""
        return self.covered(mass) / self.simulations

    def coverage_p_value(self, mass: float) -> float:
        """Chance that a calibrated posterior's coverage lies as far out on its side, twice; at most 1."""
        return float(_coverage_p_values(np.array(self.covered(mass)), self.simulations, mass))

    @property
    def chi_square(self) -> float:
        """Pearson's statistic of the histogram; ``BINS - 1`` degrees of freedom."""
        expected = self.simulations / BINS
        return sum((count - expected) ** 2 for count in self.histogram) / expected

    @property
    def rank_p_value(self) -> float:
        """Chance of a histogram at least as uneven, by its chi-square distribution in the limit."""
        from scipy.special import chdtrc  # noqa: PLC0415 - slow to import

        return float(chdtrc(BINS - 1, self.chi_square))

    def p_values(self) -> list[float]:
        """The chances that decide: one of each coverage, one of the ranks."""
        return [*(self.coverage_p_value(mass) for mass in LEFT_OUT), self.rank_p_value]


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """A calibration's conditions and findings; made by ``calibrate``.

    Attributes
    ----------
    statistic, family, method, prior : str
        What was calibrated, and the prior that truth and posterior share.
    n_prior : str
        What N was drawn from; a number where it is public.
    epsilon : Fraction
        Of this statistic, in nats.
    simulations : int
        How many.
    false_alarm : float
        A bound on the chance that a calibrated posterior is called not calibrated.
    clipped_share : float
        The share of simulated records that were clipped.
    clipped, unclipped : tuple of Ranks
        With clipping as in the release, which the conclusion rests on, and of the same records without.
    leaves_out_units : bool
        Whether posteriors of the release are widened by what rows of one unit have in common. Simulated rows
        are independent, and their posteriors are those of independent rows: that part is not tested.
    """

    statistic: str
    family: str
    method: str
    prior: str
    n_prior: str
    epsilon: Fraction
    simulations: int
    false_alarm: float
    clipped_share: float
    clipped: tuple[Ranks, ...] = field(repr=False)
    unclipped: tuple[Ranks, ...] = field(repr=False)
    leaves_out_units: bool = False

    @property
    def conclusion(self) -> str:
        """``calibrated``, ``calibrated but for clipping`` (it fails with clipping alone), or neither."""
        if self._holds(self.clipped):
            return CALIBRATED
        return CLIPPING if self._holds(self.unclipped) else NOT_CALIBRATED

    def passing(self, mass: float) -> tuple[float, float]:
        """From which to which coverage intervals of this mass pass: what so few simulations cannot see."""
        covered = np.arange(self.simulations + 1)
        level = self.false_alarm / self._tests(self.clipped)
        passed = covered[_coverage_p_values(covered, self.simulations, mass) > level] / self.simulations
        return float(passed[0]), float(passed[-1])

    def _holds(self, run: tuple[Ranks, ...]) -> bool:
        return min(min(ranks.p_values()) for ranks in run) * self._tests(run) > self.false_alarm

    def _tests(self, run: tuple[Ranks, ...]) -> int:
        """How many chances decide about a run: every parameter's coverages and its ranks."""
        return len(run) * (len(LEFT_OUT) + 1)

    def rows(self) -> list[dict[str, Any]]:
        """One row for every parameter, category and run: coverage, and the chance of such ranks."""
        return [
            {
                "parameter": ranks.parameter,
                **({"category": ranks.category} if ranks.category is not None else {}),
                "clipping": clipping,
                **{f"coverage_{mass * 100:.0f}": ranks.coverage(mass) for mass in LEFT_OUT},
                "rank_p_value": ranks.rank_p_value,
            }
            for pair in zip(self.clipped, self.unclipped, strict=True)
            for ranks, clipping in zip(pair, (True, False), strict=True)
            if clipping or self.clipped_share > 0.0
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return what ``suffice calibrate --json`` prints."""
        histograms = [
            list(ranks.histogram)
            for pair in zip(self.clipped, self.unclipped, strict=True)
            for ranks in (pair if self.clipped_share > 0.0 else pair[:1])
        ]
        return {
            "statistic": self.statistic,
            "family": self.family,
            "method": self.method,
            "prior": self.prior,
            "n_prior": self.n_prior,
            "epsilon": format_epsilon(self.epsilon),
            "simulations": self.simulations,
            "draws": DRAWS,
            "false_alarm": self.false_alarm,
            "clipped_share": self.clipped_share,
            "leaves_out_units": self.leaves_out_units,
            "conclusion": self.conclusion,
            "passing": {f"coverage_{mass * 100:.0f}": self.passing(mass) for mass in LEFT_OUT},
            "rows": [
                {**row, "histogram": histogram}
                for row, histogram in zip(self.rows(), histograms, strict=True)
            ],
        }

    def __str__(self) -> str:
        heading = (
            f"{self.statistic}: {self.method} posterior of {self.family}, epsilon "
            f"{format_epsilon(self.epsilon)}\nprior {self.prior}; N: {self.n_prior}; "
            f"{self.simulations} simulations\n\n"
        )
        rows = self.rows()
        columns = list(rows[0])
        cells = [
            [
                f"{100 * row[column]:.1f} %" if column.startswith("coverage") else _cell(row[column])
                for column in columns
            ]
            for row in rows
        ]
        units = f"\n\n{UNITS_LEFT_OUT}" if self.leaves_out_units else ""
        return f"{heading}{text_table(columns, cells)}\n\n{self.explanation}{units}"

    @property
    def explanation(self) -> str:
        """The conclusion in words: how sure it is, and what clipping has to do with it."""
        share = f"{100 * self.clipped_share:.3g} % of the simulated records are clipped"
        alarm = f"a calibrated posterior is called otherwise at most {self.false_alarm:g} of the time"
        if self.conclusion == CALIBRATED:
            reason = share
        elif self.conclusion == CLIPPING:
            reason = f"{share}, and without clipping the same simulations pass: wider bounds would help"
        elif self.clipped_share > 0.0:
            reason = f"{share}; without clipping the same simulations fail as well"
        else:
            reason = "no record is clipped, so clipping is not the cause"
        low, high = self.passing(0.95)
        unseen = f"95 % intervals pass if they cover {100 * low:.1f} to {100 * high:.1f} %"
        return f"{self.conclusion}: {reason} ({alarm}; {unseen})"


def _coverage_p_values(covered: NDArray[np.int64], simulations: int, mass: float) -> NDArray[np.float64]:
    """Chances that calibrated intervals hold the truth so rarely, or so often, twice; at most 1."""
    from scipy.special import bdtr, bdtrc  # noqa: PLC0415 - slow to import

    below = bdtr(covered, simulations, mass)
    above = np.where(covered == 0, 1.0, bdtrc(np.maximum(covered - 1, 0), simulations, mass))
    p_values: NDArray[np.float64] = np.minimum(1.0, 2.0 * np.minimum(below, above))
    return p_values


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.2g}" if isinstance(value, float) else str(value)
