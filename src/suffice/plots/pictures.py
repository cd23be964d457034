"""A posterior's picture as an object, which notebooks show and which can be saved."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from suffice.pipeline.terms.declaration.wording import not_a_name
from suffice.plots.posteriors import plot_posterior
from suffice.plots.style import check_plot, footer_of_posterior

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    import numpy as np

    from suffice.pipeline.ask.posterior.posterior import Posterior


_CALLED_HERE = {
    **dict.fromkeys(("show", "display"), 'save("picture.png"), or the last line of a notebook cell'),
    **dict.fromkeys(
        ("figure", "axes", "ax", "get_figure", "set_title", "set_xlabel", "tight_layout"),
        "svg, which is finished; posterior.density(points) gives curves for a figure of your own",
    ),
    "to_html": "svg",
}


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture that was made; ``Posterior.plot`` returns it.

    Attributes
    ----------
    of : str
        What it is of.
    svg : str
        The picture.
    """

    of: str
    svg: str = field(repr=False)
    _draw: Callable[[Path], None] = field(repr=False, compare=False)

    def __repr__(self) -> str:
        return f'<Picture of {self.of}: a notebook shows it, save("picture.png") writes it>'

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to a file that ends in ``.png`` or ``.svg``.

        Raises
        ------
        UsageError
            Where the ending is another, or the file cannot be written.
        """
        file = Path(path)
        check_plot(file)
        self._draw(file)

    savefig = save

    if not TYPE_CHECKING:  # a type checker knows what there is

        def __getattr__(self, name: str) -> Any:
            raise not_a_name(type(self), name, _CALLED_HERE)


def picture(
    posterior: Posterior,
    *,
    kind: str | None,
    mass: float,
    interval: str | None,
    draws: int,
    rng: np.random.Generator,
) -> Picture:
    """Draw every parameter's posterior, as ``suffice posterior --plot`` does."""
    state = rng.bit_generator.state

    def draw(path: Path) -> None:
        rng.bit_generator.state = state  # the file shows the very draws that the notebook does
        plot_posterior(
            posterior,
            path,
            title=_title(posterior),
            footer=footer_of_posterior(posterior),
            draws=draws,
            rng=rng,
            mass=mass,
            interval=interval,
            kind=kind,
        )

    with tempfile.TemporaryDirectory(prefix="suffice-") as folder:
        file = Path(folder) / "picture.svg"
        check_plot(file)
        draw(file)
        return Picture(_title(posterior), file.read_text(encoding="utf-8"), draw)


def _title(posterior: Posterior) -> str:
    labels = [named.rpartition(" ")[0] for named in posterior.releases]
    return posterior.titled or ": ".join([*labels[:1], posterior.statistic])
