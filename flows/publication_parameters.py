"""What ``publish_posterior`` is asked for: the model behind Prefect's form.

Everything in it is text or a number, and public. Priors are text and never a path; releases and the
destination are held against the deployment profile.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from suffice.flows.parameters import DAY_S, ClusterAddress, PublicUrl, Reference, refuse_passwords
from suffice.publishing.publish import PUBLISH_TIMEOUT

_LONGEST = 2**16
_MOST = 1000

Text = Annotated[str, Field(min_length=1, max_length=_LONGEST)]
Name = Annotated[str, Field(min_length=1, max_length=1000)]
Format = Literal["card", "csv", "json", "netcdf", "parquet"]


class PublicationParameters(BaseModel):
    """What is asked of which releases, and where the answer goes."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    release: Reference = Field(
        title="Release",
        json_schema_extra={"position": 0},
        description=(
            "NAME, NAME@WINDOW or NAME@latest in the store, or a path or URI inside of the stores that the "
            "deployment profile pins."
        ),
        examples=["flights-by-origin@2013-01"],
    )
    statistics: Annotated[list[Name], Field(min_length=1, max_length=_MOST)] = Field(
        title="Statistics",
        json_schema_extra={"position": 1},
        description="One or more statistics of the release.",
        examples=[["cancelled"]],
    )
    prior: Text | dict[Name, Text] | None = Field(
        default=None,
        title="Prior",
        json_schema_extra={"position": 2},
        description=(
            'As text: "Beta(1, 9)". Of every statistic, or by statistic. Left out: the family\'s default, '
            "which the publication names."
        ),
        examples=["Beta(1, 9)"],
    )
    n_prior: Text | None = Field(
        default=None,
        title="Prior of N",
        json_schema_extra={"position": 3},
        description='Of a private number of records: "Reciprocal", "Uniform(0, 1000)" or a number.',
    )
    where: dict[Name, str] = Field(
        default_factory=dict,
        title="Where",
        json_schema_extra={"position": 4},
        description="Keep the cells with these group keys.",
        examples=[{"origin": "JFK"}],
    )
    method: Literal["noise-aware", "plug-in"] = Field(
        default="noise-aware",
        title="Method",
        json_schema_extra={"position": 5},
        description="plug-in takes the noisy statistics for exact, and is not calibrated.",
    )
    clipping: Literal["by-evidence", "modelled", "ignored"] = Field(
        default="by-evidence",
        title="Clipping",
        json_schema_extra={"position": 6},
        description="Whether posteriors of clipped values model that they were clipped.",
    )
    within_unit: Literal["modelled", "ignored"] = Field(
        default="modelled",
        title="Rows of one unit",
        json_schema_extra={"position": 7},
        description="Whether posteriors are widened by what rows of one unit have in common.",
    )
    predictor_prior: Text | None = Field(
        default=None,
        title="Prior of predictors",
        json_schema_extra={"position": 8},
        description="Of a regression's predictors, as text.",
    )
    disjoint: Annotated[list[Reference], Field(max_length=_MOST)] = Field(
        default_factory=list,
        title="Pool as disjoint",
        json_schema_extra={"position": 9},
        description="Pool with these releases, of separate data.",
    )
    same_data: Annotated[list[Reference], Field(max_length=_MOST)] = Field(
        default_factory=list,
        title="Pool as the same data",
        json_schema_extra={"position": 10},
        description="Pool with these releases, of the same data again.",
    )
    compare: Reference | None = Field(
        default=None,
        title="Compare with",
        json_schema_extra={"position": 11},
        description="Publish how the statistics changed from the release to this one.",
    )
    roll_up: Annotated[list[Name], Field(max_length=_MOST)] = Field(
        default_factory=list,
        title="Roll up",
        json_schema_extra={"position": 12},
        description="Merge cells over these group columns.",
    )
    assume: Literal["one parameter"] | None = Field(
        default=None,
        title="Assume of merged cells",
        json_schema_extra={"position": 13},
        description="That they share their parameters; otherwise the answer is what their records add up to.",
    )
    vouched: bool = Field(
        default=False,
        title="Vouched",
        json_schema_extra={"position": 14},
        description="You vouch for how the releases are related, where their manifests do not show it.",
    )
    mass: float = Field(
        default=0.95,
        gt=0.0,
        lt=1.0,
        title="Mass",
        json_schema_extra={"position": 15},
        description="Posterior probability of each credible interval.",
    )
    interval: Literal["central", "highest-density"] | None = Field(
        default=None,
        title="Interval",
        json_schema_extra={"position": 15},
        description="The kind of the intervals. Left out: highest-density of rates and categories.",
    )
    draws: int | None = Field(
        default=None,
        ge=0,
        le=10_000_000,
        title="Draws",
        json_schema_extra={"position": 16},
        description="Posterior draws a cell, 4000 where left out; 0 publishes summaries alone.",
    )
    seed: int | None = Field(
        default=None,
        ge=0,
        lt=2**53,
        title="Seed",
        json_schema_extra={"position": 17},
        description="Of the draws. Left out, it follows from the rest of what is asked.",
    )
    formats: Annotated[list[Format], Field(min_length=1)] | None = Field(
        default=None,
        title="Formats",
        json_schema_extra={"position": 18},
        description="Left out: Parquet, and a card where one posterior fits on a page.",
    )
    to: PublicUrl = Field(
        default=None,
        title="Destination",
        json_schema_extra={"position": 19},
        description=(
            "The store to publish into. Left out: the one that the deployment profile pins for "
            "publications, or the store of the release. One outside of that profile is refused."
        ),
    )
    store: PublicUrl = Field(
        default=None,
        title="Store",
        json_schema_extra={"position": 20},
        description=(
            "Path or URI of the release store. Left out: SUFFICE_STORE and the deployment profile, read "
            "where the flow runs. One outside of that profile is refused."
        ),
    )
    cluster: ClusterAddress = Field(
        default=None,
        title="Cluster",
        json_schema_extra={"position": 21},
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
        json_schema_extra={"position": 22},
        description="Seconds for which a store that fails is tried again.",
    )
    allow_withdrawn: bool = Field(
        default=False,
        title="Allow withdrawn releases",
        json_schema_extra={"position": 23},
        description="Read releases that were withdrawn as faulty; every file then says so.",
    )

    def terms(self) -> dict[str, Any]:
        """Return what a question takes as it stands here."""
        names = (
            *("prior", "n_prior", "where", "method", "clipping", "within_unit", "predictor_prior"),
            *("vouched", "mass", "interval", "draws", "seed", "formats"),
        )
        return {name: getattr(self, name) for name in names}

    def require_no_password(self) -> None:
        """Refuse URLs with a password, where no deployment's schema has done so before.

        Raises
        ------
        UsageError
        """
        refuse_passwords({"store": self.store, "to": self.to, "compare": self.compare})
        for name in ("release", "disjoint", "same_data"):
            given = getattr(self, name)
            for reference in [given] if isinstance(given, str) else given:
                refuse_passwords({name: reference})
