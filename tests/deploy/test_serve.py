"""``python -m suffice.flows.serve``: what one machine deploys; and ``deploy/README.md``, as it is written."""

from __future__ import annotations

import configparser
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from support.composed import REPOSITORY, can_isolate, isolated

if TYPE_CHECKING:
    from support.prefect_server import PrefectServer

EXAMPLE = REPOSITORY / "deploy" / "example" / "flights-by-origin.yaml"
SHOW = """
import json, sys
from suffice.errors import SufficeError
from suffice.flows.serve import deployments
asked = json.loads(sys.argv[1])
found = []
for specs, times, zone, own in asked:
    try:
        made = deployments(specs, times=times, time_zone=zone, own_times=own)
        facts = [(m.flow_name, m.name, m.entrypoint, str(m.schedules[0]), m.parameters) for m in made]
        found.append(facts)
    except SufficeError as error:
        found.append(str(error))
print(json.dumps(found))
"""


def served(*asked: tuple[list[str], str, str, dict[str, str]]) -> list[Any]:
    """Return what would be deployed, or what was refused, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", SHOW, json.dumps(asked)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    return list(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.audit
def test_what_one_machine_serves(tmp_path: Path) -> None:
    text = EXAMPLE.read_text(encoding="utf-8")
    assert "every: month" in text
    changed = {
        "nightly": text.replace("every: month", 'every: month, first: "2013-01", amend: [7 days]'),
        "whole": re.sub(r"(?m)^window:.*\n", "", text),
        "newest": text,
        "amended": text.replace("every: month", "every: month, amend: [7 days]"),
    }
    for name, spec in changed.items():
        (tmp_path / f"{name}.yaml").write_text(spec.replace("flights-by-origin", name), encoding="utf-8")
    spec, whole, newest, amended = (str(tmp_path / f"{name}.yaml") for name in changed)
    night = "30 2 * * *"
    made, *refused = served(
        ([spec, whole, newest], night, "Europe/Berlin", {"whole": "0 4 * * 0", "newest": "900"}),
        ([spec, spec], night, "UTC", {}),
        ([spec], "30 2 * *", "UTC", {}),
        ([spec], night, "Europe/Nowhere", {}),
        (["absent.yaml"], night, "UTC", {}),
        ([spec], night, "UTC", {"other": "900"}),
        ([amended], night, "UTC", {}),
    )
    assert [(flow, name) for flow, name, *_ in made] == [
        ("backfill", "nightly"),
        ("release-statistics", "whole"),
        ("release-statistics", "newest"),
        ("recover", "recover"),
        ("audit-ledger", "audit"),
    ]
    parameters = [each for *_, each in made]
    assert parameters[0].keys() == {"windows"}
    assert parameters[0]["windows"].keys() == {"spec"}, "from window.first on, and amendments"
    assert [each["release"]["window"] for each in parameters[1:3]] == ["all", "latest-complete"]
    assert all(Path(value["spec"]).is_absolute() for each in parameters[:3] for value in each.values())
    assert all(entrypoint.startswith("suffice.flows.") for _, _, entrypoint, *_ in made)
    schedules = [each[3] for each in made]
    assert night in schedules[0]
    assert "Europe/Berlin" in schedules[0]
    assert "0 4 * * 0" in schedules[1]
    assert "seconds=900" in schedules[2]
    rules = ("another spec", "--cron", "--time-zone", "absent.yaml", "called other", "window.first")
    for text, rule in zip(refused, rules, strict=True):
        assert rule in text


STOPPED = """
import asyncio, os, signal, sys, threading
from prefect.runner._scheduled_run_poller import ScheduledRunPoller
from suffice.flows import serve

number = int(sys.argv.pop(1))

async def run(self):
    try:
        os.kill(os.getpid(), number)
        threading.Event().wait(0.1)
    except BaseException:
        print("swallowed", flush=True)
    await asyncio.sleep(1000)

ScheduledRunPoller.run = run
serve.main(sys.argv[1:])
"""
"""What serves, stopped while something runs that takes every exception for its own."""


@pytest.mark.slow
def test_what_serves_ends_wherever_a_stop_finds_it_and_serves_again(prefect_server: PrefectServer) -> None:
    served = "release-statistics/flights-by-origin, recover/recover, audit-ledger/audit"

    def stopped(by: signal.Signals, status: int) -> list[bool]:
        """Serve until a signal comes; return which of its deployments were paused then."""
        words = [str(by.value), str(EXAMPLE), "--cron", "30 2 * * *", "--time-zone", "UTC"]
        done = subprocess.run(
            [sys.executable, "-c", STOPPED, *words],
            env=prefect_server.environment(),
            capture_output=True,
            text=True,
            check=False,
            timeout=200,
        )
        assert (done.returncode, done.stdout) == (status, f"serving, 4 at most at once: {served}\n")
        deployments = prefect_server.post("/deployments/filter", {"limit": 200})
        names = {"flights-by-origin", "recover", "audit"}
        ours = [each for each in deployments if each["name"] in names and not each["work_pool_name"]]
        assert len(ours) == len(names)
        return [each["paused"] for each in ours]

    assert stopped(signal.SIGTERM, 0) == [True] * 3
    assert stopped(signal.SIGKILL, -signal.SIGKILL) == [False] * 3, "what was paused by a stop goes on"


def test_units_of_systemd_run_what_the_page_runs() -> None:
    page = (REPOSITORY / "deploy/README.md").read_text(encoding="utf-8")
    units = {}
    for path in sorted((REPOSITORY / "deploy/systemd").glob("*.service")):
        parser = configparser.RawConfigParser(strict=False)
        parser.read(path)
        units[path.stem] = parser["Service"]["ExecStart"]
    timers = {path.stem for path in (REPOSITORY / "deploy/systemd").glob("*.timer")}
    assert timers < units.keys()
    enabled = {f"{name}.timer" if name in timers else name for name in units}
    assert enabled == set(re.findall(r"enable --now (.*)", page)[0].split())
    for command in units.values():
        words = command.removeprefix("%h/suffice/venv/bin/").partition(" --cron")[0]
        assert words in page, words


@pytest.mark.audit
@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_takes_the_units(tmp_path: Path) -> None:
    programs = tmp_path / "suffice/venv/bin"
    programs.mkdir(parents=True)
    for name in ("prefect", "python"):
        (programs / name).symlink_to(sys.executable)
    (tmp_path / "run").mkdir(mode=0o700)
    environment = {**os.environ, "HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path / "run")}

    def said(unit: Path) -> str:
        command = ["systemd-analyze", "verify", "--user", "--recursive-errors=yes", str(unit)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        return done.stderr + ("" if done.returncode == 0 else f"status {done.returncode}")

    for unit in sorted((REPOSITORY / "deploy/systemd").glob("*.service")):
        assert said(unit) == "", unit.name
    wrong = tmp_path / "wrong.service"
    text = (REPOSITORY / "deploy/systemd/suffice-prefect.service").read_text(encoding="utf-8")
    wrong.write_text(text.replace("NoNewPrivileges", "NoNewPriviliges"), encoding="utf-8")
    assert "Unknown key 'NoNewPriviliges'" in said(wrong)


@pytest.mark.audit
@pytest.mark.timeout(900)
def test_one_machine_as_it_is_written(tmp_path: Path) -> None:
    if not can_isolate():
        pytest.skip("this system lets no process have a network of its own: unshare --net, as root")
    page = (REPOSITORY / "deploy/README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```sh\n(.*?)^```$", page.partition("## One machine")[2], re.MULTILINE | re.DOTALL)
    assert len(blocks) == 8
    install, *others = blocks
    assert "pip install" in install
    look = "suffice show flights-by-origin > /dev/null 2>&1"
    wait = f"for _ in $(seq 100); do sleep 3; {look} && break; done\n"
    others.insert(5, wait)
    ready = (
        'ip link set lo up\nset -eum\nmkdir ~/suffice && cd ~/suffice && ln -s "$SOURCE" ~/suffice-source\n'
    )
    script = ready + "\n".join(others[:-1]) + "\nexport -p > environment\n" + others[-1]
    done = subprocess.run(
        isolated(["bash", "-c", script]),
        env={
            "HOME": str(tmp_path),
            "SOURCE": str(REPOSITORY),
            "PATH": f"{Path(sys.executable).parent}:/usr/sbin:/usr/bin:/bin",
            "PYTHONPATH": os.pathsep.join(sys.path),
            "OMP_NUM_THREADS": "1",
        },
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert "status             published" in done.stdout
    assert "flights-by-origin" in (tmp_path / "suffice/site/index.html").read_text(encoding="utf-8")
    metrics = (tmp_path / "suffice/suffice.prom").read_text(encoding="utf-8")
    assert 'suffice_releases_total{dataset="flights",name="flights-by-origin"} 1' in metrics
    assert (tmp_path / ".config/systemd/user/suffice-releases.service").exists()
