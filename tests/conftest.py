"""What tests of every layer may use."""

from __future__ import annotations

import gc
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from support.collecting import order_of
from support.lanes import servers_first, slow_without_the_mark
from support.memory import roomy_memory

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.made_once import Schemas
    from support.making import Workspace
    from support.postgres import Server
    from support.prefect_server import PrefectServer
    from support.running import Runner

TEMPORARY = "PYTEST_DEBUG_TEMPROOT"
"""The variable of pytest that names where temporary folders of tests are made."""
ROOM = 4 * 2**30
"""Bytes; a whole run fills far less, as the folders of tests that passed are removed at once."""
if TEMPORARY not in os.environ and (memory := roomy_memory(ROOM)):
    os.environ[TEMPORARY] = str(memory)

os.environ.setdefault("OMP_NUM_THREADS", "1")
"""Several processes share the cores: threads of linear algebra would only wait for one another.

NumPy reads it when it is imported, which no plugin and nothing above does.
"""

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
"""No test fails because its machine is slow."""

ENGINES = ("sqlite", "postgresql")

REPOSITORY = Path(__file__).resolve().parents[1]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add what CI asks for: the tests that took long without being marked."""
    parser.addoption("--name-slow", action="store_true", help="name tests of a second or more without `slow`")


def pytest_configure(config: pytest.Config) -> None:
    """Let processes collect from different ends."""
    if (order := order_of(os.environ.get("PYTEST_XDIST_WORKER", ""), config.args)) is not None:
        config.pluginmanager.register(order)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Iterator[None]:
    """Collect without looking for garbage: what is made lives to the end, and looking at it takes seconds."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep each server in one process, wherever tests are shared out by ``worksteal``."""
    items[:] = servers_first(items)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Name the tests that belong in the slow lane; this fails nothing, as machines differ."""
    if not terminalreporter.config.getoption("--name-slow"):
        return
    reports = [report for status in ("passed", "failed") for report in terminalreporter.stats.get(status, [])]
    terminalreporter.section("a second or more without the mark `slow`")
    for report in slow_without_the_mark(reports):
        terminalreporter.write_line(f"{report.duration:6.2f} s {report.nodeid}")


@pytest.fixture(scope="session", autouse=True)
def schemas() -> Iterator[Schemas]:
    """Run the ledger's migrations once for each engine, and compile each statement once.

    Other ledgers are made by the same statements, or from copies.
    """
    from sqlalchemy.sql.elements import ClauseElement

    from suffice.storage.ledger.sql import migrations, sqlite
    from support.compiled_once import compiling_once
    from support.made_once import Schemas

    made = Schemas()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(migrations, "upgrade", made.keeping_statements(migrations.upgrade))
        patch.setattr(sqlite, "_fill", made.filling_copies(sqlite._fill))
        patch.setattr(ClauseElement, "_compile_w_cache", compiling_once(ClauseElement._compile_w_cache))
        yield made


@pytest.fixture(autouse=True)
def printed_documents_fit_their_schemas(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hold every document that a command prints in this process against its schema."""
    app = sys.modules.get("suffice.cli.app")
    if app is not None:
        from support.printed import watched

        monkeypatch.setattr(app, "_run", watched(app))


@pytest.fixture(scope="session")
def repository() -> Path:
    """Return the top of the source tree."""
    return REPOSITORY


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Server]:
    """Return the one PostgreSQL server of this session; without one the tests fail."""
    from support.postgres import VARIABLE, is_at_hand, running_server

    if sys.version_info >= (3, 13) and not is_at_hand():
        pytest.skip(f"pgserver has no wheel for Python 3.13: name a PostgreSQL server in {VARIABLE}")
    with running_server() as server:
        yield server


@pytest.fixture(scope="session")
def prefect_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrefectServer]:
    """Return the one Prefect server of this session: starting one takes 20 s."""
    from support.prefect_server import running_server

    with running_server(tmp_path_factory.mktemp("prefect")) as server:
        yield server


@pytest.fixture
def postgres_url(postgres_server: Server) -> Iterator[str]:
    """Return the URL of an empty database of the test's own."""
    url = postgres_server.new_database()
    yield url
    postgres_server.drop(url)


@pytest.fixture(scope="session")
def source_database(postgres_server: Server) -> Iterator[str]:
    """Return the URL of a database whose tables are sources: one for all tests, as each writes its own."""
    url = postgres_server.new_database()
    yield url
    postgres_server.drop(url)


@pytest.fixture(params=ENGINES)
def ledger_url(request: pytest.FixtureRequest, tmp_path: Path, schemas: Schemas) -> Iterator[str]:
    """Return the URL of a ledger still to be made, on each engine: `create_ledger` makes it."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/ledger.db"
        return
    server: Server = request.getfixturevalue("postgres_server")
    url = server.new_database(schemas.preparing("postgresql"))
    yield url
    server.drop(url)


@pytest.fixture(params=ENGINES)
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the URL of a ledger of any schema still to be made, on each engine."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/ledger.db"
    return str(request.getfixturevalue("postgres_url"))


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """Data, a granted ledger and a store of the test's own, which commands find by themselves."""
    from support.making import make_workspace

    made = make_workspace(tmp_path)
    monkeypatch.setenv("SUFFICE_STORE", made.store)
    monkeypatch.setenv("SUFFICE_LEDGER", made.ledger)
    return made


@pytest.fixture
def suffice(capsys: pytest.CaptureFixture[str]) -> Runner:
    """Return what runs commands in this process."""
    from support.running import Runner

    return Runner(capsys)


@pytest.fixture
def chains_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the chains of one posterior once in a test, however often it asks for it."""
    from support.same_chains import run_chains_once

    run_chains_once(monkeypatch)


@pytest.fixture(scope="session")
def s3_url() -> Iterator[str]:
    """Return the address of the one server of S3 of this session; it has a bucket."""
    from support.buckets import s3_server

    with s3_server() as (url, _):
        yield url


@pytest.fixture(scope="session")
def repository_files() -> list[str]:
    """Return the paths of the files that git tracks, and of new ones that it does not ignore."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        check=False,
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
    )
    if listed.returncode:
        pytest.skip(f"only a repository says which files are its own: {listed.stderr.strip()}")
    names = sorted(filter(None, listed.stdout.split("\0")))
    return [name for name in names if (REPOSITORY / name).exists()]


@pytest.fixture(scope="session")
def distributions(tmp_path_factory: pytest.TempPathFactory, repository_files: list[str]) -> Path:
    """Build ``sdist/``, with the wheel made from it, and a wheel straight from the ``tree/``; offline."""
    work = tmp_path_factory.mktemp("distributions")
    tree = work / "source"
    for name in repository_files:
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(REPOSITORY / name, tree / name, follow_symlinks=False)
    for options, out in ((["--wheel"], "tree"), ([], "sdist")):
        run_build(tree, work / out, options)
    return work


def run_build(tree: Path, out: Path, options: list[str]) -> None:
    """Build distributions with the tools that are installed."""
    subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", *options, "--outdir", str(out), str(tree)],
        check=True,
        capture_output=True,
        # As a release sets them: the commit's time, and a wheel for every platform.
        env={**os.environ, "SOURCE_DATE_EPOCH": "1767225600", "SUFFICE_PURE": "1"},
    )
