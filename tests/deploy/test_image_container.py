"""Built images as containers: a root that nobody can write, no rights of root's, no network but the loopback.

``sh deploy/image/build.sh consumer`` and ``pipeline`` make them. buildah mounts each, and runc runs it with
the command, the user and the variables that the image names.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import uuid
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.audit, pytest.mark.timeout(300)]

USER = 10001
HOME = "/var/lib/suffice"
KERNELS = "import suffice.pipeline.rows.chunk.kernels, suffice.pipeline.rows.contribution.unit_ids"
PAGES = """
import subprocess, sys, time, urllib.request
quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
server = subprocess.Popen(["prefect", "server", "start"], **quiet)
for _ in range(120):
    try:
        ask = urllib.request.Request("http://127.0.0.1:4200/", headers={"accept": "text/html"})
        print(urllib.request.urlopen(ask, timeout=5).read().decode())
        break
    except OSError:
        time.sleep(0.5)
server.terminate()
"""


def buildah(*words: str | Path) -> str:
    return subprocess.run(["buildah", *words], capture_output=True, text=True, check=True).stdout.strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """An image that is mounted, and what it says of itself."""

    root: Path
    config: dict[str, Any]
    bundle: Path
    writable: tuple[str, ...] = ("/tmp", HOME)  # noqa: S108 - mounts of the container

    def run(self, *words: str, variables: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
        """Run words as ``docker run --rm --read-only --cap-drop ALL`` would; the volume is new."""
        volume = self.bundle / "volume"
        shutil.rmtree(volume, ignore_errors=True)
        volume.mkdir(mode=0o700)
        os.chown(volume, USER, USER)
        mounts: list[dict[str, Any]] = [
            {"destination": "/proc", "type": "proc", "source": "proc"},
            {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755"]},
            {"destination": "/tmp", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=1777"]},  # noqa: S108
            {"destination": HOME, "type": "bind", "source": str(volume), "options": ["bind", "rw"]},
        ]
        user, _, group = self.config["User"].partition(":")
        spec = {
            "ociVersion": "1.0.0",
            "process": {
                "user": {"uid": int(user), "gid": int(group)},
                "args": words,
                "env": [*self.config["Env"], *variables],
                "cwd": "/",
                "capabilities": {},
                "noNewPrivileges": True,
            },
            "root": {"path": str(self.root), "readonly": True},
            "mounts": [
                mount
                for mount in mounts
                if mount["destination"] in {"/proc", "/dev"} or mount["destination"] in self.writable
            ],
            "linux": {"namespaces": [{"type": name} for name in ("pid", "network", "ipc", "uts", "mount")]},
        }
        (self.bundle / "config.json").write_text(json.dumps(spec), encoding="utf-8")
        command = ["runc", "run", "--bundle", str(self.bundle), f"suffice-{uuid.uuid4()}"]
        return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module", params=["consumer", "pipeline"])
def image(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Image]:
    name = f"localhost/suffice-{request.param}"
    if os.geteuid() != 0 or not shutil.which("buildah") or not shutil.which("runc"):
        pytest.skip("an image is mounted and run by root, with buildah and runc")
    if not buildah("images", "--quiet", "--filter", f"reference={name}"):
        pytest.skip(f"{name} is not built: sh deploy/image/build.sh {request.param}")
    container = buildah("from", "--pull-never", name)
    try:
        config = json.loads(buildah("inspect", "--type", "image", name))["Docker"]["config"]
        root = Path(buildah("mount", container))
        yield Image(root=root, config=config, bundle=tmp_path_factory.mktemp("bundle"))
    finally:
        buildah("rm", container)


@pytest.fixture(scope="module")
def pipeline(image: Image) -> Image:
    if "PREFECT_HOME" not in " ".join(image.config["Env"]):
        pytest.skip("of the image that makes releases")
    return image


def test_nothing_is_in_it_that_must_not_be(image: Image, repository: Path) -> None:
    check = repository / "deploy/image/check_image.py"
    ran = subprocess.run(
        [sys.executable, "-S", check, image.root], capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stdout) == (0, "nothing that must not be there\n")


def test_it_starts(image: Image) -> None:
    ran = image.run(*image.config["Cmd"])
    assert ran.returncode == 0, ran.stderr
    assert "Usage" in ran.stdout


def test_it_is_healthy_where_it_can_write(image: Image) -> None:
    if "Healthcheck" not in image.config:
        pytest.skip("OCI's format has no health check: build without FORMAT=oci")
    kind, *words = image.config["Healthcheck"]["Test"]
    assert kind == "CMD"
    assert image.run(*words).returncode == 0
    for missing, variable in (("/tmp", "TMPDIR"), (HOME, "HOME")):  # noqa: S108
        kept = tuple(name for name in image.writable if name != missing)
        ran = replace(image, writable=kept).run(*words)
        assert ran.returncode == 1
        assert f"{variable}: {missing} cannot be written" in ran.stderr


def test_it_can_change_nothing_and_become_nobody_else(image: Image) -> None:
    who = image.run("sh", "-c", "id -u; id -g; grep -E 'CapEff|NoNewPrivs' /proc/self/status")
    assert who.stdout.split() == ["10001", "10001", "CapEff:", "0000000000000000", "NoNewPrivs:", "1"]
    for place, why in (
        ("/opt/suffice/bin/new", "Read-only file system"),
        ("/etc/passwd", "Permission denied"),
    ):
        ran = image.run("sh", "-c", f"echo >> {place}")
        assert ran.returncode != 0
        assert why in ran.stderr
    assert image.run("sh", "-c", f"echo > {HOME}/new && echo > /tmp/new").returncode == 0


def test_its_kernels_are_not_compiled_again(pipeline: Image) -> None:
    ran = pipeline.run("python", "-c", KERNELS, variables=("NUMBA_DEBUG_CACHE=1",))
    assert ran.returncode == 0, ran.stderr
    assert "data loaded" in ran.stdout
    assert "data saved" not in ran.stdout
    elsewhere = pipeline.run(
        "python", "-c", KERNELS, variables=("NUMBA_DEBUG_CACHE=1", "NUMBA_CPU_NAME=skylake-avx512")
    )
    assert "data loaded" not in elsewhere.stdout


def test_prefects_pages_are_served(pipeline: Image) -> None:
    ran = pipeline.run("python", "-c", PAGES)
    assert "<title>Prefect Server</title>" in ran.stdout, ran.stderr
