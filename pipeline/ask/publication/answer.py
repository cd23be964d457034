"""An answer: summaries, draws and what there is to say of them.

Draws are tidy columns: keys, labels, draw, parameter, value. Their generators are independent, and the same
whenever a request is answered.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.pipeline.ask.posterior.notes import (
    conflict_lines,
    default_lines,
    draws_text,
    model_lines,
    plug_in_lines,
    unsettled_warning,
)
from suffice.pipeline.math.parameters.parameter_posterior import DRAWS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from suffice.pipeline.ask.pooling.comparison import ReleaseComparison
    from suffice.pipeline.ask.posterior.likelihood import AnyLikelihood
    from suffice.pipeline.ask.posterior.posterior import Posterior
    from suffice.typing import Floats

_SUMMARIES, _DRAWS, _COMPUTATION = range(3)
"""What draws are for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Streams:
    """The generators of one statistic of a request, or of one part of it.

    Attributes
    ----------
    seed : int
        The request's.
    place : tuple of int
        The position of the statistic in the request, and of the part where there are parts.
    """

    seed: int
    place: tuple[int, ...]

    def summaries(self) -> np.random.Generator:
        """Return a fresh generator for quantiles that rest on draws."""
        return self._generator(_SUMMARIES)

    def draws(self) -> np.random.Generator:
        """Return a fresh generator for draws that are published."""
        return self._generator(_DRAWS)

    def computation(self) -> np.random.Generator:
        """Return a fresh generator for chains and importance sampling."""
        return self._generator(_COMPUTATION)

    def _generator(self, purpose: int) -> np.random.Generator:
        sequence = np.random.SeedSequence(self.seed, spawn_key=(*self.place, purpose))
        return np.random.default_rng(sequence)


def quantile_draws(draws: int) -> int:
    """Return how many draws quantiles rest on that rest on draws: those asked for, or 4000 where none are."""
    return draws or DRAWS


def draw_columns(posterior: Posterior, draws: int, rng: np.random.Generator | int | None) -> dict[str, Any]:
    """Return draws of a posterior, one row for each draw, cell, parameter and entry of it.

    Parameters
    ----------
    draws : int, > 0
    rng : numpy.random.Generator or int, optional
        A generator or the seed of one; a fresh one otherwise.

    Returns
    -------
    dict of str to ndarray
        Group columns, ``component`` or labels if any, ``draw`` (from 0), ``parameter``, ``value``.
    """
    sample = posterior.sample(draws, rng)
    return joined([_columns(posterior, parameter, values) for parameter, values in sample.items()])


def comparison_columns(comparison: ReleaseComparison) -> dict[str, Any]:
    """Return draws of every difference and ratio of a comparison; ``contrast`` says which."""
    parts = []
    for kind, contrasts in (("difference", comparison.differences), ("ratio", comparison.ratios)):
        for parameter, contrast in contrasts.items():
            part = _columns(comparison.before, parameter, contrast.draws)
            parts.append({**part, "contrast": np.full(len(part["draw"]), kind)})
    return joined(parts)


def joined(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """Put the rows of parts with the same columns under each other."""
    return {column: np.concatenate([part[column] for part in parts]) for column in parts[0]}


def _columns(posterior: Posterior, parameter: str, sample: Floats) -> dict[str, NDArray[Any]]:
    draw, cell, entry = np.indices((*sample.shape, 1)[:3]).reshape(3, -1)
    part = {column: np.array(keys)[cell] for column, keys in posterior.groups.items()}
    if posterior.components:
        names = posterior.components.get(parameter, ("",))
        part["component"] = np.array(names, dtype=object)[entry]
    for name, values in posterior.label_columns.items():
        part[name] = np.array(values, dtype=object)[entry]
    part["draw"] = draw
    part["parameter"] = np.full(draw.size, parameter)
    part["value"] = sample.ravel()
    return part


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The answer to what is asked of one statistic, or of one model.

    Attributes
    ----------
    name : str
        The statistic's, or that of the model after it, as files are called.
    statistics : tuple of str
        That it is of.
    rows : list of dict
        Summaries: keys, parameter, labels, numbers; None where a number does not exist.
    draws : callable or None
        Returns draws as tidy columns; to be called once they are needed. None where there are none.
    further : dict of str to list of dict
        Further summaries, by name: the cells of a hidden Markov fit.
    to_arviz : callable or None
        Returns the same draws in the container of the installed ArviZ; None where they are of no one
        posterior.
    posterior : Posterior or None
        That a card can show.
    likelihood : likelihood or None
        That is answered in the place of a posterior; there are no rows then.
    rng : callable
        Returns the generator of a card's draws: a fresh one of the same seed at every call.
    diagnostics : dict of str to str
        What chains or importance sampling rest on, as text; empty where draws are independent.
    notes : tuple of str
        What there is to say beside the numbers, a sentence each.
    """

    name: str
    statistics: tuple[str, ...]
    rows: list[dict[str, Any]] = field(repr=False)
    draws: Callable[[], Mapping[str, Any]] | None = field(default=None, repr=False)
    further: Mapping[str, list[dict[str, Any]]] = field(default_factory=dict, repr=False)
    to_arviz: Callable[[], Any] | None = field(default=None, repr=False)
    posterior: Posterior | None = field(default=None, repr=False)
    likelihood: AnyLikelihood | None = field(default=None, repr=False)
    rng: Callable[[], np.random.Generator] = field(repr=False)
    diagnostics: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def notes_of(posterior: Posterior, of_cells: int | None = None) -> tuple[str, ...]:
    """Return all that there is to say of a posterior beside its numbers; it may be of a part of the cells."""
    said = [
        *plug_in_lines(posterior),
        posterior.rows_of and f"parameters: {posterior.rows_of}",
        *model_lines(posterior),
        *conflict_lines(posterior, of_cells),
        *default_lines(posterior),
        draws_text(posterior),
        unsettled_warning(posterior),
    ]
    return tuple(line for line in said if line)
