"""The flow ``release_statistics``: one release inside one Prefect task.

Prefect stores every flow parameter, every returned value that is persisted, and the text and attributes
of every exception. So parameters are public, one task holds everything exact and returns the published
release's URI, nothing is persisted or cached or retried, and errors are made anew from their text.
"""

# Prefect and pydantic read the flow's annotations at run time: no postponed annotations here.

import re
from typing import Annotated

from prefect import flow, get_run_logger, task
from prefect.cache_policies import NO_CACHE
from pydantic import WithJsonSchema

from suffice.errors import SufficeError

_CREDENTIALS = r"://[^/?#@]*:[^/?#]*@|[?&;]\s*(password|pwd|secret|token)\s*="
_URL_SCHEMA = {
    "anyOf": [{"type": "string", "pattern": f"^(?!.*({_CREDENTIALS}))"}, {"type": "null"}],
    "default": None,
}

PublicUrl = Annotated[str | None, WithJsonSchema(_URL_SCHEMA)]
"""A URL without a password. A deployment's schema refuses one with a password before it is stored."""


class ReleaseFlowError(RuntimeError):
    """A release failed: the error's class and its text, which never hold a data value."""


@flow(name="release-statistics", persist_result=False, log_prints=False, retries=0)
def release_statistics(
    spec: str,
    window: str = "all",
    store: PublicUrl = None,
    ledger: PublicUrl = None,
    cluster: str | None = None,
    publish_timeout: float = 3600.0,
) -> str:
    """Publish one release, or find it published; return its URI.

    Parameters
    ----------
    spec : str
        Path of the spec, where the flow runs.
    window : str
        The label of the period released, or ``all``.
    store, ledger : str, optional
        Without a password; left out, ``SUFFICE_STORE``, ``SUFFICE_LEDGER`` and the deployment profile are
        read where the flow runs. One outside of that profile is refused.
    cluster : str, optional
        ``threads``, ``local``, or a Dask scheduler's address; left out and refused as above.
    publish_timeout : float
        Seconds for which a store that fails after the draw is tried again.

    Returns
    -------
    str
        The release's URI.

    Raises
    ------
    ReleaseFlowError
        With the class and the text of what went wrong.
    """
    for name, url in (("store", store), ("ledger", ledger)):
        if url is not None and re.search(_CREDENTIALS, url, re.IGNORECASE):
            message = (
                f"the {name} URL holds a password, and Prefect has stored it with this run: "
                f"change the password, and set SUFFICE_{name.upper()} where the flow runs instead"
            )
            raise ReleaseFlowError(message)
    return release_once(spec, window, store, ledger, cluster, publish_timeout)


@task(name="release-once", persist_result=False, cache_policy=NO_CACHE, log_prints=False, retries=0)
def release_once(
    spec: str, window: str, store: str | None, ledger: str | None, cluster: str | None, publish_timeout: float
) -> str:
    """Run the whole release in this process, and let out nothing but its URI or a safe text."""
    from suffice.pipeline.spec.spec import load_spec  # noqa: PLC0415 - a worker that only loads the flow stays light
    from suffice.profile.settings import settings  # noqa: PLC0415
    from suffice.releasing import run_release  # noqa: PLC0415

    try:
        chosen = settings(store=store, ledger=ledger, cluster=cluster, spec_path=spec)
        release = run_release(
            load_spec(spec),
            store=chosen.store,
            ledger=chosen.ledger,
            cluster=chosen.cluster,
            window=window,
            publish_timeout=publish_timeout,
            notice=get_run_logger().info,
        )
    except SufficeError as error:
        failure = f"{type(error).__name__}: {error}"
    except Exception as error:  # noqa: BLE001 - anything else could carry data: its class name only
        failure = type(error).__name__
    else:
        return release.uri
    raise ReleaseFlowError(failure)
