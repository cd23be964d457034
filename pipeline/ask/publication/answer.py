"""An answer: summaries, draws and what there is to say of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from suffice.pipeline.ask.posterior.notes import (
    conflict_lines,
    default_lines,
    draws_text,
    model_lines,
    plug_in_lines,
    unsettled_warning,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy as np

    from suffice.pipeline.ask.posterior.posterior import Posterior


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
    rng: Callable[[], np.random.Generator] = field(repr=False)
    diagnostics: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def notes_of(posterior: Posterior, of_cells: int | None = None) -> tuple[str, ...]:
    """Return all that there is to say of a posterior beside its numbers.

    Parameters
    ----------
    posterior : Posterior
    of_cells : int, optional
        How many cells are asked for in all, where these are a part of them.
    """
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
