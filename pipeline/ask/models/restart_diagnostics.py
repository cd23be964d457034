"""Whether restarts agree: R-hat and effective draws of numbers that no exchange of states changes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.math.engines.multivariate.hmc import effective_draws, split_r_hat
from suffice.pipeline.terms.declaration.wording import counted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from suffice.pipeline.ask.models.state_draws import StateDraws
    from suffice.typing import Floats

LOG_JOINT = "log_joint"
STATE_ENTROPY = "state_entropy"
LARGEST_R_HAT, FEWEST_EFFECTIVE_DRAWS = 1.05, 100
"""Of restarts that intervals can rest on."""
_TAIL = 0.05


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
    r_hat: Mapping[str, float]
    effective_draws: Mapping[str, int]

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
    """Judge restarts.

    A restart is in a poorer mode where all but the highest twentieth of its log joints lie below all but the
    lowest twentieth of the best restart's: its draws stand for a part of the posterior that has almost none
    of its mass.

    Parameters
    ----------
    draws : StateDraws
    further : mapping of str to ndarray of shape (n_restarts, n_draws), optional
        More numbers that no exchange of states changes, as a held-out score.
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
