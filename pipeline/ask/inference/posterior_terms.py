"""The terms of a posterior: what a caller may say of it, with defaults, and the words that explain it.

Python functions take them as keywords, commands as options, flows as fields of a form: all of them read this
table. A new term is a field here, a keyword in :class:`FurtherTerms`, and what uses it; a term that changes a
published answer is also a field of ``Request``, which is the one place where terms are written down.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict, get_args

from suffice.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import TypeVar

    from suffice.pipeline.ask.inference.chosen_priors import AnyPrior
    from suffice.pipeline.math.distributions.distribution import Prior
    from suffice.pipeline.math.priors.record_count import NPrior

    _Function = TypeVar("_Function", bound=Callable[..., Any])

Method: TypeAlias = Literal["noise-aware", "plug-in"]
"""The exact posterior given the noise, or the one that takes noisy statistics for exact."""
Clipping: TypeAlias = Literal["by-evidence", "modelled", "ignored"]
"""Clipped records are modelled where the release counts them, wherever it can matter, or nowhere."""
WithinUnit: TypeAlias = Literal["modelled", "ignored"]
"""Of what rows of one unit have in common."""

METHODS: tuple[Method, ...] = get_args(Method)
NOISE_AWARE, PLUG_IN = METHODS
WAYS_OF_CLIPPING: tuple[Clipping, ...] = get_args(Clipping)
BY_EVIDENCE, MODELLED, IGNORED = WAYS_OF_CLIPPING
WAYS_OF_UNITS: tuple[WithinUnit, ...] = get_args(WithinUnit)


class SharedTerms(TypedDict, total=False):
    """Keywords of every function that makes a posterior, beside the prior."""

    n_prior: NPrior | int | str | None
    where: Mapping[str, object] | None
    clipping: str
    predictor_prior: Prior | str | None


class FurtherTerms(SharedTerms, total=False):
    """Keywords of functions that make a posterior by a method of the caller's choice."""

    method: str
    within_unit: str


@dataclass(frozen=True, slots=True)
class Explained:
    """What a form and an option say of a term.

    Attributes
    ----------
    title : str
        Of its field in a form.
    text : str
        One sentence, for the form and for ``--help``.
    choices : tuple of str
        Its values, where they can be listed.
    example : object
    """

    title: str
    text: str
    choices: tuple[str, ...] = ()
    example: object = None


def _said(title: str, text: str, **more: Any) -> Mapping[str, Explained]:
    return {"explained": Explained(title=title, text=text, **more)}


@dataclass(frozen=True, slots=True, kw_only=True)
class PosteriorTerms:
    """How a posterior is to be worked out.

    Attributes
    ----------
    prior : prior, str or None
        Of the parameters; the family's default where it is None.
    n_prior : NPrior, int, str or None
        Of a private number of records; by default proportional to 1 / (N + 1) up to the release's bound.
    where : mapping or None
        Keep the cells with these group keys.
    method : {"noise-aware", "plug-in"}
        The exact posterior given the noise, or the conjugate update that takes projected statistics for
        exact and is not calibrated. One is never silently used for the other.
    clipping : {"by-evidence", "modelled", "ignored"}
        What parameters are of. ``ignored``: of records as the public bounds leave them; the prior is then
        restricted to what such records can have. ``modelled``: of records before clipping, as far as the
        model is right about what lies beyond the bounds, in every cell in which that can matter (see
        ``clipped_cells``); of Poisson, geometric and negative binomial counts that is exact, of exponential,
        gamma, Weibull, Pareto and Laplace columns and of normal ones with a known mean as exact as a lattice
        of 64 values a record is, of normal and lognormal columns as four moments of a clipped record are; of
        others, and of several columns, it is refused. ``by-evidence``: modelled in cells in
        which the release counts records that clipping moved, beyond what its noise does alone, and ignored
        in all others.
    within_unit : {"modelled", "ignored"}
        Whether noise-aware posteriors of statistics released with ``within_unit: true`` are widened by the
        design effect that their units tell, which is approximate, and then take no record for clipped; or
        rows of one unit are taken for independent, as in all other statistics and in plug-in posteriors.
    predictor_prior : Prior, str or None
        Of the mean and the covariance of a regression's predictors, whose rows are modelled as normal:
        ``NormalInverseWishart`` or ``SpreadNormalInverseWishart``, which is the default.

    Raises
    ------
    UsageError
        Where a way of clipping, of units or a method does not exist, or a prior has no use under it.
    """

    prior: AnyPrior = field(
        default=None, metadata=_said("Prior", 'As "Beta(1, 9)" or "HalfCauchy(2)"; default: the family\'s.')
    )
    n_prior: NPrior | int | str | None = field(
        default=None,
        metadata=_said("Prior of N", 'Of a latent number of records: "Uniform(0, 2000)" or 500.'),
    )
    where: Mapping[str, object] | None = field(
        default=None,
        metadata=_said("Where", "Keep the cells with these group keys.", example={"origin": "JFK"}),
    )
    method: str = field(
        default=NOISE_AWARE,
        metadata=_said(
            "Method",
            "plug-in takes the noisy statistics for exact, and is not calibrated.",
            choices=METHODS,
        ),
    )
    clipping: str = field(
        default=BY_EVIDENCE,
        metadata=_said(
            "Clipping",
            "Of values beyond the bounds: modelled where the release counts them, or wherever it matters.",
            choices=WAYS_OF_CLIPPING,
        ),
    )
    within_unit: str = field(
        default=MODELLED,
        metadata=_said(
            "Rows of one unit",
            "Of what rows of one unit have in common: statistics with within_unit: true.",
            choices=WAYS_OF_UNITS,
        ),
    )
    predictor_prior: Prior | str | None = field(
        default=None,
        metadata=_said(
            "Prior of predictors",
            'Of a regression\'s predictors: "NormalInverseWishart(0, 1, 6, 4)"; default: by the bounds.',
        ),
    )

    def __post_init__(self) -> None:
        """Refuse what does not exist, or has no use."""
        if self.clipping not in WAYS_OF_CLIPPING:
            message = f"clipping is {BY_EVIDENCE}, {MODELLED} or {IGNORED}, not {self.clipping!r}"
            raise UsageError(message)
        if self.within_unit not in WAYS_OF_UNITS:
            message = f"within_unit is {MODELLED} or {IGNORED}, not {self.within_unit!r}"
            raise UsageError(message)
        if self.method not in METHODS:
            message = (
                f"there is no method {self.method!r}: choose {NOISE_AWARE} or {PLUG_IN} (which is not "
                "calibrated)"
            )
            raise UsageError(message)
        if self.method == PLUG_IN and self.n_prior is not None:
            message = f"{PLUG_IN} takes the noisy N for exact and needs no prior of N: leave it out"
            raise UsageError(message)
        if self.method == PLUG_IN and self.clipping == MODELLED:
            message = f"{PLUG_IN} never models clipping: leave clipping out"
            raise UsageError(message)
        if self.method == PLUG_IN and self.within_unit == IGNORED:
            message = f"{PLUG_IN} takes rows of one unit for independent in any case: leave within_unit out"
            raise UsageError(message)
        if self.method == PLUG_IN and self.predictor_prior is not None:
            message = (
                f"{PLUG_IN} takes predictors' noisy moments for exact: leave the prior of predictors out"
            )
            raise UsageError(message)


TERMS: Mapping[str, Any] = {term.name: term for term in fields(PosteriorTerms)}
"""Name of a term -> its field, with default and ``metadata["explained"]``, in the order of every listing."""


def explained(name: str) -> Explained:
    """Return what is said of a term."""
    words: Explained = TERMS[name].metadata["explained"]
    return words


def noise_aware_terms(prior: AnyPrior, terms: SharedTerms) -> PosteriorTerms:
    """Return the terms of a posterior that has one method and one way of units.

    Raises
    ------
    UsageError
        Where another term is given: it would change nothing.
    TypeError
        Where it is no term.
    """
    useless = sorted(set(terms) - SharedTerms.__optional_keys__)
    if useless and useless[0] not in TERMS:
        message = f"unexpected keyword argument {useless[0]!r}"
        raise TypeError(message)
    if useless:
        message = (
            f"{useless[0]}: releases that are pooled or compared, and cells that are rolled up, have a "
            f"{NOISE_AWARE} posterior and take no {useless[0]}: leave it out"
        )
        raise UsageError(message)
    return PosteriorTerms(prior=prior, **terms)


def lists_terms(function: _Function) -> _Function:
    """Let a signature list the terms that a function takes as ``**terms``, for help and documentation."""
    signature = inspect.signature(function)
    *before, terms = signature.parameters.values()
    keywords = FurtherTerms if "FurtherTerms" in str(terms.annotation) else SharedTerms
    taken = keywords.__required_keys__ | keywords.__optional_keys__
    listed = [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=term.default, annotation=str(term.type)
        )
        for name, term in TERMS.items()
        if name in taken
    ]
    vars(function)["__signature__"] = signature.replace(parameters=[*before, *listed])
    return function
