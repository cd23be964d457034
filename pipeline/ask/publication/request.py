"""A request: what somebody asks of releases, whole and canonical, so that its hash names the answer.

A request holds every choice, with defaults written out: priors are text, numbers that are no integers too,
and so are the choices of a model. It holds no result, no version of software and no address: the same
question has the same id wherever it is asked, and asking again finds what was published.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from suffice.errors import UsageError
from suffice.pipeline.ask.inference.posterior_terms import TERMS, Clipping, Method, WithinUnit, explained
from suffice.pipeline.ask.publication.manifest_digest import manifest_sha256
from suffice.pipeline.terms.declaration import canonical_json
from suffice.pipeline.terms.declaration.documents import LEFT_OUT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from suffice.pipeline.ask.pooling.release import Release

_MOST = 1_000_000

LONGEST = 1000
Short = Annotated[str, Field(min_length=1, max_length=LONGEST)]
"""A name, a key or a category."""
Number = Annotated[str, Field(pattern=r"^[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?$", max_length=40)]
"""A number of at least 0 as Python writes it."""
Whole = Annotated[int, Field(ge=1, le=_MOST)]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class RequestPart(BaseModel):
    """Base: nothing unknown, nothing converted, nothing changed after reading."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True)


class Transitions(RequestPart):
    """Transitions, long run and expected steps of a Markov chain; as ``suffice model transitions``."""

    name: Literal["transitions"] = "transitions"
    steps: tuple[Annotated[int, Field(ge=0, le=_MOST)], ...] = ()
    start: Short | None = None
    to: tuple[Short, ...] | None = None


class Query(RequestPart):
    """A conditional distribution of a joint model of categories; as ``suffice model query``."""

    name: Literal["query"] = "query"
    target: Annotated[tuple[Short, ...], Field(min_length=1)]
    given: dict[Short, Short] = Field(default_factory=dict)
    do: dict[Short, Short] = Field(default_factory=dict)


class HiddenMarkov(RequestPart):
    """Hidden states of cells over time, or a comparison of their number; as ``suffice model hidden-markov``.

    The request's statistics are its features; its draws are those that are kept of each restart.
    """

    name: Literal["hidden_markov"] = "hidden_markov"
    states: Annotated[tuple[Annotated[int, Field(ge=1, le=100)], ...], Field(min_length=1)]
    chain: tuple[Short, ...] = ()
    time: tuple[Short, ...] | None = None
    project: Literal["simplex", "clip", "none"] | None = None
    sampler: Literal["ffbs", "single-site"] | None = None
    restarts: Whole = 4
    sweeps: Whole | None = None
    holdout: Number | None = None
    splits: Whole | None = None
    alpha: Number = "1.0"
    beta: Number = "1.0"
    rate: Number = "0.001"


ModelTerms: TypeAlias = Annotated[Transitions | Query | HiddenMarkov, Field(discriminator="name")]
"""One model and all that is chosen of it."""


class PooledTerms(RequestPart):
    """What cells are said to have in common, as ``Pooling`` has it; tables by the SHA-256 of their files.

    Attributes
    ----------
    population : str
    within : tuple of str
        Group columns within whose keys cells are pooled.
    covariates, adjacency : str or None
        SHA-256 of the bytes of a file.
    formula, over : str or None
    """

    population: Short
    within: tuple[Short, ...] = ()
    covariates: Sha256 | None = None
    formula: Short | None = None
    over: Short | None = None
    adjacency: Sha256 | None = None


def pooled_text(terms: PooledTerms) -> str:
    """Return in one line what cells have in common."""
    files = {name: digest[:12] for name in ("covariates", "adjacency") if (digest := getattr(terms, name))}
    further = {"within": ", ".join(terms.within), "formula": terms.formula, "over": terms.over}
    said = ["pooled" if terms.over else f"pooled {terms.population}"]
    said += [f"{name} {text}" for name, text in further.items() if text]
    return "; ".join([*said, *(f"{name} sha256 {at}" for name, at in files.items())])


def model_text(terms: ModelTerms) -> str:
    """Return in one line what is asked of a model: all that was chosen beside its defaults."""
    chosen = terms.model_dump(exclude_defaults=True, exclude={"name"})
    return "; ".join(
        [terms.name.replace("_", " "), *(f"{name} {_said(asked)}" for name, asked in chosen.items())]
    )


def _said(asked: object) -> str:
    if isinstance(asked, dict):
        return ", ".join(f"{name}={value}" for name, value in asked.items())
    return ", ".join(map(str, asked)) if isinstance(asked, tuple) else str(asked)


def reference_to(release: Release) -> ReleaseReference:
    """Return what a request says of a release."""
    return ReleaseReference(
        release_id=release.release_id, manifest_sha256=manifest_sha256(release), label=release.label
    )


ALGORITHM: Literal[1] = 1
"""Rises when the same request would be answered otherwise: other numbers, or files of another shape."""
ID_DIGITS = 32
MOST_DRAWS = 10_000_000
LARGEST_SEED = 2**53 - 1

Kind: TypeAlias = Literal[
    "posterior", "comparison", "pool", "roll_up", "prior_sensitivity", "model", "likelihood"
]
Format: TypeAlias = Literal["card", "csv", "json", "netcdf", "parquet"]
FORMATS: tuple[Format, ...] = ("card", "csv", "json", "netcdf", "parquet")
Relation: TypeAlias = Literal["disjoint", "same_data"]
PriorText = Annotated[str, Field(min_length=1, max_length=1_000_000)]


class ReleaseReference(RequestPart):
    """A release that an answer rests on: its id and the SHA-256 of its manifest's bytes."""

    release_id: Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]
    manifest_sha256: Sha256
    label: Short


class NamedPrior(RequestPart):
    """A prior in its canonical text; named where several are set side by side."""

    name: Short | None
    prior: PriorText


class StatisticRequest(RequestPart):
    """What is asked of one statistic: its priors, written out.

    Attributes
    ----------
    statistic : str
        Its name in every release.
    priors : tuple of NamedPrior
        One; several in a sensitivity table; none for models with priors of their own, for cells that are
        rolled up without the assumption of one parameter or are pooled, and for likelihoods.
    n_prior : str or None
        The prior of N: a fixed number where N is public, None under ``plug-in``. Where releases have
        different ones, they are separated by ``; ``, in the order of the releases.
    predictor_prior : str or None
        Of a regression's predictors.
    interval : {"central", "highest-density"} or None
        The kind of the intervals; of models always central; None of likelihoods.
    """

    statistic: Short
    priors: tuple[NamedPrior, ...]
    n_prior: PriorText | None
    predictor_prior: PriorText | None
    interval: Literal["central", "highest-density"] | None


def term(name: str, **changed: Any) -> Any:
    """Return the field of a posterior's term, from the table that explains it."""
    words = explained(name)
    stated: dict[str, Any] = {"title": words.title, "description": words.text, **changed}
    if words.example is not None:
        stated["examples"] = [words.example]
    return Field(**stated) if "default_factory" in changed else Field(default=TERMS[name].default, **stated)


class TermFields(BaseModel):
    """The terms that a request, or a form, states once for all its statistics."""

    where: dict[Short, str] = term("where", default_factory=dict)
    method: Method = term("method")
    clipping: Clipping = term("clipping")
    within_unit: WithinUnit = term("within_unit")


class Request(RequestPart, TermFields):
    """What is asked, of which releases, under which assumptions, in which formats.

    Attributes
    ----------
    algorithm : int
        Which answers this code gives: ``ALGORITHM``.
    kind : str
        ``posterior``, where cells are pooled also of all windows of a series; ``comparison`` of two releases;
        ``pool`` of several, ``roll_up`` of cells; ``prior_sensitivity``; ``model``; ``likelihood``.
    releases : tuple of ReleaseReference
        In the order given, which matters in a comparison and a series.
    statistics : tuple of StatisticRequest
    where : dict of str to str
        The cells that are kept.
    method, clipping, within_unit : str
        As ``Release.posterior`` takes them.
    mass : str or None
        Of the credible intervals, as Python writes the number; None of likelihoods.
    draws : int
        Posterior draws a cell, published and for quantiles that rest on draws; 0 publishes summaries alone.
    seed : int
        Of all draws. Without one of the caller's it is derived from the rest of the request.
    formats : tuple of str
        In alphabetical order.
    cells_per_part : int or None
        Cells a part, where the answer is computed and published in parts; a function of the rest.
    relation : str or None
        Of pooled releases: ``disjoint`` or ``same_data``.
    vouched : bool
        Whether the caller vouched for how releases are related, where they are compared or pooled.
    over : tuple of str
        Group columns that are rolled up, in the release's order.
    model : ModelTerms or None
        What is asked of a model.
    pooled : PooledTerms or None
        What cells have in common; written where there is something, so that other requests keep their ids.
    """

    algorithm: Literal[1] = ALGORITHM
    kind: Kind
    releases: Annotated[tuple[ReleaseReference, ...], Field(min_length=1, max_length=1000)]
    statistics: Annotated[tuple[StatisticRequest, ...], Field(min_length=1, max_length=1000)]
    mass: Number | None
    draws: Annotated[int, Field(ge=0, le=MOST_DRAWS)]
    seed: Annotated[int, Field(ge=0, le=LARGEST_SEED)]
    formats: Annotated[tuple[Format, ...], Field(min_length=1)]
    cells_per_part: Annotated[int, Field(ge=1)] | None = None
    relation: Relation | None = None
    vouched: bool = False
    over: tuple[Short, ...] = ()
    model: ModelTerms | None = None
    pooled: PooledTerms | None = Field(default=None, json_schema_extra={LEFT_OUT: True})

    @model_validator(mode="after")
    def _is_consistent(self) -> Self:
        """Refuse what no request of its kind has, and every second way of writing the same one."""
        several = self.kind == "prior_sensitivity"
        names = [statistic.statistic for statistic in self.statistics]
        is_likelihood = self.kind == "likelihood"
        rules = {
            "several releases": (len(self.releases) > 1) == (self.kind in {"comparison", "pool"})
            or self.kind == "model"
            or (self.kind == "posterior" and self.pooled is not None),
            "a comparison of two": self.kind != "comparison" or len(self.releases) == 2,
            "a relation": (self.relation is not None) == (self.kind == "pool"),
            "columns that are rolled up": bool(self.over) == (self.kind == "roll_up"),
            "columns that are rolled up once each": len(set(self.over)) == len(self.over),
            "vouching for releases that are related": not self.vouched or self.kind in {"comparison", "pool"},
            "a model": (self.model is not None) == (self.kind == "model"),
            "one release and one statistic": self.model is None
            or isinstance(self.model, HiddenMarkov)
            or len(self.releases) == len(self.statistics) == 1,
            "named priors": all(
                (prior.name is not None) == several
                for statistic in self.statistics
                for prior in statistic.priors
            ),
            "two priors or more": not several
            or all(len(statistic.priors) >= 2 for statistic in self.statistics),
            "intervals and their mass": all(
                (stated is None) == is_likelihood
                for stated in (self.mass, *(statistic.interval for statistic in self.statistics))
            ),
            "no draws": not is_likelihood or self.draws == self.seed == 0,
            "no priors": not (is_likelihood or self.pooled)
            or not any(statistic.priors for statistic in self.statistics),
            "cells that are pooled": self.pooled is None or self.kind == "posterior",
            "a whole": self.cells_per_part is None or (self.kind == "posterior" and self.pooled is None),
            "one prior": several or all(len(statistic.priors) <= 1 for statistic in self.statistics),
            "a statistic once": len(set(names)) == len(names),
            "formats in order": list(self.formats) == sorted(set(self.formats)),
        }
        broken = [rule for rule, holds in rules.items() if not holds]
        if broken:
            message = f"a request of kind {self.kind}: {broken[0]}"
            raise ValueError(message)
        return self

    def content(self) -> dict[str, Any]:
        """Return the request as canonical JSON has it."""
        return self.model_dump(mode="json", exclude={"pooled"} if self.pooled is None else None)

    def canonical(self) -> bytes:
        """Return the bytes that name it: canonical JSON."""
        return canonical_json.encode(self.content())

    @property
    def publication_id(self) -> str:
        """The first 32 hex digits of the SHA-256 of its canonical bytes."""
        return hashlib.sha256(self.canonical()).hexdigest()[:ID_DIGITS]

    @classmethod
    def read(cls, content: Mapping[str, Any]) -> Self:
        """Read a request from a publication's manifest; nothing but its one form is accepted.

        Raises
        ------
        UsageError
            Where it is no request, or not written as :meth:`content` writes it.
        """
        try:
            data = canonical_json.encode(dict(content))
            request = cls.model_validate_json(data)
        except (ValidationError, ValueError):
            request, data = None, b""
        if request is None or request.canonical() != data:
            message = "this is no request of a publication that this version of suffice knows"
            raise UsageError(message)
        return request


def mass_of(request: Request) -> float:
    """Return the mass of intervals, which every request but that of a likelihood states."""
    if request.mass is None:
        message = "a likelihood has no intervals"
        raise TypeError(message)
    return float(request.mass)


def kind_of_intervals(asked: StatisticRequest) -> str:
    """Return the kind of a statistic's intervals, which every request but that of a likelihood states."""
    if asked.interval is None:
        message = "a likelihood has no intervals"
        raise TypeError(message)
    return asked.interval


def derived_seed(unseeded: Request) -> Request:
    """Return a request with the seed that follows from the rest of it, which states seed 0.

    The seed is 13 hex digits of a SHA-256: the same question draws the same numbers. Of a likelihood nothing
    is drawn.
    """
    if unseeded.kind == "likelihood":
        return unseeded
    digest = hashlib.sha256(b"seed of " + unseeded.model_copy(update={"seed": 0}).canonical())
    return unseeded.model_copy(update={"seed": int(digest.hexdigest()[:13], 16)})
