"""The role of deploy/postgres that reads rows, on a real server: one relation, and nothing else."""

from __future__ import annotations

import subprocess
from secrets import token_hex
from typing import TYPE_CHECKING

import psycopg
import pytest
from psycopg import sql

from support.postgres import as_user, connect, execute, program

if TYPE_CHECKING:
    from pathlib import Path

    from support.postgres import Server

PRIVILEGE = psycopg.errors.InsufficientPrivilege
FORBIDDEN = (
    "SELECT * FROM public.people",
    "INSERT INTO public.flights VALUES (1)",
    "UPDATE public.flights SET delay = 0",
    "DELETE FROM public.flights",
    "TRUNCATE public.flights",
    "DROP TABLE public.flights",
    "CREATE TABLE public.mine (id int)",
    "CREATE ROLE another",
    "COPY public.flights TO PROGRAM 'cat'",
)


def test_it_reads_one_relation_and_nothing_else(
    postgres_server: Server, postgres_url: str, repository: Path
) -> None:
    execute(
        postgres_url,
        "CREATE TABLE public.flights (delay int)",
        "CREATE TABLE public.people (name text)",
        "INSERT INTO public.flights VALUES (7)",
        "GRANT SELECT ON public.flights TO PUBLIC",
    )
    said = [run_script(postgres_url, repository) for _ in range(2)]  # it may be run again
    assert all("every login may read" in text for text in said)
    execute(postgres_url, "REVOKE SELECT ON public.flights FROM PUBLIC")
    assert run_script(postgres_url, repository) == ""
    reader, stranger, password = (f"suffice_test_{token_hex(4)}" for _ in range(3))
    make = sql.SQL("CREATE ROLE {} LOGIN PASSWORD {}")
    for name in (reader, stranger):
        execute(postgres_server.url, make.format(sql.Identifier(name), sql.Literal(password)))
    execute(postgres_server.url, sql.SQL("GRANT suffice_rows TO {}").format(sql.Identifier(reader)))
    try:
        with connect(as_user(postgres_url, reader, password)) as login:
            assert login.execute("SELECT delay FROM public.flights").fetchall() == [(7,)]
            login.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            login.execute("LOCK TABLE public.flights IN ACCESS SHARE MODE")  # as a release does
            login.execute("SELECT pg_export_snapshot()")
            login.execute("ROLLBACK")
            for statement in FORBIDDEN:
                with pytest.raises(PRIVILEGE):
                    login.execute(statement.encode())
        with connect(as_user(postgres_url, stranger, password)) as login, pytest.raises(PRIVILEGE):
            login.execute("SELECT delay FROM public.flights")
    finally:
        for name in (reader, stranger):
            execute(postgres_server.url, sql.SQL("DROP ROLE {}").format(sql.Identifier(name)))


def run_script(url: str, repository: Path) -> str:
    """Run the script as an administrator does; return what it complains of."""
    words = [str(program("psql")), url, "-q", "-v", "schema=public", "-v", "relation=flights"]
    script = repository / "deploy/postgres/rows.sql"
    done = subprocess.run([*words, "-f", str(script)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stderr
