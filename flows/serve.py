"""Everything that one machine needs beside Prefect's server: ``python -m suffice.flows.serve SPEC...``.

One process makes the deployments, waits for their times, and runs each flow in a process of its own: no work
pool, and no worker. The runs get this process's environment, whatever a caller asks for.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import sys
import zoneinfo
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from prefect.runner import Runner
from prefect.schedules import Cron, Interval
from prefect.types.entrypoint import EntrypointType

from suffice.errors import SufficeError, UsageError
from suffice.flows.audit import audit_ledger
from suffice.flows.backfill import backfill_windows
from suffice.flows.recover import recover_charges
from suffice.flows.release import release_statistics
from suffice.pipeline.spec.spec import load_spec
from suffice.pipeline.spec.windows_and_amendments import LATEST_COMPLETE
from suffice.pipeline.terms.declaration.wording import escaped
from suffice.profile.settings import settings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from prefect import Flow
    from prefect.deployments.runner import RunnerDeployment
    from prefect.schedules import Schedule

RECOVER_EVERY = timedelta(minutes=15)
AUDIT = "0 5 * * 1"
PROCESSES = 4
"""A run takes a process and its memory, also while it waits for its dataset."""
PAUSING_S = 20.0
"""Seconds in which a stop pauses deployments, whatever the server does: systemd kills after 90."""


class _Serving(Runner):
    """A runner that SIGTERM always ends.

    Prefect's raises ``SystemExit`` wherever the loop is just then. What it was in may take that for a failure
    of its own: then the runner neither serves nor ends.
    """

    _serving: asyncio.Task[Any] | None = None

    async def start(self, run_once: bool = False, webserver: bool | None = None) -> None:
        """Serve until SIGTERM, or until somebody cancels this."""
        self._serving = asyncio.current_task()
        await super().start(run_once, webserver)

    async def _pause_schedules(self) -> None:
        """Pause deployments, as far as that goes."""
        try:
            pausing = super()._pause_schedules()  # type: ignore[no-untyped-call]
            await asyncio.wait_for(pausing, PAUSING_S)
        except Exception as error:  # noqa: BLE001 - a server that is slow, or gone: the stop goes on
            self._logger.warning(
                "deployments are not paused (%s): their runs are late until they are served again",
                type(error).__name__,
            )

    def handle_sigterm(self, *_: Any) -> None:
        """Have the loop cancel what serves, between two steps."""
        if self._serving is not None:
            self._serving.get_loop().call_soon_threadsafe(self._serving.cancel)


def deployments(
    specs: Sequence[str], *, times: str, time_zone: str, own_times: Mapping[str, str] | None = None
) -> list[RunnerDeployment]:
    """Return the deployments of one machine: one for each spec, ``recover`` and ``audit``.

    Parameters
    ----------
    specs : sequence of str
        Paths. Of a spec whose window has a ``first``, every run releases all windows from there to the newest
        that was complete when the run was scheduled, oldest first, and amendments that are due: what is
        published is skipped, what was missed is caught up on. Of a spec with a window that states no
        ``first`` only that newest window is released; one without a window is released once.
    times : str
        When: minute, hour, day of the month, month, day of the week; or a number of seconds between runs.
    time_zone : str
        That times are in, as ``Europe/Berlin``.
    own_times : mapping of str to str, optional
        Other times of a spec, by its name.

    Returns
    -------
    list of RunnerDeployment

    Raises
    ------
    UsageError
        Where a spec, the times or the time zone cannot be used, or two specs have one name.
    """
    if time_zone not in zoneinfo.available_timezones():
        message = "--time-zone: this is no time zone: write Europe/Berlin, or UTC"
        raise UsageError(message)
    asked = _asked(specs)
    schedules = dict(own_times or {})
    if unknown := schedules.keys() - asked.keys():
        message = f"--times: no spec here is called {min(unknown)}"
        raise UsageError(message)
    releases = [
        _deployment(flow, name, _schedule(schedules.get(name, times), time_zone), parameters)
        for name, (flow, parameters) in asked.items()
    ]
    recover = _deployment(recover_charges, "recover", Interval(RECOVER_EVERY), {})
    weekly = Cron(AUDIT, timezone=time_zone)
    audit = _deployment(audit_ledger, "audit", weekly, {"audit": {"full": True}})
    return [*releases, recover, audit]


def _schedule(times: str, time_zone: str) -> Schedule:
    """Return a schedule by seconds or by the calendar.

    Raises
    ------
    UsageError
    """
    if re.fullmatch("[1-9][0-9]{0,7}", times, re.ASCII):
        return Interval(timedelta(seconds=int(times)), timezone=time_zone)
    try:
        return Cron(times, timezone=time_zone)
    except ValueError:
        message = 'write minute, hour, day, month and day of the week, as --cron "30 2 * * *", or seconds'
        raise UsageError(message) from None


def _deployment(
    flow: Flow[..., Any], name: str, schedule: Schedule, parameters: dict[str, Any]
) -> RunnerDeployment:
    made = flow.to_deployment(
        name=name,
        schedule=schedule,
        parameters=parameters,
        tags=["suffice"],
        entrypoint_type=EntrypointType.MODULE_PATH,
    )
    return cast("RunnerDeployment", made)  # a coroutine only where an event loop runs


def _asked(specs: Sequence[str]) -> dict[str, tuple[Flow[..., Any], dict[str, Any]]]:
    """Return the flow that releases each spec, and its parameters, by the spec's name."""
    asked: dict[str, tuple[Flow[..., Any], dict[str, Any]]] = {}
    for given in specs:
        settings(spec_path=given)
        spec = load_spec(given)
        if spec.name in asked:
            message = f"{given}: another spec here is called {spec.name} too"
            raise UsageError(message)
        path = str(Path(given).resolve())
        if spec.window is not None and spec.window.first is not None:
            asked[spec.name] = backfill_windows, {"windows": {"spec": path}}
        elif spec.window is not None and spec.window.amend:
            message = (
                f"{given}: amendments are released from the first window on, and the spec states none: state "
                "window.first"
            )
            raise UsageError(message)
        else:
            window = "all" if spec.window is None else LATEST_COMPLETE
            asked[spec.name] = release_statistics, {"release": {"spec": path, "window": window}}
    return asked


def _own_times(given: Sequence[str]) -> dict[str, str]:
    """Read ``NAME=TIMES``, as often as it is given."""
    schedules: dict[str, str] = {}
    for each in given:
        name, equals, times = each.partition("=")
        if not equals or not name or name in schedules:
            message = '--times: write NAME=TIMES, once for a name, as --times flights="0 4 * * *"'
            raise UsageError(message)
        schedules[name] = times
    return schedules


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve until somebody ends it."""
    parser = argparse.ArgumentParser(
        prog="python -m suffice.flows.serve",
        description="Release specs by schedule, on one machine: needs PREFECT_API_URL and a running server.",
    )
    parser.add_argument("specs", nargs="+", metavar="SPEC")
    parser.add_argument(
        "--cron",
        required=True,
        metavar="TIMES",
        help='When, as "30 2 * * *" for 02:30 every night; or a number of seconds from one run to the next.',
    )
    parser.add_argument(
        "--times",
        action="append",
        default=[],
        metavar="NAME=TIMES",
        help="Other times of the spec of this name; may be given for several.",
    )
    parser.add_argument("--time-zone", required=True, metavar="ZONE", help="Of the times, as Europe/Berlin.")
    parser.add_argument(
        "--processes",
        type=int,
        choices=range(1, 65),
        default=PROCESSES,
        metavar="N",
        help=f"How many runs there are at once, 1 to 64; others wait for them. {PROCESSES} where left out.",
    )
    asked = parser.parse_args(arguments)
    try:
        if not os.environ.get("PREFECT_API_URL"):
            message = (
                "PREFECT_API_URL is not set: start `prefect server start`, then set it to "
                "http://127.0.0.1:4200/api"
            )
            raise UsageError(message)
        made = deployments(
            asked.specs, times=asked.cron, time_zone=asked.time_zone, own_times=_own_times(asked.times)
        )
    except SufficeError as error:
        sys.stderr.write(f"error: {escaped(str(error))}\n")
        sys.exit(error.exit_status)
    runner = _Serving(limit=asked.processes)
    for each in made:
        runner.add_deployment(each)
    names = ", ".join(f"{each.flow_name}/{each.name}" for each in made)
    sys.stdout.write(f"serving, {asked.processes} at most at once: {escaped(names)}\n")
    sys.stdout.flush()
    with suppress(KeyboardInterrupt, asyncio.CancelledError):
        asyncio.run(runner.start())


if __name__ == "__main__":
    main()
