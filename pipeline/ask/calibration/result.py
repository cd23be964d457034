"""What a calibration found: coverage, a verdict, and whether the noise can be seen at all."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from suffice.pipeline.ask.calibration.verdict import (
    CALIBRATED,
    CANNOT_TELL,
    DRAWS,
    FALSE_ALARM,
    LEFT_OUT,
    MISS,
    NOT_CALIBRATED,
    TOLERANCE,
    Verdict,
    in_points,
    judge,
    level_of,
)
from suffice.pipeline.ask.calibration.world_coverage import worlds_table
from suffice.pipeline.terms.declaration.exact_numbers import format_epsilon
from suffice.pipeline.terms.released.text_table import text_table

if TYPE_CHECKING:
    from collections.abc import Sequence
    from fractions import Fraction

    from suffice.pipeline.ask.calibration.remedies import Remedy
    from suffice.pipeline.ask.calibration.verdict import Ranks
    from suffice.pipeline.ask.calibration.world_coverage import WorldCoverage

_WORTH_SAYING, _MINUTES = 10.0, 120.0
"""Seconds from which on a time is told, and told in minutes."""
_TIMED = 50
"""Simulations from which on their time says what more of them take: a few cost what it takes to begin."""
_DUE_TO_CLIPPING = {
    CALIBRATED: "but for clipping: without it the same simulations are calibrated",
    CANNOT_TELL: "but for clipping, as far as they tell: without it the same simulations do not fail",
    NOT_CALIBRATED: "not by clipping alone: without it the same simulations fail as well",
}
"""What the verdict on the run without clipping says about one that failed."""
UNITS_LEFT_OUT = (
    "rows are simulated as independent, and their posteriors take them for that: the widening by what rows "
    "of one unit have in common, which is approximate, is not tested here"
)
WORLDS_HEADING = (
    "Worlds that are not the model. The truth is the parameter of a population as the public bounds leave\n"
    "its records, not drawn from the prior; of several entries the one that is covered least:"
)
SEEN = {NOT_CALIBRATED: "can be seen", CALIBRATED: "cannot be seen", CANNOT_TELL: "cannot tell"}
"""What the verdict on the posterior that ignores the noise says about the noise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseSeen:
    """Whether simulations of this release can tell a posterior that ignores its noise from one that does not.

    Attributes
    ----------
    ignored : tuple of Ranks
        Of the same noisy sums without clipping, under the plug-in posterior.
    variance_ratio : float or None
        The variance that noise adds to a posterior over the variance without noise, by the central 80 %
        intervals: the median over all data sets, of the parameter where it is largest. None under the plug-in
        method, which adds nothing.
    parameter : str
        Of this ratio.
    """

    ignored: tuple[Ranks, ...] = field(repr=False)
    variance_ratio: float | None
    parameter: str

    @property
    def conclusion(self) -> str:
        """``can be seen``, ``cannot be seen`` or ``cannot tell``."""
        return SEEN[judge(self.ignored).conclusion]

    def to_dict(self) -> dict[str, Any]:
        """Return the field ``noise`` of ``suffice calibrate --json``."""
        return {
            "conclusion": self.conclusion,
            "variance_ratio": self.variance_ratio,
            "parameter": self.parameter,
            "ignored": _coverages(self._worst),
        }

    def __str__(self) -> str:
        several = f" ({self._worst.name})" if len(self.ignored) > 1 else ""
        covers = in_points(round(self._worst.coverage(mass), 3) for mass in LEFT_OUT)
        ignoring = f"a posterior that ignored it covers {covers} % at 50, 80 and 95{several}"
        ratio = ""
        if self.variance_ratio is not None:
            of = f" of {self.parameter}" if len(self.ignored) > 1 else ""
            ratio = f"noise variance is {self.variance_ratio:.2g} of sampling variance{of}; "
        return f"noise: {self.conclusion} ({ratio}{ignoring})"

    @property
    def _worst(self) -> Ranks:
        return min(self.ignored, key=lambda ranks: ranks.coverage(0.95))


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """A calibration's conditions and findings; made by ``calibrate``.

    Attributes
    ----------
    statistic, family, method, prior : str
        What was calibrated, and the prior that truth and posterior share.
    n_prior : str
        What N was drawn from; a number where it is public.
    predictor_prior : str or None
        What the posterior believes of a regression's predictors; None of others, and of plug-in posteriors.
    predictors : str or None
        What a regression's predictors were drawn from; None of others.
    epsilon : Fraction
        Of this statistic, in nats.
    simulations : int
        How many.
    seconds : float
        How long they took.
    clipped_share : float
        The share of simulated records that were clipped.
    clipped, unclipped : tuple of Ranks
        With clipping as in the release, which the conclusion rests on, and of the same records without.
    noise : NoiseSeen
        Whether the noise can be seen at all.
    remedies : tuple of Remedy
        What was tried where the posterior is not calibrated, and whether it helped; empty otherwise.
    worlds : tuple of WorldCoverage
        Coverage in worlds that are not the model; empty unless asked for.
    leaves_out_units : bool
        Whether posteriors of the release are widened by what rows of one unit have in common. Simulated rows
        are independent, and their posteriors are those of independent rows: that part is not tested.
    """

    statistic: str
    family: str
    method: str
    prior: str
    n_prior: str
    predictor_prior: str | None
    predictors: str | None
    epsilon: Fraction
    simulations: int
    seconds: float = field(compare=False)
    clipped_share: float
    clipped: tuple[Ranks, ...] = field(repr=False)
    unclipped: tuple[Ranks, ...] = field(repr=False)
    noise: NoiseSeen = field(repr=False)
    remedies: tuple[Remedy, ...] = ()
    worlds: tuple[WorldCoverage, ...] = field(default=(), repr=False)
    leaves_out_units: bool = False

    @property
    def conclusion(self) -> str:
        """``calibrated``, ``not calibrated`` or ``cannot tell``."""
        return self._verdict.conclusion

    @property
    def reason(self) -> str:
        """What the conclusion rests on, and whether it is due to clipping."""
        return f"{self._verdict.reason}{self._due_to_clipping}"

    @property
    def simulations_needed(self) -> int:
        """How many simulations it takes for a calibrated posterior to be called so; see ``Verdict``."""
        return self._verdict.simulations_needed

    @property
    def _verdict(self) -> Verdict:
        return judge(self.clipped)

    def rows(self) -> list[dict[str, Any]]:
        """One row for every parameter, category and run: coverage, and the chance of such ranks."""
        return [
            {
                "parameter": ranks.parameter,
                **({"category": ranks.category} if ranks.category is not None else {}),
                "clipping": clipping,
                **_coverages(ranks),
                "rank_p_value": ranks.rank_p_value,
            }
            for ranks, clipping in self._shown()
        ]

    def _shown(self) -> list[tuple[Ranks, bool]]:
        """Every parameter with clipping, and without where any record was clipped."""
        return [
            (ranks, clipping)
            for pair in zip(self.clipped, self.unclipped, strict=True)
            for ranks, clipping in zip(pair, (True, False), strict=True)
            if clipping or self.clipped_share > 0.0
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return what ``suffice calibrate --json`` prints; it does not tell how long it took."""
        level = level_of(len(self.clipped))
        return {
            "statistic": self.statistic,
            "family": self.family,
            "method": self.method,
            "prior": self.prior,
            "n_prior": self.n_prior,
            "predictor_prior": self.predictor_prior,
            "predictors": self.predictors,
            "epsilon": format_epsilon(self.epsilon),
            "simulations": self.simulations,
            "draws": DRAWS,
            "clipped_share": self.clipped_share,
            "leaves_out_units": self.leaves_out_units,
            "conclusion": self.conclusion,
            "reason": self.reason,
            "simulations_needed": self.simulations_needed,
            "false_alarm": FALSE_ALARM,
            "tolerance": {_column(mass): tolerance for mass, tolerance in TOLERANCE.items()},
            "noise": self.noise.to_dict(),
            "remedies": [remedy.to_dict() for remedy in self.remedies],
            "worlds": [each.to_dict() for each in self.worlds],
            "rows": [
                {
                    **row,
                    "intervals": {_column(mass): ranks.coverage_interval(mass, level) for mass in LEFT_OUT},
                    "histogram": list(ranks.histogram),
                }
                for row, (ranks, _) in zip(self.rows(), self._shown(), strict=True)
            ],
        }

    def __str__(self) -> str:
        heading = (
            f"{self.statistic}: {self.method} posterior of {self.family}, epsilon "
            f"{format_epsilon(self.epsilon)}\nprior {self.prior}; N: {self.n_prior}; "
            f"{self.simulations} simulation{'s' if self.simulations > 1 else ''}\n"
        )
        if self.predictors is not None:
            believed = "" if self.predictor_prior is None else f"prior of predictors {self.predictor_prior}; "
            heading += f"{believed}predictors drawn from: {self.predictors}\n"
        heading += "\n"
        rows = self.rows()
        columns = list(rows[0])
        cells = [
            [
                f"{100 * row[column]:.1f} %" if column.startswith("coverage") else _cell(row[column])
                for column in columns
            ]
            for row in rows
        ]
        text = f"{heading}{text_table(columns, cells)}\n\n{self.explanation}"
        return f"{text}\n\n{WORLDS_HEADING}\n\n{worlds_table(self.worlds)}" if self.worlds else text

    @property
    def explanation(self) -> str:
        """The conclusion in words, how often it is wrong, and what clipping and noise have to do with it."""
        alarm = {
            CALIBRATED: f" (said of a posterior that is further off at most {MISS:g} of the time)",
            NOT_CALIBRATED: f" (said of a calibrated posterior at most {FALSE_ALARM:g} of the time)",
        }.get(self.conclusion, self._duration)
        clipped = f"clipping: {100 * self.clipped_share:.3g} % of the simulated records are clipped"
        lines = (f"{self.conclusion}: {self._verdict.reason}{alarm}", f"{clipped}{self._due_to_clipping}")
        units = (UNITS_LEFT_OUT,) if self.leaves_out_units else ()
        return "\n".join((*lines, *advice(self.remedies), str(self.noise), *units))

    @property
    def _due_to_clipping(self) -> str:
        if self.conclusion != NOT_CALIBRATED or self.clipped_share == 0.0:
            return ""
        return f"; {_DUE_TO_CLIPPING[judge(self.unclipped).conclusion]}"

    @property
    def _duration(self) -> str:
        """How long the simulations that are needed would take, where that is worth saying."""
        seconds = self.seconds / self.simulations * self.simulations_needed
        if seconds < _WORTH_SAYING or self.simulations < _TIMED:
            return ""
        return f" (about {seconds:.0f} s)" if seconds < _MINUTES else f" (about {seconds / 60:.0f} minutes)"


def advice(remedies: Sequence[Remedy]) -> tuple[str, ...]:
    """Say what of the remedies that were tried helped, above a table of what they did."""
    if not remedies:
        return ()
    first = remedies[0]
    columns = ["tried", f"95 % of {first.parameter} cover", "where bounds hold the records", "helps"]
    cells = [["as it is", _share(first.before), "", ""]]
    for each in remedies:
        within = ""
        if each.before_within is not None:
            within = f"{_share(each.after_within)} for {_share(each.before_within)}"
        cells.append([each.change, _share(each.after), within, "yes" if each.helps else "no"])
    helped = " or ".join(each.change for each in remedies if each.helps) or "nothing that was tried"
    return (f"what helps: {helped}, of {first.simulations} of the same data sets", text_table(columns, cells))


def _share(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.1f} %"


def _coverages(ranks: Ranks) -> dict[str, float]:
    return {_column(mass): ranks.coverage(mass) for mass in LEFT_OUT}


def _column(mass: float) -> str:
    return f"coverage_{100 * mass:.0f}"


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.2g}" if isinstance(value, float) else str(value)
