"""The pictures of studies, in the style of all pictures of the package."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from studies.result import NOT_A_RELEASE
from suffice.plots.style import COLOURS, QUIET, SIZES, TEXT, finish, new_figure, save_figure, styled

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from matplotlib.axes import Axes

MARKERS = ("o", "s", "D", "^", "v", "P")
OURS, PAPERS, OTHER, FOURTH = COLOURS[:4]
LIMIT = QUIET


@contextmanager
def picture(
    path: Path,
    *,
    title: str,
    subtitle: str,
    footer: str,
    panels: int = 1,
    width: float = 4.6,
    height: float = 3.3,
    rows: int = 1,
) -> Iterator[list[Axes]]:
    """Draw panels side by side, in rows, into a PNG file; the footer says that it is no release.

    The width is of a panel and the height of the whole, in inches.
    """
    with styled():
        figure = new_figure(max(width * panels, 6.4), height)
        axes = figure.subplots(rows, panels, squeeze=False).ravel()
        yield list(axes)
        for legend in filter(None, (axis.get_legend() for axis in axes)):
            legend.set_frame_on(True)  # no grid line goes through its words
            legend.get_frame().set(facecolor="white", edgecolor="none", alpha=0.9)
        finish(figure, title, subtitle, f"{footer} {NOT_A_RELEASE}")
        save_figure(figure, path, has_formulas=True)


def plain(number: float, _position: int | None = None) -> str:
    """Return a tick's number without powers of ten."""
    return f"{number:,.0f}" if abs(number) >= 1 else f"{number:g}"


def logarithmic(axis: Axes, *, x: bool = False, y: bool = False) -> None:
    """Make scales logarithmic, with plain numbers at their ticks."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter  # the plot extra

    for scale, axis_of_scale, wanted in ((axis.set_xscale, axis.xaxis, x), (axis.set_yscale, axis.yaxis, y)):
        if wanted:
            scale("log")
            axis_of_scale.set_major_locator(LogLocator(numticks=9))
            axis_of_scale.set_major_formatter(FuncFormatter(plain))
            axis_of_scale.set_minor_formatter(NullFormatter())
            axis_of_scale.set_tick_params(which="minor", length=0)


def draw_line(
    axis: Axes,
    x: Sequence[float],
    y: Sequence[float],
    label: str,
    series: int,
    *,
    marker: bool = True,
    marked: Sequence[int] | None = None,
) -> None:
    """Draw one series, told by its colour and its marker; of a crowd of points only some are marked."""
    axis.plot(
        x,
        y,
        color=COLOURS[series],
        marker=MARKERS[series] if marker else None,
        markersize=4.5,
        markevery=None if marked is None else list(marked),
        linewidth=1.8,
        label=label,
    )


def draw_limit(
    axis: Axes,
    value: float,
    label: str,
    *,
    across: bool = True,
    at_left: bool = False,
    label_at_left: bool = False,
) -> None:
    """Draw what a quantity tends to, or what is claimed, as a dashed line with its name."""
    if across:
        axis.axhline(value, color=LIMIT, linestyle=(0, (5, 3)), linewidth=1.2)
        place, beside = axis.get_yaxis_transform(), (0.01 if at_left else 0.99, value)
        sides, offset = ("left" if at_left else "right", "bottom"), (0, 2)
    else:
        axis.axvline(value, color=LIMIT, linestyle=(0, (5, 3)), linewidth=1.2)
        place, beside = axis.get_xaxis_transform(), (value, 0.98)
        sides, offset = (("right", "top"), (-4, 0)) if label_at_left else (("left", "top"), (4, 0))
    axis.annotate(
        label,
        beside,
        xycoords=place,
        xytext=offset,
        textcoords="offset points",
        ha=sides[0],
        va=sides[1],
        color=LIMIT,
        fontsize=SIZES["tick"],
    )


def note_at(axis: Axes, x: float, y: float, text: str, *, offset: tuple[float, float] = (6, 6)) -> None:
    """Write a few words beside a point."""
    axis.annotate(text, (x, y), xytext=offset, textcoords="offset points", color=TEXT, fontsize=SIZES["tick"])
