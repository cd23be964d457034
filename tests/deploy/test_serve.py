"""``python -m suffice.flows.serve``: what one machine deploys; and ``deploy/README.md``, as it is written."""

from __future__ import annotations

import configparser
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.composed import REPOSITORY, can_isolate, isolated

EXAMPLE = REPOSITORY / "deploy" / "example" / "flights-by-origin.yaml"
SHOW = """
import json, sys
from suffice.errors import SufficeError
from suffice.flows.serve import deployments
asked = json.loads(sys.argv[1])
found = []
for specs, cron, zone in asked:
    try:
        made = deployments(specs, cron=cron, time_zone=zone)
        facts = [(m.flow_name, m.name, m.entrypoint, str(m.schedules[0]), m.parameters) for m in made]
        found.append(facts)
    except SufficeError as error:
        found.append(str(error))
print(json.dumps(found))
"""


def served(*asked: tuple[list[str], str, str]) -> list[Any]:
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
    whole = tmp_path / "whole.yaml"
    text = EXAMPLE.read_text(encoding="utf-8").replace("flights-by-origin", "whole")
    whole.write_text(re.sub(r"(?m)^window:.*\n", "", text), encoding="utf-8")
    night, spec = "30 2 * * *", str(EXAMPLE)
    made, *refused = served(
        ([spec, str(whole)], night, "Europe/Berlin"),
        ([spec, spec], night, "UTC"),
        ([spec], "30 2 * *", "UTC"),
        ([spec], night, "Europe/Nowhere"),
        (["absent.yaml"], night, "UTC"),
    )
    assert [(flow, name) for flow, name, *_ in made] == [
        ("release-statistics", "flights-by-origin"),
        ("release-statistics", "whole"),
        ("recover", "recover"),
        ("audit-ledger", "audit"),
    ]
    windows = {name: parameters["release"]["window"] for _, name, _, _, parameters in made[:2]}
    assert windows == {"flights-by-origin": "latest-complete", "whole": "all"}
    assert all(Path(parameters["release"]["spec"]).is_absolute() for *_, parameters in made[:2])
    assert all(entrypoint.startswith("suffice.flows.") for _, _, entrypoint, *_ in made)
    assert "Europe/Berlin" in made[0][3]
    for text, rule in zip(refused, ("another spec", "--cron", "--time-zone", "absent.yaml"), strict=True):
        assert rule in text


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
