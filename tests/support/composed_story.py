"""From nothing to a scheduled release with the services of ``deploy/compose``.

``python -m support.composed_story DIR``, inside of `support.composed.isolated`. DIR holds the folders of
`support.composed.prepare`, with a spec and data. Printed is, as JSON, what came of each step. A second word
names a folder for the pictures of the README.
"""

from __future__ import annotations

import json
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

from support.composed import PATIENCE_S, PLACE, Composed

API = "http://prefect-server:4200/api"
NAME = "flights-by-origin"


def tell(composed: Composed) -> dict[str, Any]:
    """Go the way of the README, and try what nobody may do."""
    begin = time.monotonic()
    composed.up()
    told: dict[str, Any] = {"up_seconds": round(time.monotonic() - begin)}
    grant = ("ledger", "grant", "flights", "--epsilon", "12", "--reason", "compose")
    rest = ("--per-window", "flight_date:month", "--source", "/srv/data")
    composed.command("administrator", *grant, *rest, "--create")
    composed.command("roles")
    composed.command("roles")  # it may be run again
    composed.command("owner", *grant[:4], "14", *grant[5:], *rest)
    told["plan"] = json.loads(composed.command("owner", "plan", f"/srv/specs/{NAME}.yaml", "--json"))["name"]
    composed.command(
        "prefect", "deployment", "schedule", "create", "release-statistics/nightly", "--interval", "90"
    )
    told["run"] = scheduled_run()
    told["release_seconds"] = round(time.monotonic() - begin)
    store = ("--store", "s3://releases/statistics")
    told["shown"] = json.loads(composed.command("auditor", "show", NAME, *store, "--json"))
    told["posterior"] = json.loads(
        composed.command("auditor", "posterior", NAME, "cancelled", *store, "--json")
    )
    told["verified"] = json.loads(composed.command("auditor", "ledger", "verify", *store, "--json"))["ok"]
    told["account"] = json.loads(composed.command("auditor", "ledger", "show", "--json"))["accounts"][0]
    composed.command("auditor", "ledger", "export", "--out", "/srv/site/ledger.jsonl")
    composed.command(
        *("auditor", "catalogue", store[1], "--out", "/srv/site/pages"),
        *("--ledger-export", "/srv/site/ledger.jsonl"),
    )
    told["refused"] = refused(composed)
    told["secrets_in_logs"] = secrets_in_logs(composed)
    told["seconds"] = round(time.monotonic() - begin)
    return told


def scheduled_run() -> dict[str, Any]:
    """Wait for the first run that a schedule made to end; return its name, its state and who made it."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        for run in post("/flow_runs/filter", {"flows": {"name": {"any_": ["release-statistics"]}}}):
            if run["state"]["type"] in {"COMPLETED", "FAILED", "CRASHED", "CANCELLED"}:
                state = run["state"]
                return {
                    "id": run["id"],
                    "name": run["name"],
                    "state": state["name"],
                    "message": state["message"],
                    "scheduled": run["auto_scheduled"],
                }
        time.sleep(1)
    message = "no scheduled run ended"
    raise AssertionError(message)


def refused(composed: Composed) -> dict[str, Any]:
    """Try, with what each service holds, what it may not do; return the status and the last words of each."""
    psql = ("psql", "--no-psqlrc", "--no-password", "--host=postgres", "--quiet")
    read_ledger = "select dataset from accounts"
    connect = (
        "import sys; from suffice.pipeline.cluster import clients, connection; clients.CONNECT_SECONDS = 3\n"
        "with connection.open_cluster(sys.argv[1], certificates=sys.argv[2] or None): print('let in')"
    )
    grant = "update accounts set granted = granted + 1"
    tries = {
        "prefect reads the ledger": (
            "prefect-server",
            *psql,
            "-U",
            "prefect",
            "-d",
            "ledger",
            "-c",
            read_ledger,
        ),
        "a release reads Prefect's database": (
            "worker",
            *psql,
            "-U",
            "releases",
            "-d",
            "prefect",
            "-c",
            "select 1",
        ),
        "a release grants": ("worker", *psql, "-U", "releases", "-d", "ledger", "-c", grant),
        "an auditor grants": ("auditor", *psql, "-U", "auditor", "-d", "ledger", "-c", grant),
        "an auditor as another": ("auditor", *psql, "-U", "owner", "-d", "ledger", "-c", read_ledger),
        "no certificate": ("worker", "python", "-c", connect, "tls://scheduler:8786", ""),
        "no encryption": ("worker", "python", "-c", connect, "tcp://127.0.0.1:8786", ""),
        "a file of the image": ("worker", "sh", "-c", "touch /usr/bin/suffice"),
        "the data": ("worker", "sh", "-c", "touch /srv/data/new"),
        "rows without the folder": ("scheduler", "sh", "-c", "ls /srv/data"),
        "another's secret": ("worker", "sh", "-c", "cat /run/secrets/scheduler.key"),
    }
    controls = {
        "an auditor reads the ledger": ("auditor", *psql, "-U", "auditor", "-d", "ledger", "-c", read_ledger),
        "with the certificate": ("worker", "python", "-c", connect, "tls://scheduler:8786", "/run/secrets"),
        "the spool": ("worker", "sh", "-c", "touch /srv/spool/mine && rm /srv/spool/mine"),
    }
    refusals: dict[str, Any] = {}
    for name, words in {**tries, **controls}.items():
        process = composed.inside(*words)
        said = b"".join(process.communicate(timeout=PATIENCE_S))
        refusals[name] = [process.returncode, said.decode().strip()[-200:]]
    return refusals


def secrets_in_logs(composed: Composed) -> list[str]:
    """Name the secrets that stand in what a service printed."""
    said = b"".join(path.read_bytes() for path in composed.logs.iterdir())
    folder = PLACE / "compose" / "secrets"
    words = {path.name: path.read_bytes().split()[-1] for path in folder.iterdir() if path.is_file()}
    words = {name: word.rpartition(b":")[2] for name, word in words.items()}
    assert all(len(word) >= 48 for word in words.values())
    return sorted(name for name, word in words.items() if word in said)


def take_pictures(run: str, folder: Path) -> None:
    """Make pictures of the run in Prefect's pages, and of the catalogue."""
    from support.browser import running_browser

    shown = {
        "compose-prefect": (f"http://127.0.0.1:4200/v2/runs/flow-run/{run}?tab=Artifacts", "Published"),
        "compose-catalogue": ((PLACE / "compose/site/pages/index.html").as_uri(), NAME),
    }
    with running_browser() as browser:
        for name, (address, word) in shown.items():
            page = browser.new_page(viewport={"width": 1200, "height": 760})
            page.goto(address, wait_until="commit", timeout=60_000)
            page.get_by_text(word).first.wait_for(timeout=60_000)
            page.wait_for_timeout(3_000)  # until it stops moving
            page.screenshot(path=str(folder / f"{name}.png"), animations="disabled", timeout=120_000)


def post(path: str, document: dict[str, Any]) -> Any:
    """Ask Prefect's server."""
    headers = {"content-type": "application/json"}
    asked = urllib.request.Request(f"{API}{path}", json.dumps(document).encode(), headers)  # noqa: S310 - our own
    with urllib.request.urlopen(asked, timeout=60) as answer:  # noqa: S310
        return json.loads(answer.read())


def main() -> None:
    """Tell the story; where it breaks off, show what each service printed."""
    composed = Composed.isolate(Path(sys.argv[1]))
    try:
        told = tell(composed)
        if len(sys.argv) > 2:
            take_pictures(told["run"]["id"], Path(sys.argv[2]))
    except BaseException:
        for path in sorted(composed.logs.iterdir()):
            sys.stderr.write(f"--- {path.name}\n{path.read_text(errors='replace')[-3000:]}\n")
        raise
    sys.stdout.write(json.dumps(told) + "\n")


if __name__ == "__main__":
    main()
