"""The images' locked requirements, Containerfile, and steps."""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import json
import os
import re
import runpy
import shutil
import subprocess
import sys
import tomllib
from typing import TYPE_CHECKING, Any

import pytest
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from scripts.image_requirements import BUILD_TOOLS, STAGES

if TYPE_CHECKING:
    from pathlib import Path

STAGE_NAMES = sorted(STAGES)


@pytest.fixture(scope="module")
def folder(repository: Path) -> Path:
    return repository / "deploy" / "image"


def locked(path: Path) -> dict[str, tuple[Requirement, list[str]]]:
    """Return the requirements of a file and their hashes, by name."""
    pins: dict[str, tuple[Requirement, list[str]]] = {}
    for entry in re.split(r"\n(?=\S)", path.read_text().strip()):
        if not entry.startswith("#"):
            head, *hashes = entry.replace("\\", "").split("--hash=")
            requirement = Requirement(head.strip())
            pins[canonicalize_name(requirement.name)] = requirement, [each.strip() for each in hashes]
    return pins


def pinned(requirement: Requirement) -> Version:
    (specifier,) = requirement.specifier
    assert specifier.operator == "=="
    return Version(specifier.version)


@pytest.mark.parametrize("stage", [*STAGE_NAMES, "build"])
def test_every_requirement_has_a_version_and_hashes_and_no_address(folder: Path, stage: str) -> None:
    path = folder / f"requirements-{stage}.txt"
    assert "://" not in path.read_text()
    assert "--index" not in path.read_text()
    requirements = locked(path)
    assert len(requirements) > 10
    for requirement, hashes in requirements.values():
        pinned(requirement)
        assert hashes
        assert all(re.fullmatch(r"sha256:[0-9a-f]{64}", each) for each in hashes)


@pytest.mark.parametrize("stage", [*STAGE_NAMES, "build"])
def test_versions_are_those_of_the_constraints(repository: Path, folder: Path, stage: str) -> None:
    constraints: dict[str, set[Version]] = {}
    for line in (repository / "constraints.txt").read_text().splitlines():
        if not line.startswith("#"):
            requirement = Requirement(line)
            constraints.setdefault(canonicalize_name(requirement.name), set()).add(pinned(requirement))
    for name, (requirement, _) in locked(folder / f"requirements-{stage}.txt").items():
        if stage != "build":
            assert name in constraints
        if name in constraints:
            assert pinned(requirement) in constraints[name]


@functools.cache
def needs_of(name: str) -> list[Requirement]:
    return [Requirement(each) for each in importlib.metadata.requires(name) or []]


def closure(extras: set[str], names: dict[str, Any]) -> set[str]:
    """Return what `suffice` with extras needs on this Linux, by the metadata of what is installed."""
    waiting = [Requirement(each) for each in names["dependencies"]]
    done: set[tuple[str, str]] = set()
    for extra in sorted(extras):
        waiting += [Requirement(each) for each in names["optional-dependencies"][extra]]
    environment: dict[str, str] = {key: str(value) for key, value in default_environment().items()}
    required: set[str] = set()
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        for extra in ["", *sorted(requirement.extras)]:
            if (name, extra) in done:
                continue
            done.add((name, extra))
            if name == "suffice":
                texts = names["optional-dependencies"][extra] if extra else names["dependencies"]
                needs = [Requirement(each) for each in texts]
            else:
                required.add(name)
                needs = needs_of(name)
            for each in needs:
                if each.marker is None or each.marker.evaluate(environment | {"extra": extra}):
                    waiting.append(each)
    return required


@pytest.mark.slow
@pytest.mark.parametrize("stage", STAGE_NAMES)
def test_a_stage_locks_what_its_extras_need_and_nothing_else(
    repository: Path, folder: Path, stage: str
) -> None:
    project = tomllib.loads((repository / "pyproject.toml").read_text())["project"]
    requirements = locked(folder / f"requirements-{stage}.txt")
    here = {
        name
        for name, (requirement, _) in requirements.items()
        if requirement.marker is None or requirement.marker.evaluate()
    }
    assert here == closure(set(STAGES[stage]), project)


def test_the_builds_tools_are_locked_and_in_no_stage(folder: Path) -> None:
    tools = {canonicalize_name(Requirement(each).name) for each in BUILD_TOOLS}
    assert tools <= locked(folder / "requirements-build.txt").keys()
    for stage in STAGE_NAMES:
        assert not locked(folder / f"requirements-{stage}.txt").keys() & {"pip", "cyclonedx-bom", "uv"}


def instructions(folder: Path) -> list[tuple[str, str]]:
    text = re.sub(r"\\\n", " ", (folder / "Containerfile").read_text())
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [(line.split()[0], line.partition(" ")[2].strip()) for line in lines]


def test_the_result_runs_as_a_user_and_its_files_come_by_copies_alone(folder: Path) -> None:
    lines = instructions(folder)
    result = lines[lines.index(("FROM", "${BASE} AS base")) :]
    assert ("USER", "10001:10001") in result
    assert not [value for name, value in result if name in {"RUN", "ADD", "VOLUME", "ENTRYPOINT"}]
    assert {value for name, value in result if name == "COPY"} == {
        "deploy/image/rootfs/ /",
        "--chown=10001:10001 deploy/image/home/ /var/lib/suffice/",  # volumes take the owner from here
        *(f"--from=build-{stage} /opt/suffice /opt/suffice" for stage in STAGE_NAMES),
    }
    assert [name for name, _ in result].count("HEALTHCHECK") == 1
    assert "suffice:x:10001:10001:" in (folder / "rootfs/etc/passwd").read_text()


def test_nothing_enters_the_context_but_what_is_copied(folder: Path) -> None:
    allowed = (folder / "Containerfile.dockerignore").read_text().splitlines()
    assert allowed[1] == "*"
    copied = {
        part
        for name, value in instructions(folder)
        if name == "COPY" and not value.startswith("--from")
        for part in value.split()[:-1]
        if not part.startswith("--")
    }
    admitted = {line[1:] for line in allowed if line.startswith("!")}
    assert {part.removesuffix("/rootfs/").removesuffix("/home/") for part in copied} == admitted - {"deploy"}
    assert {"**/.env*", "**/*.pem", "**/*.key", "**/*.db"} <= set(allowed)


def builder(folder: Path) -> dict[str, Any]:
    """Return what stands in ``build_prefix.py``."""
    sys.path.insert(0, str(folder))
    try:
        return runpy.run_path(str(folder / "build_prefix.py"))
    finally:
        sys.path.remove(str(folder))


def test_what_is_compiled_names_no_address_of_its_build(folder: Path, tmp_path: Path) -> None:
    listing = b"\x80\x05 global(f: <function f at 0x7f1935741f80>) 0x7f1935741f80 \x00"
    (tmp_path / "one.nbc").write_bytes(listing)
    builder(folder)["forget_addresses"](tmp_path)
    zeros = listing.replace(b"at 0x7f1935741f80>", b"at 0x000000000000>")
    assert (tmp_path / "one.nbc").read_bytes() == zeros


def test_arrows_client_of_s3_stays_for_iceberg(folder: Path, tmp_path: Path) -> None:
    unused = builder(folder)["shrink"].__globals__["unused_libraries"]
    assert "pyarrow/_s3fs.*.so" in unused(tmp_path)
    (tmp_path / "pyiceberg").mkdir()
    assert "pyarrow/_s3fs.*.so" not in unused(tmp_path)
    assert "pyarrow/_flight.*.so" in unused(tmp_path)


def test_the_environment_says_what_the_build_compiled_for(repository: Path, folder: Path) -> None:
    (text,) = [value for name, value in instructions(folder) if name == "ENV" and "NUMBA" in value]
    environment = dict(part.partition("=")[::2] for part in text.split())
    locator = environment["NUMBA_CACHE_LOCATOR_CLASSES"]
    source = repository / (locator.removeprefix("suffice.").rpartition(".")[0].replace(".", "/") + ".py")
    assert f"class {locator.rpartition('.')[2]}(" in source.read_text()
    portable = builder(folder)["PORTABLE"]
    assert portable.items() <= environment.items()


def test_shrinking_removes_tests_and_headers_and_keeps_records_true(folder: Path, tmp_path: Path) -> None:
    prefix = tmp_path / "prefix"
    packages = prefix / "lib" / "python3.13" / "site-packages"
    kept = {"one/__init__.py": "x = 1\n", "tests/__init__.py": "", "one/testing/help.py": ""}
    gone = {
        "one/tests/test_x.py": "",
        "one/deep/tests/data/a.csv": "1",
        "one/lib.h": "",
        "one/a.pyx": "",
        "one/x.pyi": "",
        "pyarrow/_s3fs.cpython-313-x86_64-linux-gnu.so": "",
        "pyarrow/libarrow_s3.so.2600": "",
    }
    for name, text in (kept | gone).items():
        (packages / name).parent.mkdir(parents=True, exist_ok=True)
        (packages / name).write_text(text)
    record = packages / "one-1.dist-info" / "RECORD"
    record.parent.mkdir()
    record.write_text("".join(f"{name},sha256=abc,1\n" for name in [*kept, *gone]))
    program = "import sys; from pathlib import Path; from shrink import shrink; shrink(Path(sys.argv[1]))"
    subprocess.run(
        [sys.executable, "-c", program, prefix],
        cwd=folder,
        check=True,
        env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},
    )
    left = {path.relative_to(packages).as_posix() for path in packages.rglob("*") if path.is_file()}
    assert left == {*kept, "one-1.dist-info/RECORD"}
    assert [line.split(",")[0] for line in record.read_text().splitlines()] == list(kept)


def a_clean_root(root: Path) -> Path:
    packages = root / "opt/suffice/lib/python3.13/site-packages"
    (packages / "suffice/__pycache__").mkdir(parents=True)
    (packages / "suffice/a.py").write_text("x = 1\n")
    (packages / "suffice/__pycache__/a.cpython-313.pyc").write_bytes(b"")
    (packages / "suffice-0.1.0.dist-info").mkdir()
    bom = root / "opt/suffice/share/suffice/sbom.cdx.json"
    bom.parent.mkdir(parents=True)
    bom.write_text(
        json.dumps({"bomFormat": "CycloneDX", "components": [{"name": "suffice", "version": "0.1.0"}]})
    )
    return packages


def check(folder: Path, root: Path) -> tuple[int, str]:
    ran = subprocess.run(
        [sys.executable, "-S", folder / "check_image.py", root], capture_output=True, text=True, check=False
    )
    assert not ran.stderr
    return ran.returncode, ran.stdout


def test_each_thing_that_must_not_be_in_an_image_is_found(folder: Path, tmp_path: Path) -> None:
    packages = a_clean_root(tmp_path)
    assert check(folder, tmp_path) == (0, "nothing that must not be there\n")
    planted = {
        "usr/bin/x86_64-linux-gnu-gcc-14": ("", "a compiler"),
        "opt/suffice/lib/python3.13/site-packages/pip/x": ("", "a package manager"),
        "opt/suffice/lib/python3.13/site-packages/one/tests/x": ("", "tests"),
        "opt/suffice/lib/python3.13/site-packages/one/x.h": ("", "for compilers"),
        "opt/suffice/lib/python3.13/site-packages/suffice/b.py": ("", "no bytecode"),
        "var/lib/suffice/signing.key": ("", "a secret by its name"),
        "var/lib/suffice/url": ("postgresql://me:word@host/ledger", "a secret by its content"),
    }
    for name, (text, _) in planted.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (packages / "two-2.dist-info").mkdir()
    (packages / "suffice/a.py").chmod(0o666)
    status, printed = check(folder, tmp_path)
    assert status == 1
    for _, finding in planted.values():
        assert f"{finding}: " in printed
    assert "not in the inventory: two 2" in printed
    assert "can be written by the user: " in printed


@pytest.mark.audit
@pytest.mark.timeout(3600)
@pytest.mark.skipif(shutil.which("strip") is None, reason="binutils are not installed")
@pytest.mark.parametrize("stage", ["consumer", "pipeline"])
def test_a_folder_is_made_twice_alike_and_works_where_nothing_can_be_written(
    folder: Path, tmp_path: Path, stage: str
) -> None:
    root = tmp_path / "root"
    prefix = root / "opt" / "suffice"
    results = []
    for _ in range(2):
        shutil.rmtree(root, ignore_errors=True)
        ran = subprocess.run(
            [sys._base_executable, folder / "build_prefix.py", stage, prefix],  # type: ignore[attr-defined]
            env={key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
            | {"SOURCE_DATE_EPOCH": "1700000000"},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        results.append(json.loads(ran.stdout.splitlines()[-1]))
    assert results[0] == results[1]
    assert results[0]["shrunk"] < 0.75 * results[0]["installed"]
    assert check(folder, root)[0] == 0
    help_text = subprocess.run(
        [prefix / "bin/suffice", "--help"], env={}, capture_output=True, text=True, check=True
    )
    assert "Usage" in help_text.stdout
    if stage == "pipeline":
        assert machine_code_is_loaded_not_compiled(prefix)


def machine_code_is_loaded_not_compiled(prefix: Path) -> bool:
    """Import the loops with the image's environment: they are in C, or numba says where each came from."""
    before = {path: hashlib.sha256(path.read_bytes()).digest() for path in prefix.rglob("*.nb[ci]")}
    environment = {
        "NUMBA_CPU_NAME": "generic",
        "NUMBA_CPU_FEATURES": "",
        "NUMBA_DEBUG_CACHE": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "NUMBA_CACHE_LOCATOR_CLASSES": "suffice.pipeline.rows.chunk.numba_loops.ShippedMachineCode",
    }
    program = (
        "import suffice.pipeline.rows.chunk.kernels, suffice.pipeline.rows.contribution.unit_ids, sys\n"
        "if 'numba' not in sys.modules: print('in C')"
    )
    ran = subprocess.run(
        [prefix / "bin/python", "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    after = {path: hashlib.sha256(path.read_bytes()).digest() for path in prefix.rglob("*.nb[ci]")}
    return (
        ("in C" in ran.stdout or "data loaded" in ran.stdout)
        and "saved" not in ran.stdout
        and before == after
    )
