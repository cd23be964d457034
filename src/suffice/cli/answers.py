"""What answers about releases have in common, as commands print them with ``--json``."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, NotRequired, TypeAlias, TypedDict, cast

from suffice.cli.output import model_source
from suffice.pipeline.ask.posterior.notes import conflict_lines, plug_in_lines
from suffice.pipeline.terms.declaration.documents import Count, CountOrNone, Measured, Rows, one_of

if TYPE_CHECKING:
    from suffice.data_files.source import Provenance
    from suffice.pipeline.ask.pooling.release import Release
    from suffice.pipeline.ask.posterior.posterior import Posterior

INTERVAL: dict[str, Any] = {"mean": Measured, "sd": Measured, "lower": Measured, "upper": Measured}
Summaries: TypeAlias = Annotated[list[dict[str, Any]], Rows(parameter=str, **INTERVAL)]
DesignEffects: TypeAlias = Annotated[list[dict[str, Any]], Rows(design_effect=float)]
IntervalKind: TypeAlias = Annotated[str, one_of("central", "highest-density")]


class Clipping(TypedDict):
    """What clipping did, cell by cell."""

    is_warned: bool
    cells: Annotated[
        list[dict[str, Any]], Rows(share=Measured, bias=Measured, is_modelled=bool, is_warned=bool)
    ]


class Sampled(TypedDict):
    """How a posterior was drawn, where draws are not independent."""

    sampler: str
    chains: NotRequired[Count]
    draws: Count
    largest_r_hat: NotRequired[Measured]
    fewest_effective_draws: float
    largest_pareto_k: NotRequired[Measured]
    not_reconciled: NotRequired[str]


class NotReconciled(TypedDict):
    """Of a network whose draws are independent: tables that its posterior does not use."""

    not_reconciled: str


Diagnostics: TypeAlias = Sampled | NotReconciled

HEAD = (
    "source release statistic=posterior.statistic family=posterior.family rows_of=posterior.rows_of "
    "method=posterior.method plug_in? prior n_prior predictor_prior=posterior.predictor_prior"
)
FOOT = "draws seed diagnostics? conflicts"
OF_A_MODEL = f"{HEAD} mass interval {FOOT}"
"""The keys of an answer of a model with intervals, but for those of the answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Numbers of one posterior, and what they rest on.

    Attributes
    ----------
    source : Provenance
    posterior : Posterior
    draws : int
        That the numbers are of.
    seed : int or None
    """

    source: Provenance
    posterior: Posterior
    draws: Count
    seed: CountOrNone

    @property
    def prior(self) -> str:
        """The prior of the parameters."""
        return str(self.posterior.prior)

    @property
    def n_prior(self) -> str | None:
        """The prior of N."""
        return None if self.posterior.n_prior is None else str(self.posterior.n_prior)

    @property
    def plug_in(self) -> list[str] | None:
        """What a plug-in posterior leaves out of account; None of any other."""
        return plug_in_lines(self.posterior) or None

    @property
    def diagnostics(self) -> Diagnostics | None:
        """How it was drawn; None where draws are independent."""
        return diagnostics_of(self.posterior)

    @property
    def conflicts(self) -> list[str]:
        """Where released quantities and priors disagree."""
        return conflict_lines(self.posterior)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelAnswer(Answer):
    """An answer of a model of one release, with intervals."""

    release: str
    mass: float
    interval: IntervalKind


class AnswerTerms(TypedDict):
    """The arguments that all answers of models have."""

    source: Provenance
    release: str
    posterior: Posterior
    mass: float
    interval: str
    draws: int
    seed: int | None


MODEL = "posterior summaries of a model"


def answer_terms(
    opened: Release, posterior: Posterior, *, mass: float, draws: int, seed: int | None
) -> AnswerTerms:
    """Return what an answer of a model of one release rests on."""
    from suffice.pipeline.math.distributions.interval_kinds import CENTRAL

    return {
        "source": model_source(MODEL, [opened], posterior, mass=mass, draws=draws, seed=seed),
        "release": opened.label,
        "posterior": posterior,
        "mass": mass,
        "interval": CENTRAL,
        "draws": draws,
        "seed": seed,
    }


def diagnostics_of(posterior: Posterior) -> Diagnostics | None:
    """Return how a posterior was drawn; None where draws are independent."""
    return cast("Diagnostics", posterior.diagnostics) or None


def design_effects_of(posterior: Posterior) -> DesignEffects | None:
    """Return design effects cell by cell; None where rows are taken for independent."""
    if posterior.design_effect is None:
        return None
    return [
        {**{column: keys[cell] for column, keys in posterior.groups.items()}, "design_effect": effect}
        for cell, effect in enumerate(posterior.design_effect.tolist())
    ]


def clipping_of(posterior: Posterior) -> Clipping | None:
    """Return clipping cell by cell; None where nothing is clipped or it is not known."""
    clipping = posterior.clipping
    if clipping is None:
        return None
    columns = (clipping.share, clipping.bias, clipping.is_modelled, clipping.is_warned)
    cells = zip(*(column.tolist() for column in columns), strict=True)
    return {
        "is_warned": bool(clipping.is_warned.any()),
        "cells": [
            {
                **{column: keys[cell] for column, keys in posterior.groups.items()},
                "share": share if math.isfinite(share) else None,
                "bias": bias if math.isfinite(bias) else None,
                "is_modelled": is_modelled,
                "is_warned": is_warned,
            }
            for cell, (share, bias, is_modelled, is_warned) in enumerate(cells)
        ],
    }
