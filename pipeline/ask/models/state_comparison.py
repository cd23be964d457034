"""How many states? Numbers of them compared by how well they predict cells that were held out."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.errors import UsageError
from suffice.pipeline.ask.models.fit_settings import integer, positive
from suffice.pipeline.ask.models.held_out_scores import held_out_log_likelihood, log_mean_exp
from suffice.pipeline.ask.models.restart_diagnostics import diagnose
from suffice.pipeline.ask.models.state_sampling import part_of, sampled_states

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from suffice.pipeline.ask.models.chain_tables import ChainTable
    from suffice.pipeline.ask.models.count_table import CountTable
    from suffice.pipeline.ask.models.fit_settings import FitSettings
    from suffice.pipeline.ask.models.state_draws import StateDraws
    from suffice.typing import Floats, Mask

HELD_OUT_SCORE = "held_out_score"
SCORED_DRAWS = 25
"""Of each restart: to score a draw takes as long as some sweeps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StateComparison:
    """Numbers of states, and how well each predicts the noisy counts of cells that were held out.

    Attributes
    ----------
    table : ChainTable
        What was fitted.
    settings : tuple of FitSettings
        One a number of states, in ascending order; the first is one state.
    holdout : float
        Share of observed cells that were held out in each split.
    scores : ndarray of shape (n_numbers, n_splits), float64
        Mean log likelihood of a held-out cell's noisy counts, its expected rows integrated out.
    r_hat : ndarray of shape (n_numbers, n_splits), float64
        The largest of log joint, entropy of state shares and held-out score, of restarts that count.
    n_poorer : ndarray of shape (n_numbers, n_splits), int64
        How many restarts are in a poorer mode: their draws do not count.
    """

    table: ChainTable
    settings: tuple[FitSettings, ...]
    holdout: float
    scores: Floats = field(repr=False)
    r_hat: Floats = field(repr=False)
    n_poorer: np.ndarray[Any, np.dtype[np.int64]] = field(repr=False)

    @property
    def n_splits(self) -> int:
        """How often other cells were held out."""
        return len(self.scores.T)

    @property
    def difference(self) -> Floats:
        """Each score less that of one state on the same cells, (n_numbers, n_splits)."""
        return self.scores - self.scores[:1]

    @property
    def best(self) -> int:
        """The number of states with the highest mean score."""
        return self.settings[int(np.argmax(self.scores.mean(axis=1)))].n_states

    def rows(self) -> list[dict[str, Any]]:
        """One row a number of states, one state first.

        Columns are ``states``; ``score``, the mean log likelihood of a held-out cell; ``difference`` from one
        state, and its ``sd`` over splits, None where there is one split; ``r_hat``, the largest of all
        splits; ``poorer_restarts``, the share of restarts in a poorer mode.
        """
        spread = self.difference.std(axis=1, ddof=1).tolist() if self.n_splits > 1 else None
        return [
            {
                "states": one.n_states,
                "score": float(self.scores[number].mean()),
                "difference": float(self.difference[number].mean()),
                "sd": None if spread is None else spread[number],
                "r_hat": float(self.r_hat[number].max()),
                "poorer_restarts": float(self.n_poorer[number].mean() / one.n_restarts),
            }
            for number, one in enumerate(self.settings)
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return everything, as JSON has it."""
        choices = self.settings[0].to_dict()
        del choices["states"]
        return {
            "releases": list(self.table.releases),
            "statistics": [feature.name for feature in self.table.features],
            "chain": list(self.table.chain_keys),
            "time": list(self.table.time_keys),
            **choices,
            "holdout": self.holdout,
            "splits": self.n_splits,
            "best": self.best,
            "rows": self.rows(),
        }


def compare_states(
    table: ChainTable,
    settings: Sequence[FitSettings],
    *,
    holdout: float,
    splits: int,
    rng: np.random.Generator,
    progress: Callable[[int, int], None] | None = None,
) -> StateComparison:
    """Fit every number of states, and one state, to all but the held-out cells of each split.

    Raises
    ------
    UsageError
        Where a number of states is given twice, or no cell would be held out or left.
    """
    numbers = [one.n_states for one in settings]
    if len(set(numbers)) < len(numbers):
        message = f"states names a number twice: {', '.join(map(str, numbers))}"
        raise UsageError(message)
    settings = [dataclasses.replace(one, until_settled=False) for one in settings]
    fitted = sorted(
        [*settings, *([] if 1 in numbers else [dataclasses.replace(settings[0], n_states=1)])],
        key=lambda one: one.n_states,
    )
    n_splits = integer("splits", splits, 1)
    held_out = [_held_out(table.counts, holdout, rng) for _ in range(n_splits)]
    shape = (len(fitted), n_splits)
    scores, r_hat, n_poorer = np.empty(shape), np.empty(shape), np.zeros(shape, dtype=np.int64)
    total = sum(one.n_sweeps for one in fitted) * n_splits
    done = 0
    for split, mask in enumerate(held_out):
        rest = dataclasses.replace(table.counts, is_observed=table.counts.is_observed & ~mask)
        for number, one in enumerate(fitted):
            drawn = sampled_states(rest, one, rng=rng, progress=part_of(progress, done, total))
            likelihood = _likelihood(table.counts, mask, drawn, one)
            judged = diagnose(drawn, {HELD_OUT_SCORE: likelihood.mean(axis=2)})
            kept = likelihood[list(judged.kept)].reshape(-1, likelihood.shape[2])
            scores[number, split] = log_mean_exp(kept).mean()
            r_hat[number, split] = judged.largest_r_hat
            n_poorer[number, split] = len(judged.poorer)
            done += one.n_sweeps
    return StateComparison(
        table=table, settings=tuple(fitted), holdout=holdout, scores=scores, r_hat=r_hat, n_poorer=n_poorer
    )


def _likelihood(table: CountTable, held_out: Mask, drawn: StateDraws, settings: FitSettings) -> Floats:
    """Return the log likelihood of held-out cells under draws, (n_restarts, n_taken, n_held_out)."""
    found = [
        held_out_log_likelihood(
            table, held_out, drawn, settings.priors, restart=restart, n_draws=SCORED_DRAWS
        )
        for restart in range(settings.n_restarts)
    ]
    return np.stack(found)


def _held_out(table: CountTable, share: float, rng: np.random.Generator) -> Mask:
    """Choose the cells of one split: so many of the observed ones, at least one, and never all."""
    observed = np.flatnonzero(table.is_observed)
    if positive("holdout", share) >= 1.0:
        message = f"holdout is the share of cells that are held out, between 0 and 1, not {share!r}"
        raise UsageError(message)
    size = min(max(1, round(share * observed.size)), observed.size - 1)
    mask = np.zeros(table.is_observed.size, dtype=np.bool_)
    mask[rng.choice(observed, size, replace=False)] = True
    return mask.reshape(table.is_observed.shape)
