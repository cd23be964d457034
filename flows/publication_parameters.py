"""What ``publish_posterior`` is asked for: the model behind Prefect's form.

Everything in it is text or a number, and public. Priors are text and never a path; releases and the
destination are held against the deployment profile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import ConfigDict, Field

from suffice.flows.parameters import DAY_S, ClusterAddress, PublicUrl, Reference, refuse_passwords
from suffice.pipeline.ask.borrowing.pooling import Pooling
from suffice.pipeline.ask.inference.posterior_terms import TERMS
from suffice.pipeline.ask.publication.request import TermFields, term
from suffice.publishing.publish import PUBLISH_TIMEOUT

if TYPE_CHECKING:
    from collections.abc import Mapping

_LONGEST = 2**16
_MOST = 1000

Text = Annotated[str, Field(min_length=1, max_length=_LONGEST)]
Name = Annotated[str, Field(min_length=1, max_length=1000)]
Format = Literal["card", "csv", "json", "netcdf", "parquet"]


def _in_order(schema: dict[str, Any]) -> None:
    """Let Prefect's form show the release and its statistics first, then the terms."""
    fields, first = schema["properties"], ["release", "statistics", *TERMS]
    order = sorted(fields, key=lambda name: first.index(name) if name in first else len(first))
    for position, name in enumerate(order):
        fields[name]["position"] = position


class PublicationParameters(TermFields):
    """What is asked of which releases, and where the answer goes."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, hide_input_in_errors=True, json_schema_extra=_in_order
    )

    release: Reference = Field(
        title="Release",
        description=(
            "NAME, NAME@WINDOW or NAME@latest in the store, or a path or URI inside of the stores that the "
            "deployment profile pins."
        ),
        examples=["flights-by-origin@2013-01"],
    )
    statistics: Annotated[list[Name], Field(min_length=1, max_length=_MOST)] = Field(
        title="Statistics",
        description="One or more statistics of the release.",
        examples=[["cancelled"]],
    )
    prior: Text | dict[Name, Text] | None = Field(
        default=None,
        title="Prior",
        description=(
            'As text: "Beta(1, 9)". Of every statistic, or by statistic. Left out: the family\'s default, '
            "which the publication names."
        ),
        examples=["Beta(1, 9)"],
    )
    n_prior: Text | None = term("n_prior")
    predictor_prior: Text | None = term("predictor_prior")
    kind: Literal["posterior", "likelihood"] = Field(
        default="posterior",
        title="Kind",
        description="A likelihood takes any prior afterwards; it has no draws and no intervals.",
    )
    pooled: Annotated[list[Name], Field(max_length=_MOST)] = Field(
        default_factory=list,
        title="Cells borrow strength",
        description=('"all", a population, or group columns within whose keys cells are pooled.'),
        examples=[["all"]],
    )
    over: Name | None = Field(
        default=None,
        title="Alike along",
        description=(
            "Of pooled cells: a group column whose neighbouring keys are alike; or window, over which all "
            "windows of a release walk that is named without one."
        ),
        examples=["month jumps=0", "window"],
    )
    covariates: PublicUrl = Field(
        default=None,
        title="Covariates",
        description=(
            "Of pooled cells: path or URI of a public table, CSV or Parquet, where the flow runs. The "
            "publication states its SHA-256. One outside of the deployment profile is refused."
        ),
        examples=["/srv/tables/counties.csv"],
    )
    formula: Name | None = Field(
        default=None,
        title="Formula",
        description="What of the covariates the location of a cell depends on.",
        examples=["~ income + C(state)"],
    )
    adjacency: PublicUrl = Field(
        default=None,
        title="Neighbours",
        description=(
            "Of pooled cells: path or URI of a public table of pairs of neighbouring keys, as of covariates."
        ),
        examples=["s3://lake/tables/neighbours.csv"],
    )
    disjoint: Annotated[list[Reference], Field(max_length=_MOST)] = Field(
        default_factory=list,
        title="Pool as disjoint",
        description="Pool with these releases, of separate data.",
    )
    same_data: Annotated[list[Reference], Field(max_length=_MOST)] = Field(
        default_factory=list,
        title="Pool as the same data",
        description="Pool with these releases, of the same data again.",
    )
    compare: Reference | None = Field(
        default=None,
        title="Compare with",
        description="Publish how the statistics changed from the release to this one.",
    )
    roll_up: Annotated[list[Name], Field(max_length=_MOST)] = Field(
        default_factory=list,
        title="Roll up",
        description="Merge cells over these group columns.",
    )
    assume: Literal["one parameter"] | None = Field(
        default=None,
        title="Assume of merged cells",
        description="That they share their parameters; otherwise the answer is what their records add up to.",
    )
    vouched: bool = Field(
        default=False,
        title="Vouched",
        description="You vouch for how the releases are related, where their manifests do not show it.",
    )
    mass: float = Field(
        default=0.95,
        gt=0.0,
        lt=1.0,
        title="Mass",
        description="Posterior probability of each credible interval.",
    )
    interval: Literal["central", "highest-density"] | None = Field(
        default=None,
        title="Interval",
        description="The kind of the intervals. Left out: highest-density of rates and categories.",
    )
    draws: int | None = Field(
        default=None,
        ge=0,
        le=10_000_000,
        title="Draws",
        description="Posterior draws a cell, 4000 where left out; 0 publishes summaries alone.",
    )
    seed: int | None = Field(
        default=None,
        ge=0,
        lt=2**53,
        title="Seed",
        description="Of the draws. Left out, it follows from the rest of what is asked.",
    )
    formats: Annotated[list[Format], Field(min_length=1)] | None = Field(
        default=None,
        title="Formats",
        description="Left out: Parquet, and a card where one posterior fits on a page.",
    )
    to: PublicUrl = Field(
        default=None,
        title="Destination",
        description=(
            "The store to publish into. Left out: the one that the deployment profile pins for "
            "publications, or the store of the release. One outside of that profile is refused."
        ),
    )
    store: PublicUrl = Field(
        default=None,
        title="Store",
        description=(
            "Path or URI of the release store. Left out: SUFFICE_STORE and the deployment profile, read "
            "where the flow runs. One outside of that profile is refused."
        ),
    )
    cluster: ClusterAddress = Field(
        default=None,
        title="Cluster",
        description=(
            "Where very many cells are computed: threads, local, or the address of a Dask scheduler. It "
            "changes no number."
        ),
    )
    publish_timeout: float = Field(
        default=PUBLISH_TIMEOUT,
        ge=0.0,
        le=DAY_S,
        title="Publish timeout",
        description="Seconds for which a store that fails is tried again.",
    )
    allow_withdrawn: bool = Field(
        default=False,
        title="Allow withdrawn releases",
        description="Read releases that were withdrawn as faulty; every file then says so.",
    )

    def terms(self, tables: Mapping[str, str]) -> dict[str, Any]:
        """Return what a question takes as it stands here.

        Parameters
        ----------
        tables : dict of str to str
            Paths of the files that ``covariates`` and ``adjacency`` name, where they are stated.
        """
        names = (*TERMS, "kind", "vouched", "mass", "interval", "draws", "seed", "formats")
        return {**{name: getattr(self, name) for name in names}, "pooled": self._pooled(tables)}

    def _pooled(self, tables: Mapping[str, str]) -> list[str] | Pooling | Literal[False]:
        if self.over is not None or self.formula is not None or tables:
            return Pooling.of_names(self.pooled, over=self.over, formula=self.formula, **tables)
        return self.pooled or False

    @property
    def tables(self) -> dict[str, str]:
        """Where public tables stand, by parameter."""
        named = {"covariates": self.covariates, "adjacency": self.adjacency}
        return {name: place for name, place in named.items() if place is not None}

    def require_no_password(self) -> None:
        """Refuse URLs with a password, where no deployment's schema has done so before.

        Raises
        ------
        UsageError
        """
        refuse_passwords({"store": self.store, "to": self.to, "compare": self.compare, **self.tables})
        for name in ("release", "disjoint", "same_data"):
            given = getattr(self, name)
            for reference in [given] if isinstance(given, str) else given:
                refuse_passwords({name: reference})
