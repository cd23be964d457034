"""Hidden Markov models over released counts: cells of chains and time steps, each in a hidden state.

Counts of feature d in a cell are Poisson(lambda theta[z, d, j]) given its state z, released with discrete
Laplace noise. States follow a Markov chain over a chain's time steps. Costs no privacy: only what was
released is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypedDict, overload

from suffice.errors import UsageError
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
from suffice.pipeline.ask.models.state_alignment import align_states
from suffice.pipeline.ask.models.state_comparison import compare_states
from suffice.pipeline.ask.models.state_sampling import settled_states
from suffice.pipeline.ask.posterior.posterior import NOISE_AWARE
from suffice.pipeline.math.parameters.draws import generator

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Unpack

    import numpy as np

    from suffice.pipeline.ask.models.state_comparison import StateComparison
    from suffice.pipeline.ask.pooling.release import Release


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
