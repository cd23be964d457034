"""What is asked of a model over releases, as a request states it: every choice, and no number as a float."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

_MOST = 1_000_000

Short = Annotated[str, Field(min_length=1, max_length=1000)]
"""A name, a key or a category."""
Number = Annotated[str, Field(pattern=r"^[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?$", max_length=40)]
"""A number of at least 0 as Python writes it."""
Whole = Annotated[int, Field(ge=1, le=_MOST)]


class RequestPart(BaseModel):
    """Base: nothing unknown, nothing converted, nothing changed after reading."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


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
