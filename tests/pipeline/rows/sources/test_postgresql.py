"""What is particular to PostgreSQL: values that its types hold, what divides a table, a lost snapshot."""

from __future__ import annotations

import contextlib
import datetime as dt
import math
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import pyarrow as pa
import pytest

from suffice.errors import SchemaError, SpecError, StageFailedError, UsageError
from suffice.pipeline.rows import sources
from suffice.pipeline.rows.reduce import tree
from suffice.pipeline.rows.sources import contract
from suffice.pipeline.rows.sources.contract import pack
from suffice.pipeline.rows.sources.postgresql import addressed
from suffice.pipeline.rows.sources.schema_check import check_schema
from suffice.pipeline.spec.spec import load_spec
from support.hostile import bernoulli, normal
from support.making import flights, make_workspace
from support.postgres import as_user, execute
from support.postgres_tables import change_postgresql, end_all_others, source_url, write_postgresql

if TYPE_CHECKING:
    from collections.abc import Iterator

    from suffice.pipeline.rows.sources.contract import Pin, Split
    from suffice.pipeline.spec.spec import Spec

CANARY = "CANARY-91d2"


@pytest.fixture(autouse=True)
def database(source_database: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("SUFFICE_POSTGRESQL", source_database)
    end_all_others()
    execute(source_database, "DROP SCHEMA IF EXISTS hostile CASCADE", "CREATE SCHEMA hostile")
    yield source_database
    monkeypatch.setenv("SUFFICE_POSTGRESQL", source_database)
    end_all_others()


def spec_of(table: str, column: str = "n", **source: Any) -> Spec:
    return load_spec(
        {
            "name": "test",
            "dataset": "test",
            "source": {"postgresql": table, **source},
            "privacy": {"epsilon": "1", "neighboring": "add_or_remove_one"},
            "statistics": {"x": normal(column, "0", "10")},
        }
    )


def numbers(name: str, n_rows: int = 5000) -> None:
    execute(
        source_url(),
        f"CREATE TABLE {name} AS SELECT n, n % 2 = 0 AS flag, n::float8 AS amount, n % 3 AS part"  # noqa: S608
        f" FROM generate_series(1, {n_rows}) n",
        f"ANALYZE {name}",
    )


def small_splits(pin: Pin, split_values: int = 500) -> tuple[Split, ...]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(contract, "SPLIT_VALUES", split_values)
        return sources.splits(pin)


def found(splits: tuple[Split, ...], column: str = "n") -> Counter[Any]:
    counted: Counter[Any] = Counter()
    for split in splits:
        for batch in sources.read(split, (column,), 1000):
            counted.update(batch.column(0).to_pylist())
    return counted


def column_of(table: str, column: str) -> pa.Array:
    pin = sources.pin(spec_of(table, column))
    batches = [batch for split in sources.splits(pin) for batch in sources.read(split, (column,), 1000)]
    (part,) = sources.schema(pin)
    sources.close(pin)
    joined = pa.Table.from_batches(batches).column(0).combine_chunks()
    assert joined.type == part.columns.field(column).type
    return joined


HOSTILE: dict[str, tuple[str, list[str], pa.DataType, list[Any]]] = {
    "numeric(18,2)": (
        "numeric(18,2)",
        ["'NaN'", "9999999999999999.99", "-0.01", "NULL"],
        pa.decimal128(18, 2),
        [None, Decimal("9999999999999999.99"), Decimal("-0.01"), None],
    ),
    "numeric(38,4)": (
        "numeric(38,4)",
        ["'NaN'", "1e33", "NULL"],
        pa.decimal128(38, 4),
        [None, Decimal(f"{10**33}.0000"), None],
    ),
    "numeric": (
        "numeric",
        ["'NaN'", "'Infinity'", "'-Infinity'", "1e30", "1e400", "-1e400", "1e-400", "0.1", "NULL"],
        pa.float64(),
        [math.nan, math.inf, -math.inf, 1e30, math.inf, -math.inf, 0.0, 0.1, None],
    ),
    "numeric(50,0)": ("numeric(50,0)", ["'NaN'", "7"], pa.float64(), [math.nan, 7.0]),
    "float8": (
        "float8",
        ["'NaN'", "'-Infinity'", "5e-324", "NULL"],
        pa.float64(),
        [math.nan, -math.inf, 5e-324, None],
    ),
    "float4": ("float4", ["'NaN'", "0.5"], pa.float32(), [math.nan, 0.5]),
    "int2": ("int2", ["-32768", "NULL"], pa.int16(), [-32768, None]),
    "int4": ("int4", ["-2147483648"], pa.int32(), [-(2**31)]),
    "int8": ("int8", ["-9223372036854775808"], pa.int64(), [-(2**63)]),
    "bool": ("bool", ["true", "NULL"], pa.bool_(), [True, None]),
    "text": ("text", [f"'{CANARY}'", "''", "NULL"], pa.string(), [CANARY, "", None]),
    "varchar": ("varchar(20)", [f"'{CANARY}'"], pa.string(), [CANARY]),
    "padded": ("char(5)", ["'ab'"], pa.string(), ["ab"]),
    "date": (
        "date",
        ["'infinity'", "'-infinity'", "'2013-01-31'"],
        pa.date32(),
        [None, None, dt.date(2013, 1, 31)],
    ),
    "timestamp": (
        "timestamp",
        ["'infinity'", "'294270-01-01'", "'2013-01-31 12:00:00.000001'"],
        pa.timestamp("us"),
        [None, None, dt.datetime(2013, 1, 31, 12, 0, 0, 1)],  # noqa: DTZ001
    ),
    "timestamptz": (
        "timestamptz",
        ["'-infinity'", "'2013-01-31 12:00+02'"],
        pa.timestamp("us", "UTC"),
        [None, dt.datetime(2013, 1, 31, 10, tzinfo=dt.UTC)],
    ),
    "enum": ("hostile.colour", ["'red'", "NULL"], pa.string(), ["red", None]),
    "uuid": (
        "uuid",
        ["'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'"],
        pa.string(),
        ["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"],
    ),
    "domain": ("hostile.price", ["1.5"], pa.decimal128(5, 2), [Decimal("1.50")]),
}


def server_log(url: str) -> str:
    """Return what the tests' own server has logged; of a server that was named, nothing is known."""
    path = Path(parse_qs(urlsplit(url).query).get("host", ["/nowhere"])[0], "log")
    return path.read_text(errors="replace") if path.exists() else ""


@pytest.mark.slow
def test_no_value_is_an_error_and_none_is_logged(database: str) -> None:
    execute(
        database,
        "CREATE TYPE hostile.colour AS ENUM ('red', 'green')",
        "CREATE DOMAIN hostile.price AS numeric(5,2)",
    )
    logged = len(server_log(database))
    for number, (declared, values, kind, expected) in enumerate(HOSTILE.values()):
        table = f"hostile.t{number}"
        execute(
            database,
            f'CREATE TABLE {table} (n int, "{CANARY[:6]} x" {declared})',
            *(f"INSERT INTO {table} VALUES (1, {value})" for value in values),  # noqa: S608
        )
        column = column_of(table, f"{CANARY[:6]} x")
        assert column.type == kind, declared
        assert repr(column.to_pylist()) == repr(pa.array(expected, kind).to_pylist()), declared
    assert CANARY not in server_log(database)[logged:]
    assert "ERROR" not in server_log(database)[logged:]


@pytest.mark.parametrize(
    "declared", ["jsonb", "int[]", "bytea", "time", "interval", "money", "inet", "point"]
)
def test_what_no_statistic_reads_is_refused_before_anything_is_read(database: str, declared: str) -> None:
    execute(database, f"CREATE TABLE hostile.t (n {declared})")
    pin = sources.pin(spec_of("hostile.t"))
    with pytest.raises(
        SchemaError, match=r"^statistics\.x\.column: hostile\.t: the column 'n' is of a type that is not read"
    ):
        check_schema(spec_of("hostile.t"), sources.schema(pin))
    sources.close(pin)


@pytest.mark.slow
def test_others_write_while_it_is_read(database: str) -> None:
    numbers("hostile.t")
    pin = sources.pin(spec_of("hostile.t"))
    splits = small_splits(pin)
    assert len(splits) > 5
    before = found(splits[:3])
    change_postgresql("hostile.t")
    execute(
        database,
        "INSERT INTO hostile.t SELECT n, true, 1, 1 FROM generate_series(1, 20000) n",
        "VACUUM hostile.t",
    )
    assert before + found(splits[3:]) == Counter(range(1, 5001))
    sources.check(pin)
    assert sources.row_count(pin, splits) == 5000
    sources.close(pin)
    again = sources.pin(spec_of("hostile.t"))
    assert sources.row_count(again, ()) > 20000
    sources.close(again)


def test_what_would_take_the_table_away_waits(database: str) -> None:
    numbers("hostile.t", 10)
    pin = sources.pin(spec_of("hostile.t"))
    for statement in ("TRUNCATE hostile.t", "DROP TABLE hostile.t", "ALTER TABLE hostile.t DROP COLUMN n"):
        with pytest.raises(Exception, match="lock timeout"):
            execute(f"{database}&options=-clock_timeout%3D50", statement)
    assert found(sources.splits(pin)) == Counter(range(1, 11))
    sources.close(pin)
    execute(database, "TRUNCATE hostile.t")


DIVIDED = {
    "partitioned": (
        "CREATE TABLE hostile.v (n int, flag bool, amount float8, part int) PARTITION BY LIST (part)",
        "CREATE TABLE hostile.v0 PARTITION OF hostile.v FOR VALUES IN (0)",
        "CREATE TABLE hostile.v12 PARTITION OF hostile.v FOR VALUES IN (1, 2) PARTITION BY LIST (part)",
        "CREATE TABLE hostile.v1 PARTITION OF hostile.v12 FOR VALUES IN (1)",
        "CREATE TABLE hostile.v2 PARTITION OF hostile.v12 FOR VALUES IN (2)",
        "INSERT INTO hostile.v SELECT * FROM hostile.t",
    ),
    "inherited": (
        "CREATE TABLE hostile.v AS SELECT * FROM hostile.t WHERE part = 0",
        "CREATE TABLE hostile.w () INHERITS (hostile.v)",
        "INSERT INTO hostile.w SELECT * FROM hostile.t WHERE part > 0",
    ),
    "view": ("CREATE VIEW hostile.v AS SELECT * FROM hostile.t",),
    "materialized view": ("CREATE MATERIALIZED VIEW hostile.v AS SELECT * FROM hostile.t",),
    "rewritten": (
        "CREATE TABLE hostile.v AS SELECT * FROM hostile.t",
        "UPDATE hostile.v SET part = part + 1",
        "DELETE FROM hostile.v WHERE n > 4000",
        "INSERT INTO hostile.v SELECT * FROM hostile.t WHERE n > 4000",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("how", DIVIDED)
def test_every_row_is_in_one_split(database: str, how: str) -> None:
    numbers("hostile.t")
    execute(database, *DIVIDED[how])
    pin = sources.pin(spec_of("hostile.v"))
    splits = small_splits(pin)
    assert (len(splits) > 5) == (how != "view")
    assert found(splits) == Counter(range(1, 5001))
    assert sources.row_count(pin, splits) == 5000
    sources.close(pin)


@pytest.mark.parametrize(
    ("column", "at"),
    [
        ("n", ["100", "2500"]),
        ("n", ["-5"]),
        ("day", ["2013-01-05", "2013-02-01"]),
        ("moment", ["2013-01-05"]),
    ],
)
def test_public_keys_divide_a_view(database: str, column: str, at: list[str]) -> None:
    execute(
        database,
        "CREATE VIEW hostile.v AS SELECT CASE WHEN n % 7 > 0 THEN n END AS n, n AS m,"
        " CASE WHEN n % 5 > 0 THEN DATE '2013-01-01' + n % 60 END AS day,"
        " TIMESTAMPTZ '2013-01-05 00:00+00' + (n % 3 - 1) * INTERVAL '1 us' AS moment"
        " FROM generate_series(1, 3000) n",
    )
    pin = sources.pin(spec_of("hostile.v", "m", split_by={"column": column, "at": at}))
    splits = sources.splits(pin)
    assert len(splits) == len(at) + 1
    assert found(splits, "m") == Counter(range(1, 3001))
    sources.close(pin)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ({"postgresql": "flights"}, r"source\.postgresql: .*schema\.table"),
        ({"postgresql": "select 1"}, r"schema\.table"),
        ({"postgresql": 'public."x'}, r"schema\.table"),
        ({"postgresql": "public.x;--"}, r"schema\.table"),
        ({"postgresql": "a.b", "split_by": {"column": "n", "at": ["2", "1"]}}, r"split_by\.at: .*ascending"),
        ({"postgresql": "a.b", "split_by": {"column": "n", "at": ["1 OR true"]}}, r"split_by\.at"),
    ],
)
def test_what_a_spec_may_not_say(source: dict[str, Any], said: str) -> None:
    with pytest.raises(SpecError, match=said):
        spec_of(source.pop("postgresql"), **source)


def test_names_are_quoted(database: str) -> None:
    execute(
        database, 'CREATE TABLE hostile."Odd name" ("a ""b" int)', 'INSERT INTO hostile."Odd name" VALUES (3)'
    )
    assert column_of("hostile.Odd name", 'a "b').to_pylist() == [3]


@pytest.mark.parametrize("why", ["unset", "unreachable", "password", "no right", "foreign", "keys"])
def test_what_cannot_be_read_is_said_without_a_credential(
    database: str, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    numbers("hostile.t", 3)
    entry: dict[str, Any] = {}
    if why == "unset":
        monkeypatch.delenv("SUFFICE_POSTGRESQL")
        said = r"SUFFICE_POSTGRESQL is not set"
    elif why in {"unreachable", "password"}:
        host = "/nowhere" if why == "unreachable" else "localhost:1"
        monkeypatch.setenv(
            "SUFFICE_POSTGRESQL", f"postgresql://who:{CANARY}@{host.replace('/', '%2F')}/{CANARY}"
        )
        said = "is not reached, or refuses to connect"
    elif why == "no right":
        execute(database, "DROP ROLE IF EXISTS nobody_special", "CREATE ROLE nobody_special LOGIN")
        monkeypatch.setenv("SUFFICE_POSTGRESQL", as_user(database, "nobody_special"))
        said = "the role lacks the privilege"
    elif why == "foreign":
        execute(
            database,
            "DROP FOREIGN DATA WRAPPER IF EXISTS nothing CASCADE",
            "CREATE FOREIGN DATA WRAPPER nothing",
            "CREATE SERVER elsewhere FOREIGN DATA WRAPPER nothing",
            "DROP TABLE hostile.t",
            "CREATE FOREIGN TABLE hostile.t (n int) SERVER elsewhere",
        )
        said = "is a foreign table: name a table, a partitioned table, a view, a materialized view"
    else:
        entry = {"split_by": {"column": "flag", "at": ["1"]}}
        said = r"split_by: hostile\.t has no column 'flag' of integers"
    with pytest.raises(UsageError, match=said) as caught:
        sources.pin(spec_of("hostile.t", **entry))
    assert CANARY not in f"{caught.value!r} {caught.value}"


@pytest.mark.slow
def test_a_role_that_sees_part_of_a_table_reads_that_part(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers("hostile.t", 100)
    execute(
        database,
        *DIVIDED["partitioned"],
        "DROP ROLE IF EXISTS sees_some",
        "CREATE ROLE sees_some LOGIN",
        "GRANT USAGE ON SCHEMA hostile TO sees_some",
        "GRANT SELECT ON hostile.v TO sees_some",
    )
    monkeypatch.setenv("SUFFICE_POSTGRESQL", as_user(database, "sees_some"))
    pin = sources.pin(spec_of("hostile.v"))
    assert len(small_splits(pin, 1)) == 1, "its parts are not the role's to read by themselves"
    assert found(small_splits(pin, 1)) == Counter(range(1, 101))
    sources.close(pin)
    execute(
        database,
        "ALTER TABLE hostile.v ENABLE ROW LEVEL SECURITY",
        "CREATE POLICY its_own ON hostile.v USING (n <= 7)",
        "GRANT SELECT ON ALL TABLES IN SCHEMA hostile TO sees_some",
    )
    refused = []
    for options in ("", "&options=-crow_security%3Don"):
        monkeypatch.setenv("SUFFICE_POSTGRESQL", as_user(database, "sees_some") + options)
        with pytest.raises(UsageError, match="row-level policies") as caught:
            sources.pin(spec_of("hostile.v"))
        refused.append(str(caught.value))
    execute(database, "DELETE FROM hostile.t", "DELETE FROM hostile.v")
    with pytest.raises(UsageError, match="row_policies: accepted") as caught:
        sources.pin(spec_of("hostile.v"))
    assert {*refused, str(caught.value)} == {refused[0]}, (
        "no word depends on rows or on the session's options"
    )
    execute(database, "INSERT INTO hostile.v SELECT n, false, n, n % 3 FROM generate_series(1, 100) n")
    pin = sources.pin(spec_of("hostile.v", row_policies="accepted"))
    assert found(small_splits(pin, 1)) == Counter(range(1, 8))
    sources.close(pin)
    execute(database, "DROP SCHEMA hostile CASCADE", "CREATE SCHEMA hostile", "DROP ROLE sees_some")


def test_a_query_that_takes_too_long_is_said_so(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    execute(database, "CREATE VIEW hostile.v AS SELECT 1 AS n FROM pg_sleep(30)")
    pin = sources.pin(spec_of("hostile.v"))
    monkeypatch.setenv("SUFFICE_POSTGRESQL", f"{database}&options=-cstatement_timeout%3D700")
    with pytest.raises(StageFailedError, match="took longer than the server allows"):
        found(sources.splits(pin))
    sources.close(pin)


@pytest.mark.usefixtures("database")
def test_a_snapshot_of_another_database_is_not_taken_over(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers("hostile.t", 3)
    pin = sources.pin(spec_of("hostile.t"))
    splits = sources.splits(pin)
    monkeypatch.setenv("SUFFICE_POSTGRESQL", postgres_url)
    with pytest.raises(StageFailedError, match="or this is another server"):
        found(splits)
    monkeypatch.delenv("SUFFICE_POSTGRESQL")
    with pytest.raises(
        StageFailedError, match=r"cannot be read by a worker: .*SUFFICE_POSTGRESQL is not set"
    ):
        found(splits)
    sources.close(pin)
    assert postgres_url.encode() not in pack(splits)


def test_a_dropped_pin_lets_go_of_its_connection(database: str) -> None:
    numbers("hostile.t", 3)
    pin = sources.pin(spec_of("hostile.t"))
    del pin
    execute(f"{database}&options=-clock_timeout%3D2000", "DROP TABLE hostile.t")


@pytest.mark.parametrize("is_public", [False, True])
def test_it_is_released_and_its_snapshot_let_go(tmp_path: Path, is_public: bool) -> None:
    privacy = {
        "epsilon": "1",
        "neighboring": "replace_one" if is_public else "add_or_remove_one",
        "unit": "row",
    }
    workspace = make_workspace(tmp_path, neighboring=privacy["neighboring"])
    changes: dict[str, Any] = {"source": write_postgresql(flights()), "privacy": privacy, "groups": None}
    outcome = workspace.run(**changes)
    assert outcome.status == "published"
    assert outcome.release.public_n == (flights().num_rows if is_public else None)
    execute(f"{source_url()}&options=-clock_timeout%3D2000", "TRUNCATE public.flights")
    assert workspace.run(**changes).status == "already_published"


def test_a_lost_snapshot_ends_the_release_before_the_draw(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = make_workspace(tmp_path)
    source = write_postgresql(flights())
    summed = tree.exact_sums

    def sum_and_lose(*given: Any, **named: Any) -> Any:
        totals = summed(*given, **named)
        end_all_others()
        return totals

    monkeypatch.setattr(tree, "exact_sums", sum_and_lose)
    with pytest.raises(StageFailedError, match="no longer at its snapshot"):
        workspace.run(source=source, statistics={"cancelled": bernoulli("cancelled")})
    charge = workspace.charge()
    assert charge is not None
    assert not charge.drew
    assert workspace.account().remaining == 10


def test_units_of_any_number_of_digits_are_told_apart(database: str) -> None:
    """As float64 2^53 and 2^53 + 1 would be one unit; 5 and 5.0 are one: the server holds them for equal."""
    execute(
        database,
        "CREATE TABLE hostile.t AS SELECT u, 1::int8 AS n FROM (VALUES (9007199254740992::numeric),"
        " (9007199254740993), (5), (5.0), (5.00), (0.1), ('NaN'), (NULL)) v(u)",
    )
    unit = {"column": "u", "max_rows": "1"}
    document = {
        "name": "test",
        "dataset": "test",
        "source": {"postgresql": "hostile.t"},
        "privacy": {"epsilon": "1", "neighboring": "add_or_remove_one", "unit": unit},
        "statistics": {"x": normal("n", "0", "10")},
    }
    pin = sources.pin(load_spec(document))
    (part,) = sources.schema(pin)
    assert part.columns.field("u").type == pa.string()
    expected = Counter({"9007199254740992": 1, "9007199254740993": 1, "5": 3, "0.1": 1, None: 2})
    assert found(sources.splits(pin), "u") == expected
    sources.close(pin)


@pytest.mark.parametrize(
    ("kind", "beyond", "held"),
    [
        ("date", "infinity", "2013-01-05"),
        ("timestamp", "-infinity", "2013-01-05"),
        ("timestamptz", "250000-01-01", "2013-01-05"),
    ],
)
def test_rows_of_a_unit_that_arrow_cannot_hold_enter_nothing(
    database: str, kind: str, beyond: str, held: str
) -> None:
    """As nulls each would be a unit of its own under ``own_unit``: a hundred rows of one person."""
    execute(
        database,
        f"CREATE TABLE hostile.t (u {kind}, n int8)",
        f"INSERT INTO hostile.t SELECT '{beyond}', 1 FROM generate_series(1, 100)",  # noqa: S608 - ours
        f"INSERT INTO hostile.t VALUES ('{held}', 1), ('{held}', 2), (NULL, 3)",  # noqa: S608 - ours
    )
    unit = {"column": "u", "max_rows": "1", "nulls": "own_unit"}
    document = {
        "name": "test",
        "dataset": "test",
        "source": {"postgresql": "hostile.t"},
        "privacy": {"epsilon": "1", "neighboring": "add_or_remove_one", "unit": unit},
        "statistics": {"x": normal("n", "0", "10")},
    }
    pin = sources.pin(load_spec(document))
    rows = found(sources.splits(pin), "u")
    sources.close(pin)
    assert sorted(rows.values()) == [1, 2]
    assert rows[None] == 1


@pytest.mark.parametrize(
    ("uri", "asked"),
    [
        ("postgresql://me@db.example/x", "postgresql://me@db.example/x?hostaddr=&port=5432"),
        ("postgresql://db:1/x?sslmode=require", "postgresql://db:1/x?sslmode=require&hostaddr="),
        ("postgresql:///x?host=/run/pg&port=6", "postgresql:///x?host=/run/pg&port=6&hostaddr="),
        ("postgresql://[::1]/x?", "postgresql://[::1]/x?hostaddr=&port=5432"),
        ("postgresql://db/x?hostaddr=10.0.0.1&port=6", "postgresql://db/x?hostaddr=10.0.0.1&port=6"),
        ("postgresql:///x", "postgresql:///x"),
        ("host=db dbname=x", "host=db dbname=x"),
    ],
)
def test_a_host_that_is_named_is_stated_with_its_address(uri: str, asked: str) -> None:
    assert addressed(uri) == asked


def test_no_variable_reaches_past_the_host_that_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody listens at the address of the variable; the host named is asked all the same."""
    numbers("hostile.pinned", 10)
    with monkeypatch.context() as patch:  # others of the test connect as the environment says
        patch.setenv("PGHOSTADDR", "127.0.0.254")
        patch.setenv("PGPORT", "9")
        with contextlib.closing(sources.pin(spec_of("hostile.pinned"))) as pin:
            assert sources.splits(pin)
