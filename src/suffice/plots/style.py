"""The one style of all pictures: colours, sizes, a title that says what is seen, and a footer on its sources.

Colours and marks are those of pages: the roles of their style sheet are read here, in which a comment says
what each stands for. What colours tell is told by shape as well, and all are 4.5 : 1 or more on white.
The same input makes the same bytes: no dates, no random identifiers.
"""

from __future__ import annotations

import importlib.metadata
import re
import textwrap
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from suffice.errors import MissingExtraError, UsageError
from suffice.pipeline.ask.posterior.arviz import method_text
from suffice.pipeline.terms.declaration.wording import escaped

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from suffice.data_files.source import Provenance
    from suffice.pipeline.ask.pooling.release import Release
    from suffice.pipeline.ask.posterior.posterior import Posterior

ROLES: dict[str, str] = dict(
    re.findall(
        r"--([\w-]+): (#[0-9a-f]{6});",
        (Path(__file__).parents[1] / "pages/assets/style.css").read_text(encoding="utf-8").partition("}")[0],
    )
)
"""The colours of pages in light, by what they stand for."""
POSTERIOR, BESIDE, PRIOR, NOISE, CONFLICT = map(
    ROLES.__getitem__, ("accent", "plug-in", "prior", "noise", "warn")
)
QUIET, TEXT, GRID = map(ROLES.__getitem__, ("muted", "ink", "grid"))
COLOURS = (POSTERIOR, BESIDE, "#0b7a5c", ROLES["second"], PRIOR, NOISE)
"""Of series in their order."""
SIZES = {"title": 12.5, "subtitle": 9.0, "conflict": 9.0, "label": 9.0, "tick": 8.5, "footer": 7.0}
ENDINGS = (".png", ".svg")
_RC: dict[str, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": SIZES["label"],
    "text.color": TEXT,
    "axes.edgecolor": "#b9c1ca",
    "axes.labelcolor": QUIET,
    "axes.labelsize": SIZES["label"],
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": SIZES["label"] + 0.5,
    "axes.titlelocation": "left",
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.formatter.limits": (-6, 12),
    "axes.formatter.useoffset": False,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "xtick.color": QUIET,
    "ytick.color": QUIET,
    "xtick.labelsize": SIZES["tick"],
    "ytick.labelsize": SIZES["tick"],
    "xtick.major.size": 0,
    "ytick.major.size": 0,
    "legend.frameon": False,
    "legend.fontsize": SIZES["tick"],
    "figure.facecolor": "white",
    "svg.hashsalt": "suffice",
}
_INCH = 72.0
_MOST_NAMED = 4
_BRACKETS = re.compile(r"\([^()]{0,60}\)")


def check_plot(path: Path) -> None:
    """Refuse a picture that cannot be made, before any work is done.

    Raises
    ------
    UsageError
        Where the file's ending is neither ``.png`` nor ``.svg``.
    MissingExtraError
        Where matplotlib is not installed.
    """
    if path.suffix not in ENDINGS:
        message = f"--plot {path}: the file's name must end in .png or .svg"
        raise UsageError(message)
    require_matplotlib("--plot")


def require_matplotlib(what: str) -> None:
    """Refuse what needs matplotlib where it is not installed.

    Raises
    ------
    MissingExtraError
    """
    try:
        import matplotlib as mpl  # the plot extra
    except ModuleNotFoundError:
        raise MissingExtraError(what, "plot") from None
    del mpl


@contextmanager
def styled() -> Iterator[None]:
    """Make what is drawn inside look as all pictures do."""
    import matplotlib as mpl  # the plot extra

    with mpl.rc_context(_RC):  # type: ignore[arg-type]
        yield


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure of this size of its panels, in inches; use it inside of ``styled``."""
    from matplotlib.figure import Figure  # the plot extra

    return Figure(figsize=(width, height), layout="constrained")


def finish(figure: Figure, title: str, subtitle: str, footer: str, conflicts: Iterable[str] = ()) -> None:
    """Put a title over a figure and its sources below, in room that is added for them.

    What contradicts the intervals of the figure stands over it, in the colour of a conflict.
    """
    width, height = figure.get_size_inches()
    said = {"title": title, "subtitle": subtitle, "conflict": "\n".join(conflicts), "footer": footer}
    wrapped = {name: _wrapped(text, width, SIZES[name]) for name, text in said.items()}
    rows = {name: text.count("\n") + 1 if text else 0 for name, text in wrapped.items()}
    tall = {name: rows[name] * 1.35 * SIZES[name] / _INCH for name in rows}
    head = 0.14 + tall["title"] + tall["subtitle"] + tall["conflict"] + 0.1
    foot = 0.12 + rows["footer"] * 1.35 * SIZES["footer"] / _INCH
    whole = height + head + foot
    figure.set_size_inches(width, whole)
    layout: Any = figure.get_layout_engine()
    side = 0.08 / width
    layout.set(rect=(side, foot / whole, 1.0 - 2.0 * side, height / whole), w_pad=0.06, h_pad=0.06)
    left = 0.12 / width
    below = 1.0 - (0.14 + tall["title"]) / whole
    figure.text(
        left, 1.0 - 0.14 / whole, wrapped["title"], va="top", fontsize=SIZES["title"], fontweight="bold"
    )
    figure.text(left, below, wrapped["subtitle"], va="top", fontsize=SIZES["subtitle"], color=QUIET)
    if wrapped["conflict"]:
        lower = below - tall["subtitle"] / whole
        figure.text(left, lower, wrapped["conflict"], va="top", fontsize=SIZES["conflict"], color=CONFLICT)
    figure.text(left, 0.08 / whole, wrapped["footer"], va="bottom", fontsize=SIZES["footer"], color=QUIET)


def footer_of(source: Provenance, releases: Sequence[Release] = ()) -> str:
    """Return a footer: releases and what they cost, the terms of what is shown, and the version.

    Parameters
    ----------
    source : Source
        What the picture's numbers come from, as their files would state it.
    releases : sequence of Release
        Those of the source, where the picture is of one statistic: their epsilon is stated.
    """
    return _footer(
        [f"{release.label} (release {release.release_id})" for release in source.releases],
        source.statistic,
        [release.price_of(source.statistic) for release in releases],
        (source.method, source.prior, source.n_prior, source.predictor_prior),
    )


def footer_of_posterior(posterior: Posterior) -> str:
    """Return the same footer of a posterior, which knows its releases by name."""
    named = [named.rpartition(" ") for named in posterior.releases]
    n_prior = None if posterior.n_prior is None else str(posterior.n_prior)
    return _footer(
        [f"{label} (release {release_id})" if label else release_id for label, _, release_id in named],
        posterior.statistic,
        posterior.prices,
        (method_text(posterior.method), str(posterior.prior), n_prior, posterior.predictor_prior),
    )


def _footer(named: Sequence[str], statistic: str, prices: Iterable[str], terms: Sequence[str | None]) -> str:
    if len(named) > _MOST_NAMED:
        named = [named[0], f"{len(named) - 2} more", named[-1]]
    of = ", ".join([*named, f"statistic {statistic}", *dict.fromkeys(prices)])
    names = ("method", "prior", "prior of N", "prior of predictors")
    stated = [f"{name} {value}" for name, value in zip(names, terms, strict=True) if value is not None]
    return "; ".join([f"Source: {of}", *stated]) + f". suffice {importlib.metadata.version('suffice')}."


def save(figure: Figure, path: Path) -> None:
    """Write a figure, marked as ours.

    Raises
    ------
    UsageError
        Where the file cannot be written.
    """
    try:
        save_figure(figure, path)
    except OSError:
        message = f"--plot {path}: the file cannot be written"
        raise UsageError(message) from None


def save_figure(figure: Figure, path: Path, *, has_formulas: bool = False) -> None:
    """Write a figure, marked as ours; its texts are shown as they are, neither as formulas nor as commands.

    Parameters
    ----------
    figure : Figure
    path : Path
    has_formulas : bool
        Whether what stands between dollars is a formula: where no text comes from a release or from a user.

    Raises
    ------
    OSError
        Where the file cannot be written.
    """
    from matplotlib.text import Text  # the plot extra

    for text in figure.findobj(Text):
        text.set_parse_math(has_formulas)
        text.set_text(escaped(text.get_text(), keep_newlines=True))
    mark: dict[str, str | None] = {"Software": "written by suffice"}
    if path.suffix == ".svg":
        mark = {"Creator": "written by suffice", "Date": None}
    with styled():
        figure.savefig(path, dpi=160, metadata=mark)


def only_across(axis: Axes) -> None:
    """Leave an axis its numbers along the bottom, and no line on the left."""
    axis.grid(visible=False, axis="y")
    axis.spines["left"].set_visible(False)


def shortened_label(label: str, longest: int = 42) -> str:
    """Cut a label to what has room beside a row."""
    return label if len(label) <= longest else f"{label[: longest - 1]}…"


def _wrapped(text: str, width: float, size: float) -> str:
    """Break lines where they would leave the figure, but not in brackets."""
    room = max(24, int((width - 0.24) * _INCH / (0.54 * size)))
    kept = _BRACKETS.sub(lambda match: match[0].replace(" ", "\N{NO-BREAK SPACE}"), text)
    lines = "\n".join(textwrap.fill(line, room) for line in kept.split("\n")) if text else ""
    return lines.replace("\N{NO-BREAK SPACE}", " ")
