"""``deploy/compose/compose.yaml`` without a container engine: read, and its services started as processes.

In namespaces of Linux: every process has a network with nothing but its loopback, where the names of the
services are, and mounts of its own, so that commands, variables, paths, names and ports are the file's.
Each service has its user, its secrets, its folders, a root that it cannot write, and no rights of root's.
What stands for other people's images: Debian's PostgreSQL, and moto for the object store, which knows no
logins. All services share one network, whatever networks the file gives them.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

REPOSITORY = Path(__file__).resolve().parents[2]
HERE = REPOSITORY / "deploy" / "compose"
MADE = ("secrets", "state", "data", "site", "specs", ".env")
SOURCE, PLACE = Path("/mnt/source"), Path("/mnt/place")
"""Where the code and the folder of the installation are, for every process."""
NOBODY = 65534
PATIENCE_S = 400

_VARIABLE = re.compile(r"\$(?:\$|\{(\w+)(?:(:-|:\?)([^}]*))?\})")


def composition(variables: dict[str, str]) -> dict[str, Any]:
    """Return the file with its variables filled in, as ``docker compose config`` does."""

    def value(match: re.Match[str]) -> str:
        name, kind, rest = match.groups()
        if name is None:
            return "$"
        if variables.get(name):
            return variables[name]
        assert kind == ":-", f"{name} is needed"
        return str(rest)

    def filled(node: Any) -> Any:
        if isinstance(node, dict):
            return {key: filled(inner) for key, inner in node.items()}
        if isinstance(node, list):
            return [filled(inner) for inner in node]
        return _VARIABLE.sub(value, node) if isinstance(node, str) else node

    whole: dict[str, Any] = filled(yaml.safe_load((HERE / "compose.yaml").read_text(encoding="utf-8")))
    return whole


def prepare(folder: Path) -> Path:
    """Copy the folder with its neighbours, where there is no copy yet, and run its ``prepare.sh``."""
    for name in ("prefect", "postgres"):
        shutil.copytree(HERE.parent / name, folder.parent / name, dirs_exist_ok=True)
    shutil.copytree(HERE, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns(*MADE))
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    subprocess.run(["sh", str(folder / "prepare.sh")], check=True, env=environment, capture_output=True)
    return folder


def can_isolate() -> bool:
    """Tell whether this system lets processes have a network and mounts of their own."""
    if os.geteuid() != 0 or shutil.which("unshare") is None or shutil.which("setpriv") is None:
        return False
    return subprocess.run(isolated(["true"]), capture_output=True, check=False).returncode == 0


def isolated(words: list[str]) -> list[str]:
    """Return the command with a network, mounts and processes of its own; they end with it."""
    return ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", *words]


@dataclass(kw_only=True)
class Composed:
    """The services as processes; to be used inside of `isolated`.

    Attributes
    ----------
    services : dict
        Those of the file.
    logs : Path
        A folder with what each of them printed.
    """

    services: dict[str, Any]
    secrets: dict[str, Any]
    logs: Path
    running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    done: set[str] = field(default_factory=set)

    @classmethod
    def isolate(cls, place: Path) -> Composed:
        """Make this process's network and mounts those of the installation at `place`."""
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        _mount("-t", "tmpfs", "tmpfs", "/mnt")
        for source, target in ((REPOSITORY, SOURCE), (place, PLACE)):
            target.mkdir()
            _mount("--bind", str(source), str(target))
        composed = composition({"SUFFICE_USER": f"{NOBODY}:{NOBODY}"})
        _open_the_way(sys.base_prefix, sys.prefix)
        hosts = Path("/mnt/hosts")
        hosts.write_text(f"127.0.0.1 localhost {' '.join(composed['services'])}\n", encoding="utf-8")
        _mount("--bind", str(hosts), "/etc/hosts")
        logs = Path("/mnt/logs")
        logs.mkdir()
        return cls(services=composed["services"], secrets=composed["secrets"], logs=logs)

    def up(self) -> None:
        """Start what ``docker compose up`` starts, in the order of what depends on what."""
        for name, service in self.services.items():
            if "profiles" not in service:
                self._start(name)

    def _start(self, name: str) -> None:
        """Start a service, or run it to its end, once what it depends on is as it must be."""
        if name in self.running or name in self.done:
            return
        for other, how in self.services[name].get("depends_on", {}).items():
            self._start(other)
            if how["condition"] == "service_completed_successfully":
                self._finish(other)
            else:
                self._wait_until_healthy(other)
        if name == "bucket":  # moto knows no logins
            self._make_bucket()
            return
        replicas = self.services[name].get("deploy", {}).get("replicas", 1)
        for number in range(replicas):
            self.running[f"{name}-{number}" if number else name] = self._process(name, _words(self, name))

    def command(self, name: str, *words: str, status: int = 0) -> str:
        """Run what ``docker compose run --rm NAME WORDS`` runs, and return what it printed."""
        process = self._process(name, _words(self, name, words), log=False)
        out, said = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == status, (name, words, out.decode(), said.decode())
        return out.decode()

    def inside(self, name: str, *words: str) -> subprocess.Popen[bytes]:
        """Run another program where a service is, as ``docker compose exec NAME WORDS``."""
        return self._process(name, list(words), log=False)

    def _finish(self, name: str) -> None:
        if name in self.done:
            return
        assert self.running.pop(name).wait(PATIENCE_S) == 0, (self.logs / name).read_text()
        self.done.add(name)

    def _wait_until_healthy(self, name: str) -> None:
        test = self.services[name]["healthcheck"]["test"]
        assert test[0] == "CMD"
        words = ["true"] if name == "store" else test[1:]  # mc is not here
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            process = self.running[name]
            assert process.poll() is None, (self.logs / name).read_text()
            asked = self._process(name, words, log=False)
            asked.communicate(timeout=PATIENCE_S)
            if asked.returncode == 0:
                return
            time.sleep(1)
        raise AssertionError((self.logs / name).read_text())

    def _make_bucket(self) -> None:
        put = "import urllib.request as r; r.urlopen(r.Request('http://store:9000/releases', method='PUT'))"
        for _ in range(60):
            asked = self._process("store", ["python", "-c", put], log=False)
            asked.communicate(timeout=PATIENCE_S)
            if asked.returncode == 0:
                self.done.add("bucket")
                return
            time.sleep(1)
        raise AssertionError((self.logs / "store").read_text())

    def _process(self, name: str, words: list[str], *, log: bool = True) -> subprocess.Popen[bytes]:
        service = self.services[name]
        user, _, group = str(service.get("user", f"{NOBODY}:{NOBODY}")).partition(":")
        rights = ["--no-new-privs", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all"]
        dropped = ["setpriv", f"--reuid={user}", f"--regid={group}", *rights, "--", *words]
        folder = service.get("working_dir", "/tmp")  # noqa: S108 - its own
        script = "\n".join(["set -e", *self._mounts(service), f"cd {folder}", 'exec "$@"'])
        environment = {
            "PATH": f"{postgres_programs()}:{Path(sys.executable).parent}:/usr/sbin:/usr/bin:/sbin:/bin",
            "PYTHONPATH": ":".join(str(SOURCE / part) for part in ("src", "tests", "")),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONUNBUFFERED": "1",
            "OMP_NUM_THREADS": "1",
            **_prefect_of_the_image(),
            **service.get("environment", {}),
        }
        output: Any = subprocess.PIPE
        if log:
            output = (self.logs / name).open("ab")
        return subprocess.Popen(
            ["unshare", "--mount", "sh", "-c", script, "sh", *dropped],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT if log else subprocess.PIPE,
        )

    def _mounts(self, service: dict[str, Any]) -> list[str]:
        """Return the lines of a shell that lay out what a service sees."""
        lines = ["mount -t tmpfs tmpfs /srv", "mount -t tmpfs tmpfs /run", "mkdir /run/secrets"]
        for secret in service.get("secrets", ()):
            source = secret if isinstance(secret, str) else secret["source"]
            target = source if isinstance(secret, str) else secret["target"]
            path = PLACE / "compose" / self.secrets[source]["file"]
            lines += [f"touch /run/secrets/{target}", f"mount --bind {path} /run/secrets/{target}"]
        for volume in service.get("volumes", ()):
            if isinstance(volume, str) or not volume["target"].startswith("/srv"):
                continue
            path = PLACE / "compose" / volume["source"]
            made = (
                f"mkdir -p {volume['target']}"
                if path.is_dir()
                else f"mkdir -p {Path(volume['target']).parent}"
            )
            lines += [made] if path.is_dir() else [made, f"touch {volume['target']}"]
            lines.append(f"mount --bind {path} {volume['target']}")
            if volume.get("read_only"):
                lines.append(f"mount -o remount,bind,ro {volume['target']}")
        lines.append("mount -t tmpfs -o mode=1777 tmpfs /tmp")
        if service.get("read_only"):
            lines.append("mount -o remount,bind,ro /")
        return lines


def _words(composed: Composed, name: str, more: tuple[str, ...] = ()) -> list[str]:
    """Return what a service runs; of other people's images, what stands for it here."""
    service = composed.services[name]
    if name == "postgres":
        data, initdb = PLACE / "postgres-data", service["environment"]["POSTGRES_INITDB_ARGS"]
        return [
            "sh",
            "-c",
            (
                f'initdb -D {data} --username=postgres --pwfile="$POSTGRES_PASSWORD_FILE" {initdb} '
                f">/dev/null && exec postgres -D {data} -c listen_addresses='*' "
                "-c unix_socket_directories=/tmp"
            ),
        ]
    if name == "store":
        return ["python", "-m", "moto.server", "--host", "0.0.0.0", "--port", "9000"]  # noqa: S104 - as its image
    words = list(service["entrypoint"])
    return words + (list(more) if more else list(service.get("command", ())))


def _prefect_of_the_image() -> dict[str, str]:
    """Return what the Containerfile tells Prefect."""
    text = (REPOSITORY / "deploy/image/Containerfile").read_text(encoding="utf-8")
    return dict(re.findall(r"\b(PREFECT_\w+)=(\S+)", text))


def postgres_programs() -> Path | None:
    """Return the folder of a PostgreSQL with pg_trgm, which Prefect's server needs, unlike pgserver's."""
    for control in sorted(Path("/usr/share/postgresql").glob("*/extension/pg_trgm.control"), reverse=True):
        programs = Path("/usr/lib/postgresql") / control.parents[1].name / "bin"
        if (programs / "initdb").exists():
            return programs
    return None


def _open_the_way(*folders: str) -> None:
    """Let every user reach folders, as those of Python in root's home, and nothing beside them."""
    kept, closed = {}, set()
    for number, folder in enumerate(sorted(set(folders))):
        barred = [parent for parent in Path(folder).parents if not parent.stat().st_mode & 1]
        if barred:
            kept[folder] = Path(f"/mnt/kept-{number}")
            kept[folder].mkdir()
            _mount("--bind", folder, str(kept[folder]))
            closed.add(barred[-1])
    for parent in closed:
        _mount("-t", "tmpfs", "-o", "mode=755", "tmpfs", str(parent))
    for folder, source in kept.items():
        Path(folder).mkdir(parents=True)
        _mount("--bind", str(source), folder)


def _mount(*words: str) -> None:
    subprocess.run(["mount", *words], check=True)
