r"""Hidden Markov models over released counts: cells of chains and time steps, each in a hidden state.

Of chain r at time t in state :math:`z_{rt} = k`, category j of feature d:

.. math::
    z \sim \text{Markov chain}, \qquad n_{rtdj} \sim \mathrm{Pois}(\lambda_{rt} \theta_{kdj}), \qquad
    y_{rtdj} = n_{rtdj} + \mathrm{DLap}_b

Two questions are answered from y alone, so that neither costs privacy. Which state was each cell in, and what
are states? ``hidden_markov`` draws from the posterior (``noise_aware_states``), or takes y for n
(``state_draws``).

How many states are there? Numbers of them are compared by how well they predict cells that were held out. Of
noisy counts the noise is part of the likelihood, and lambda, of which the other cells say nothing, is
integrated over its prior:

.. math::
    p(y_{rt} \mid k) = \int \rho e^{-\rho \lambda} \prod_{dj}
    \sum_n \mathrm{Pois}(n; \lambda \theta_{kdj})\, \mathrm{DLap}_b(y_{rtdj} - n)\, d\lambda

In :math:`u = \sqrt\lambda` the integrand is smooth on one scale, about as wide as a normal density of
deviation :math:`1 / (2 \sqrt D)` or wider: the midpoint rule where it matters leaves an error of 1e-2 at
most, mostly of 1e-5. The chances of states are those given the drawn states before and after the cell, and
the score of a cell is the log of the mean over draws of :math:`\sum_k P(z_{rt} = k)\, p(y_{rt} \mid k)`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypedDict, overload

import numpy as np

from suffice.errors import UsageError
from suffice.pipeline.ask.inference.posterior_terms import NOISE_AWARE
from suffice.pipeline.ask.models import state_sampling
from suffice.pipeline.ask.models.chain_tables import CountsOverTime, chain_table
from suffice.pipeline.ask.models.hidden_markov_fit import HiddenMarkovFit, align_states
from suffice.pipeline.ask.models.noise_aware_states import CellEmissions
from suffice.pipeline.math.parameters.arguments import generator
from suffice.pipeline.terms.declaration.documents import Count, Measured, printed
from suffice.pipeline.terms.statistics.statistic_plan import discrete_laplace_sd

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Unpack

    from numpy.typing import NDArray

    from suffice.pipeline.ask.models.chain_tables import ChainTable
    from suffice.pipeline.ask.models.state_draws import StateDraws, StatePriors
    from suffice.pipeline.ask.pooling.release import Release
    from suffice.typing import Counts, Floats, Mask

_COARSE, _FINE = 32, 64
"""Nodes that look for where the integrand of a cell in a state matters, and nodes that integrate it there."""
_NATS = 35.0
"""So far below its highest place the integrand does not matter."""
_DEVIATIONS = 12.0
"""How far beyond the features' totals is looked, in deviations of a total's noise."""
_NEAR, _PASSES = 1.0, 4
"""Between coarse nodes: where they are farther apart the density is looked at again, so often at most."""
_MARGIN = 3.5
"""Of the root of lambda, on either side of what is looked at."""
_MOST_STRETCHED = 0.5 * np.log(10.0)
"""Where a state does not fit noise explains the counts: lambda is off by up to a factor of 1/q, or 10."""


def held_out_log_likelihood(
    table: CountsOverTime,
    held_out: Mask,
    draws: StateDraws,
    priors: StatePriors,
    *,
    restart: int,
    n_draws: int,
) -> Floats:
    """Return the log chance of each held-out cell's released counts under draws, (n_taken, n_held_out).

    The table has the counts of the held-out cells, (n_chains, n_times), which `draws` have not seen. At most
    `n_draws` of the restart's draws are taken, at even distances.
    """
    cells = CountsOverTime(
        counts=tuple(counts[held_out][:, None] for counts in table.counts),
        is_observed=table.is_observed[held_out][:, None],
        scales=table.scales,
    )
    coarse = CellEmissions.of([_repeated(cells, _COARSE)], 1)
    fine = CellEmissions.of([_repeated(cells, _FINE)], 1)
    low, high = _range(cells)
    n_states = draws.transitions.shape[-1]
    taken = _taken(draws.states.shape[1], n_draws)
    log_chance = np.empty((len(taken), len(low)))
    for row, draw in enumerate(taken):
        theta, log_chances = _of_draw(held_out, draws, restart, draw)
        by_state = np.empty((len(low), n_states))
        for state in range(n_states):
            first, last = _where_it_matters(coarse, theta[state], low, high, priors.rate)
            start = np.maximum(first - _MARGIN, 0.0)
            step = (last + _MARGIN - start) / _FINE
            # Midpoint rule: the sum of the integrand at the middles of equal steps, times a step.
            u = start[:, None] + step[:, None] * (np.arange(_FINE) + 0.5)
            integrand = _log_integrand(fine, theta[state], u, priors.rate)
            by_state[:, state] = _log_sum_exp(integrand, axis=1) + np.log(step)
        log_chance[row] = _log_sum_exp(by_state + log_chances, axis=1)
    return log_chance


def exact_log_likelihood(
    counts: tuple[Counts, ...], held_out: Mask, draws: StateDraws, *, restart: int, n_draws: int
) -> Floats:
    """Return the same of exact counts, given each cell's number of rows, for studies that know them.

    It is that of the rows in their order: no multinomial coefficients. Counts are (n_chains, n_times,
    n_categories) of each feature.
    """
    cells = np.concatenate([each[held_out] for each in counts], axis=-1).astype(np.float64)
    scores = []
    for draw in _taken(draws.states.shape[1], n_draws):
        theta, log_chances = _of_draw(held_out, draws, restart, draw)
        scores.append(_log_sum_exp(cells @ np.log(theta).T + log_chances, axis=1))
    return np.stack(scores)


def log_mean_exp(log_likelihood: Floats) -> Floats:
    """Return the log of the mean chance over draws, (n_held_out,)."""
    mean: Floats = _log_sum_exp(log_likelihood, axis=0) - np.log(len(log_likelihood))
    return mean


def _of_draw(held_out: Mask, draws: StateDraws, restart: int, draw: int) -> tuple[Floats, Floats]:
    """Return theta, and the log chance of each state in held-out cells given the states drawn beside them."""
    theta = np.concatenate([each[restart, draw] for each in draws.emissions], axis=-1)
    states = draws.states[restart, draw].astype(np.int64)
    transitions = draws.transitions[restart, draw]
    chain, time = np.nonzero(held_out)
    n_times = states.shape[1]
    before = np.where(time > 0, states[chain, np.maximum(time - 1, 0)] + 1, 0)
    after = states[chain, np.minimum(time + 1, n_times - 1)]
    leaving = np.where((time < n_times - 1)[:, None], transitions[1:, after].T, 1.0)
    # P(z_t = k | z_{t-1}, z_{t+1}) is proportional to A[z_{t-1}, k] A[k, z_{t+1}].
    weights = transitions[before] * leaving
    with np.errstate(divide="ignore"):
        return theta, np.log(weights / weights.sum(axis=1, keepdims=True))


def _range(cells: CountsOverTime) -> tuple[Floats, Floats]:
    """Return between which roots of lambda the highest integrand of each cell is looked for, (n_cells,)."""
    totals = np.stack([counts[:, 0].sum(axis=-1) for counts in cells.counts])
    deviations = [
        discrete_laplace_sd(scale) * np.sqrt(counts.shape[-1]) if scale else 0.0
        for counts, scale in zip(cells.counts, cells.scales, strict=True)
    ]
    reach = _DEVIATIONS * max(deviations)
    stretch = max(np.exp(min(0.5 / scale, _MOST_STRETCHED)) if scale else 1.0 for scale in cells.scales)
    low = np.sqrt(np.maximum(totals.min(axis=0) - reach, 0.0)) / stretch - _MARGIN
    high = np.sqrt(np.maximum(totals.max(axis=0) + reach, 0.0)) * stretch + _MARGIN
    return np.maximum(low, 0.0), high


def _where_it_matters(
    emissions: CellEmissions, theta: Floats, low: Floats, high: Floats, rate: float
) -> tuple[Floats, Floats]:
    """Return between which roots of lambda the integrand of each cell is near its highest, (n_cells,)."""
    for _ in range(_PASSES):
        wide = (high - low) / _COARSE
        u = low[:, None] + wide[:, None] * (np.arange(_COARSE) + 0.5)
        integrand = _log_integrand(emissions, theta, u, rate)
        matters = integrand > integrand.max(axis=1, keepdims=True) - _NATS
        low = np.maximum(np.where(matters, u, np.inf).min(axis=1) - wide, 0.0)
        high = np.where(matters, u, -np.inf).max(axis=1) + wide
        if wide.max() <= _NEAR:
            break
    return low, high


def _log_integrand(emissions: CellEmissions, theta: Floats, u: Floats, rate: float) -> Floats:
    """Return the log density of released counts and of the root of lambda, at nodes of each cell."""
    by_node = emissions.by_state(theta[None, None], u.reshape(1, -1) ** 2).reshape(u.shape)
    # lambda = u^2, and d lambda = 2 u du.
    integrand: Floats = by_node + np.log(2.0 * rate * u) - rate * u**2
    return integrand


def _repeated(cells: CountsOverTime, times: int) -> CountsOverTime:
    return CountsOverTime(
        counts=tuple(np.repeat(counts, times, axis=0) for counts in cells.counts),
        is_observed=np.repeat(cells.is_observed, times, axis=0),
        scales=cells.scales,
    )


def _taken(n_kept: int, n_draws: int) -> NDArray[np.int64]:
    return np.unique(np.linspace(0, n_kept - 1, min(n_draws, n_kept)).round().astype(np.int64))


def _log_sum_exp(values: Floats, axis: int) -> Floats:
    highest = values.max(axis=axis, keepdims=True)
    total: Floats = np.log(np.exp(values - highest).sum(axis=axis)) + highest.squeeze(axis)
    return total


HELD_OUT_SCORE = "held_out_score"
SCORED_DRAWS = 25
"""Of each restart: to score a draw takes as long as some sweeps."""


class StateScore(TypedDict):
    """How well a number of states predicts."""

    states: Count
    score: float
    difference: float
    sd: Measured | None
    r_hat: Measured
    poorer_restarts: float


@printed(
    "*table method=choices.method project?=choices.project sampler?=choices.sampler "
    "restarts=choices.n_restarts sweeps=choices.n_sweeps until_settled=choices.until_settled "
    "draws=choices.n_draws alpha=choices.priors.transitions beta=choices.priors.emissions "
    "rate=choices.priors.rate holdout splits=n_splits best rows"
)
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
    settings: tuple[state_sampling.FitSettings, ...]
    holdout: float
    scores: Floats = field(repr=False)
    r_hat: Floats = field(repr=False)
    n_poorer: np.ndarray[Any, np.dtype[np.int64]] = field(repr=False)

    @property
    def n_splits(self) -> Count:
        """How often other cells were held out."""
        return len(self.scores.T)

    @property
    def difference(self) -> Floats:
        """Each score less that of one state on the same cells, (n_numbers, n_splits)."""
        return self.scores - self.scores[:1]

    @property
    def best(self) -> Count:
        """The number of states with the highest mean score."""
        return self.settings[int(np.argmax(self.scores.mean(axis=1)))].n_states

    def rows(self) -> list[StateScore]:
        """One row a number of states, one state first.

        Columns are ``states``; ``score``, the mean log likelihood of a held-out cell; ``difference`` from one
        state, and its ``sd`` over splits, None where there is one split; ``r_hat``, the largest of all
        splits; ``poorer_restarts``, the share of restarts in a poorer mode.
        """
        spread = self.difference.std(axis=1, ddof=1).tolist() if self.n_splits > 1 else None
        return [
            {
                "states": setting.n_states,
                "score": float(self.scores[number].mean()),
                "difference": float(self.difference[number].mean()),
                "sd": None if spread is None else spread[number],
                "r_hat": float(self.r_hat[number].max()),
                "poorer_restarts": float(self.n_poorer[number].mean() / setting.n_restarts),
            }
            for number, setting in enumerate(self.settings)
        ]

    @property
    def choices(self) -> state_sampling.FitSettings:
        """What all fits have in common."""
        return self.settings[0]


def compare_states(
    table: ChainTable,
    settings: Sequence[state_sampling.FitSettings],
    *,
    holdout: float,
    splits: int,
    rng: np.random.Generator,
    progress: Callable[[int, int], None] | None = None,
) -> StateComparison:
    """Fit every number of states, and one state, to all but the held-out cells of each split.

    A number of states that is given twice is refused, and a share that holds out no cell or leaves none.
    """
    numbers = [setting.n_states for setting in settings]
    if len(set(numbers)) < len(numbers):
        message = f"states names a number twice: {', '.join(map(str, numbers))}"
        raise UsageError(message)
    settings = [dataclasses.replace(setting, until_settled=False) for setting in settings]
    fitted = sorted(
        [*settings, *([] if 1 in numbers else [dataclasses.replace(settings[0], n_states=1)])],
        key=lambda setting: setting.n_states,
    )
    n_splits = state_sampling.integer("splits", splits, 1)
    held_out = [_held_out(table.counts, holdout, rng) for _ in range(n_splits)]
    shape = (len(fitted), n_splits)
    scores, r_hat, n_poorer = np.empty(shape), np.empty(shape), np.zeros(shape, dtype=np.int64)
    total = sum(setting.n_sweeps for setting in fitted) * n_splits
    done = 0
    for split, mask in enumerate(held_out):
        rest = dataclasses.replace(table.counts, is_observed=table.counts.is_observed & ~mask)
        for number, setting in enumerate(fitted):
            drawn = state_sampling.sampled_states(
                rest, setting, rng=rng, progress=state_sampling.part_of(progress, done, total)
            )
            by_restart = [
                held_out_log_likelihood(
                    table.counts, mask, drawn, setting.priors, restart=restart, n_draws=SCORED_DRAWS
                )
                for restart in range(setting.n_restarts)
            ]
            likelihood = np.stack(by_restart)
            judged = state_sampling.diagnose(drawn, {HELD_OUT_SCORE: likelihood.mean(axis=2)})
            kept = likelihood[list(judged.kept)].reshape(-1, likelihood.shape[2])
            scores[number, split] = log_mean_exp(kept).mean()
            r_hat[number, split] = judged.largest_r_hat
            n_poorer[number, split] = len(judged.poorer)
            done += setting.n_sweeps
    return StateComparison(
        table=table, settings=tuple(fitted), holdout=holdout, scores=scores, r_hat=r_hat, n_poorer=n_poorer
    )


def _held_out(table: CountsOverTime, share: float, rng: np.random.Generator) -> Mask:
    """Choose the cells of one split: so many of the observed ones, at least one, and never all."""
    observed = np.flatnonzero(table.is_observed)
    if state_sampling.positive("holdout", share) >= 1.0:
        message = f"holdout is the share of cells that are held out, between 0 and 1, not {share!r}"
        raise UsageError(message)
    size = min(max(1, round(share * observed.size)), observed.size - 1)
    mask = np.zeros(table.is_observed.size, dtype=np.bool_)
    mask[rng.choice(observed, size, replace=False)] = True
    return mask.reshape(table.is_observed.shape)


class Choices(TypedDict, total=False):
    """What may be left out, as :func:`hidden_markov` describes it."""

    method: str
    project: str | None
    sampler: str | None
    restarts: int
    sweeps: int | None
    draws: int | None
    holdout: float | None
    splits: int | None
    alpha: float
    beta: float
    rate: float
    where: Mapping[str, object] | None
    rng: np.random.Generator | int | None
    progress: Callable[[int, int], None] | None


@overload
def hidden_markov(
    releases: Release | Sequence[Release],
    statistics: Sequence[str] | None = None,
    *,
    chain: str | Sequence[str],
    time: str | Sequence[str] | None = None,
    states: int,
    **choices: Unpack[Choices],
) -> HiddenMarkovFit: ...
@overload
def hidden_markov(
    releases: Release | Sequence[Release],
    statistics: Sequence[str] | None = None,
    *,
    chain: str | Sequence[str],
    time: str | Sequence[str] | None = None,
    states: Sequence[int],
    **choices: Unpack[Choices],
) -> StateComparison: ...
def hidden_markov(
    releases: Release | Sequence[Release],
    statistics: Sequence[str] | None = None,
    *,
    chain: str | Sequence[str],
    time: str | Sequence[str] | None = None,
    states: int | Sequence[int],
    method: str = NOISE_AWARE,
    project: str | None = None,
    sampler: str | None = None,
    restarts: int = state_sampling.RESTARTS,
    sweeps: int | None = None,
    draws: int | None = None,
    holdout: float | None = None,
    splits: int | None = None,
    alpha: float = state_sampling.ALPHA,
    beta: float = state_sampling.BETA,
    rate: float = state_sampling.RATE,
    where: Mapping[str, object] | None = None,
    rng: np.random.Generator | int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> HiddenMarkovFit | StateComparison:
    """Fit a hidden Markov model to released counts, or compare numbers of states. Costs no privacy.

    Parameters
    ----------
    releases : Release or sequence of Release
        One release, or several windows of one series, which are time then.
    statistics : sequence of str, optional
        ``categorical`` and ``bernoulli`` statistics: the features. All of the release otherwise.
    chain : str or sequence of str
        Group columns: each combination of their keys is a chain. Empty: there is one.
    time : str or sequence of str, optional
        Group columns whose keys are time, in the order declared; the first runs slowest. Of a series, what is
        time within a window.
    states : int or sequence of int
        Number of states; or several, which are compared by how well held-out cells are predicted.
    method : {"noise-aware", "plug-in"}
        The posterior given the noise; or noisy counts taken for exact, as in Foulds et al., not calibrated.
    project : {"simplex", "clip", "none"}, optional
        Of ``plug-in``: counts of a cell are projected onto one total for all features (the default), clipped
        at 0, or left as they are, and clipped only where Dirichlet distributions are updated.
    sampler : {"ffbs", "single-site"}, optional
        Of ``plug-in``: forward filtering and backward sampling (the default), or one cell at a time with
        parameters summed out.
    restarts : int
        How many chains of the sampler are run at once.
    draws : int, optional
        How many are kept of each restart, evenly spaced over the second half of its sweeps. Otherwise 100,
        or all of that half where it has fewer.
    sweeps : int, optional
        How long they are run. Otherwise 400 sweeps, and of a fit as many again until restarts agree (R-hat up
        to 1.05, 100 effective draws), at most 3200.
    holdout : float, optional
        Of a comparison: the share of observed cells that are held out; 0.1 otherwise.
    splits : int, optional
        Of a comparison: how often other cells are held out; 10 otherwise.
    alpha, beta : float
        Of the Dirichlet priors of transitions (and the start), and of emissions.
    rate : float
        Of the prior Gamma(1, rate) of the expected number of rows of a cell.
    where : mapping, optional
        Keep the cells with these group keys.
    rng : numpy.random.Generator or int, optional
    progress : callable, optional
        Gets the number of sweeps that are done, and of all.

    Returns
    -------
    HiddenMarkovFit or StateComparison
        The latter where several numbers of states are given.

    Raises
    ------
    UsageError
        Where a statistic, a group, a release or a choice does not fit.
    """
    several = [states] if not isinstance(states, Sequence) or isinstance(states, str) else list(states)
    if not several:
        message = "states is a number of hidden states, or a list of some to compare: the list is empty"
        raise UsageError(message)
    settings = [
        state_sampling.read_settings(
            states=number,
            method=method,
            project=project,
            sampler=sampler,
            restarts=restarts,
            sweeps=sweeps,
            draws=draws,
            alpha=alpha,
            beta=beta,
            rate=rate,
        )
        for number in several
    ]
    source = generator(rng)
    table = chain_table(releases, statistics, chain=chain, time=time, where=where)
    if isinstance(states, Sequence):
        return compare_states(
            table,
            settings,
            holdout=state_sampling.HOLDOUT if holdout is None else holdout,
            splits=state_sampling.SPLITS if splits is None else splits,
            rng=source,
            progress=progress,
        )
    for name, value in (("holdout", holdout), ("splits", splits)):
        if value is not None:
            message = f"{name} is of comparisons: name several numbers of states, as 1, 2 and 3"
            raise UsageError(message)
    drawn, used = state_sampling.settled_states(table.counts, settings[0], rng=source, progress=progress)
    drawn = align_states(drawn)
    return HiddenMarkovFit(
        table=table, settings=used, all_draws=drawn, diagnostics=state_sampling.diagnose(drawn)
    )
