"""Tests about the tests, the constraints and the texts: what they say exists, does."""

from __future__ import annotations

import re
import subprocess
import tomllib
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version

REPOSITORY = Path(__file__).resolve().parents[1]
PYTHONS = ("3.11", "3.12", "3.13")
FEWEST_TESTS = 2000


def test_the_whole_suite_is_collected(request: pytest.FixtureRequest) -> None:
    """A broken import mode or file pattern must not pass as a green run."""
    config = request.config
    everything = [Path(argument).resolve() for argument in config.args] == [REPOSITORY / "tests"]
    if not everything or config.option.keyword or "not audit" not in config.option.markexpr:
        pytest.skip("part of the suite was asked for")
    assert len(request.session.items) >= FEWEST_TESTS


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    table: dict[str, Any] = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    return table


@pytest.fixture(scope="module")
def pins() -> list[Requirement]:
    lines = (REPOSITORY / "constraints.txt").read_text().splitlines()
    return [Requirement(line) for line in lines if not line.startswith("#")]


def requirements(project: dict[str, Any]) -> list[Requirement]:
    texts = [*project["dependencies"], *chain.from_iterable(project["optional-dependencies"].values())]
    return [requirement for requirement in map(Requirement, texts) if requirement.name != "suffice"]


def pinned(pins: list[Requirement], name: str, python: str) -> Version:
    (version,) = [
        next(iter(pin.specifier)).version
        for pin in pins
        if canonical(pin.name) == canonical(name) and applies(pin, python)
    ]
    return Version(version)


def applies(requirement: Requirement, python: str) -> bool:
    environment = {"python_version": python, "python_full_version": f"{python}.0"}
    return requirement.marker is None or requirement.marker.evaluate(environment)


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_constraints_are_exact_versions_and_nothing_else() -> None:
    """No hashes, no index addresses, no paths: they hold on any machine."""
    line_rule = re.compile(r'#.*|[\w.-]+==[\w.+!]+( ; python_version (<|>=) "3\.1[23]")?')
    for line in (REPOSITORY / "constraints.txt").read_text().splitlines():
        assert line_rule.fullmatch(line), line


@pytest.mark.parametrize("python", PYTHONS)
def test_every_direct_requirement_is_pinned_within_its_bounds(
    project: dict[str, Any], pins: list[Requirement], python: str
) -> None:
    for requirement in requirements(project):
        if applies(requirement, python):
            version = pinned(pins, requirement.name, python)
            assert requirement.specifier.contains(version), (requirement, version)


def test_the_tested_pythons_are_those_that_the_metadata_admit(project: dict[str, Any]) -> None:
    admitted = SpecifierSet(project["requires-python"])
    assert [python for minor in range(20) if admitted.contains(python := f"3.{minor}")] == list(PYTHONS)
    listed = [entry.rpartition(" ")[2] for entry in project["classifiers"] if ":: Python :: 3." in entry]
    assert listed == list(PYTHONS)


def test_every_direct_requirement_has_a_lower_bound(project: dict[str, Any]) -> None:
    ceilings = {"fastapi"}  # Prefect's own requirement, narrowed
    for requirement in requirements(project):
        if requirement.name not in ceilings:
            assert {bound.operator for bound in requirement.specifier} & {">=", "=="}, requirement


def test_the_metadata_keep_fastapi_where_prefect_can_run(project: dict[str, Any]) -> None:
    bounds = {
        requirement.name: requirement.specifier
        for requirement in map(Requirement, project["optional-dependencies"]["pipeline"])
    }
    assert not bounds["fastapi"].contains("0.151.0")
    assert not bounds["prefect"].contains("3.9.0")


def test_the_documented_extras_are_those_of_the_metadata(project: dict[str, Any]) -> None:
    page = (REPOSITORY / "docs/reference/command-line.md").read_text()
    section = page.partition("\n## Extras\n")[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("|")]
    documented = re.findall(r"suffice\[([\w-]+)\]", "\n".join(rows))
    assert sorted(documented) == sorted(project["optional-dependencies"])


def test_an_error_names_an_extra_that_exists(project: dict[str, Any]) -> None:
    named = set()
    for top in ("flows", "pipeline", "src/suffice", "storage"):
        for path in (REPOSITORY / top).rglob("*.py"):
            named |= set(re.findall(r'MissingExtraError\([^)]*"([\w-]+)"\)', path.read_text()))
    assert {"pipeline", "plot", "signing"} <= named
    assert named <= project["optional-dependencies"].keys()


TOP_TEXTS = ("CHANGELOG.md", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "README.md", "SECURITY.md")
AT_THE_TOP = [REPOSITORY / name for name in TOP_TEXTS]
TEXTS = sorted([*(REPOSITORY / "docs").rglob("*.md"), *AT_THE_TOP])


@pytest.mark.parametrize("text", TEXTS, ids=lambda path: path.relative_to(REPOSITORY).as_posix())
def test_files_that_a_text_names_exist(text: Path) -> None:
    content = text.read_text()
    named = re.findall(r"`((?:benchmarks|docs|flows|pipeline|src|storage|tests)/[\w./*-]+)`", content)
    missing = [path for path in named if not list(REPOSITORY.glob(path.rstrip("/")))]
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", content)
    missing += [link for link in links if not (text.parent / link).exists()]
    assert not missing


def test_links_of_the_readme_name_their_paths() -> None:
    """A package index shows the README without its links: a reader finds the files by their names."""
    content = (REPOSITORY / "README.md").read_text()
    links = re.findall(r"\[([^\]]*)\]\(((?!https?:)[^)#]+)(?:#[^)]*)?\)", content)
    assert links
    assert not [path for text, path in links if path not in text and f"`{path}`" not in content]


def test_every_cited_work_is_in_the_bibliography() -> None:
    known = set(re.findall(r"@\w+\{(\w+),", (REPOSITORY / "docs" / "references.bib").read_text()))
    cited = set()
    for top in ("docs", "flows", "pipeline", "src/suffice", "storage"):
        for pattern in ("**/*.py", "**/*.md"):
            for path in (REPOSITORY / top).glob(pattern):
                cited |= set(re.findall(r"`([a-z]+\d{4}[a-z]+)`", path.read_text()))
    assert cited
    assert cited <= known


def test_decision_records_are_numbered_without_gaps() -> None:
    numbers = [path.name[:4] for path in sorted((REPOSITORY / "docs" / "decisions").glob("[0-9]*.md"))]
    assert numbers == [f"{number:04d}" for number in range(1, len(numbers) + 1)]


TARGETS = ("demo", "check", "test", "lint", "docs", "bench", "studies", "audit", "fuzz", "clean", "help")


@pytest.mark.parametrize("target", TARGETS)
def test_make_has_each_target(target: str) -> None:
    assert re.search(rf"^{target}:", (REPOSITORY / "Makefile").read_text(), re.MULTILINE)


def test_make_help_lists_each_target_with_what_it_does() -> None:
    done = subprocess.run(["make", "help"], check=True, cwd=REPOSITORY, capture_output=True, text=True)
    lines = [line.split(maxsplit=2) for line in done.stdout.splitlines() if line.startswith("make ")]
    assert [words[:2] for words in lines] == [["make", target] for target in TARGETS]
    assert all(len(words) == 3 for words in lines)


def test_make_finds_the_tested_pythons() -> None:
    makefile = (REPOSITORY / "Makefile").read_text()
    (searched,) = re.findall(r"^PYTHONS := \$\(or \$\(PYTHON\),(.*)\)$", makefile, re.MULTILINE)
    assert {f"python{python}" for python in PYTHONS} | {"python3", "python"} == set(searched.split())
    lowest, highest = (tuple(map(int, python.split("."))) for python in (PYTHONS[0], PYTHONS[-1]))
    assert f"{lowest} <= sys.version_info[:2] <= {highest}" in makefile
