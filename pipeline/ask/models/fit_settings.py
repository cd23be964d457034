"""How a hidden Markov model is fitted: every choice, and the defaults of those that are not made."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from suffice.errors import UsageError
from suffice.pipeline.ask.inference.posterior_terms import METHODS, NOISE_AWARE, PLUG_IN
from suffice.pipeline.ask.models.state_draws import StatePriors
from suffice.pipeline.terms.declaration.wording import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

PROJECTIONS = ("clip", "simplex", "none")
SAMPLERS = ("ffbs", "single-site")
RESTARTS = 4
SWEEPS, MOST_SWEEPS = 400, 3200
DRAWS = 100
ALPHA, BETA, RATE = 1.0, 1.0, 0.001
HOLDOUT, SPLITS = 0.1, 10
MOST_STATES = 100
_MOST = 1_000_000


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

    method: str
    project: str | None
    sampler: str | None
    n_states: int
    n_restarts: int
    n_sweeps: int
    until_settled: bool
    n_draws: int
    priors: StatePriors

    def to_dict(self) -> dict[str, Any]:
        """Return every choice as JSON has it."""
        plug_in = {"project": self.project, "sampler": self.sampler} if self.method == PLUG_IN else {}
        return {
            "method": self.method,
            **plug_in,
            "states": self.n_states,
            "restarts": self.n_restarts,
            "sweeps": self.n_sweeps,
            "until_settled": self.until_settled,
            "draws": self.n_draws,
            "alpha": self.priors.transitions,
            "beta": self.priors.emissions,
            "rate": self.priors.rate,
        }

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
    """Check every choice.

    Raises
    ------
    UsageError
        Where one of them is impossible, or has no use.
    """
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
    """Return an integer in its range.

    Raises
    ------
    UsageError
    """
    is_integer = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not is_integer or not least <= int(cast("int", value)) <= most:
        message = f"{name} is an integer in {least}..{most}, not {value!r}"
        raise UsageError(message)
    return int(cast("int", value))


def positive(name: str, value: object) -> float:
    """Return a positive, finite number.

    Raises
    ------
    UsageError
    """
    is_number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if not is_number or not 0.0 < float(cast("float", value)) < math.inf:
        message = f"{name} is a number above 0, not {value!r}"
        raise UsageError(message)
    return float(cast("float", value))


def _check_choice(name: str, value: object, known: Sequence[str]) -> None:
    if value not in known:
        message = f"{name} is {' or '.join(known)}, not {value!r}"
        raise UsageError(message)
