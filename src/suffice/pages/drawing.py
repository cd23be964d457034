"""SVG by hand: elements with escaped text, axes, and labels that fit their place.

Figures state what things are by classes, and style sheets say how these look: nothing here is a colour.
"""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

from suffice.pages.rendering import escape, visible

if TYPE_CHECKING:
    from collections.abc import Iterable

    from suffice.pages.scale import Scale

WIDTH = 720.0
"""Of every figure, in its own units; pages scale it."""
CHARACTER = 7.2
"""Width of a character of a label, about, at the size that style sheets give it."""


def element(name: str, *content: str, **attributes: object) -> str:
    """Return an SVG element; content is SVG already, values of attributes are text that is escaped.

    Underscores of attributes' names stand for hyphens, but a last one is dropped: ``class_``.
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_attribute(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    return f"<{name}{written}>{''.join(content)}</{name}>" if content else f"<{name}{written}/>"


def text(x: float, y: float, value: object, class_: str, *, longest: int | None = None) -> str:
    """Return a line of text; one that is cut to `longest` characters keeps the whole as its title."""
    whole = visible(value)
    cut = fitted(whole, longest) if longest is not None else whole
    if cut == whole:
        return element("text", escape(whole), x=x, y=y, class_=class_)
    return element("text", element("title", escape(whole)), escape(cut), x=x, y=y, class_=class_)


def columns_of(value: str) -> int:
    """Return how many characters wide a text is: those of East Asia count as two."""
    return sum(2 if unicodedata.east_asian_width(sign) in "WF" else 1 for sign in value)


def fitted(value: str, longest: int) -> str:
    """Cut a text to a width in characters."""
    if columns_of(value) <= longest:
        return value
    kept = value[: longest - 1]
    while columns_of(kept) > longest - 1:
        kept = kept[:-1]
    return f"{kept}…"


def label_width(labels: Iterable[str], longest: int) -> float:
    """Return the room that labels take, cut to `longest` characters."""
    most = max((min(columns_of(visible(label)), longest) for label in labels), default=0)
    return CHARACTER * most


def path(points: Iterable[tuple[float, float]], *, closed: bool = False) -> str:
    """Return the ``d`` of a line through points."""
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points) + ("Z" if closed else "")


def _attribute(value: object) -> str:
    return f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else escape(value)


def figure(kind: str, height: float, title: str, description: str, *parts: str) -> str:
    """Return a whole figure: a picture with a name and a description for who does not see it."""
    return element(
        "svg",
        element("title", escape(title)),
        element("desc", escape(description)),
        *parts,
        xmlns="http://www.w3.org/2000/svg",
        class_=f"figure figure-{kind}",
        role="img",
        aria_label=f"{title}. {description}",
        viewBox=f"0 0 {WIDTH:.0f} {height:.0f}",
    )


def numbers_below(scale: Scale, top: float, bottom: float, label: str) -> str:
    """Return grid lines from top to bottom, their numbers below, and what these are below them."""
    parts = [
        element("line", x1=scale.at(tick), x2=scale.at(tick), y1=top, y2=bottom, class_="grid")
        + text(scale.at(tick), bottom + 17.0, written, "tick middle")
        for tick, written in zip(scale.ticks, scale.labels(), strict=True)
    ]
    middle = (scale.start + scale.stop) / 2.0
    return "".join([*parts, text(middle, bottom + 37.0, label, "axis middle", longest=90)])


def numbers_beside(scale: Scale, left: float, right: float, label: str) -> str:
    """Return grid lines from left to right, their numbers on the left, and what these are above."""
    parts = [
        element("line", x1=left, x2=right, y1=scale.at(tick), y2=scale.at(tick), class_="grid")
        + text(left - 8.0, scale.at(tick) + 4.0, written, "tick end")
        for tick, written in zip(scale.ticks, scale.labels(), strict=True)
    ]
    return "".join([*parts, text(0.0, scale.stop - 14.0, label, "axis", longest=100)])
