"""The generative cases of families as models: posteriors can be calibrated in them."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.pipeline.ask.calibration.simulated_release import GenerativeModel, generative_model_of
from suffice.pipeline.ask.inference.posterior_terms import NOISE_AWARE, PLUG_IN
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.math.priors.record_count import Uniform
from suffice.pipeline.spec.plan import compile_plan
from suffice.pipeline.spec.spec import load_spec
from suffice.pipeline.terms.declaration.fields import canonical
from suffice.pipeline.terms.statistics.measure import MomentSums
from suffice.pipeline.terms.statistics.sensitivity import Constants
from suffice.pipeline.terms.statistics.simulated_sums import SimulatedSums
from support.entries import counting_nulls, entry_of, privacy_of
from support.noisy import noisy_statistic

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from suffice.pipeline.math.priors.record_count import NPrior
    from suffice.pipeline.terms.statistics.measure import Measure

MOST_CLIPPED, FEW_CLIPPED = 1e-5, 10
"""The share of records, and the number of them in a data set of a rare variance, that decide nothing.

Of normal columns 1.3e-7 are clipped on average, but where any is, a few are: of 2 million data sets drawn one
had a share of 3 %, five one above 0.4 %.
"""


ORIGIN = (
    {**FAMILIES["linear_regression"].generative_case.entry, "intercept": "false"},
    "NormalInverseGammaRegression(0.5, 1, 4, 0.3)",
)
"""Conditions of a regression without an intercept."""


def most_clipped(simulations: int, n: int) -> float:
    """Return the share of clipped records below which clipping decides nothing, of data sets of n rows."""
    return MOST_CLIPPED + FEW_CLIPPED / (simulations * n)


class EndlessModel(GenerativeModel):
    """A generative model whose records are summed as though the bounds had no end.

    Families of several columns are judged in it: predictors have a prior as wide as their bounds.
    """

    def sums(
        self, truth: NDArray[np.float64], sizes: NDArray[np.int64], rng: np.random.Generator
    ) -> SimulatedSums:
        """Draw data sets, and sum them without clipping."""
        free = super().sums(truth, sizes, rng).unclipped
        return SimulatedSums(clipped=free, unclipped=free, n_clipped=0)


def generative_model_for(
    family: str,
    *,
    n: int,
    epsilon: str = "1",
    rho: str | None = None,
    public_n: bool = False,
    method: str = NOISE_AWARE,
    n_prior: NPrior | None = None,
    conditions: tuple[dict[str, Any], str | None] | None = None,
) -> GenerativeModel:
    """Return the model of a release of one statistic; a private N is uniform on ``0..2 n`` by default.

    Its plan is in rho where that is stated.
    `conditions` are the keys of its entry and a prior, those of the family's generative case by default.
    """
    case = FAMILIES[family].generative_case
    keys, prior = conditions or (dict(case.entry), case.prior)
    entry = entry_of(family, keys)
    spec = load_spec(
        {
            "name": "simulated",
            "dataset": "simulated",
            "source": {"parquet": "rows/"},
            "privacy": privacy_of(family, epsilon=epsilon, public_n=public_n, rho=rho),
            "statistics": {"measured": counting_nulls(entry) if public_n else entry},
        }
    )
    (plan,) = compile_plan(spec).statistics
    statistic = noisy_statistic(
        plan, np.zeros((1, len(plan.components)), dtype=int), public_n=n if public_n else None
    )
    given = None if public_n else n_prior or Uniform(0, 2 * n)
    released = canonical(spec.statistics["measured"])
    assert isinstance(released, dict)
    generative_model = generative_model_of(statistic, released, method, prior, given)
    if not isinstance(FAMILIES[family].measure(generative_model.entry), MomentSums):
        return generative_model
    return EndlessModel(
        **{
            field.name: getattr(generative_model, field.name)
            for field in dataclasses.fields(generative_model)
        }
    )


def families_measured_by(kind: type[Measure]) -> list[str]:
    """Families whose generative case is summed in this way."""
    models = {name: generative_model_for(name, n=1, method=PLUG_IN) for name in FAMILIES}
    return [name for name, model in models.items() if isinstance(model.family.measure(model.entry), kind)]


def noise_aware_families(*, by_mcmc: bool = False) -> list[str]:
    """Families whose posteriors can be calibrated, and of which data can be simulated; by MCMC or not."""
    return [
        name
        for name, family in FAMILIES.items()
        if family.noise_aware and family.simulate and family.by_mcmc(Constants()) == by_mcmc
    ]
