"""Release differentially private sufficient statistics once; draw posteriors from them for ever.

A consumer starts with :func:`open_release` and :meth:`Release.posterior`; a data owner with :func:`spec` or
:func:`load_spec`, :func:`grant` and :func:`release`. Names load when they are first used: importing the
package imports neither NumPy nor anything heavier.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from suffice.auditing.audit import Audit, audit
    from suffice.cataloguing.catalogue import catalogue
    from suffice.errors import SufficeError
    from suffice.pipeline.ask.batches.open_tree import open_tree
    from suffice.pipeline.ask.borrowing.pooled_posterior import PooledPosterior
    from suffice.pipeline.ask.borrowing.pooling import Pooling
    from suffice.pipeline.ask.borrowing.walk import Walk
    from suffice.pipeline.ask.calibration.calibrate import Calibration, calibrate
    from suffice.pipeline.ask.calibration.pooled_calibration import PooledCalibration
    from suffice.pipeline.ask.judging.smoothness import smoothness
    from suffice.pipeline.ask.models.imputations import CombinedEstimate, combine_imputations
    from suffice.pipeline.ask.planning.beside_sample import beside_sample
    from suffice.pipeline.ask.planning.divided_plan import DividedPlan, divided_plan
    from suffice.pipeline.ask.planning.smallest_loss import smallest_loss
    from suffice.pipeline.ask.pooling.adopted import AdoptedRelease, adopt
    from suffice.pipeline.ask.pooling.comparison import compare, compare_pooled, compare_priors
    from suffice.pipeline.ask.pooling.pool import pool
    from suffice.pipeline.ask.pooling.quantile_posterior import QuantilePosterior, quantile_posterior
    from suffice.pipeline.ask.pooling.release import Release
    from suffice.pipeline.ask.pooling.roll_up import roll_up
    from suffice.pipeline.ask.pooling.series import Series
    from suffice.pipeline.ask.pooling.statistic import Statistic
    from suffice.pipeline.ask.posterior.counts_likelihood import CountsLikelihood
    from suffice.pipeline.ask.posterior.likelihood import Likelihood
    from suffice.pipeline.ask.posterior.likelihood_reading import read_likelihood
    from suffice.pipeline.ask.posterior.likelihood_tables import LikelihoodTables
    from suffice.pipeline.ask.posterior.moments_likelihood import MomentsLikelihood
    from suffice.pipeline.ask.posterior.posterior import Posterior
    from suffice.pipeline.families.shared.smoothness import Smoothness
    from suffice.pipeline.math.distributions.dirichlet import Beta, Dirichlet
    from suffice.pipeline.math.distributions.gamma import Gamma, InverseGamma
    from suffice.pipeline.math.distributions.normal import Normal
    from suffice.pipeline.math.distributions.normal_inverse_gamma import (
        NormalInverseGamma,
        NormalInverseGammaRegression,
    )
    from suffice.pipeline.math.distributions.normal_inverse_wishart import NormalInverseWishart
    from suffice.pipeline.math.distributions.spread_scales import (
        SpreadNormalInverseGammaRegression,
        SpreadNormalInverseWishart,
    )
    from suffice.pipeline.math.distributions.weighted_sum import WeightedSum
    from suffice.pipeline.math.priors.by_name import Independent, JointDensity
    from suffice.pipeline.math.priors.coefficients import Coefficients
    from suffice.pipeline.math.priors.composed import Point, Points, Truncated
    from suffice.pipeline.math.priors.density import Density
    from suffice.pipeline.math.priors.effects import Horseshoe, SpikeAndSlab
    from suffice.pipeline.math.priors.log_prior import LogPrior
    from suffice.pipeline.math.priors.mixtures import Mixture, ScaleMixture, SpreadGamma, SpreadInverseGamma
    from suffice.pipeline.math.priors.record_count import Reciprocal, Uniform
    from suffice.pipeline.spec.building import spec
    from suffice.pipeline.spec.entries import (
        bayesian_network,
        bernoulli,
        binomial,
        categorical,
        contingency,
        exponential,
        gamma,
        geometric,
        histogram,
        laplace,
        linear_regression,
        lognormal,
        markov_chain,
        multivariate_normal,
        naive_bayes,
        negative_binomial,
        normal,
        normal_known_mean,
        normal_known_variance,
        pareto,
        poisson,
        rows_per_unit,
        weibull,
    )
    from suffice.pipeline.spec.plan import Plan
    from suffice.pipeline.spec.plan import compile_plan as plan
    from suffice.pipeline.spec.spec import Spec, load_spec
    from suffice.publishing.publish import publish
    from suffice.releasing.backfill import backfill
    from suffice.releasing.describing import describe
    from suffice.releasing.gap_report import status
    from suffice.releasing.granting import grant
    from suffice.releasing.rehearsal import rehearse
    from suffice.releasing.release import data_digest
    from suffice.releasing.release import run_release as release
    from suffice.storage.publications.publication import Publication
    from suffice.storage.publications.publication_store import open_publication
    from suffice.storage.releases.adopted_files import open_adopted
    from suffice.storage.releases.release_series import open_series
    from suffice.storage.releases.release_store import open_release

__version__ = "0.1.0"

__all__ = [
    "AdoptedRelease",
    "Audit",
    "Beta",
    "Calibration",
    "Coefficients",
    "CombinedEstimate",
    "CountsLikelihood",
    "Density",
    "Dirichlet",
    "DividedPlan",
    "Gamma",
    "Horseshoe",
    "Independent",
    "InverseGamma",
    "JointDensity",
    "Likelihood",
    "LikelihoodTables",
    "LogPrior",
    "Mixture",
    "MomentsLikelihood",
    "Normal",
    "NormalInverseGamma",
    "NormalInverseGammaRegression",
    "NormalInverseWishart",
    "Plan",
    "Point",
    "Points",
    "PooledCalibration",
    "PooledPosterior",
    "Pooling",
    "Posterior",
    "Publication",
    "QuantilePosterior",
    "Reciprocal",
    "Release",
    "ScaleMixture",
    "Series",
    "Smoothness",
    "Spec",
    "SpikeAndSlab",
    "SpreadGamma",
    "SpreadInverseGamma",
    "SpreadNormalInverseGammaRegression",
    "SpreadNormalInverseWishart",
    "Statistic",
    "SufficeError",
    "Truncated",
    "Uniform",
    "Walk",
    "WeightedSum",
    "__version__",
    "adopt",
    "audit",
    "backfill",
    "bayesian_network",
    "bernoulli",
    "beside_sample",
    "binomial",
    "calibrate",
    "catalogue",
    "categorical",
    "combine_imputations",
    "compare",
    "compare_pooled",
    "compare_priors",
    "contingency",
    "data_digest",
    "describe",
    "divided_plan",
    "exponential",
    "gamma",
    "geometric",
    "grant",
    "histogram",
    "laplace",
    "linear_regression",
    "load_spec",
    "lognormal",
    "markov_chain",
    "multivariate_normal",
    "naive_bayes",
    "negative_binomial",
    "normal",
    "normal_known_mean",
    "normal_known_variance",
    "open_adopted",
    "open_publication",
    "open_release",
    "open_series",
    "open_tree",
    "pareto",
    "plan",
    "poisson",
    "pool",
    "publish",
    "quantile_posterior",
    "read_likelihood",
    "rehearse",
    "release",
    "roll_up",
    "rows_per_unit",
    "smallest_loss",
    "smoothness",
    "spec",
    "status",
    "weibull",
]

_HOMES = {
    "Audit": ("suffice.auditing.audit", "Audit"),
    "audit": ("suffice.auditing.audit", "audit"),
    "SufficeError": ("suffice.errors", "SufficeError"),
    "Calibration": ("suffice.pipeline.ask.calibration.calibrate", "Calibration"),
    "calibrate": ("suffice.pipeline.ask.calibration.calibrate", "calibrate"),
    "catalogue": ("suffice.cataloguing.catalogue", "catalogue"),
    "Plan": ("suffice.pipeline.spec.plan", "Plan"),
    "plan": ("suffice.pipeline.spec.plan", "compile_plan"),
    "AdoptedRelease": ("suffice.pipeline.ask.pooling.adopted", "AdoptedRelease"),
    "adopt": ("suffice.pipeline.ask.pooling.adopted", "adopt"),
    "open_adopted": ("suffice.storage.releases.adopted_files", "open_adopted"),
    "compare": ("suffice.pipeline.ask.pooling.comparison", "compare"),
    "compare_pooled": ("suffice.pipeline.ask.pooling.comparison", "compare_pooled"),
    "compare_priors": ("suffice.pipeline.ask.pooling.comparison", "compare_priors"),
    "Smoothness": ("suffice.pipeline.families.shared.smoothness", "Smoothness"),
    "smoothness": ("suffice.pipeline.ask.judging.smoothness", "smoothness"),
    "pool": ("suffice.pipeline.ask.pooling.pool", "pool"),
    "Series": ("suffice.pipeline.ask.pooling.series", "Series"),
    "Statistic": ("suffice.pipeline.ask.pooling.statistic", "Statistic"),
    "roll_up": ("suffice.pipeline.ask.pooling.roll_up", "roll_up"),
    **{
        name: ("suffice.pipeline.ask.models.imputations", name)
        for name in ("CombinedEstimate", "combine_imputations")
    },
    "Density": ("suffice.pipeline.math.priors.density", "Density"),
    "LogPrior": ("suffice.pipeline.math.priors.log_prior", "LogPrior"),
    "Coefficients": ("suffice.pipeline.math.priors.coefficients", "Coefficients"),
    **{prior: ("suffice.pipeline.math.priors.effects", prior) for prior in ("Horseshoe", "SpikeAndSlab")},
    "WeightedSum": ("suffice.pipeline.math.distributions.weighted_sum", "WeightedSum"),
    **{prior: ("suffice.pipeline.math.priors.composed", prior) for prior in ("Point", "Points", "Truncated")},
    **{prior: ("suffice.pipeline.math.priors.by_name", prior) for prior in ("Independent", "JointDensity")},
    **{
        prior: ("suffice.pipeline.math.priors.mixtures", prior)
        for prior in ("Mixture", "ScaleMixture", "SpreadGamma", "SpreadInverseGamma")
    },
    "Likelihood": ("suffice.pipeline.ask.posterior.likelihood", "Likelihood"),
    "MomentsLikelihood": ("suffice.pipeline.ask.posterior.moments_likelihood", "MomentsLikelihood"),
    "LikelihoodTables": ("suffice.pipeline.ask.posterior.likelihood_tables", "LikelihoodTables"),
    "CountsLikelihood": ("suffice.pipeline.ask.posterior.counts_likelihood", "CountsLikelihood"),
    "read_likelihood": ("suffice.pipeline.ask.posterior.likelihood_reading", "read_likelihood"),
    "Pooling": ("suffice.pipeline.ask.borrowing.pooling", "Pooling"),
    "PooledCalibration": ("suffice.pipeline.ask.calibration.pooled_calibration", "PooledCalibration"),
    "Walk": ("suffice.pipeline.ask.borrowing.walk", "Walk"),
    "PooledPosterior": ("suffice.pipeline.ask.borrowing.pooled_posterior", "PooledPosterior"),
    "Posterior": ("suffice.pipeline.ask.posterior.posterior", "Posterior"),
    "Release": ("suffice.pipeline.ask.pooling.release", "Release"),
    "spec": ("suffice.pipeline.spec.building", "spec"),
    **{
        builder: ("suffice.pipeline.spec.entries", builder)
        for builder in (
            "bayesian_network",
            "bernoulli",
            "binomial",
            "categorical",
            "contingency",
            "exponential",
            "gamma",
            "geometric",
            "histogram",
            "laplace",
            "linear_regression",
            "lognormal",
            "markov_chain",
            "multivariate_normal",
            "naive_bayes",
            "negative_binomial",
            "normal",
            "normal_known_mean",
            "normal_known_variance",
            "pareto",
            "poisson",
            "rows_per_unit",
            "weibull",
        )
    },
    "Spec": ("suffice.pipeline.spec.spec", "Spec"),
    "load_spec": ("suffice.pipeline.spec.spec", "load_spec"),
    "rehearse": ("suffice.releasing.rehearsal", "rehearse"),
    "release": ("suffice.releasing.release", "run_release"),
    "data_digest": ("suffice.releasing.release", "data_digest"),
    "describe": ("suffice.releasing.describing", "describe"),
    "backfill": ("suffice.releasing.backfill", "backfill"),
    "status": ("suffice.releasing.gap_report", "status"),
    "grant": ("suffice.releasing.granting", "grant"),
    "DividedPlan": ("suffice.pipeline.ask.planning.divided_plan", "DividedPlan"),
    "divided_plan": ("suffice.pipeline.ask.planning.divided_plan", "divided_plan"),
    "beside_sample": ("suffice.pipeline.ask.planning.beside_sample", "beside_sample"),
    "QuantilePosterior": ("suffice.pipeline.ask.pooling.quantile_posterior", "QuantilePosterior"),
    "quantile_posterior": ("suffice.pipeline.ask.pooling.quantile_posterior", "quantile_posterior"),
    "smallest_loss": ("suffice.pipeline.ask.planning.smallest_loss", "smallest_loss"),
    "publish": ("suffice.publishing.publish", "publish"),
    "Publication": ("suffice.storage.publications.publication", "Publication"),
    "open_publication": ("suffice.storage.publications.publication_store", "open_publication"),
    "open_tree": ("suffice.pipeline.ask.batches.open_tree", "open_tree"),
    "open_series": ("suffice.storage.releases.release_series", "open_series"),
    "open_release": ("suffice.storage.releases.release_store", "open_release"),
    "Beta": ("suffice.pipeline.math.distributions.dirichlet", "Beta"),
    "Dirichlet": ("suffice.pipeline.math.distributions.dirichlet", "Dirichlet"),
    "Gamma": ("suffice.pipeline.math.distributions.gamma", "Gamma"),
    "InverseGamma": ("suffice.pipeline.math.distributions.gamma", "InverseGamma"),
    "Normal": ("suffice.pipeline.math.distributions.normal", "Normal"),
    "NormalInverseGamma": ("suffice.pipeline.math.distributions.normal_inverse_gamma", "NormalInverseGamma"),
    "NormalInverseGammaRegression": (
        "suffice.pipeline.math.distributions.normal_inverse_gamma",
        "NormalInverseGammaRegression",
    ),
    "SpreadNormalInverseGammaRegression": (
        "suffice.pipeline.math.distributions.spread_scales",
        "SpreadNormalInverseGammaRegression",
    ),
    "SpreadNormalInverseWishart": (
        "suffice.pipeline.math.distributions.spread_scales",
        "SpreadNormalInverseWishart",
    ),
    "NormalInverseWishart": (
        "suffice.pipeline.math.distributions.normal_inverse_wishart",
        "NormalInverseWishart",
    ),
    **{prior: ("suffice.pipeline.math.priors.record_count", prior) for prior in ("Reciprocal", "Uniform")},
}

_GUESSES = {
    "gaussian": "suffice.normal",
    "mean": "suffice.normal",
    "multinomial": "suffice.categorical",
    **dict.fromkeys(("open", "read", "load", "load_release", "read_release"), "suffice.open_release"),
    **dict.fromkeys(("create_account", "account", "budget"), "suffice.grant"),
    "run": "suffice.release",
    **dict.fromkeys(("list_releases", "releases", "ls", "list"), "`suffice list` in a terminal"),
    **dict.fromkeys(("summary", "summarize", "to_frame"), "release[NAME].posterior().$()"),
    "posterior": "release[NAME].posterior()",
    "plot": "release[NAME].posterior().plot()",
    **dict.fromkeys(("concat", "combine", "merge"), "suffice.pool"),
    **dict.fromkeys(("rubin", "rubins_rules"), "suffice.combine_imputations"),
}
"""What is meant by names that others guess; a dollar stands for the name."""


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        hint = f": {_GUESSES[name].replace('$', name)} is meant" if name in _GUESSES else ""
        message = f"module 'suffice' has no attribute {name!r}{hint}"
        raise AttributeError(message)
    module, attribute = _HOMES[name]
    value = getattr(importlib.import_module(module), attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
