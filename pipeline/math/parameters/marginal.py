"""What is known of one parameter, by the names that `scipy.stats` and ArviZ have made usual.

Of other names for the same things none is taken: one thing has one name, and the error says which.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from suffice.pipeline.terms.declaration.wording import not_a_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    from numpy.typing import ArrayLike

    from suffice.pipeline.math.distributions.intervals import Ends
    from suffice.pipeline.math.parameters.contrasts import Contrast
    from suffice.typing import Floats

DRAWS = 4000
"""Draws where nothing is asked for."""
MASS = 0.95
"""Of an interval, likewise."""

CALLED_HERE = {
    "std": "sd()",
    "var": "sd() ** 2",
    "variance": "sd() ** 2",
    "median": "quantile(0.5)",
    "ppf": "quantile(q)",
    "isf": "quantile(1 - q)",
    "percentile": "quantile(q)",
    "cdf": "probability(below=x)",
    "sf": "probability(above=x)",
    "pdf": "density(points)",
    "rvs": "sample(draws)",
    "samples": "sample(draws)",
    "hdi": 'interval(interval="highest-density")',
    "eti": 'interval(interval="central")',
    "confidence_interval": "interval(mass)",
    "describe": "summary()",
    "argmax": "highest(k)",
    "idxmax": "highest(k)",
    "nlargest": "highest(k)",
    "to_pandas": 'to_frame("pandas")',
    "to_polars": 'to_frame("polars")',
    "to_dataframe": "to_frame()",
    "to_xarray": "to_arviz()",
    "to_inference_data": "to_arviz()",
    **dict.fromkeys(("sel", "loc", "query", "xs"), "where= of the call that made it"),
    **dict.fromkeys(("ci", "conf_int", "confint", "credint"), "interval(mass)"),
    **dict.fromkeys(("prob", "p"), "probability(above=x)"),
    **dict.fromkeys(("draws", "draw", "random"), "sample(draws)"),
    **dict.fromkeys(("max", "rank", "sort_values"), "highest(k)"),
    **dict.fromkeys(("diff", "compare", "contrast"), "difference(first, second)"),
    **dict.fromkeys(("predict", "posterior_predictive", "sample_posterior_predictive"), "predictive(rows)"),
    **dict.fromkeys(("to_csv", "to_parquet", "to_dict", "to_json"), "to_frame().$()"),
    **dict.fromkeys(("hist", "plot_posterior", "kdeplot", "boxplot"), "plot()"),
    "plot_forest": 'plot("forest")',
    "head": "summary()[:5]",
    "shape": "n_groups cells; mean().shape",
    "values": "mean()",
    "rope": "probability(above=low, below=high)",
    "p_value": "probability(above=x)",
    "bayes_factor": "suffice.compare_priors",
}
"""What others call it, and what it is here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Marginal:
    """The marginal posterior of one parameter in every cell; ``posterior["mean"]``.

    Attributes
    ----------
    posterior : Posterior
        What it is the marginal of.
    parameter : str
        Its name.
    """

    posterior: Any
    parameter: str

    def __repr__(self) -> str:
        return f"<{self.parameter} of {self.posterior!r}>"

    if not TYPE_CHECKING:  # a type checker knows what there is

        def __getattr__(self, name: str) -> Any:
            raise not_a_name(type(self), name, CALLED_HERE)

    def mean(self) -> Floats:
        """Posterior means: (n_groups,), categories or components as a last axis."""
        means: Floats = self.posterior.mean(self.parameter)
        return means

    def sd(self) -> Floats:
        """Posterior standard deviations, shaped as ``mean``."""
        sds: Floats = self.posterior.sd(self.parameter)
        return sds

    def quantile(
        self,
        q: float | Sequence[float],
        *,
        draws: int = DRAWS,
        rng: np.random.Generator | int | None = None,
    ) -> Floats:
        """Posterior quantiles, shaped as ``mean``; of several q they are a last axis."""
        quantiles: Floats = self.posterior.quantile(self.parameter, q, draws=draws, rng=rng)
        return quantiles

    def interval(
        self,
        mass: float = MASS,
        *,
        interval: str | None = None,
        draws: int = DRAWS,
        rng: np.random.Generator | int | None = None,
    ) -> Ends:
        """Return both ends of credible intervals, each shaped as ``mean``."""
        ends: Ends = self.posterior.interval(mass, self.parameter, interval=interval, draws=draws, rng=rng)
        return ends

    def sample(self, draws: int = DRAWS, rng: np.random.Generator | int | None = None) -> Floats:
        """Return independent draws: (draws, n_groups), with the last axis of ``mean``."""
        drawn: Floats = self.posterior.sample(draws, rng)[self.parameter]
        return drawn

    def density(self, points: ArrayLike) -> Floats | None:
        """Return densities at points, as ``Posterior.density`` does."""
        density: Floats | None = self.posterior.density(self.parameter, points)
        return density

    def probability(
        self,
        *,
        above: float | None = None,
        below: float | None = None,
        draws: int = DRAWS,
        rng: np.random.Generator | int | None = None,
    ) -> Floats:
        """Return posterior probabilities of a range, shaped as ``mean``."""
        shares: Floats = self.posterior.probability(
            self.parameter, above=above, below=below, draws=draws, rng=rng
        )
        return shares

    def difference(self, first: Mapping[str, object], second: Mapping[str, object], **terms: Any) -> Contrast:
        """Compare cells: the first's minus the second's; see ``Posterior.difference``."""
        contrast: Contrast = self.posterior.difference(self.parameter, first, second, **terms)
        return contrast

    def ratio(self, first: Mapping[str, object], second: Mapping[str, object], **terms: Any) -> Contrast:
        """Compare cells: the first's over the second's; see ``Posterior.ratio``."""
        contrast: Contrast = self.posterior.ratio(self.parameter, first, second, **terms)
        return contrast
