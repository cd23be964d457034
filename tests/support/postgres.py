"""A real PostgreSQL for tests: the server named by SUFFICE_TEST_POSTGRES, else one of our own.

Our own runs the programs of the `pgserver` package directly: its Python interface would, as root, add a
system user and open every directory above the server's to everybody.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg import sql
from sqlalchemy import make_url

from support.memory import roomy_memory

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

VARIABLE = "SUFFICE_TEST_POSTGRES"
START_SECONDS = 30
MEMORY_NEEDED = 2 * 2**30
"""Bytes: a database is 8 MB, and the journal grows to 1 GB."""


@dataclass(frozen=True)
class Server:
    """A running server, and the URL of a superuser there."""

    url: str
    prefix: str = field(default_factory=lambda: f"suffice_test_{token_hex(4)}")
    numbers: Iterator[int] = field(default_factory=count)
    prepared: dict[str, str] = field(default_factory=dict)

    def new_database(self, statements: Sequence[str] | None = None) -> str:
        """Make a database that is empty, or as statements prepare it; return its URL.

        They run once, in a database that is copied then.
        """
        template = "template0"
        if statements is not None:
            script = ";\n".join(statements)
            if script not in self.prepared:
                url = self.new_database()
                execute(url, script)
                self.prepared[script] = url
            template = make_url(self.prepared[script]).database or ""
        name = f"{self.prefix}_{next(self.numbers)}"
        # Copying files costs half of what it does through the journal, which other servers would need.
        made = sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY file_copy")
        execute(self.url, made.format(sql.Identifier(name), sql.Identifier(template)))
        return with_database(self.url, name)

    def drop(self, url: str) -> None:
        """Drop a database, whoever is still connected."""
        name = make_url(url).database or ""
        execute(self.url, sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))

    def drop_prepared(self) -> None:
        """Drop the databases that others were copied from."""
        while self.prepared:
            self.drop(self.prepared.popitem()[1])


def with_database(url: str, name: str) -> str:
    """Return the URL of another database on the same server."""
    return make_url(url).set(database=name).render_as_string(hide_password=False)


def as_user(url: str, user: str, password: str | None = None) -> str:
    """Return the URL of the same database for another role."""
    return make_url(url).set(username=user, password=password).render_as_string(hide_password=False)


def connect(url: str) -> psycopg.Connection[tuple[Any, ...]]:
    """Connect past SQLAlchemy; every statement is a transaction of its own."""
    plain = make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
    return psycopg.connect(plain, autocommit=True)


def execute(url: str, *statements: str | sql.Composed) -> None:
    """Run statements, each in a transaction of its own."""
    with connect(url) as connection:
        for statement in statements:
            connection.execute(statement.encode() if isinstance(statement, str) else statement)


def is_at_hand() -> bool:
    """Whether a server is named, or the programs of one are installed."""
    return bool(os.environ.get(VARIABLE)) or importlib.util.find_spec("pgserver") is not None


@contextmanager
def running_server() -> Iterator[Server]:
    """Give a server for as long as the block lasts; fail where there is none."""
    named = os.environ.get(VARIABLE)
    if named:
        server = Server(named)
        try:
            yield server
        finally:
            server.drop_prepared()
        return
    # A short path: the name of a socket has at most 107 bytes.
    directory = Path(tempfile.mkdtemp(prefix="suffice-pg-"))
    data = Path(tempfile.mkdtemp(prefix="suffice-pg-", dir=roomy_memory(MEMORY_NEEDED)))
    try:
        with _own_server(directory, data) as url:
            yield Server(url)
    finally:
        for made in (directory, data):
            shutil.rmtree(made, ignore_errors=True)


@contextmanager
def _own_server(directory: Path, data: Path) -> Iterator[str]:
    account: dict[str, Any] = {}
    programs = _programs()
    if os.geteuid() == 0:  # PostgreSQL refuses to run as root
        account = {"user": "nobody", "group": "nogroup" if _group_exists("nogroup") else "nobody"}
        account["extra_groups"] = []
        if not _can_run(programs / "initdb", account):
            shutil.copytree(programs.parent, directory / "programs", symlinks=True)
            programs = directory / "programs" / programs.name
        for made in (directory, data):
            shutil.chown(made, account["user"])
    environment = {"PATH": os.environ.get("PATH", ""), "LC_ALL": "C", "TZ": "UTC"}
    options = ["--auth=trust", "--username=postgres", "--encoding=UTF8", "--locale=C", "--no-sync"]
    subprocess.run(
        [programs / "initdb", "-D", data, *options],
        check=True,
        capture_output=True,
        cwd=directory,
        env=environment,
        **account,
    )
    settings = ("listen_addresses=", f"unix_socket_directories={directory}", "max_connections=200")
    with (directory / "log").open("wb") as log:
        process = subprocess.Popen(
            [programs / "postgres", "-D", data, *(f"--{setting}" for setting in settings)],
            stdout=log,
            stderr=log,
            cwd=directory,
            env=environment,
            process_group=0,  # an interrupt from the terminal is for the tests, not for their server
            **account,
        )
    url = f"postgresql://postgres@/postgres?host={directory}"
    try:
        _wait_until_it_answers(url, process, directory / "log")
        yield url
    finally:
        process.send_signal(signal.SIGQUIT)
        process.wait(timeout=START_SECONDS)


def program(name: str) -> Path:
    """Return a client program of PostgreSQL: `pgserver`'s, else the machine's own."""
    ours = _programs() / name if importlib.util.find_spec("pgserver") else None
    path = shutil.which(name) if ours is None or not ours.exists() else ours
    assert path, f"no {name} is at hand"
    return Path(path)


def _programs() -> Path:
    package = importlib.util.find_spec("pgserver")  # its import would make directories and warn
    if package is None or not package.submodule_search_locations:
        message = f"tests need a PostgreSQL: install pgserver, or name a server in {VARIABLE}"
        raise RuntimeError(message)
    return Path(package.submodule_search_locations[0]) / "pginstall" / "bin"


def _can_run(program: Path, account: dict[str, Any]) -> bool:
    try:
        return subprocess.run([program, "--version"], capture_output=True, **account).returncode == 0  # noqa: PLW1510
    except OSError:
        return False


def _group_exists(name: str) -> bool:
    import grp

    return any(group.gr_name == name for group in grp.getgrall())


def _wait_until_it_answers(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            connect(url).close()
        except psycopg.OperationalError:
            if process.poll() is not None or time.monotonic() > deadline:
                message = f"the PostgreSQL of the tests did not start: {log.read_text()}"
                raise RuntimeError(message) from None
            time.sleep(0.05)
        else:
            return
