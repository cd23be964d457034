"""The packages at the top of the repository are the packages that are installed."""

from __future__ import annotations

import importlib
import re
import shutil
import tarfile
import tomllib
import zipfile
from typing import TYPE_CHECKING, Any

import pytest

import suffice
from scripts.distributions import problems

if TYPE_CHECKING:
    from pathlib import Path

WHEEL = f"suffice-{suffice.__version__}-py3-none-any.whl"
AT_THE_TOP = ("flows", "pipeline", "storage")
ONLY_FOR_THE_REPOSITORY = (".ci/", ".github/", ".gitignore")
WRITTEN_BY_SETUPTOOLS = ("PKG-INFO", "setup.cfg", "suffice.egg-info/")


@pytest.fixture(scope="module")
def setuptools_table(repository: Path) -> dict[str, Any]:
    table: dict[str, Any] = tomllib.loads((repository / "pyproject.toml").read_text())["tool"]["setuptools"]
    return table


def source_files(repository: Path, pattern: str) -> dict[str, Path]:
    """Return the package's files by their path in a wheel, each once."""
    tops = {f"suffice/{name}": repository / name for name in AT_THE_TOP}
    package = repository / "src" / "suffice"
    files = {f"suffice/{path.name}": path for path in package.glob(pattern)}
    tops |= {
        f"suffice/{path.name}": path for path in package.iterdir() if path.is_dir() and not path.is_symlink()
    }
    for prefix, top in tops.items():
        files |= {f"{prefix}/{path.relative_to(top).as_posix()}": path for path in top.rglob(pattern)}
    return files


def wheel_contents(directory: Path) -> dict[str, bytes]:
    (wheel,) = directory.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def source_contents(directory: Path) -> dict[str, bytes]:
    """Return the files of a source distribution by their path below its one folder."""
    (distribution,) = directory.glob("*.tar.gz")
    with tarfile.open(distribution) as archive:
        members = [member for member in archive if not member.isdir()]
        assert all(member.isfile() for member in members)
        return {member.name.partition("/")[2]: content(archive, member) for member in members}


def content(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = archive.extractfile(member)
    assert file is not None
    return file.read()


@pytest.mark.parametrize("name", AT_THE_TOP)
def test_the_installed_package_is_the_directory_at_the_top(repository: Path, name: str) -> None:
    module = importlib.import_module(f"suffice.{name}")
    assert module.__file__ is not None
    assert (repository / name / "__init__.py").samefile(module.__file__)
    if not (repository / ".git").exists():
        pytest.skip("a source distribution holds no links")
    assert (repository / "src" / "suffice" / name).is_symlink()
    assert (repository / "src" / "suffice" / name).readlink().parts == ("..", "..", name)


def test_every_directory_with_modules_is_a_listed_package(
    repository: Path, setuptools_table: dict[str, Any]
) -> None:
    modules = source_files(repository, "*.py")
    directories = {name.rpartition("/")[0] for name in modules}
    assert {f"{directory}/__init__.py" for directory in directories} <= set(modules)
    assert sorted(directory.replace("/", ".") for directory in directories) == setuptools_table["packages"]


@pytest.mark.slow
def test_a_wheel_holds_the_modules_the_proofs_and_nothing_else(distributions: Path) -> None:
    source = distributions / "source"
    expected = source_files(source, "*.py") | source_files(source, "*.md")
    for kind in ("assets/*", "templates/*"):
        pages = source / "src" / "suffice" / "pages"
        expected |= {f"suffice/pages/{path.relative_to(pages).as_posix()}": path for path in pages.glob(kind)}
    expected["suffice/py.typed"] = source / "src" / "suffice" / "py.typed"
    assert {
        "suffice/pipeline/terms/statistics/sensitivity.md",
        "suffice/pipeline/terms/statistics/l2_sensitivity.md",
        "suffice/pipeline/rows/mechanism/cone/cone.md",
        "suffice/pipeline/rows/mechanism/mechanism.md",
    } <= set(expected)
    contents = wheel_contents(distributions / "tree")
    installed = {name: data for name, data in contents.items() if ".dist-info/" not in name}
    assert sorted(installed) == sorted(expected)
    assert installed == {name: path.read_bytes() for name, path in expected.items()}
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in contents)


@pytest.mark.slow
def test_a_source_distribution_holds_the_files_of_the_repository_and_nothing_else(
    repository: Path, repository_files: list[str], distributions: Path
) -> None:
    files = {name for name in repository_files if not (repository / name).is_symlink()}
    assert {"CHANGELOG.md", "Makefile", "tests/conftest.py", "tests/support/making.py"} <= files
    contents = source_contents(distributions / "sdist")
    packaged = {name: data for name, data in contents.items() if not name.startswith(WRITTEN_BY_SETUPTOOLS)}
    assert sorted(packaged) == sorted(name for name in files if not name.startswith(ONLY_FOR_THE_REPOSITORY))
    assert packaged == {name: (repository / name).read_bytes() for name in packaged}


@pytest.mark.slow
def test_the_wheel_built_from_the_source_distribution_is_the_same(distributions: Path) -> None:
    assert wheel_contents(distributions / "sdist") == wheel_contents(distributions / "tree")
    first, second = ((distributions / kind / WHEEL).read_bytes() for kind in ("sdist", "tree"))
    assert first == second, "also byte by byte: times in it are those of the commit"


@pytest.mark.slow
def test_an_index_may_have_them_once_the_release_is_dated_and_the_repository_public(
    distributions: Path, tmp_path: Path
) -> None:
    (source,) = (distributions / "sdist").glob("*.tar.gz")
    for path in (source, distributions / "sdist" / WHEEL):
        shutil.copy(path, tmp_path)
    said = problems(tmp_path, tag=f"v{suffice.__version__}", repository="https://example.org/owner/suffice")
    later = re.compile("CHANGELOG.md has no heading with a date|the metadata have no link|the link .* lead")
    assert not [line for line in said if not later.match(line)]
