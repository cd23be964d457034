"""The Notes, Figures 2, 3 and 4: four mechanisms that release a posterior, by Hellinger and L1 distance.

Three draw a candidate posterior by Hellinger utility, with global, local or smooth sensitivity; the fourth
adds Laplace noise to counts. Prior Beta(7, 4), epsilon .5; or Dirichlet(7, 4, 5), epsilon .8. The exponent of
the three is the text's, epsilon u / (2 S), or the code's, epsilon u / S. Claims are held against losses that
are certified by enumerating every pair of neighbours; `notes_boxes` holds medians against the pictures.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from studies.mechanisms.candidates import (
    candidate_mechanism,
    hellinger,
    local_sensitivities,
    smooth_sensitivities,
    smoothness,
)
from studies.mechanisms.count_simplex import count_simplex
from studies.notes_boxes import DELTA, distance_to, draw_boxes, rows_of_boxes
from studies.result import Claim, Result, Row, Verdict, conclude, near, tight
from suffice.pipeline.terms.statistics.simulated_sums import discrete_laplace

if TYPE_CHECKING:
    from pathlib import Path

    from studies.result import Size
    from suffice.typing import Counts

BETA, DIRICHLET = (7.0, 4.0), (7.0, 4.0, 5.0)
TEXT, CODE = "text", "code"
EXPONENTS = {TEXT: 2.0, CODE: 1.0}
"""What divides epsilon u / S: in the text of the Notes, and in their code."""
MECHANISMS = ("global", "local", "smooth", "Laplace")
CERTIFIED = (
    ("DL(7, 4, 5), n = 40, epsilon .8", DIRICHLET, 40, 0.8),
    ("Beta(7, 4), n = 300, epsilon .5", BETA, 300, 0.5),
)
CONCLUSION = (
    "The Notes' code draws exp(epsilon u / S), twice the epsilon of the text's exp(epsilon u / (2 S)). By "
    "the text's law Laplace noise on counts is best. By the code's law local and smooth sensitivity are "
    "about as good, as in the pictures, and each loses twice as much: the claim for the smooth one fails."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """One panel of the figures: a prior, a data set and an epsilon."""

    figure: str
    prior: tuple[float, ...]
    counts: tuple[int, ...]
    epsilon: float

    @property
    def name(self) -> str:
        """What the panel is of."""
        law = "Beta" if len(self.prior) == 2 else "DL"
        return f"{law}{tuple(map(int, self.prior))}, n = {sum(self.counts)}"


CONFIGURATIONS = (
    Configuration(figure="2b", prior=BETA, counts=(150, 150), epsilon=0.5),
    Configuration(figure="2a", prior=BETA, counts=(250, 250), epsilon=0.5),
    Configuration(figure="3a", prior=DIRICHLET, counts=(34, 33, 33), epsilon=0.8),
    Configuration(figure="3b", prior=DIRICHLET, counts=(40, 40, 40), epsilon=0.8),
    Configuration(figure="4", prior=DIRICHLET, counts=(50, 50, 50), epsilon=0.8),
)


def noisy_counts(panel: Configuration, repeats: int, rng: np.random.Generator) -> Counts:
    """Return counts with discrete Laplace noise, cut at 0.

    A replaced record moves three counts by 2 in all. Of two counts with a public sum one is enough: it moves
    by 1.
    """
    if len(panel.counts) == 2:
        first = panel.counts[0] + discrete_laplace(1.0 / panel.epsilon, (repeats,), rng)
        kept = np.clip(first, 0, sum(panel.counts))
        return np.stack([kept, sum(panel.counts) - kept], axis=1)
    noise = discrete_laplace(2.0 / panel.epsilon, (repeats, len(panel.counts)), rng)
    return np.maximum(np.array(panel.counts) + noise, 0)


def mean_distances(
    panel: Configuration, repeats: int, rng: np.random.Generator
) -> dict[tuple[str, str], tuple[float, float, float | None, float | None]]:
    """Return mean Hellinger and L1 distance of each output, and standard errors; None: exact.

    By mechanism and exponent; Laplace noise has one law, which stands under the text's.
    """
    n = sum(panel.counts)
    simplex = count_simplex(n, len(panel.prior))
    distances = hellinger(panel.prior, np.array([panel.counts]), simplex.counts)[0]
    apart = np.abs(simplex.counts - np.array(panel.counts)).sum(axis=1)
    local = local_sensitivities(panel.prior, simplex)
    smooth = smooth_sensitivities(panel.prior, simplex, smoothness(panel.epsilon, DELTA, n))
    row = int(simplex.row_of(panel.counts)[0])
    by_mechanism: dict[tuple[str, str], tuple[float, float, float | None, float | None]] = {}
    scales = {"global": local.max(), "local": local[row], "smooth": smooth[row]}
    for exponent, (name, scale) in itertools.product(EXPONENTS, scales.items()):
        chances = special.softmax(-panel.epsilon * distances / (EXPONENTS[exponent] * float(scale)))
        by_mechanism[name, exponent] = (float(chances @ distances), float(chances @ apart), None, None)
    noisy = noisy_counts(panel, repeats, rng)
    laplace = (
        distance_to(panel.prior, panel.counts, noisy),
        np.abs(noisy - np.array(panel.counts)).sum(axis=1),
    )
    means = [float(values.mean()) for values in laplace]
    errors = [float(values.std() / np.sqrt(repeats)) for values in laplace]
    by_mechanism["Laplace", TEXT] = (means[0], means[1], errors[0], errors[1])
    return by_mechanism


def certified_rows() -> list[Row]:
    """Return the certified loss of each candidate mechanism beside its claim, by the exponent."""
    rows = []
    for exponent, (name, prior, n, epsilon) in itertools.product(EXPONENTS, CERTIFIED):
        for sensitivity, claim in (
            ("global", f"epsilon {epsilon:g}"),
            ("local", "non-private"),
            ("smooth", f"({epsilon:g}, {DELTA:g})-DP"),
        ):
            mechanism = candidate_mechanism(
                prior,
                n,
                epsilon=epsilon,
                sensitivity=sensitivity,  # type: ignore[arg-type]
                delta=DELTA if sensitivity == "smooth" else None,
                is_halved=exponent == TEXT,
            )
            notes = {
                ("local", TEXT): "no guarantee; within epsilon for these n",
                ("local", CODE): "no guarantee",
                ("smooth", TEXT): "the proof does not hold; delta .8 is not privacy",
                ("smooth", CODE): "beyond epsilon; delta .8 is not privacy",
                ("global", TEXT): "about half is lost",
            }
            rows.append(
                Row(
                    quantity=f"certified loss, {sensitivity}, the {exponent}'s law, {name}",
                    ours=mechanism.certified_loss,
                    paper=claim,
                    claim=None if sensitivity == "local" else Claim(high=epsilon),
                    verdict=Verdict.ADDED,
                    note=notes.get((sensitivity, exponent), ""),
                    digits=5,
                )
            )
    return rows


def rows_of_accuracy(categories: int = 3, gamma: float = 0.05) -> list[Row]:
    """Return the chances that Laplace noise of scale 2 / epsilon exceeds what section 3.1 states."""
    reach = math.log(categories / gamma)
    chances = "Section 3.1: chance that {} error is at least {}ln(m / gamma) 2 / epsilon, m = 3, gamma = .05"
    return [
        Row(
            quantity=chances.format("the largest", ""),
            ours=1.0 - (1.0 - gamma / categories) ** categories,
            paper=f"= {gamma:g}",
            claim=near(gamma, 1e-9, Verdict.WRONG),
            note="at most: 1 - (1 - gamma / m)^m",
            digits=4,
        ),
        Row(
            quantity=chances.format("the L1", "m "),
            ours=float(special.gammaincc(categories, categories * reach)),
            paper=f"<= {gamma:g}",
            claim=tight(gamma),
            digits=3,
        ),
    ]


def rows_of_means(panel: Configuration, repeats: int, rng: np.random.Generator) -> list[Row]:
    """Return mean distances of a panel, and how they stand to those of Laplace noise."""
    distances = mean_distances(panel, repeats, rng)
    figure = f"Figure {panel.figure}"
    rows = []
    for (name, exponent), (hell, apart, hell_error, apart_error) in distances.items():
        law = "" if name == "Laplace" else f", the {exponent}'s law"
        is_one_count = name == "Laplace" and len(panel.counts) == 2
        note = "noise of scale 1 / epsilon on one count, n public" if is_one_count else ""
        rows += [
            Row(
                quantity=f"{figure}: mean {measure} distance, {name}{law}, {panel.name}, balanced",
                ours=value,
                error=error,
                note=note,
                digits=3,
            )
            for measure, value, error in (("Hellinger", hell, hell_error), ("L1", apart, apart_error))
            if measure == "Hellinger" or panel.figure == "4"
        ]
    laplace, _, error, _ = distances["Laplace", TEXT]
    for exponent in EXPONENTS:
        best = min(distances[name, exponent][0] for name in MECHANISMS[:3])
        for name, value in (("best candidate", best), ("global", distances["global", exponent][0])):
            rows.append(
                Row(
                    quantity=f"{figure}: {name} over Laplace, the {exponent}'s law, {panel.name}",
                    ours=value / laplace,
                    error=value / laplace * (error or 0.0) / laplace,
                    verdict=Verdict.ADDED,
                    digits=3,
                )
            )
    return rows


def run(out: Path, seed: int, size: Size) -> Result:
    """Enumerate the candidates of every panel; simulate Laplace noise, and experiments like the Notes'."""
    repeats = size.pick(smallest=2_000, usual=100_000, full=1_000_000)
    experiments = size.pick(smallest=200, usual=2_000, full=20_000)
    shown = size.pick(smallest=CONFIGURATIONS[:3], usual=CONFIGURATIONS, full=CONFIGURATIONS)
    rng = np.random.default_rng(seed)
    rows = [*certified_rows(), *rows_of_accuracy()]
    for panel in shown:
        rows += rows_of_means(panel, repeats, rng)
    rows += rows_of_boxes(experiments, rng, is_whole=size.value != "smallest")
    path = out / "hellinger_mechanisms.png"
    curves = draw_boxes(path, rng)
    return conclude(out, "hellinger_mechanisms", rows, pictures=[path], curves=curves)
