"""What the flows are asked for: the models behind Prefect's forms.

Prefect stores parameters, invalid ones too. So all of them are public, and the schema of a deployment
refuses a URL with a password before it is stored.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, WithJsonSchema

from suffice.errors import UsageError
from suffice.pipeline.cluster.addresses import is_hook
from suffice.pipeline.spec.windows_and_amendments import LATEST_COMPLETE
from suffice.releasing.release import PUBLISH_TIMEOUT

if TYPE_CHECKING:
    from collections.abc import Mapping

DAY_S = 86400.0

_CREDENTIALS = r"://[^/?#@]*:[^/?#]*@|[?&;]\s*(password|pwd|secret|token)\s*="
_PUBLIC_URL = {"anyOf": [{"type": "string", "pattern": f"^(?!.*({_CREDENTIALS}))"}, {"type": "null"}]}
_REFERENCE = {"type": "string", "minLength": 1, "maxLength": 4096, "pattern": f"^(?!.*({_CREDENTIALS}))"}
_CLUSTER = {
    "anyOf": [
        {"title": "on this host", "type": "string", "enum": ["threads", "local"]},
        {"title": "address", "type": "string", "pattern": "^(tcp|tls)://[^@]+$"},
        {"type": "null"},
    ]
}
_PERIOD = r"[0-9]{4}(-[0-9]{2}(-[0-9]{2})?|-W[0-9]{2})?"

PublicUrl = Annotated[str | None, WithJsonSchema(_PUBLIC_URL)]
"""A URL without a password."""

Reference = Annotated[str, Field(min_length=1, max_length=4096), WithJsonSchema(_REFERENCE)]
"""A release: NAME[@WINDOW] in the store, or a path or URI inside of the pinned stores; without a password."""


def _no_function(cluster: str | None) -> str | None:
    """Refuse a function: whoever may start a flow run must not have any module imported where it runs."""
    if cluster is not None and is_hook(cluster):
        message = "a function is named by SUFFICE_CLUSTER, where the flow runs, and by no parameter"
        raise ValueError(message)
    return cluster


ClusterAddress = Annotated[str | None, AfterValidator(_no_function), WithJsonSchema(_CLUSTER)]
"""``threads``, ``local``, or the address of a Dask scheduler."""

SpecPath = Annotated[str, Field(min_length=1, max_length=4096)]


class FlowParameters(BaseModel):
    """What every flow is asked for; a field that no flow knows is refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    ledger: PublicUrl = Field(
        default=None,
        title="Ledger",
        json_schema_extra={"position": 5},
        description=(
            "URL of the privacy ledger, without a password. Left out: SUFFICE_LEDGER and the deployment "
            "profile, read where the flow runs. One outside of that profile is refused."
        ),
    )

    def require_no_password(self) -> None:
        """Refuse URLs with a password, where no deployment's schema has done so before.

        Raises
        ------
        UsageError
        """
        refuse_passwords({name: getattr(self, name, None) for name in ("store", "ledger")})


def refuse_passwords(urls: Mapping[str, str | None]) -> None:
    """Refuse URLs with a password, where no deployment's schema has done so before.

    Parameters
    ----------
    urls : dict of str to str or None
        By parameter; those of ``ledger`` and ``store`` may come from variables instead.

    Raises
    ------
    UsageError
    """
    for name, url in urls.items():
        if url is not None and re.search(_CREDENTIALS, url, re.IGNORECASE):
            instead = (
                f"set SUFFICE_{name.upper()} where the flow runs instead"
                if name in {"ledger", "store"}
                else "leave it out: credentials come from the environment where the flow runs"
            )
            message = (
                f"the {name} URL holds a password, and Prefect has stored it with this run: "
                f"change the password, and {instead}"
            )
            raise UsageError(message)


class WithStore(FlowParameters):
    """What a flow is asked for that opens a store."""

    store: PublicUrl = Field(
        default=None,
        title="Store",
        json_schema_extra={"position": 4},
        description=(
            "Path or URI of the release store. Left out: SUFFICE_STORE and the deployment profile, read "
            "where the flow runs. One outside of that profile is refused."
        ),
    )


class Releasing(WithStore):
    """What a flow is asked for that releases."""

    spec: SpecPath = Field(
        title="Spec",
        json_schema_extra={"position": 0},
        description="Path of the spec, where the flow runs.",
        examples=["/srv/specs/flights-by-origin.yaml"],
    )
    cluster: ClusterAddress = Field(
        default=None,
        title="Cluster",
        json_schema_extra={"position": 6},
        description=(
            "threads, local, or the address of a Dask scheduler inside the trust boundary. Left out: "
            "SUFFICE_CLUSTER, the deployment profile, and last threads."
        ),
    )
    reading_attempts: int = Field(
        default=3,
        ge=1,
        le=10,
        title="Reading attempts",
        json_schema_extra={"position": 7},
        description=(
            "How often the data are read before the run gives up, where reading them fails. Nothing is drawn "
            "meanwhile, and what was charged is returned in between. Noise is never drawn again."
        ),
    )
    reading_pause: float = Field(
        default=30.0,
        ge=0.0,
        le=3600.0,
        title="Pause between reading attempts",
        json_schema_extra={"position": 8},
        description="Seconds before the second attempt; each later pause is twice as long.",
    )
    allow_open: bool = Field(
        default=False,
        title="Allow open windows",
        json_schema_extra={"position": 3},
        description=(
            "Release a window that has not ended when the run was scheduled, for good, without the rows that "
            "are still to come."
        ),
    )
    publish_timeout: float = Field(
        default=PUBLISH_TIMEOUT,
        ge=0.0,
        le=DAY_S,
        title="Publish timeout",
        json_schema_extra={"position": 9},
        description=(
            "Seconds for which a store that fails after the draw is tried again. Later, any run of the same "
            "spec on this host publishes what was drawn."
        ),
    )


class ReleaseParameters(Releasing):
    """Which release, and where."""

    window: str = Field(
        default="all",
        pattern=f"^(all|{LATEST_COMPLETE}|{_PERIOD})$",
        title="Window",
        json_schema_extra={"position": 1},
        description=(
            "all, for a spec without windows; a period, as 2013, 2013-01, 2013-W05 or 2013-01-31; or "
            "latest-complete: the newest window that had ended, with the spec's lag, when this run was "
            "scheduled. A retry or a late start does not move it."
        ),
        examples=[LATEST_COMPLETE, "2013-01"],
    )


class BackfillParameters(Releasing):
    """Which windows, and where."""

    first: str | None = Field(
        default=None,
        pattern=f"^{_PERIOD}$",
        title="First window",
        json_schema_extra={"position": 1},
        description=(
            "The oldest window, as 2013, 2013-01, 2013-W05 or 2013-01-31. Left out: window.first of the spec."
        ),
        examples=["2013-01"],
    )
    last: str = Field(
        default=LATEST_COMPLETE,
        pattern=f"^({LATEST_COMPLETE}|{_PERIOD})$",
        title="Last window",
        json_schema_extra={"position": 2},
        description=(
            "The newest window, which is released too; or latest-complete: the newest that had ended, with "
            "the spec's lag, when this run was scheduled."
        ),
        examples=[LATEST_COMPLETE, "2013-12"],
    )


class RecoverParameters(WithStore):
    """Which ledger's charges are to be carried to their ends."""


class AuditParameters(WithStore):
    """Which ledger is to be examined, and held against which store."""

    full: bool = Field(
        default=False,
        title="Full",
        json_schema_extra={"position": 10},
        description="Recompute everything, not only what follows the ledger's last checkpoint.",
    )
