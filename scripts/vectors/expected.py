"""What readers must find in the valid test vectors: tables, and posteriors with the digits they have."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from scripts.vectors.joint import COMPARED, MASS, rounded
from scripts.vectors.reference import (
    LEVELS,
    Marginal,
    category_marginals,
    conjugate_marginals,
    n_prior_of,
    sum_marginals,
)
from suffice.pipeline.ask.inference.posterior_terms import NOISE_AWARE, PLUG_IN
from suffice.pipeline.ask.posterior.cells import cells_of
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.math.priors.mixtures import SpreadGamma
from suffice.pipeline.terms.released.noisy_statistic import rows_alone

if TYPE_CHECKING:
    from scripts.vectors.specs import Asked
    from suffice.pipeline.ask.pooling.release import Release
    from suffice.pipeline.ask.posterior.posterior import Posterior

DIGITS = 10
"""Significant digits that are written; readers are held to eight."""
OF_SUMMATION, OF_ENGINE = 1e-8, 1e-3
"""How far a reader may be off: relative to the number, or in posterior standard deviations."""


def expected_document(release: Release, asked: tuple[Asked, ...]) -> dict[str, Any]:
    """Return a release's tables and posteriors."""
    return {
        "label": release.label,
        "release_id": release.release_id,
        "about": release.about.document(),
        "tables": {
            name: {
                "scale": str(statistic.plan.scale),
                "saturated": statistic.n_saturated,
                "rows": [_numbers(row) for row in release.table(name)],
            }
            for name, statistic in release.statistics.items()
        },
        "samples": {name: sample.table() for name, sample in release.sampled.items()},
        "posteriors": [posterior_document(release, question) for question in asked],
        **({"trees": trees} if (trees := [tree_document(release, name) for name in release.trees]) else {}),
    }


def tree_document(release: Release, name: str) -> dict[str, Any]:
    """Return what is known of a tree's nodes, in the column's unit, at the first key of every other group."""
    levels = release.trees[name]
    groups = release.plan_of(f"{name}.{levels[-1]}").groups
    where = {column: str(domain[0]) for column, domain in groups.items() if column != levels[-1]}
    tree = release.tree(name, where)
    return {
        "tree": name,
        "where": where,
        "mass": MASS,
        "tolerance": COMPARED,
        "log_evidence": rounded(tree.log_evidence),
        "rows": [{**row, "mean": rounded(row["mean"]), "sd": rounded(row["sd"])} for row in tree.table(MASS)],
    }


def posterior_document(release: Release, asked: Asked) -> dict[str, Any]:
    """Return one posterior: how it is asked for, its priors in full, and its numbers."""
    arguments: dict[str, Any] = dict(asked.arguments)
    posterior = release.posterior(asked.statistic, **arguments)
    marginals, rule = _marginals(release, asked, posterior)
    return {
        "statistic": asked.statistic,
        "family": posterior.family,
        "arguments": asked.arguments,
        "method": posterior.method,
        "prior": str(posterior.prior),
        "n_prior": None if posterior.n_prior is None else str(posterior.n_prior),
        "clipping_modelled": posterior.models_clipping is not None and bool(posterior.models_clipping.any()),
        "levels": list(LEVELS),
        "tolerance": rule,
        "cells": [
            {
                **{column: keys[cell] for column, keys in posterior.groups.items()},
                "parameters": {name: _stated(laws[cell]) for name, laws in marginals.items()},
            }
            for cell in range(posterior.n_groups)
        ],
    }


def _marginals(
    release: Release, asked: Asked, posterior: Posterior
) -> tuple[dict[str, list[Any]], dict[str, Any]]:
    """Return marginals by parameter and cell, and how far a reader may be from them."""
    exact = {"relative": OF_SUMMATION}
    statistic = cells_of(release.statistic(asked.statistic), None)
    n_prior = asked.arguments.get("n_prior")
    names = posterior.parameters
    clipped = posterior.models_clipping is not None and posterior.models_clipping.any()
    if posterior.method == NOISE_AWARE and not clipped:
        rows = rows_alone(statistic)
        if FAMILIES[posterior.family].latent is not None and posterior.design_effect is None:
            # Of a rate that is spread over scales readers may lose a part of a far tail: numbers are exact.
            rule = {"sds": OF_ENGINE} if isinstance(posterior.prior, SpreadGamma) else exact
            return {names[0]: sum_marginals(rows, posterior.prior, n_prior)}, rule
        if posterior.family == "categorical":
            return {names[0]: category_marginals(rows, posterior.prior, n_prior)}, exact
    if posterior.method == PLUG_IN and posterior.family not in {"normal", "lognormal"}:
        one_number = posterior.mean(names[0]).ndim == 1 and len(names) == 1
        if one_number and hasattr(posterior.distribution, "at"):
            conjugate = conjugate_marginals(posterior.distribution, names[0], posterior.n_groups)
            return {names[0]: conjugate}, exact
    means_alone = posterior.method == PLUG_IN
    levels = () if means_alone else LEVELS
    documents: dict[str, list[Any]] = {}
    for name in names:
        mean, sd = posterior.mean(name), posterior.sd(name)
        ends = [posterior.quantile(name, level, rng=1) for level in levels]
        documents[name] = [
            _nested(mean[cell], sd[cell], [end[cell] for end in ends]) for cell in range(posterior.n_groups)
        ]
    return documents, exact if means_alone else {"sds": OF_ENGINE}


def _nested(mean: Any, sd: Any, ends: list[Any]) -> Any:
    if getattr(mean, "ndim", 0):
        return [_nested(mean[entry], sd[entry], [end[entry] for end in ends]) for entry in range(len(mean))]
    return Marginal(float(mean), float(sd), tuple(map(float, ends)))


def _stated(marginal: Any) -> Any:
    if isinstance(marginal, list):
        return [_stated(entry) for entry in marginal]
    return {
        "mean": _rounded(marginal.mean),
        "sd": _rounded(marginal.sd),
        **({"quantiles": [_rounded(end) for end in marginal.quantiles]} if marginal.quantiles else {}),
    }


def _numbers(row: dict[str, Any]) -> dict[str, Any]:
    return {key: value if not isinstance(value, float) else float(repr(value)) for key, value in row.items()}


def _rounded(number: float) -> float | None:
    return float(f"{number:.{DIGITS}g}") if math.isfinite(number) else None


__all__ = ["expected_document", "n_prior_of", "posterior_document"]
