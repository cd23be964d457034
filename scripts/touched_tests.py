"""Run the tests of what was changed: ``python -m scripts.touched_tests [revision]``.

Changed is what differs from the commit that this branch and the revision have in common: committed,
uncommitted and new files. Without a revision it is ``origin/main``; where that does not exist, the last
commit's parent.

The rooms of ``tests/`` are those of the code: a file of ``pipeline/spec/`` is tested by
``tests/pipeline/spec/``, and one of a room within a room by the tests of the inner one. What several rooms
share (``tests/support/``, ``scripts/``) is tested by every file of tests that imports it. The quick tests of
the repository itself always run. Slow tests of touched rooms run with the others.
"""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

ALWAYS = (
    "tests/test_imports.py",
    "tests/test_layout.py::test_every_directory_with_modules_is_a_listed_package",
    "tests/test_layout.py::test_the_installed_package_is_the_directory_at_the_top",
    "tests/test_meta.py",
    "tests/test_public_api.py",
    "tests/test_structure.py",
)
"""What takes seconds and may break by any change; of the layout, what builds no wheel."""

REVISIONS = ("origin/main", "HEAD~1", "HEAD")
"""What changes are counted from where no revision is named: the first that exists."""


@dataclass(frozen=True)
class Selection:
    """Arguments for pytest, and the changed files of code that no tests are kept for."""

    tests: tuple[str, ...]
    untested: tuple[str, ...]


def select(changed: Iterable[str], test_files: Mapping[str, str]) -> Selection:
    """Select tests by the paths of `changed` files, given the text of every Python file of ``tests/``."""
    selected, untested = set(), []
    for path in sorted(changed):
        chosen = {test for test in _candidates(path, test_files) if _is_test(test)}
        selected |= chosen
        if (
            path.endswith(".py")
            and not path.endswith("__init__.py")
            and not chosen
            and path not in test_files
        ):
            untested.append(path)
    always = [test for test in ALWAYS if test.partition("::")[0] not in selected]
    return Selection(tests=(*sorted(selected), *always), untested=tuple(untested))


def _candidates(path: str, test_files: Mapping[str, str]) -> Iterable[str]:
    chosen: Iterable[str] = ()
    match Path(path).parts:
        case ("tests", "support", *_) | ("scripts", _):
            chosen = _importers(_module_of(path), test_files)
        case ("tests", *folders, "conftest.py") if folders:
            chosen = _below(["tests", *folders], test_files)
        case ("tests", *_):
            chosen = [path] if path in test_files else []
        case ("src", "suffice", folder, _, *_):
            chosen = _below(["tests", folder], test_files)
        case ("src", "suffice", name):
            chosen = _named_after(Path(name).stem, test_files)
        case ("pipeline", "math", "engines", "jax_sums.py" | "jax_moments.py"):
            chosen = _below(["tests", "pipeline", "ask", "numpyro"], test_files)
        case ("docs", *_, name):
            chosen = [test for test, text in test_files.items() if name in text]
        case ("pipeline" | "storage" as top, *folders, name) if folders:
            chosen = _innermost(top, folders, name, test_files)
        case ("flows" | "benchmarks" | "studies" as top, *_):
            chosen = _below(["tests", top], test_files)
    return chosen


def _is_test(path: str) -> bool:
    return Path(path).name.startswith("test_")


def _module_of(path: str) -> str:
    """Return the name by which tests import a file that they share."""
    return path.removeprefix("tests/").removesuffix(".py").replace("/", ".")


def _below(folders: list[str], test_files: Mapping[str, str]) -> list[str]:
    return [path for path in test_files if path.startswith("/".join([*folders, ""]))]


def _innermost(top: str, folders: list[str], name: str, test_files: Mapping[str, str]) -> list[str]:
    """Return the tests of a part of a room where it has some of its own, else of the room.

    An engine that is a single file has the tests that are named after it.
    """
    of_engine = f"tests/pipeline/math/engines/test_{name}"
    if folders == ["math", "engines"] and of_engine in test_files:
        return [of_engine]
    below = (_below(["tests", top, *folders[:depth]], test_files) for depth in range(len(folders), 0, -1))
    return next(filter(None, below), [])


def _named_after(stem: str, test_files: Mapping[str, str]) -> list[str]:
    return [path for path in test_files if re.fullmatch(rf"tests/test_{stem}(_\w+)?\.py", path)]


def _importers(module: str, test_files: Mapping[str, str]) -> set[str]:
    """Return what imports a module that tests share, itself or by way of another one."""
    chosen: set[str] = set()
    waiting = [module]
    while waiting:
        package, _, name = waiting.pop().rpartition(".")
        says_so = re.compile(rf"{package}\.{name}\b|from {package} import .*\b{name}\b")
        importers = {path for path, text in test_files.items() if says_so.search(text)} - chosen
        chosen |= importers
        waiting += [_module_of(path) for path in importers if path.startswith("tests/support/")]
    return chosen


def start_of_changes(named: str | None, exists: Callable[[str], bool]) -> str:
    """Return the revision that changes are counted from; refuse one that does not exist."""
    if named:
        if not exists(named):
            sys.exit(f"{named} is not a revision of this repository.")
        return named
    return next(filter(exists, REVISIONS))


def git(*words: str) -> str:
    """Return what a command of git prints."""
    return subprocess.run(["git", *words], check=True, capture_output=True, text=True).stdout


def is_revision(name: str) -> bool:
    """Whether git knows a commit by this name."""
    command = ["git", "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}"]
    return subprocess.run(command, check=False, capture_output=True).returncode == 0


def changed_since(revision: str) -> list[str]:
    """Return the paths of files that differ from where this branch left `revision`; new ones too."""
    start = git("merge-base", revision, "HEAD").strip()
    listed = git("diff", "--name-only", "--no-renames", "-z", start)
    listed += git("ls-files", "--others", "--exclude-standard", "-z")
    return sorted(filter(None, listed.split("\0")))


def main(named: str | None) -> int:
    """Run the selected tests; return pytest's exit status."""
    revision = start_of_changes(named, is_revision)
    if not named and revision != REVISIONS[0]:
        print(f"{REVISIONS[0]} does not exist here: changes are counted from {revision}.")
    changed = changed_since(revision)
    test_files = {path.as_posix(): path.read_text() for path in sorted(Path("tests").rglob("*.py"))}
    selection = select(changed, test_files)
    print(f"{len(changed)} files differ from {revision}.")
    for path in selection.untested:
        print(f"{path}: no tests of its own; `make test` runs all.")
    print("Tests:", *selection.tests, sep="\n  ", flush=True)
    return subprocess.run([sys.executable, "-m", "pytest", "-q", *selection.tests], check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else None))
