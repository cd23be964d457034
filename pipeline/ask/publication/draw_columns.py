"""Posterior draws as tidy columns: keys, labels, draw, parameter, value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from suffice.pipeline.ask.pooling.comparison import Comparison
    from suffice.pipeline.ask.posterior.posterior import Posterior
    from suffice.typing import Floats


def draw_columns(posterior: Posterior, draws: int, rng: np.random.Generator | int | None) -> dict[str, Any]:
    """Return draws of a posterior, one row for each draw, cell, parameter and entry of it.

    Parameters
    ----------
    posterior : Posterior
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


def comparison_columns(found: Comparison) -> dict[str, Any]:
    """Return draws of every difference and ratio of a comparison; ``contrast`` says which."""
    parts = []
    for kind, contrasts in (("difference", found.differences), ("ratio", found.ratios)):
        for parameter, contrast in contrasts.items():
            part = _columns(found.before, parameter, contrast.draws)
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
