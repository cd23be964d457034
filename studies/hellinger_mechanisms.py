"""The Notes, Figures 2, 3 and 4: four mechanisms that release a posterior, by Hellinger and L1 distance.

Three draw a candidate posterior by Hellinger utility, with global, local or smooth sensitivity; the fourth
adds Laplace noise to counts. Prior Beta(7, 4), epsilon .5; or Dirichlet(7, 4, 5),
epsilon .8. Claims are held against losses that are certified by enumerating every pair of neighbours.
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
from studies.plotting import MARKERS, picture
from studies.result import Claim, Result, Row, Verdict, conclude, near, tight
from suffice.pipeline.statistics.simulated_sums import discrete_laplace
from suffice.plots.style import COLOURS

if TYPE_CHECKING:
    from pathlib import Path

    from studies.result import Size
    from suffice.typing import Counts, Floats

BETA, DIRICHLET = (7.0, 4.0), (7.0, 4.0, 5.0)
DELTA = 0.8
"""The Notes'; a delta near 1 is not privacy."""
MECHANISMS = ("global", "local", "smooth", "Laplace")
CERTIFIED = (
    ("DL(7, 4, 5), n = 40, epsilon .8", DIRICHLET, 40, 0.8),
    ("Beta(7, 4), n = 300, epsilon .5", BETA, 300, 0.5),
)
CONCLUSION = (
    "The pictures are not at hand, and the text says neither what they show nor of which counts: data are "
    "balanced here. Global sensitivity is far behind, local and smooth nearly agree, and Laplace noise on "
    "counts is best, by 2.4 to 3 times against the best of the three and by 4 to 14 against the global "
    "one. The bound of section 3.1 holds, with more room than it says. Certified losses are about half of "
    "what is charged for the global one; the local one has no guarantee; the claim for the smooth one "
    "holds where it was enumerated, its proof does not hold."
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


def distance_to(prior: tuple[float, ...], counts: tuple[int, ...], others: Floats | Counts) -> Floats:
    """Return Hellinger distances of a posterior to those of counts that need not be whole."""
    own, other = np.array(prior) + counts, np.array(prior) + others
    log_affinity = _log_beta((own + other) / 2.0) - (_log_beta(own) + _log_beta(other)) / 2.0
    found: Floats = np.sqrt(np.maximum(-np.expm1(log_affinity), 0.0))
    return found


def _log_beta(parameters: Floats) -> Floats:
    found: Floats = special.gammaln(parameters).sum(axis=-1) - special.gammaln(parameters.sum(axis=-1))
    return found


def noisy_counts(own: Configuration, repeats: int, rng: np.random.Generator) -> Counts:
    """Return counts with discrete Laplace noise, cut at 0.

    A replaced record moves three counts by 2 in all. Of two counts with a public sum one is enough: it moves
    by 1.
    """
    if len(own.counts) == 2:
        first = own.counts[0] + discrete_laplace(1.0 / own.epsilon, (repeats,), rng)
        kept = np.clip(first, 0, sum(own.counts))
        return np.stack([kept, sum(own.counts) - kept], axis=1)
    noise = discrete_laplace(2.0 / own.epsilon, (repeats, len(own.counts)), rng)
    return np.maximum(np.array(own.counts) + noise, 0)


def mean_distances(
    own: Configuration, repeats: int, rng: np.random.Generator
) -> dict[str, tuple[float, float, float | None, float | None]]:
    """Return mean Hellinger and L1 distance of each mechanism's output, and standard errors; None: exact."""
    n = sum(own.counts)
    simplex = count_simplex(n, len(own.prior))
    distances = hellinger(own.prior, np.array([own.counts]), simplex.counts)[0]
    apart = np.abs(simplex.counts - np.array(own.counts)).sum(axis=1)
    local = local_sensitivities(own.prior, simplex)
    smooth = smooth_sensitivities(own.prior, simplex, smoothness(own.epsilon, DELTA, n))
    row = int(simplex.row_of(own.counts)[0])
    found: dict[str, tuple[float, float, float | None, float | None]] = {}
    for name, scale in (("global", local.max()), ("local", local[row]), ("smooth", smooth[row])):
        chances = special.softmax(-own.epsilon * distances / (2.0 * float(scale)))
        found[name] = (float(chances @ distances), float(chances @ apart), None, None)
    noisy = noisy_counts(own, repeats, rng)
    laplace = distance_to(own.prior, own.counts, noisy), np.abs(noisy - np.array(own.counts)).sum(axis=1)
    means = [float(values.mean()) for values in laplace]
    errors = [float(values.std() / np.sqrt(repeats)) for values in laplace]
    found["Laplace"] = (means[0], means[1], errors[0], errors[1])
    return found


def certified_rows() -> list[Row]:
    """Return the certified loss of each candidate mechanism beside its claim."""
    rows = []
    for name, prior, n, epsilon in CERTIFIED:
        for sensitivity, claim in (
            ("global", f"epsilon {epsilon:g}"),
            ("local", "non-private"),
            ("smooth", f"({epsilon:g}, {DELTA:g})-DP"),
        ):
            own = candidate_mechanism(
                prior,
                n,
                epsilon=epsilon,
                sensitivity=sensitivity,  # type: ignore[arg-type]
                delta=DELTA if sensitivity == "smooth" else None,
            )
            note = {
                "local": "no guarantee; within epsilon for these n",
                "smooth": "the proof does not hold; delta .8 is not privacy",
            }
            rows.append(
                Row(
                    quantity=f"certified loss, {sensitivity}, {name}",
                    ours=own.certified_loss,
                    paper=claim,
                    claim=None if sensitivity == "local" else Claim(high=epsilon),
                    verdict=Verdict.ADDED,
                    note=note.get(sensitivity, "about half is lost"),
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


def run(out: Path, seed: int, size: Size) -> Result:
    """Enumerate the candidates of every panel, and simulate the Laplace noise."""
    repeats = size.pick(smallest=2_000, usual=100_000, full=1_000_000)
    shown = size.pick(smallest=CONFIGURATIONS[:3], usual=CONFIGURATIONS, full=CONFIGURATIONS)
    rng = np.random.default_rng(seed)
    found = {own: mean_distances(own, repeats, rng) for own in shown}
    rows = [*certified_rows(), *rows_of_accuracy()]
    for own, distances in found.items():
        what = f"Figure {own.figure}: mean {{}}, {{}}, {own.name}"
        for name, (hell, apart, hell_error, apart_error) in distances.items():
            shown_as = [("Hellinger distance", hell, hell_error)]
            if own.figure == "4":
                shown_as.append(("L1 distance", apart, apart_error))
            is_one_count = name == "Laplace" and len(own.counts) == 2
            note = "noise of scale 1 / epsilon on one count, n public" if is_one_count else ""
            rows += [
                Row(quantity=what.format(measure, name), ours=value, error=error, note=note, digits=3)
                for measure, value, error in shown_as
            ]
        laplace, spread = distances["Laplace"][0], distances["Laplace"][2] or 0.0
        best = min(distances[name][0] for name in MECHANISMS[:3])
        for name, value in (("best candidate", best), ("global", distances["global"][0])):
            ratio = value / laplace
            rows.append(
                Row(
                    quantity=f"Figure {own.figure}: {name} over Laplace, {own.name}",
                    ours=ratio,
                    error=ratio * spread / laplace,
                    verdict=Verdict.ADDED,
                    digits=3,
                )
            )
    path = out / "hellinger_mechanisms.png"
    with picture(
        path,
        title="Laplace noise on counts beats the candidate mechanisms",
        subtitle="Mean distance of what is released from the posterior, balanced data, epsilon .5 or .8 (DL)",
        footer="The Notes, Figures 2 to 4; enumerated, Laplace simulated. Local sensitivity: no guarantee.",
        panels=2,
        height=3.6,
    ) as axes:
        titles = ("Hellinger distance", "L1 distance of parameters")
        for place, (axis, title) in enumerate(zip(axes, titles, strict=True)):
            for series, name in enumerate(MECHANISMS):
                values = [(found[own][name][0], found[own][name][1])[place] for own in shown]
                axis.scatter(
                    values,
                    np.arange(len(shown)) + (0.0, -0.12, 0.12, 0.0)[series],
                    s=42,
                    color=COLOURS[(1, 3, 2, 0)[series]],
                    marker=MARKERS[series],
                    label="local (no guarantee)" if name == "local" else name,
                    zorder=3,
                )
            axis.set_yticks(range(len(shown)))
            axis.set_title(title)
            axis.set_ylim(len(shown) - 0.5, -0.5)
            axis.set_xlim(0.0, None)
        axes[0].set_yticklabels([f"Figure {own.figure}: {own.name}" for own in shown])
        axes[1].set_yticklabels([""] * len(shown))
        axes[1].legend(loc="lower right")
    pairs = list(itertools.product(shown, MECHANISMS))
    curves = {
        label: tuple(found[own][name][place] for own, name in pairs)
        for label, place in (
            ("mean Hellinger distance", 0),
            ("mean Hellinger distance, standard error", 2),
            ("mean L1 distance", 1),
            ("mean L1 distance, standard error", 3),
        )
    }
    labels = {
        "figure": tuple(own.figure for own, _ in pairs),
        "configuration": tuple(own.name for own, _ in pairs),
        "mechanism": tuple(name for _, name in pairs),
    }
    return conclude(out, "hellinger_mechanisms", rows, pictures=[path], curves={**labels, **curves})
