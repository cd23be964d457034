"""Hidden Markov models over released counts: cells of chains and time steps, each in a hidden state.

Counts of feature d in a cell are Poisson(lambda theta[z, d, j]) given its state z, released with discrete
Laplace noise. States follow a Markov chain over a chain's time steps. Costs no privacy: only what was
released is read.

Samplers exchange the numbers of states, from draw to draw and between restarts: they are numbered alike
first.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypedDict, overload

import numpy as np

from suffice.errors import UsageError
from suffice.pipeline.ask.inference.posterior_terms import NOISE_AWARE
from suffice.pipeline.ask.models.chain_tables import chain_table
from suffice.pipeline.ask.models.fit_settings import (
    ALPHA,
    BETA,
    HOLDOUT,
    RATE,
    RESTARTS,
    SPLITS,
    read_settings,
)
from suffice.pipeline.ask.models.hidden_markov_fit import HiddenMarkovFit
from suffice.pipeline.ask.models.restart_diagnostics import diagnose
from suffice.pipeline.ask.models.state_comparison import compare_states
from suffice.pipeline.ask.models.state_sampling import settled_states
from suffice.pipeline.math.parameters.parameter_posterior import generator

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Unpack

    from numpy.typing import NDArray

    from suffice.pipeline.ask.models.state_comparison import StateComparison
    from suffice.pipeline.ask.models.state_draws import StateDraws
    from suffice.pipeline.ask.pooling.release import Release
    from suffice.typing import Floats

_ROUNDS = 3
"""How often the reference is made anew of what was aligned with it."""


def align_states(draws: StateDraws) -> StateDraws:
    """Return draws whose states are numbered alike, the one with most cells first.

    Each draw's states are matched with those of a reference, so that the total variation between their
    emissions, averaged over features and added up over states, is smallest. The reference is the draw with
    the highest log joint, and then the average of what was matched.
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

    Parameters
    ----------
    emissions : sequence of ndarray of shape (n_draws, n_states, n_categories)
        One a feature.
    reference : sequence of ndarray of shape (n_reference_states, n_categories)
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
    restarts: int = RESTARTS,
    sweeps: int | None = None,
    draws: int | None = None,
    holdout: float | None = None,
    splits: int | None = None,
    alpha: float = ALPHA,
    beta: float = BETA,
    rate: float = RATE,
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
        read_settings(
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
            holdout=HOLDOUT if holdout is None else holdout,
            splits=SPLITS if splits is None else splits,
            rng=source,
            progress=progress,
        )
    for name, value in (("holdout", holdout), ("splits", splits)):
        if value is not None:
            message = f"{name} is of comparisons: name several numbers of states, as 1, 2 and 3"
            raise UsageError(message)
    drawn, used = settled_states(table.counts, settings[0], rng=source, progress=progress)
    drawn = align_states(drawn)
    return HiddenMarkovFit(table=table, settings=used, all_draws=drawn, diagnostics=diagnose(drawn))
