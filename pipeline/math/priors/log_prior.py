r"""Joint priors by their log density: of the probabilities of one table, or of named parameters.

Model. On the simplex of K probabilities a prior has a density with respect to the uniform distribution,
Dirichlet(1),

.. math:: \pi(p) \propto e^{f(p)} \, \mathrm{Dirichlet}(p; 1, \dots, 1), \qquad (1)

so that f = 0 is the uniform prior, an indicator's logarithm an order, and a penalty on log odds ratios near
independence.

Symbols:

Of other parameters the density is one with respect to their own unit, as that of ``Density`` and
``JointDensity``, which it then becomes.

- f: ``log_density``
- p: ``probability``, (n, K)

Method. Values of f are checked; that it is proper is checked where it is used, by draws.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.errors import PriorError
from suffice.pipeline.math.priors.by_name import JointDensity
from suffice.pipeline.math.priors.checks import called, ends_of, prior_error_of_values
from suffice.pipeline.math.priors.density import Density

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from suffice.typing import Floats


ALL = "probability"
"""The parameter that is all probabilities together."""


@dataclass(frozen=True, slots=True, init=False)
class LogPrior:
    """Any joint prior of probabilities or of named parameters: ``LogPrior(lambda p: 2 * np.log(p[:, 0]))``.

    ``LogPrior(lambda a, b: np.where(a < b, 0.0, -np.inf), parameters=("AA", "DL"))``, or of a mean and its
    spread, ``LogPrior(lambda mean, sd: -abs(mean) / sd - sd, parameters=("mean", "sd"))``, or of the one
    parameter of a family.

    Parameters
    ----------
    log_density : callable
        An array (n,) for every name of `parameters` -> log densities (n,) with respect to the uniform prior,
        but for a constant; ``-inf`` where there is none. By default a single array (n, n_categories) with
        all probabilities, in the order of the posterior's rows.
    parameters : sequence of str
        Names of categories, as the posterior's rows have them, or ``"probability"``; ``"mean"`` with
        ``"variance"`` or ``"sd"``; the name of the one parameter; of a regression predictors,
        ``"intercept"`` and ``"sd"`` or ``"variance"``; of several columns ``"mean[x]"``, ``"sd[x]"`` or
        ``"variance[x]"`` and ``"correlation[x,y]"``. Of others than probabilities the density is one with
        respect to their own units.
    support : mapping of str to (float, float), optional
        Ends between which named parameters lie; all of where they can otherwise.
    name : str
        What it is called.

    Raises
    ------
    PriorError
        Where it is no function, a name is there twice, or a support is no interval.
    """

    log_density: Callable[..., Any]
    parameters: tuple[str, ...]
    support: tuple[tuple[str, float, float], ...]
    name: str

    def __init__(
        self,
        log_density: Callable[..., Any],
        *,
        parameters: Sequence[str] = (ALL,),
        support: Mapping[str, tuple[float, float]] | None = None,
        name: str = "LogPrior",
    ) -> None:
        if not callable(log_density):
            message = f"LogPrior: log_density must be a function of arrays, not {log_density!r}"
            raise PriorError(message)
        names = (parameters,) if isinstance(parameters, str) else tuple(parameters)
        if not names or len(set(names)) < len(names):
            message = f"LogPrior: parameters must be names, each once, not {parameters!r}"
            raise PriorError(message)
        ends = {key: ends_of("LogPrior", f"support of {key}", pair) for key, pair in (support or {}).items()}
        object.__setattr__(self, "log_density", log_density)
        object.__setattr__(self, "parameters", names)
        object.__setattr__(self, "support", tuple((key, *pair) for key, pair in ends.items()))
        object.__setattr__(self, "name", name)

    def __str__(self) -> str:
        within = "".join(f", {key} in {low:g}..{high:g}" for key, low, high in self.support)
        return f"{self.name} of {', '.join(self.parameters)}{within}"

    def __call__(self, probability: Floats, names: Sequence[str]) -> Floats:
        """Log densities (n,) of probabilities (n, K) whose entries have these names.

        Raises
        ------
        PriorError
            Where there is no such name, or they are neither numbers nor minus infinity.
        """
        places = {name: place for place, name in enumerate(names)}
        unknown = {*self.parameters, *(key for key, _, _ in self.support)} - {*places, ALL}
        if unknown:
            message = (
                f"prior {self}: there is no {min(unknown)!r}: name {ALL}, for all of them, or "
                f"{', '.join(names[:8])}{' and others' if len(names) > 8 else ''}"
            )
            raise PriorError(message)
        given = tuple(
            probability if name == ALL else probability[:, places[name]] for name in self.parameters
        )
        rule = "it takes an array for every parameter and returns n log densities"
        value = called(self, self.log_density, given, rule)
        if value.shape != (len(probability),):
            message = f"prior {self}: its log density of {len(probability)} draws has the shape {value.shape}"
            raise PriorError(f"{message}: {rule}")
        if np.any(np.isnan(value) | (value == np.inf)):
            raise prior_error_of_values(self)
        for key, low, high in self.support:
            of_key = probability if key == ALL else probability[:, [places[key]]]
            value = np.where(np.all((of_key >= low) & (of_key <= high), axis=1), value, -np.inf)
        return value


def as_density(prior: LogPrior, parameter: str, domain: tuple[float, float]) -> Density:
    """Return a prior of one parameter as the density that it is.

    Raises
    ------
    PriorError
        Where it is of another parameter.
    """
    if set(prior.parameters) | {key for key, _, _ in prior.support} != {parameter}:
        message = f"prior {prior}: the family has one parameter: name it, parameters=({parameter!r},)"
        raise PriorError(message)
    ends = {key: (low, high) for key, low, high in prior.support}
    return Density(prior.log_density, *ends.get(parameter, domain), name=prior.name)


def as_joint_density(prior: LogPrior) -> JointDensity:
    """Return a prior of a mean and a variance, or a standard deviation, as the density that it is.

    Raises
    ------
    PriorError
        Where it is of other parameters.
    """
    ends = {key: (low, high) for key, low, high in prior.support}
    for of in ("variance", "sd"):
        if prior.parameters == ("mean", of) and set(ends) <= {"mean", of}:
            everywhere = {"mean": (-math.inf, math.inf), of: (0.0, math.inf)}
            return JointDensity(prior.log_density, **{**everywhere, **ends})
    message = (
        f'prior {prior}: the family has a mean and a variance: name them, parameters=("mean", "variance") or '
        '("mean", "sd")'
    )
    raise PriorError(message)
