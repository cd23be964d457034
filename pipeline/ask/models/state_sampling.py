r"""How a hidden Markov model is sampled: every choice, draws until restarts agree, and whether they do.

Restarts are independent chains of draws of one posterior. Whether they agree is judged by two numbers that no
exchange of states changes: the log joint of parameters, states and released counts, and the entropy of the
shares :math:`s_k` of states among cells,

.. math:: H = -\sum_k s_k \log s_k

by split R-hat, which is 1 where restarts and their halves vary about one mean alike, and by the number of
independent draws that they are worth (``hmc``). A restart is in a poorer mode where the .95 quantile of its
log joints lies below the .05 quantile of the best restart's: its draws stand for a part of the posterior that
has almost none of its mass, and do not count.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, cast

import numpy as np

from suffice.errors import UsageError
from suffice.pipeline.ask.inference.posterior_terms import METHODS, NOISE_AWARE, PLUG_IN
from suffice.pipeline.ask.models.noise_aware_states import noise_aware_draws
from suffice.pipeline.ask.models.state_draws import StatePriors, plug_in_draws
from suffice.pipeline.math.engines.multivariate.hmc import effective_draws, split_r_hat
from suffice.pipeline.terms.declaration.documents import Count, Measured, Method, one_of, printed
from suffice.pipeline.terms.declaration.wording import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from suffice.pipeline.ask.models.chain_tables import CountsOverTime
    from suffice.pipeline.ask.models.state_draws import Projection, StateDraws, StateSampler
    from suffice.typing import Floats

PROJECTIONS = ("clip", "simplex", "none")
SAMPLERS = ("ffbs", "single-site")
RESTARTS = 4
SWEEPS, MOST_SWEEPS = 400, 3200
DRAWS = 100
ALPHA, BETA, RATE = 1.0, 1.0, 0.001
HOLDOUT, SPLITS = 0.1, 10
MOST_STATES = 100
_MOST = 1_000_000


@printed(
    "method project? sampler? states=n_states restarts=n_restarts sweeps=n_sweeps until_settled "
    "draws=n_draws alpha=priors.transitions beta=priors.emissions rate=priors.rate"
)
@dataclass(frozen=True, slots=True, kw_only=True)
class FitSettings:
    """How one model is fitted.

    Attributes
    ----------
    method : {"noise-aware", "plug-in"}
    project : {"clip", "simplex", "none"} or None
        How ``plug-in`` makes counts of noisy ones; None under ``noise-aware``.
    sampler : {"ffbs", "single-site"} or None
        Of ``plug-in``; None under ``noise-aware``.
    n_states, n_restarts, n_sweeps : int
    until_settled : bool
        Whether sweeps are doubled until restarts agree; `n_sweeps` is how many there were in the end.
    n_draws : int
        That are kept of each restart: evenly spaced over the second half of its sweeps.
    priors : StatePriors
    """

    method: Method
    project: Annotated[str | None, one_of(*PROJECTIONS)]
    sampler: Annotated[str | None, one_of(*SAMPLERS)]
    n_states: Count
    n_restarts: Count
    n_sweeps: Count
    until_settled: bool
    n_draws: Count
    priors: StatePriors

    @property
    def lines(self) -> list[str]:
        """What was chosen or left at its default, a sentence each."""
        said = []
        if self.method == PLUG_IN:
            said.append("plug-in: takes the noisy counts for exact; its probabilities are not calibrated")
            said.append(f"counts: project {self.project}; sampler: {self.sampler}")
        priors = self.priors
        said.append(
            f"priors: transitions Dirichlet({priors.transitions:g}), "
            f"emissions Dirichlet({priors.emissions:g})"
            + (f", expected rows of a cell Gamma(1, {priors.rate:g})" if self.method == NOISE_AWARE else "")
        )
        said.append(
            f"{counted(self.n_restarts, 'restart')} of {self.n_sweeps} sweeps, of the second half of which "
            f"{self.n_draws} draws are kept each"
            + (f"; doubled until they agree, up to {MOST_SWEEPS}" if self.until_settled else "")
        )
        return said


def read_settings(
    *,
    states: object,
    method: str,
    project: str | None,
    sampler: str | None,
    restarts: object,
    sweeps: object,
    draws: object,
    alpha: object,
    beta: object,
    rate: object,
) -> FitSettings:
    """Check every choice, and fill in the defaults; UsageError where one is impossible, or has no use."""
    _check_choice("method", method, METHODS)
    if method == NOISE_AWARE:
        given = [name for name, value in (("project", project), ("sampler", sampler)) if value is not None]
        if given:
            message = (
                f"{given[0]} is a choice of method {PLUG_IN}: {NOISE_AWARE} takes the noise into account"
            )
            raise UsageError(message)
    else:
        project, sampler = project or "simplex", sampler or "ffbs"
        _check_choice("project", project, PROJECTIONS)
        _check_choice("sampler", sampler, SAMPLERS)
    n_sweeps = integer("sweeps", SWEEPS if sweeps is None else sweeps, 8)
    n_draws = integer("draws", min(DRAWS, n_sweeps // 2) if draws is None else draws, 4)
    if 2 * n_draws > n_sweeps:
        message = (
            f"draws {n_draws}: the second half of {n_sweeps} sweeps has {n_sweeps // 2}: ask for fewer "
            "draws, or more sweeps"
        )
        raise UsageError(message)
    return FitSettings(
        method=method,
        project=project,
        sampler=sampler,
        n_states=integer("states", states, 1, MOST_STATES),
        n_restarts=integer("restarts", restarts, 1),
        n_sweeps=n_sweeps,
        until_settled=sweeps is None,
        n_draws=n_draws,
        priors=StatePriors(
            transitions=positive("alpha", alpha),
            emissions=positive("beta", beta),
            rate=positive("rate", rate),
        ),
    )


def integer(name: str, value: object, least: int, most: int = _MOST) -> int:
    """Return an integer in its range, and refuse what is none."""
    is_integer = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not is_integer or not least <= int(cast("int", value)) <= most:
        message = f"{name} is an integer in {least}..{most}, not {value!r}"
        raise UsageError(message)
    return int(cast("int", value))


def positive(name: str, value: object) -> float:
    """Return a positive, finite number, and refuse what is none."""
    is_number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if not is_number or not 0.0 < float(cast("float", value)) < math.inf:
        message = f"{name} is a number above 0, not {value!r}"
        raise UsageError(message)
    return float(cast("float", value))


def _check_choice(name: str, value: object, known: Sequence[str]) -> None:
    if value not in known:
        message = f"{name} is {' or '.join(known)}, not {value!r}"
        raise UsageError(message)


LOG_JOINT = "log_joint"
STATE_ENTROPY = "state_entropy"
LARGEST_R_HAT, FEWEST_EFFECTIVE_DRAWS = 1.05, 100
"""Of restarts that intervals can rest on."""
_TAIL = 0.05


@printed("log_joint poorer_restarts r_hat effective_draws")
@dataclass(frozen=True, slots=True, kw_only=True)
class RestartDiagnostics:
    """What the draws rest on.

    Attributes
    ----------
    kept : tuple of int
        Restarts, from 0, whose draws count: those that are not in a poorer mode.
    log_joint : tuple of float
        The mean of each restart.
    r_hat, effective_draws : dict of str to number
        By number, over the restarts that count: 1 where they agree; how many independent draws they are
        worth.
    """

    kept: tuple[int, ...]
    log_joint: tuple[float, ...]
    r_hat: Mapping[str, Measured]
    effective_draws: Mapping[str, int]

    @property
    def poorer_restarts(self) -> tuple[Count, ...]:
        """The same, counted from 1."""
        return tuple(number + 1 for number in self.poorer)

    @property
    def poorer(self) -> tuple[int, ...]:
        """Restarts, from 0, in a poorer mode."""
        return tuple(number for number in range(len(self.log_joint)) if number not in self.kept)

    @property
    def largest_r_hat(self) -> float:
        """Over all numbers; 1 where none of them varies."""
        return max(self.r_hat.values(), default=1.0)

    @property
    def fewest_effective_draws(self) -> float:
        """Over all numbers; infinite where none of them varies."""
        return min(self.effective_draws.values(), default=math.inf)

    @property
    def is_settled(self) -> bool:
        """Whether restarts that count agree, and their draws are worth enough independent ones."""
        return self.largest_r_hat <= LARGEST_R_HAT and self.fewest_effective_draws >= FEWEST_EFFECTIVE_DRAWS

    @property
    def lines(self) -> list[str]:
        """What there is to say, a sentence each: restarts in a poorer mode, whether others agree."""
        best = max(self.log_joint)
        said = [
            f"restart {number + 1} is in a poorer mode, and its draws do not count: its log joint is lower "
            f"by {best - self.log_joint[number]:.4g} than that of restart {self.log_joint.index(best) + 1}"
            for number in self.poorer
        ]
        texts = [f"{name} {r_hat:g} ({self.effective_draws[name]})" for name, r_hat in self.r_hat.items()]
        if texts:
            said.append(
                f"R-hat (effective draws) over {counted(len(self.kept), 'restart')}: {', '.join(texts)}"
            )
        if self.largest_r_hat > LARGEST_R_HAT:
            said.append(
                f"do not rely on these intervals: restarts do not agree with each other (R-hat above "
                f"{LARGEST_R_HAT}); more sweeps, fewer states or sparser priors may help"
            )
        elif self.fewest_effective_draws < FEWEST_EFFECTIVE_DRAWS:
            said.append(
                f"the ends of intervals are rough: the draws are worth {self.fewest_effective_draws:.0f} "
                f"independent ones, fewer than {FEWEST_EFFECTIVE_DRAWS}; more sweeps help"
            )
        return said


def diagnose(draws: StateDraws, further: Mapping[str, Floats] | None = None) -> RestartDiagnostics:
    """Judge restarts: which of them count, and whether these agree.

    `further` are more numbers that no exchange of states changes, (n_restarts, n_draws), as a held-out score.
    """
    means = draws.log_joint.mean(axis=1)
    lowest = np.quantile(draws.log_joint[np.argmax(means)], _TAIL)
    highest = np.quantile(draws.log_joint, 1.0 - _TAIL, axis=1)
    kept = np.flatnonzero(highest >= lowest)
    numbers = {LOG_JOINT: draws.log_joint, STATE_ENTROPY: state_entropy(draws), **(further or {})}
    r_hat, effective = {}, {}
    for name, values in numbers.items():
        chains = values[kept].T
        if np.ptp(chains) > 0.0:
            r_hat[name] = round(float(split_r_hat(chains)), 4)
            effective[name] = math.floor(float(effective_draws(chains)))
    return RestartDiagnostics(
        kept=tuple(kept.tolist()), log_joint=tuple(means.tolist()), r_hat=r_hat, effective_draws=effective
    )


def state_entropy(draws: StateDraws) -> Floats:
    """Return the entropy of the shares of states among all cells, in nats, (n_restarts, n_draws)."""
    n_restarts, n_draws = draws.states.shape[:2]
    n_states = draws.emissions[0].shape[2]
    flat = draws.states.reshape(n_restarts * n_draws, -1).astype(np.int64)
    shifted = flat + n_states * np.arange(len(flat))[:, None]
    share = np.bincount(shifted.ravel(), minlength=n_states * len(flat)).reshape(-1, n_states) / flat.shape[1]
    terms = np.where(share > 0.0, share * np.log(np.where(share > 0.0, share, 1.0)), 0.0)
    entropy: Floats = -terms.sum(axis=1).reshape(n_restarts, n_draws)
    return entropy


def sampled_states(
    table: CountsOverTime,
    settings: FitSettings,
    *,
    rng: np.random.Generator,
    start: StateDraws | None = None,
    progress: Callable[[int], None] | None = None,
) -> StateDraws:
    """Return draws of every restart, which go on from where `start` ends.

    `progress` gets the number of sweeps that are done.
    """
    common: dict[str, Any] = {
        "n_states": settings.n_states,
        "n_sweeps": settings.n_sweeps,
        "n_draws": settings.n_draws,
        "priors": settings.priors,
        "rng": rng,
        "start": start,
        "progress": progress,
    }
    if settings.method == NOISE_AWARE:
        return noise_aware_draws([table] * settings.n_restarts, **common)
    return plug_in_draws(
        table,
        n_restarts=settings.n_restarts,
        project=cast("Projection", settings.project),
        sampler=cast("StateSampler", settings.sampler),
        **common,
    )


def settled_states(
    table: CountsOverTime,
    settings: FitSettings,
    *,
    rng: np.random.Generator,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[StateDraws, FitSettings]:
    """Return draws of restarts that have settled, and the settings with the number of sweeps that took.

    Where they have not, as many sweeps again are run from where they are, and what came before is warm-up; up
    to ``MOST_SWEEPS`` sweeps. Where the settings state the number of sweeps, so many are run.
    """
    ahead = MOST_SWEEPS if settings.until_settled else settings.n_sweeps
    drawn = sampled_states(table, settings, rng=rng, progress=part_of(progress, 0, ahead))
    done = settings.n_sweeps
    while settings.until_settled and 2 * done <= MOST_SWEEPS and not diagnose(drawn).is_settled:
        more = sampled_states(
            table,
            dataclasses.replace(settings, n_sweeps=done),
            rng=rng,
            start=drawn,
            progress=part_of(progress, done, ahead),
        )
        drawn = dataclasses.replace(more, trace=np.concatenate([drawn.trace, more.trace], axis=1))
        done *= 2
    if progress is not None:
        progress(ahead, ahead)
    return drawn, dataclasses.replace(settings, n_sweeps=done)


def part_of(
    progress: Callable[[int, int], None] | None, before: int, total: int
) -> Callable[[int], None] | None:
    """Return what tells of the sweeps of a part as of so many in all."""
    if progress is None:
        return None
    return lambda done: progress(before + done, total)
