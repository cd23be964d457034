"""The boxplots of the Notes, Figures 2 to 4: medians of 200 runs on data that are drawn from the prior.

Their pictures show each mechanism's distances from the posterior for one data set, which they do not state;
their code draws it from the prior. So experiments like theirs are repeated: data from the prior, 200 outputs,
their median. A median of the pictures agrees where it is within the central 99 % of these. Laplace noise is
theirs as well: rounded, of scale 2 / epsilon on each count but the first, which makes up the total, and drawn
anew while a parameter is not positive.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from studies.mechanisms.candidates import hellinger, local_sensitivities, smooth_sensitivities, smoothness
from studies.mechanisms.count_simplex import count_simplex
from studies.plotting import picture
from studies.result import Claim, Row
from suffice.plots.style import COLOURS

if TYPE_CHECKING:
    from pathlib import Path

    from studies.mechanisms.count_simplex import CountSimplex
    from suffice.typing import Counts, Floats

DELTA = 0.8
"""The Notes'; a delta near 1 is not privacy."""
RUNS = 200
ORDER = ("smooth", "local", "global", "Laplace")
"""As the pictures have them."""
NAMES = ("smooth", "local\n(no guarantee)", "global", "Laplace")
LAWS = (("code", 1.0), ("text", 2.0))
"""What divides epsilon u / S."""
CENTRAL = (0.005, 0.995)


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """A picture: what its own title says of it, and its medians, read to a pixel, in the order of `ORDER`."""

    figure: str
    prior: tuple[float, ...]
    n: int
    epsilon: float
    medians: tuple[float | None, ...]
    read_to: float = 0.0021
    measure: str = "Hellinger"

    @property
    def name(self) -> str:
        """What the picture is of."""
        law = "Beta" if len(self.prior) == 2 else "DL"
        return f"{law}{tuple(map(int, self.prior))}, n = {self.n}, epsilon {self.epsilon:g}"


BETA, DIRICHLET = (7.0, 4.0), (7.0, 4.0, 5.0)
PANELS = (
    Panel(figure="2, file of (a)", prior=BETA, n=300, epsilon=0.5, medians=(0.1125, 0.0583, 1.0, 0.1146)),
    Panel(figure="2, file of (b)", prior=BETA, n=500, epsilon=0.8, medians=(0.0396, 0.0396, 0.8438, 0.0813)),
    Panel(figure="3a", prior=DIRICHLET, n=100, epsilon=0.8, medians=(0.225, 0.225, 0.9646, 0.2417)),
    Panel(figure="3b", prior=DIRICHLET, n=120, epsilon=0.8, medians=(0.2458, 0.2458, 1.0, 0.2604)),
    Panel(figure="4", prior=DIRICHLET, n=150, epsilon=0.8, medians=(0.2188, 0.2313, 1.0, 0.2354)),
    Panel(
        figure="4",
        prior=DIRICHLET,
        n=150,
        epsilon=0.8,
        medians=(6.25, 6.25, 85.94, 6.77),
        read_to=0.53,
        measure="L1",
    ),
)


@dataclass(frozen=True, slots=True)
class Scales:
    """All data sets of a panel, with their sensitivities."""

    simplex: CountSimplex
    local: Floats
    smooth: Floats


def scales_of(panel: Panel) -> Scales:
    """Return them."""
    simplex = count_simplex(panel.n, len(panel.prior))
    smooth = smooth_sensitivities(panel.prior, simplex, smoothness(panel.epsilon, DELTA, panel.n))
    return Scales(simplex, local_sensitivities(panel.prior, simplex), smooth)


def distance_to(prior: tuple[float, ...], counts: tuple[int, ...], others: Floats | Counts) -> Floats:
    """Return Hellinger distances of a posterior to those of counts that need not be whole."""
    parameters, other = np.array(prior) + counts, np.array(prior) + others
    log_affinity = _log_beta((parameters + other) / 2.0) - (_log_beta(parameters) + _log_beta(other)) / 2.0
    distance: Floats = np.sqrt(np.maximum(-np.expm1(log_affinity), 0.0))
    return distance


def _log_beta(parameters: Floats) -> Floats:
    log_beta: Floats = special.gammaln(parameters).sum(axis=-1) - special.gammaln(parameters.sum(axis=-1))
    return log_beta


def their_noise(panel: Panel, counts: Counts, size: int, rng: np.random.Generator) -> Counts:
    """Return noisy counts (size, m), as the Notes' code draws them."""
    kept: list[Counts] = []
    while sum(map(len, kept)) < size:
        noise = np.rint(rng.laplace(0.0, 2.0 / panel.epsilon, (2 * size, len(counts)))).astype(np.int64)
        if panel.measure == "L1":  # there the code adds the magnitudes, to every count
            kept.append(counts + np.abs(noise))
            continue
        noise[:, 0] = -noise[:, 1:].sum(axis=1)
        noisy = counts + noise
        kept.append(noisy[(noisy + np.array(panel.prior) > 0).all(axis=1)])
    return np.concatenate(kept)[:size]


def distances_of(panel: Panel, scales: Scales, rng: np.random.Generator) -> dict[tuple[str, str], Floats]:
    """Return distances of 200 outputs of each mechanism, by its law, for data from the prior."""
    counts = rng.multinomial(panel.n, rng.dirichlet(panel.prior))
    candidates = scales.simplex.counts
    row = int(scales.simplex.row_of(counts.tolist())[0])
    apart = hellinger(panel.prior, counts[None], candidates)[0]
    shown = apart if panel.measure == "Hellinger" else np.abs(candidates - counts).sum(axis=1).astype(float)
    scale_of = {"smooth": scales.smooth[row], "local": scales.local[row], "global": scales.local.max()}
    distances: dict[tuple[str, str], Floats] = {}
    for (law, divisor), (name, scale) in itertools.product(LAWS, scale_of.items()):
        totals = np.cumsum(special.softmax(-panel.epsilon * apart / (divisor * float(scale))))
        drawn = np.searchsorted(totals, rng.random(RUNS) * totals[-1])
        distances[name, law] = shown[drawn]
    noisy = their_noise(panel, counts, RUNS, rng)
    laplace = (
        distance_to(panel.prior, tuple(counts.tolist()), noisy)
        if panel.measure == "Hellinger"
        else np.abs(noisy - counts).sum(axis=1).astype(float)
    )
    for law, _ in LAWS:
        distances["Laplace", law] = laplace
    return distances


def rows_of_boxes(experiments: int, rng: np.random.Generator, *, is_whole: bool) -> list[Row]:
    """Return medians of experiments like the Notes' beside the pictures'; not whole: of one panel."""
    rows = []
    for panel in PANELS if is_whole else PANELS[2:3]:
        scales = scales_of(panel)
        distances: dict[tuple[str, str], list[float]] = {}
        for _ in range(experiments):
            for key, values in distances_of(panel, scales, rng).items():
                distances.setdefault(key, []).append(float(np.median(values)))
        for law, name in itertools.product(dict(LAWS), ORDER):
            if name == "Laplace" and law != "code":
                continue
            rows.append(_row(panel, name, law, distances[name, law], panel.medians[ORDER.index(name)]))
    return rows


def _row(panel: Panel, name: str, law: str, medians: list[float], printed: float | None) -> Row:
    low, high = np.quantile(medians, CENTRAL)
    ours = float(np.median(medians))
    claim = None
    if printed is not None:
        # Our median may lie as far from the picture's as the picture's from the ends of the 99 %.
        claim = Claim(
            low=printed - panel.read_to - (high - ours), high=printed + panel.read_to + (ours - low)
        )
    law_of = "" if name == "Laplace" else f", the {law}'s law"
    return Row(
        quantity=f"Figure {panel.figure}: median {panel.measure} distance, {name}{law_of}, {panel.name}",
        ours=ours,
        error=float(1.2533 * np.std(medians) / np.sqrt(len(medians))),
        paper="" if printed is None else f"{printed:.3g} in the picture",
        claim=claim,
        note="200 runs on data from the prior; the claim: in the central 99 % of such experiments",
        digits=3,
    )


def draw_boxes(path: Path, rng: np.random.Generator) -> dict[str, tuple[object, ...]]:
    """Draw boxplots as the Notes do: 200 runs on one data set, by their code's law and by the text's."""
    lines: list[tuple[object, ...]] = []
    with picture(
        path,
        title="What the Notes' boxplots show is their code's law, not their text's",
        subtitle=(
            "Distance of 200 outputs from the posterior, data from the prior; blue: the code's law, "
            r"$\exp(\varepsilon\,u/S)$; orange: the text's, $\exp(\varepsilon\,u/2S)$; "
            "black: the pictures' medians"
        ),
        footer="The Notes, Figures 2 to 4, as the pictures' own titles name them. Local: no guarantee.",
        panels=3,
        width=4.3,
        height=6.4,
        rows=2,
    ) as axes:
        for axis, panel in zip(axes, PANELS, strict=True):
            distances = distances_of(panel, scales_of(panel), rng)
            for name, (shift, (law, _)) in itertools.product(ORDER, enumerate(LAWS)):
                if name == "Laplace" and law == "text":
                    continue
                middle = ORDER.index(name) + (0.0 if name == "Laplace" else (-0.2, 0.2)[shift])
                axis.boxplot(
                    [distances[name, law]],
                    positions=[middle],
                    notch=True,
                    widths=0.32,
                    sym="+",
                    whis=1.5,
                    patch_artist=True,
                    manage_ticks=False,
                    boxprops={"facecolor": COLOURS[shift], "alpha": 0.55, "linewidth": 0.8},
                    medianprops={"color": COLOURS[shift], "linewidth": 1.6},
                    flierprops={"markersize": 3, "markeredgecolor": COLOURS[shift]},
                )
                lines += [
                    (panel.figure, panel.name, panel.measure, name, law, value)
                    for value in distances[name, law]
                ]
            for place, median in enumerate(panel.medians):
                if median is not None:
                    axis.hlines(median, place - 0.42, place + 0.42, color="black", linewidth=1.4, zorder=4)
            axis.set_xticks(range(len(ORDER)), NAMES)
            axis.set_xlim(-0.6, len(ORDER) - 0.4)
            axis.set_ylim(0.0, 1.02 if panel.measure == "Hellinger" else 250.0)
            law = "Beta" if len(panel.prior) == 2 else "DL"
            axis.set_title(
                rf"Figure {panel.figure}: {law}{tuple(map(int, panel.prior))}, $n$ = {panel.n}, "
                rf"$\varepsilon$ = {panel.epsilon:g}",
                fontsize="small",
            )
            axis.set_ylabel("Hellinger distance" if panel.measure == "Hellinger" else "$L_1$ distance")
    columns = ("figure", "configuration", "measure", "mechanism", "law", "distance")
    return dict(zip(columns, zip(*lines, strict=True), strict=True))
