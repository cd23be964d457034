"""What answers a request in one part: summaries and draws of some cells as columns, in the order of rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.arrays import masked_array, number_array, text_array
from suffice.pipeline.ask.batches.alike import posterior_of_alike
from suffice.pipeline.ask.posterior.infer import posterior_of
from suffice.pipeline.ask.posterior.posterior import summaries
from suffice.pipeline.ask.publication.answer import notes_of
from suffice.pipeline.ask.publication.draw_columns import draw_columns
from suffice.pipeline.ask.publication.streams import Streams, quantile_draws
from suffice.pipeline.terms.statistics.count_table import label_rows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

    from suffice.pipeline.ask.posterior.posterior import Posterior
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.typing import Floats, Rows


@dataclass(frozen=True, slots=True, kw_only=True)
class PartTerms:
    """What is asked of every part alike.

    Attributes
    ----------
    terms : dict of str to object
        As ``posterior_of`` takes them: text, so that they travel.
    mass : float
        Of the credible intervals.
    interval : str
        Their kind.
    draws : int
        Of each cell; 0 for summaries alone.
    seed : int
        The request's.
    place : int
        The statistic's position in the request.
    n_cells : int
        Of all parts.
    """

    terms: Mapping[str, Any]
    mass: float
    interval: str
    draws: int
    seed: int
    place: int
    n_cells: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PartAnswer:
    """Summaries and draws of the cells of one part.

    Attributes
    ----------
    summaries, draws : dict of str to array
        Columns; no draws where none are asked for.
    diagnostics : dict
        What chains rest on; empty where draws are independent.
    notes : tuple of str
        What there is to say beside the numbers, a sentence each.
    """

    summaries: Mapping[str, Any] = field(repr=False)
    draws: Mapping[str, Any] | None = field(repr=False)
    diagnostics: Mapping[str, Any]
    notes: tuple[str, ...]


def answer_part(asked: PartTerms, number: int, cells: NoisyStatistic) -> PartAnswer:
    """Compute one part: a function of its arguments, whichever machine has it.

    Parameters
    ----------
    asked : PartTerms
    number : int
        The part's; its draws are its own.
    cells : NoisyStatistic
        Of the part.
    """
    streams = Streams(seed=asked.seed, place=(asked.place, number))

    def posterior(statistic: NoisyStatistic) -> Posterior:
        return posterior_of(statistic, **asked.terms)

    found = posterior_of_alike(cells, posterior, asked.draws)
    return PartAnswer(
        summaries=summary_columns(
            found,
            summaries(
                found, asked.mass, quantile_draws(asked.draws), streams.summaries(), interval=asked.interval
            ),
        ),
        draws=draw_columns(found, asked.draws, streams.draws()) if asked.draws else None,
        diagnostics=found.diagnostics,
        notes=notes_of(found, of_cells=asked.n_cells),
    )


def summary_columns(posterior: Posterior, found: Mapping[str, Mapping[str, Floats]]) -> dict[str, Any]:
    """Return the rows of ``summarise`` as columns; null where a number does not exist.

    Parameters
    ----------
    posterior : Posterior
    found : dict of str to dict of str to ndarray
        From ``summaries``.
    """
    entries = [entry for parameter in found for entry in _entries(posterior, parameter)]
    n_cells = posterior.n_groups
    cell = np.repeat(np.arange(n_cells), len(entries))
    columns = {name: _keys(keys, cell) for name, keys in posterior.groups.items()}
    for name in entries[0]:
        columns[name] = _tiled([entry[name] for entry in entries], n_cells)
    for name in next(iter(found.values())):
        numbers = np.concatenate([found[one][name].reshape(n_cells, -1) for one in found], axis=1).ravel()
        columns[name] = masked_array(numbers, ~np.isfinite(numbers))
    return columns


def _entries(posterior: Posterior, parameter: str) -> list[dict[str, str | None]]:
    """Return the labels of a parameter's entries, its name first, as ``tidy_rows`` has them."""
    if posterior.components:
        names = posterior.components.get(parameter, ("",))
        return [{"parameter": parameter, "component": name} for name in names]
    labels: Sequence[Mapping[str, str | None]] = label_rows(posterior.label_columns) or [{}]
    return [{"parameter": parameter, **label} for label in labels]


def _keys(keys: Sequence[str | int], cell: Rows) -> pa.Array | np.ndarray:
    if isinstance(keys[0], str):
        return text_array([str(key) for key in keys]).take(number_array(cell))
    return np.array(keys, dtype=np.int64)[cell]


def _tiled(texts: Sequence[str | None], times: int) -> pa.Array:
    different = list(dict.fromkeys(text for text in texts if text is not None))
    positions = np.array([-1 if text is None else different.index(text) for text in texts], dtype=np.int64)
    tiled = np.tile(positions, times)
    return text_array(different).take(masked_array(tiled, tiled < 0))
