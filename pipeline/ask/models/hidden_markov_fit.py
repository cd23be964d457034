r"""A fitted hidden Markov model: states of cells, and what states are, from draws of its posterior.

The posterior is the same under every numbering of states, and samplers exchange the numbers from draw to draw
and between restarts. Draws are numbered alike first: of draw s the permutation :math:`\pi_s` that minimises

.. math::
    \sum_k \frac{1}{D} \sum_d \tfrac12 \sum_j
    \left| \theta^{(s)}_{\pi_s(k) d j} - \bar\theta_{k d j} \right|

the total variation from a reference, which is the draw of the highest log joint and then the mean of what was
matched with it. The minimum is exact: it is an assignment problem.

A cell's most probable state may differ from that on the most probable path of its chain. Given its
parameters, the states of a chain are a Markov chain whatever was observed. So are the draws, nearly, over all
parameters; the path maximises

.. math:: p(z_1) \prod_t p(z_{t+1} \mid z_t)

with shares of draws as probabilities of states and of pairs of neighbours (the Viterbi algorithm).
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from suffice.pipeline.ask.posterior.arviz import container, write_container
from suffice.pipeline.math.parameters.arguments import ends_of
from suffice.pipeline.math.parameters.parameter_posterior import MASS
from suffice.pipeline.terms.declaration.documents import Count, Measured, Rows, document, printed

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from suffice.pipeline.ask.models.chain_tables import ChainTable
    from suffice.pipeline.ask.models.state_draws import StateDraws
    from suffice.pipeline.ask.models.state_sampling import FitSettings, RestartDiagnostics
    from suffice.typing import Floats

_ROUNDS = 3
"""How often the reference is made anew of what was aligned with it."""


def align_states(draws: StateDraws) -> StateDraws:
    """Return draws whose states are numbered alike, the one with most cells first.

    The module says which numbering that is.
    """
    n_restarts, n_draws, n_states = draws.emissions[0].shape[:3]
    flat = [each.reshape(n_restarts * n_draws, n_states, -1) for each in draws.emissions]
    best = int(np.argmax(draws.log_joint))
    reference = [each[best] for each in flat]
    order = np.empty((n_restarts * n_draws, n_states), dtype=np.int64)
    for _ in range(_ROUNDS):
        earlier = order.copy()
        order = _matched(flat, reference)
        if np.array_equal(order, earlier):
            break
        reference = [np.take_along_axis(each, order[:, :, None], axis=1).mean(axis=0) for each in flat]
    renumbered = _renumbered(draws, order.reshape(n_restarts, n_draws, n_states))
    size = np.bincount(renumbered.states.ravel(), minlength=n_states)
    by_size = np.argsort(-size, kind="stable")
    return _renumbered(renumbered, np.broadcast_to(by_size, (n_restarts, n_draws, n_states)))


def total_variation(emissions: Sequence[Floats], reference: Sequence[Floats]) -> Floats:
    """Return the mean over features of total variation, (n_draws, n_reference_states, n_states).

    Emissions of each feature are (n_draws, n_states, n_categories), those of the reference without draws.
    """
    distance = np.zeros((len(emissions[0]), len(reference[0]), emissions[0].shape[1]))
    for each, other in zip(emissions, reference, strict=True):
        for state, probability in enumerate(other):
            distance[:, state] += 0.5 * np.abs(each - probability).sum(axis=-1)
    return distance / len(emissions)


def _matched(emissions: Sequence[Floats], reference: Sequence[Floats]) -> NDArray[np.int64]:
    """Return for each draw which of its states each state of the reference is, (n_draws, n_states)."""
    from scipy.optimize import linear_sum_assignment

    distance = total_variation(emissions, reference)
    return np.array([linear_sum_assignment(each)[1] for each in distance], dtype=np.int64)


def _renumbered(draws: StateDraws, order: NDArray[Any]) -> StateDraws:
    """Let state k be what was state order[..., k]."""
    number = np.argsort(order, axis=-1).astype(draws.states.dtype)
    shape = draws.states.shape
    states = np.take_along_axis(number, draws.states.reshape(*shape[:2], -1).astype(np.int64), axis=-1)
    leaving = np.concatenate([np.zeros_like(order[..., :1]), order + 1], axis=-1)
    transitions = np.take_along_axis(draws.transitions, leaving[..., None], axis=2)
    return dataclasses.replace(
        draws,
        states=states.reshape(shape),
        transitions=np.take_along_axis(transitions, order[..., None, :], axis=3),
        emissions=tuple(np.take_along_axis(each, order[..., None], axis=2) for each in draws.emissions),
    )


_TAKEN = {"chain", "draw", "cell", "state", "to_state"}
"""Names of dimensions, which no group column gets."""


def most_probable_path(states: NDArray[Any], n_states: int) -> NDArray[np.int64]:
    """Return the most probable sequence of every chain, (n_chains, n_times).

    States are (n_draws, n_chains, n_times), in 0..n_states-1.
    """
    n_draws, n_chains, n_times = states.shape
    codes = states.astype(np.int64)
    score = _log_shares(codes[:, :, 0], n_states, n_draws)
    origin = np.zeros((n_times, n_chains, n_states), dtype=np.int64)
    for step in range(1, n_times):
        pairs = codes[:, :, step - 1] * n_states + codes[:, :, step]
        joint = _log_shares(pairs, n_states**2, n_draws).reshape(n_chains, n_states, n_states)
        earlier = _log_shares(codes[:, :, step - 1], n_states, n_draws)
        # log p(z_{t+1} | z_t), of pairs over the state in front.
        seen = np.isfinite(earlier)[:, :, None]
        conditional = np.where(seen, joint - np.where(seen, earlier[:, :, None], 0.0), -np.inf)
        # The best score that ends in each state, and where it comes from.
        candidates = score[:, :, None] + conditional
        origin[step] = candidates.argmax(axis=1)
        score = candidates.max(axis=1)
    path = np.empty((n_chains, n_times), dtype=np.int64)
    path[:, -1] = score.argmax(axis=1)
    for step in range(n_times - 1, 0, -1):
        path[:, step - 1] = np.take_along_axis(origin[step], path[:, step, None], axis=1)[:, 0]
    return path


def _log_shares(codes: NDArray[np.int64], size: int, n_draws: int) -> NDArray[np.float64]:
    """Return the log share of draws (n_draws, n_chains) with every code, (n_chains, size)."""
    n_chains = codes.shape[1]
    counted = np.bincount((codes + size * np.arange(n_chains)).ravel(), minlength=size * n_chains)
    with np.errstate(divide="ignore"):
        return np.log(counted.reshape(n_chains, size) / n_draws)


SHARE, START, TRANSITION, EMISSION = "share", "start", "transition", "emission"


@dataclass(frozen=True, kw_only=True)
class HiddenMarkovFit:
    """Posterior draws of a hidden Markov model; made by ``suffice.models.hidden_markov``.

    States are numbered 0..K-1 in arrays and 1..K in rows, the one with most cells first; the numbering is the
    same in all draws. Cells follow each other chain by chain.

    Attributes
    ----------
    table : ChainTable
        What it was fitted to: features, chains, time steps.
    settings : FitSettings
        Method, priors, restarts, sweeps, draws.
    all_draws : StateDraws
        Of every restart, those in a poorer mode too.
    diagnostics : RestartDiagnostics
        Whether restarts agree, and which of them count.
    """

    table: ChainTable
    settings: FitSettings
    all_draws: StateDraws = field(repr=False)
    diagnostics: RestartDiagnostics

    @cached_property
    def draws(self) -> StateDraws:
        """The draws of restarts that count: those that are in no poorer mode."""
        kept = list(self.diagnostics.kept)
        drawn = self.all_draws
        rows = drawn.expected_rows
        return dataclasses.replace(
            drawn,
            states=drawn.states[kept],
            transitions=drawn.transitions[kept],
            emissions=tuple(each[kept] for each in drawn.emissions),
            expected_rows=None if rows is None else rows[kept],
            log_joint=drawn.log_joint[kept],
            trace=drawn.trace[kept],
        )

    @property
    def n_states(self) -> int:
        """Number of states."""
        return self.settings.n_states

    @cached_property
    def state_probability(self) -> Floats:
        """Posterior probability of every state in every cell, (n_cells, K): the share of draws."""
        flat = self.draws.states.reshape(-1, self.table.n_chains * self.table.n_times)
        return np.stack([(flat == state).mean(axis=0) for state in range(self.n_states)], axis=1)

    @cached_property
    def most_probable_path(self) -> NDArray[np.int64]:
        """The most probable sequence of states of every chain, (n_chains, n_times)."""
        states = self.draws.states
        return most_probable_path(states.reshape(-1, *states.shape[2:]), self.n_states)

    @cached_property
    def state_share(self) -> Floats:
        """Share of cells in every state, draw by draw, (n_draws, K)."""
        flat = self.draws.states.reshape(self.draws.log_joint.size, -1)
        return np.stack([(flat == state).mean(axis=1) for state in range(self.n_states)], axis=1)

    @property
    def start(self) -> Floats:
        """Draws of the distribution of a chain's first state, (n_draws, K)."""
        return self._flat(self.draws.transitions)[:, 0]

    @property
    def transitions(self) -> Floats:
        """Draws of the transition matrix, (n_draws, K, K): from the state in front."""
        return self._flat(self.draws.transitions)[:, 1:]

    @property
    def emissions(self) -> dict[str, Floats]:
        """Draws of the probabilities of each feature's categories, (n_draws, K, n_categories)."""
        names = [feature.name for feature in self.table.features]
        return dict(zip(names, map(self._flat, self.draws.emissions), strict=True))

    def rows(self, mass: float = MASS) -> list[dict[str, Any]]:
        """One row a number: of shares, start, transitions and emissions, with credible intervals.

        Columns are ``parameter``, ``state``, ``to_state``, ``feature``, ``category``, ``mean``, ``sd``,
        ``lower``, ``upper``; what has no use is None.

        Parameters
        ----------
        mass : float
            Of the intervals, between 0 and 1.

        Raises
        ------
        UsageError
            Where the mass is not between 0 and 1.
        """
        ends = ends_of(mass)
        rows = []
        for labels, sample in self._labelled():
            numbers = np.stack(
                [sample.mean(axis=0), sample.std(axis=0), *np.quantile(sample, ends, axis=0)], axis=1
            )
            for label, (mean, sd, lower, upper) in zip(labels, numbers.tolist(), strict=True):
                rows.append({**label, "mean": mean, "sd": sd, "lower": lower, "upper": upper})
        return rows

    def cells(self) -> Annotated[list[dict[str, Any]], Rows(is_observed=bool, state=Count)]:
        """One row a cell: keys, whether it was observed, its state on the most probable path, probabilities.

        Columns are those of chains and time, ``is_observed``, ``state`` (1..K), ``p_1`` to ``p_K``, and under
        ``noise-aware`` ``expected_rows``: the posterior mean of how many rows the cell is expected to have.
        """
        columns: dict[str, list[Any]] = {
            **self.table.cell_keys,
            "is_observed": self.table.counts.is_observed.ravel().tolist(),
            "state": (self.most_probable_path.ravel() + 1).tolist(),
        }
        for state in range(self.n_states):
            columns[f"p_{state + 1}"] = self.state_probability[:, state].tolist()
        if self.draws.expected_rows is not None:
            columns["expected_rows"] = self.draws.expected_rows.mean(axis=(0, 1)).ravel().tolist()
        return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]

    def draw_columns(self) -> dict[str, NDArray[Any]]:
        """Return draws of parameters as tidy columns: restart, draw, parameter, its labels, value."""
        n_draws = self.draws.log_joint.size
        kept = np.array(self.diagnostics.kept) + 1
        per_restart = n_draws // len(kept)
        parts: list[dict[str, NDArray[Any]]] = []
        for labels, sample in self._labelled():
            size = sample.shape[1]
            part: dict[str, NDArray[Any]] = {
                "restart": np.repeat(kept, per_restart * size),
                "draw": np.tile(np.repeat(np.arange(per_restart), size), len(kept)),
            }
            for name in labels[0]:
                values = np.array([label[name] for label in labels], dtype=object)
                part[name] = np.tile(values, n_draws)
            parts.append({**part, "value": sample.ravel()})
        return {column: np.concatenate([part[column] for part in parts]) for column in parts[0]}

    def to_arviz(self) -> Any:
        """Return the draws of restarts that count in the container of the installed ArviZ.

        ArviZ's chains are the restarts. Variables are ``start``, ``transition``, ``emission_FEATURE`` and
        ``cell_state`` (1..K), and among the sample statistics ``lp``, the log joint.

        Raises
        ------
        MissingExtraError
            Where ArviZ is not installed.
        """
        draws = self.draws
        lead = ["chain", "draw"]
        n_restarts, n_draws = draws.log_joint.shape
        numbers = np.arange(1, self.n_states + 1)
        data: dict[str, Any] = {
            "start": ([*lead, "to_state"], draws.transitions[:, :, 0]),
            "transition": ([*lead, "state", "to_state"], draws.transitions[:, :, 1:]),
            "cell_state": ([*lead, "cell"], draws.states.reshape(n_restarts, n_draws, -1) + 1),
        }
        sampled = {"chain": np.array(self.diagnostics.kept), "draw": np.arange(n_draws)}
        coordinates: dict[str, Any] = {
            **sampled,
            "state": numbers,
            "to_state": numbers,
            "cell": np.arange(self.table.n_chains * self.table.n_times),
        }
        for feature, values in zip(self.table.features, draws.emissions, strict=True):
            dimension = f"{feature.name}_category"
            data[f"emission_{feature.name}"] = ([*lead, "state", dimension], values)
            coordinates[dimension] = list(feature.categories)
        if draws.expected_rows is not None:
            data["expected_rows"] = ([*lead, "cell"], draws.expected_rows.reshape(n_restarts, n_draws, -1))
        for column, keys in self.table.cell_keys.items():
            coordinates[f"{column}_" if column in _TAKEN else column] = ("cell", keys)
        attributes = {name: str(value) for name, value in document(self.settings).items()}
        attributes["releases"] = ", ".join(self.table.releases)
        statistics = {"lp": (lead, draws.log_joint)}
        return container(
            {"posterior": (data, coordinates), "sample_stats": (statistics, sampled)}, attributes
        )

    def to_netcdf(self, path: str | os.PathLike[str]) -> None:
        """Write what ``to_arviz`` returns to a netCDF file.

        Raises
        ------
        MissingExtraError
            Where ArviZ, or what it writes netCDF with, is not installed.
        UsageError
            Where the file cannot be written.
        """
        write_container(self.to_arviz(), path)

    def _labelled(self) -> Iterator[tuple[list[dict[str, Any]], Floats]]:
        """Give the labels and the draws (n_draws, n_entries) of each kind of parameter."""
        states = range(1, self.n_states + 1)
        yield [_label(SHARE, state=state) for state in states], self.state_share
        yield [_label(START, to_state=state) for state in states], self.start
        pairs = [_label(TRANSITION, state=state, to_state=other) for state in states for other in states]
        yield pairs, self.transitions.reshape(-1, self.n_states**2)
        for feature in self.table.features:
            labels = [
                _label(EMISSION, state=state, feature=feature.name, category=category)
                for state in states
                for category in feature.categories
            ]
            yield labels, self.emissions[feature.name].reshape(-1, len(labels))

    @staticmethod
    def _flat(values: Floats) -> Floats:
        """Join restarts and draws."""
        return values.reshape(-1, *values.shape[2:])


@printed("*table=fit.table *settings=fit.settings mass diagnostics=fit.diagnostics rows cells=fit.cells")
@dataclass(frozen=True, slots=True, kw_only=True)
class FitSummary:
    """Everything but the draws of a fit, with intervals of one mass."""

    fit: HiddenMarkovFit
    mass: float = MASS

    @property
    def rows(
        self,
    ) -> Annotated[
        list[dict[str, Any]],
        Rows(parameter=str, mean=Measured, sd=Measured, lower=Measured, upper=Measured),
    ]:
        """Its numbers."""
        return self.fit.rows(self.mass)


def _label(parameter: str, **known: object) -> dict[str, Any]:
    empty = dict.fromkeys(("state", "to_state", "feature", "category"))
    return {"parameter": parameter, **empty, **known}
