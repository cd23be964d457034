r"""Priors of named parameters of several columns, resolved: what weighs draws under the default prior.

Equations (1) and (2) are those of ``any_column_prior.py``.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.errors import PriorError
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.math.distributions.distribution import Line
from suffice.pipeline.math.engines.multivariate.reference import (
    ColumnsReference,
    GivenCoefficients,
    RegressionReference,
)
from suffice.pipeline.math.priors.coefficients import SPREADS, Coefficients, OnLine
from suffice.pipeline.math.priors.log_prior import LogPrior
from suffice.pipeline.terms.statistics.moment_columns import is_linear

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from suffice.pipeline.families.shared.contract import Family
    from suffice.pipeline.math.distributions.composite import ConjugateMixture
    from suffice.pipeline.terms.statistics.sensitivity import Constants
    from suffice.typing import Floats


DRAWS, _FEWEST = 20_000, 1000
"""Draws of a cell, and of each of its sub-models at least."""
_MOST_MODELS = 256
REGRESSION = "linear_regression"


def resolved(
    family: Family, prior: LogPrior | Coefficients, constants: Constants
) -> RegressionPrior | ColumnsPrior:
    """Return what draws from a cell's mixture and weighs the draws."""
    if family.name == REGRESSION:
        return regression_of(prior, constants)
    if not isinstance(prior, LogPrior):
        message = f"prior {prior}: {family.name} has no coefficients: state a suffice.LogPrior"
        raise PriorError(message)
    return ColumnsPrior.of(prior, constants, family)


@dataclass(frozen=True, slots=True, kw_only=True)
class SubModel:
    """Coefficients that are given, and the density of the other named parameters.

    Attributes
    ----------
    values : dict of str to float
        Of coefficients, by name.
    log_chance : float
        Log of the prior probability.
    """

    values: Mapping[str, float]
    log_chance: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RegressionPrior:
    """A prior of a regression's named parameters, beside the default one.

    Attributes
    ----------
    prior : LogPrior or Coefficients
    reference : RegressionReference
    coefficients : tuple of str
        All, the intercept last where there is one.
    named : tuple of str
        Coefficients that the prior names.
    spread : str
        ``sd``, ``variance``, or nothing where it names none.
    parts : dict of str to OnLine
        Of named parameters that are independent.
    models : tuple of SubModel
    """

    prior: LogPrior | Coefficients
    reference: RegressionReference
    coefficients: tuple[str, ...]
    named: tuple[str, ...]
    spread: str
    parts: Mapping[str, OnLine]
    models: tuple[SubModel, ...]

    def log_density(self, model: SubModel, beta: Floats, variance: Floats) -> Floats:
        """Return f of (2), of coefficients (n, k) and variances (n,), as a density of the variance."""
        values = dict(zip(self.coefficients, beta.T, strict=True))
        if self.spread:
            values[self.spread] = np.sqrt(variance) if self.spread == "sd" else variance
        if isinstance(self.prior, LogPrior):
            total = log_density_of(self.prior, values)
        else:
            total = np.zeros(len(beta))
            for name, part in self.parts.items():
                if name not in model.values:
                    total = total + part.log_density(values[name])
        # d sd / d variance = 1 / 2 sd.
        return total - np.log(2.0 * np.sqrt(variance)) if self.spread == "sd" else total

    def weigh(self, mixture: ConjugateMixture, rng: np.random.Generator) -> tuple[dict[str, Floats], Floats]:
        """Draw from a cell's mixture and return draws, by parameter, with logs of weights (2)."""
        size = max(_FEWEST, -(-DRAWS // len(self.models)))
        betas, variances, logs = [], [], []
        for model in self.models:
            states: Any = mixture.conditional.at(_in_turn(mixture.n_states, size, rng))
            given = GivenCoefficients.of(states, self.places(model.values), tuple(model.values.values()))
            variance = given.variance(rng)
            beta = given.coefficients(variance, rng.standard_normal(states.loc.shape))
            betas.append(beta)
            variances.append(variance)
            # (2).
            logs.append(model.log_chance + given.log_density() + self.log_ratio(model, beta, variance))
        drawn = self.shown(np.concatenate(betas), np.concatenate(variances), linear=states.intercept)
        return drawn, np.concatenate(logs)

    def places(self, names: Iterable[str]) -> list[int]:
        """Return where coefficients stand."""
        return [self.coefficients.index(name) for name in names]

    def log_ratio(self, model: SubModel, beta: Floats, variance: Floats) -> Floats:
        """Return log f / p_0 of (2), (n,), of coefficients (n, k) and variances (n,)."""
        named = self.places(self.named)
        seen = self.reference.log_density(named, beta[:, named], variance if self.spread else None)
        return self.log_density(model, beta, variance) - seen

    @staticmethod
    def shown(beta: Floats, variance: Floats, *, linear: bool) -> dict[str, Floats]:
        """Return draws by parameter."""
        if not linear:
            return {"coefficient": beta, "variance": variance}
        return {"coefficient": beta[:, :-1], "intercept": beta[:, -1], "variance": variance}


def regression_of(prior: LogPrior | Coefficients, constants: Constants) -> RegressionPrior:
    """Return a prior of a regression, resolved.

    Raises
    ------
    PriorError
        Where it names what is no parameter, a part is improper, or there are too many point masses.
    """
    linear = is_linear(constants)
    predictors = tuple(column.name for column in constants.columns[:-1])
    coefficients = (*predictors, *(("intercept",) if linear else ()))
    taken = [name for name in predictors if name in (*SPREADS, "intercept")]
    if taken:
        message = (
            f"prior {prior}: a predictor is called {taken[0]}, which names another parameter here: rename it"
        )
        raise PriorError(message)
    default: Any = FAMILIES[REGRESSION].default_prior(constants)
    reference = RegressionReference.of(default, len(constants.columns), linear=linear)
    parts: dict[str, OnLine] = {}
    if isinstance(prior, LogPrior):
        stated = (*prior.parameters, *(key for key, _, _ in prior.support))
        unknown = [name for name in stated if name not in (*coefficients, *SPREADS)]
        if unknown or set(SPREADS) <= set(stated):
            what = f"there is no {unknown[0]!r}" if unknown else "sd or variance can be named, not both"
            message = f"prior {prior}: {what}: name {', '.join((*coefficients, *SPREADS)[:8])}"
            raise PriorError(message)
        models: tuple[SubModel, ...] = (SubModel(values={}, log_chance=0.0),)
    else:
        stated = tuple(prior.parts(predictors, intercept=linear))
        for name, part in prior.parts(predictors, intercept=linear).items():
            parts[name] = OnLine.of(part, Line.LOGARITHM if name in SPREADS else Line.IDENTITY)
        models = _models(prior, parts)
    spread = next((name for name in SPREADS if name in stated), "")
    return RegressionPrior(
        prior=prior,
        reference=reference,
        coefficients=coefficients,
        named=tuple(name for name in coefficients if name in stated),
        spread=spread,
        parts=parts,
        models=models,
    )


def _models(prior: Coefficients, parts: Mapping[str, OnLine]) -> tuple[SubModel, ...]:
    """Return every combination of values that coefficients may be known to have."""
    choices = []
    for name, part in parts.items():
        if part.atoms and name in SPREADS:
            message = f"prior {prior}: {name} takes no point masses: state a narrow density in their place"
            raise PriorError(message)
        # Log chances of what is at no value stand in the densities.
        rest = [(name, None, 0.0)] if part.log_rest > -math.inf else []
        choices.append([*((name, value, log_chance) for value, log_chance in part.atoms), *rest])
    count = math.prod(map(len, choices))
    if count > _MOST_MODELS:
        message = (
            f"prior {prior}: its point masses make {count} sub-models, and there may be {_MOST_MODELS}: give "
            "fewer coefficients point masses, or a narrow density in their place, as Horseshoe"
        )
        raise PriorError(message)
    return tuple(
        SubModel(
            values={name: value for name, value, _ in chosen if value is not None},
            log_chance=sum(log_chance for _, _, log_chance in chosen),
        )
        for chosen in itertools.product(*choices)
    )


def _in_turn(n_states: int, size: int, rng: np.random.Generator) -> Any:
    """Return states at even distances, each as often as any other but for one."""
    return ((np.arange(size) + rng.random()) * n_states / size).astype(np.int64) % n_states


def log_density_of(prior: LogPrior, values: Mapping[str, Floats]) -> Floats:
    """Log densities (n,) of named parameters, (n,) each.

    Raises
    ------
    PriorError
        As ``LogPrior`` of probabilities.
    """
    names = tuple(values)
    return prior(np.stack([values[name] for name in names], axis=1), names)


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnsPrior:
    """A prior of named means, standard deviations and correlations.

    Attributes
    ----------
    means, of_covariance : tuple of int
        Columns whose mean, and whose part of the covariance, is named.
    kinds : tuple of str
        ``sd`` or ``variance`` of the latter; none where their correlations alone are.
    """

    prior: LogPrior
    reference: ColumnsReference
    columns: tuple[str, ...]
    means: tuple[int, ...]
    of_covariance: tuple[int, ...]
    kinds: tuple[str, ...]

    @classmethod
    def of(cls, prior: LogPrior, constants: Constants, family: Family) -> ColumnsPrior:
        """Return it, resolved.

        Raises
        ------
        PriorError
            Where it names what is no parameter, or standard deviations without their correlations.
        """
        columns = tuple(column.name for column in constants.columns)
        stated = dict.fromkeys((*prior.parameters, *(key for key, _, _ in prior.support)))
        pairs = {
            f"correlation[{columns[i]},{columns[j]}]": (min(i, j), max(i, j))
            for i, j in itertools.permutations(range(len(columns)), 2)
        }
        known = [f"{kind}[{name}]" for kind in ("mean", *SPREADS) for name in columns]
        unknown = [name for name in stated if name not in known and name not in pairs]
        if unknown:
            message = (
                f"prior {prior}: there is no {unknown[0]!r}: name mean[{columns[0]}], sd[{columns[0]}], "
                f"variance[{columns[0]}], correlation[{columns[0]},{columns[1]}], and those of other columns"
            )
            raise PriorError(message)
        spreads = {
            place: kind
            for place, name in enumerate(columns)
            for kind in SPREADS
            if f"{kind}[{name}]" in stated
        }
        correlated = {pairs[name] for name in stated if name in pairs}
        of_covariance = tuple(sorted({*spreads, *itertools.chain.from_iterable(correlated)}))
        whole = len(correlated) == math.comb(len(of_covariance), 2)
        both = sum(f"{kind}[{name}]" in stated for kind in SPREADS for name in columns) > len(spreads)
        if not whole or both or len(spreads) not in {0, len(of_covariance)}:
            message = (
                f"prior {prior}: of columns of which it names standard deviations or correlations it must "
                "name all correlations, and sd or variance of all or of none"
            )
            raise PriorError(message)
        default: Any = family.default_prior(constants)
        return cls(
            prior=prior,
            reference=ColumnsReference.of(default, len(columns)),
            columns=columns,
            means=tuple(place for place, name in enumerate(columns) if f"mean[{name}]" in stated),
            of_covariance=of_covariance,
            kinds=tuple(spreads[place] for place in of_covariance) if spreads else (),
        )

    def weigh(self, mixture: ConjugateMixture, rng: np.random.Generator) -> tuple[dict[str, Floats], Floats]:
        """Draw from a cell's mixture and return draws, by parameter, with logs of weights (1)."""
        states = mixture.conditional.at(_in_turn(mixture.n_states, DRAWS, rng))
        drawn = {name: values[0] for name, values in states.sample(1, rng).items()}
        return drawn, self.log_weight(drawn["mean"], drawn["variance"], drawn["covariance"])

    def log_weight(self, mean: Floats, variance: Floats, pairs: Floats) -> Floats:
        """Return logs of weights (1) of means and variances (n, d), and covariances of pairs."""
        sd = np.sqrt(variance)
        covariance = variance[:, :, None] * np.eye(len(self.columns))
        first, second = np.triu_indices(len(self.columns), 1)
        covariance[:, first, second] = covariance[:, second, first] = pairs
        values: dict[str, Floats] = {}
        for place, name in enumerate(self.columns):
            values |= {f"mean[{name}]": mean[:, place], f"sd[{name}]": sd[:, place]}
            values[f"variance[{name}]"] = variance[:, place]
        for i, j in itertools.permutations(range(len(self.columns)), 2):
            correlation = covariance[:, i, j] / sd[:, i] / sd[:, j]
            values[f"correlation[{self.columns[i]},{self.columns[j]}]"] = correlation
        log_weight = log_density_of(self.prior, values)
        log_weight = log_weight - self.reference.log_of_means(self.means, mean[:, list(self.means)])
        if self.of_covariance:
            part = covariance[:, list(self.of_covariance)][:, :, list(self.of_covariance)]
            log_weight = log_weight - self.reference.log_of_covariance(self.of_covariance, part, self.kinds)
        return log_weight
