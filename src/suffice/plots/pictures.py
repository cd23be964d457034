"""A posterior's picture as an object, which notebooks show and which can be saved."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from suffice.plots.posteriors import plot_posterior
from suffice.plots.style import check_plot

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    import numpy as np

    from suffice.pipeline.ask.posterior.posterior import Posterior


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture that was made; ``Posterior.plot`` returns it.

    Attributes
    ----------
    svg : str
        The picture.
    """

    svg: str = field(repr=False)
    _draw: Callable[[Path], None] = field(repr=False, compare=False)

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
            footer=_footer(posterior),
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
        return Picture(file.read_text(encoding="utf-8"), draw)


def _title(posterior: Posterior) -> str:
    labels = [named.rpartition(" ")[0] for named in posterior.releases]  # that it was adopted is of a label
    return ": ".join([*([", ".join(labels)] if len(labels) in {1, 2} else []), posterior.statistic])


def _footer(posterior: Posterior) -> str:
    terms = [f"statistic {posterior.statistic}", f"method {posterior.method}", f"prior {posterior.prior}"]
    if posterior.n_prior is not None:
        terms.append(f"prior of N {posterior.n_prior}")
    of = f"Source: {', '.join(posterior.releases)}, " if posterior.releases else ""
    return f"{of}{'; '.join(terms)}."
