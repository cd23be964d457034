"""What DuckDB sums itself is, bit for bit, what the kernels sum; what it would not be is refused."""

from __future__ import annotations

import datetime as dt
import math
import signal
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from suffice.errors import SchemaError, SpecError, StageFailedError, UsageError
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.rows import sources
from suffice.pipeline.rows.chunk.exact_sums import to_python
from suffice.pipeline.rows.chunk.partition import chunk_job, sum_batches
from suffice.pipeline.rows.chunk.sql_sums import MOST_DIGITS, sum_queries
from suffice.pipeline.rows.mechanism.mechanism import privatize
from suffice.pipeline.rows.reduce.push_down import pushed_sums, require_threads
from suffice.pipeline.rows.sources.duckdb_tables import querying
from suffice.pipeline.rows.sources.schema_check import check_schema
from suffice.pipeline.spec.plan import compile_plan
from suffice.pipeline.spec.spec import Spec, load_spec
from support.exact import collected
from support.hostile import bernoulli, categorical, hostile_table, normal, poisson

if TYPE_CHECKING:
    from pathlib import Path

ROW = {"epsilon": "1", "neighboring": "add_or_remove_one", "unit": "row"}
FEW_DIGITS = pa.decimal128(MOST_DIGITS, 4)


def spec_of(path: Path | str, statistics: dict[str, Any], **others: Any) -> Spec:
    source = {"duckdb": str(path), "table": "main.t", "push_down": "true"}
    content = {"name": "test", "dataset": "test", "source": source, "privacy": ROW, "statistics": statistics}
    return load_spec({**content, **others})


def write(path: Path, table: pa.Table) -> None:
    path.unlink(missing_ok=True)
    with duckdb.connect(path) as connection:
        connection.register("rows", table)
        connection.execute("CREATE TABLE t AS SELECT * FROM rows")


def pushed(spec: Spec, window: str = "all", n_threads: int = 2) -> dict[str, list[Any]]:
    pin = sources.pin(spec, window)
    (part,) = sources.schema(pin)
    check_schema(spec, [part])
    job = chunk_job(spec, window)
    totals = pushed_sums(job, sum_queries(job, part.columns), pin, n_threads=n_threads)
    return {name: sums.tolist() for name, sums in to_python(totals.open_totals()).items()}


def read(spec: Spec, window: str = "all") -> dict[str, list[Any]]:
    """Sum what is read from the same file by the kernels."""
    job = chunk_job(spec, window)
    splits = sources.splits(sources.pin(spec, window))
    batches = (batch for split in splits for batch in sources.read(split, job.columns, 1000))
    return {name: sums.tolist() for name, sums in to_python(sum_batches(batches, job)).items()}


def assert_alike(spec: Spec, window: str = "all") -> dict[str, list[Any]]:
    found, wanted = pushed(spec, window), read(spec, window)
    for name, sums in wanted.items():
        assert found[name] == sums, name
    return wanted


TEXTS = ["a", "b", "A", "a ", "", "é", "e\u0301", "01", "null"]
NUMBERS = ["0", "1", "2", "3", "-1", "12", "0.1", "2.5", "-3", "9007199254740993", "18446744073709551615"]
INSTANTS = ["1969-12-31T23:59:59.999999", "1970-01-01", "2013-01-31T12:30", "2013-02-01T00:00Z"]
DATES = ["1969-12-31", "2013-01-31", "2013-02-01", "9999-12-31"]
MONTHS = {"from": "2012-11", "to": "2013-04", "every": "month"}
BY_KEY: dict[str, list[Any]] = {
    "text": [TEXTS, {"range": [-2, 12]}],
    "dictionary": [TEXTS],
    "digits": [{"range": [-2, 12]}, ["1.0", "9" * 30], ["01", "2"]],
    **{
        column: [NUMBERS, {"range": [-2, 12]}, ["3", "2", "1"], ["0", "9007199254740993"], ["0.1", "0.3"]]
        for column in ("tiny", "integer", "unsigned", "float", "single")
    },
    "price": [NUMBERS, ["99999999.99", "0.1"]],
    "flag": [["true", "false"], ["false"]],
    "day": [DATES, MONTHS, {"from": "2013", "to": "2014", "every": "year"}],
    "instant": [INSTANTS, MONTHS, ["2013-01-31"]],
    "zoned": [INSTANTS, MONTHS, {"from": "2013-01-20", "to": "2013-02-10", "every": "day"}],
}
NUMERIC = ("tiny", "integer", "unsigned", "float", "single", "price", "measure", "whole")


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("hostile") / "rows.duckdb"
    table = hostile_table(5000, seed=3).drop_columns(["wide_text", "view", "precise"])
    write(path, table)
    with duckdb.connect(path) as connection:
        connection.execute("INSERT INTO t (day, instant, zoned) VALUES ('infinity', 'infinity', '-infinity')")
        connection.execute(
            "INSERT INTO t (day, instant, zoned) VALUES ('-infinity', '-infinity', 'infinity')"
        )
    return path


@pytest.mark.parametrize("column", BY_KEY)
def test_codes_of_every_type_are_those_of_the_kernels(hostile: Path, column: str) -> None:
    statistics: dict[str, Any] = {}
    for number, keys in enumerate(BY_KEY[column]):
        statistics[f"in-{number}"] = categorical(column, keys)
        statistics[f"other-{number}"] = categorical(column, keys, other=True)
    found = assert_alike(spec_of(hostile, statistics))
    assert any(any(sums[0]) for sums in found.values())
    keys = BY_KEY[column][0]
    spec = spec_of(hostile, {"x": normal("float", "-3", "3"), "f": bernoulli("flag")}, groups={column: keys})
    assert any(map(any, assert_alike(spec)["x"]))


@pytest.mark.parametrize("column", NUMERIC)
def test_sums_of_every_type_are_those_of_the_kernels(hostile: Path, column: str) -> None:
    statistics = {
        "mean": normal(column, "-10", "13.7"),
        "fine": normal(column, "-0.3", "0.1", lattice_bits="24", nulls={"value": "0.05"}),
        "wide": normal(column, "-1e140", "1e140"),
        "known-mean": {"family": "normal_known_mean", "column": column, "mean": "1", "half_range": "7"},
        "laplace": {"family": "laplace", "column": column, "location": "0.3", "half_range": "50"},
        "count": poisson(column, "9", nulls={"value": "1"}),
        "times": {"family": "geometric", "column": column, "upper": "30"},
        "both": {
            "family": "multivariate_normal",
            "columns": {column: {"lower": "-4", "upper": "9"}, "measure": {"lower": "-80", "upper": "90"}}
            if column != "measure"
            else {"whole": {"lower": "-4", "upper": "9"}, "measure": {"lower": "-80", "upper": "90"}},
        },
    }
    assert any(map(any, assert_alike(spec_of(hostile, statistics, groups={"flag": ["true"]}))["mean"]))


@pytest.mark.parametrize(
    ("window", "label"),
    [
        ({"column": "day", "every": "month"}, "2013-01"),
        ({"column": "instant", "every": "day"}, "1969-12-31"),
        ({"column": "zoned", "every": "week"}, "2013-W05"),
        ({"column": "zoned", "every": "day", "time_zone": "Europe/Berlin"}, "2013-02-01"),
        ({"column": "zoned", "every": "year", "time_zone": "Europe/Berlin"}, "1970"),
    ],
)
def test_windows_are_those_of_the_kernels(hostile: Path, window: dict[str, str], label: str) -> None:
    groups = {
        "zoned": {"from": "2012", "to": "2014", "every": "year"},
        "text": ["a", "b", "é"],
    }
    statistics = {"n": poisson("tiny", "5"), "flag": bernoulli("flag", nulls={"value": "false"})}
    assert any(map(any, assert_alike(spec_of(hostile, statistics, window=window), label)["n"]))
    assert_alike(spec_of(hostile, statistics, window=window, groups=groups), label)


def test_tables_are_those_of_the_kernels(hostile: Path) -> None:
    columns = {"text": ["b", "a"], "tiny": {"range": [-1, 3]}, "flag": ["true", "false"]}
    statistics = {
        "table": {"family": "contingency", "columns": columns},
        "bayes": {
            "family": "naive_bayes",
            "outcome": {"text": ["b", "a", "é"]},
            "features": {k: columns[k] for k in ("tiny", "flag")},
        },
    }
    found = assert_alike(spec_of(hostile, statistics))
    assert any(map(any, found["table"]))
    assert any(map(any, found["bayes"]))


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(
    numbers=st.lists(st.floats() | st.none(), min_size=1, max_size=50),
    singles=st.lists(st.floats(width=32), max_size=50),
    decimals=st.lists(st.decimals(-(10**10), 10**10, places=4, allow_nan=False), max_size=50),
    lower=st.fractions(-1000, 1000, max_denominator=97),
    width=st.fractions("0.1", 3000, max_denominator=97),
    bits=st.integers(2, 24),
)
@example(
    # Halves between lattice values, and what overflows when the centre is taken off.
    numbers=[n / 4 for n in range(-9, 10)] + [1.7e308, -1.7e308, math.inf, -math.inf, math.nan, -0.0, None],
    singles=[3.4e38, 1e-45],
    decimals=[Decimal("0.1235"), Decimal("99999999999.9999")],
    lower=-2,
    width=4,
    bits=2,
)
def test_sums_of_any_values_are_those_of_the_kernels(
    tmp_path_factory: pytest.TempPathFactory,
    numbers: list[float | None],
    singles: list[float],
    decimals: list[Decimal],
    lower: Any,
    width: Any,
    bits: int,
) -> None:
    path = tmp_path_factory.mktemp("any") / "rows.duckdb"

    def filled(values: list[Any], kind: pa.DataType) -> pa.Array:
        longest = max(len(numbers), len(singles), len(decimals))
        return pa.array(values + [None] * (longest - len(values)), kind)

    write(
        path,
        pa.table(
            {
                "x": filled(numbers, pa.float64()),
                "y": filled(singles, pa.float32()),
                "z": filled(decimals, FEW_DIGITS),
            }
        ),
    )
    bounds = (f"{float(lower):.6f}", f"{float(lower + width):.6f}")
    statistics = {c: normal(c, *bounds, lattice_bits=str(bits), nulls={"value": bounds[1]}) for c in "xyz"}
    assert_alike(spec_of(path, statistics))


def test_texts_of_other_kinds_are_those_that_are_read(tmp_path: Path) -> None:
    path = tmp_path / "rows.duckdb"
    with duckdb.connect(path) as connection:
        connection.execute(
            "CREATE TABLE t (c VARCHAR COLLATE NOCASE, u UUID, e ENUM ('b', 'a'), \"a \"\"b\" VARCHAR, n INT)"
        )
        connection.execute(
            "INSERT INTO t SELECT ['a', 'A', 'b'][1 + n % 3], "
            "'00000000-0000-0000-0000-00000000000' || n % 7, ['a', 'b', NULL][1 + n % 3], 'x', n "
            "FROM range(100) AS r(n)"
        )
    statistics = {
        "c": categorical("c", ["a", "b"], other=True),
        "u": categorical("u", ["00000000-0000-0000-0000-000000000003"], other=True),
        "e": categorical("e", ["a", "b"], other=True),
        "q": categorical('a "b', ["x", "y"]),
    }
    found = assert_alike(spec_of(path, statistics, groups={"n": {"range": [0, 98]}}))
    assert sum(cell[0] for cell in found["c"]) == 33


SAMPLED = [name for name, family in FAMILIES.items() if family.sampled is not None]
BY_LOGARITHMS = {"weibull", "pareto"}
ENDS = {"bernoulli": ["0.1", "0.9"], "binomial": ["0.1", "0.9"], "geometric": ["0.1", "0.9"]}
ENDS |= {"negative_binomial": ["0.1", "0.9"], "normal_known_mean": ["300", "3000"]}


def sampled(name: str, column: str = "x") -> dict[str, Any]:
    sample = {"draws": "2", "within": ENDS.get(name, ["1", "40"]), "grid": "5", "prior": "Uniform(0, 9999)"}
    return {"family": name, **FAMILIES[name].example.entry, "column": column, "sample": sample}


def test_sums_of_sampled_statistics_are_those_of_the_kernels(hostile: Path) -> None:
    """Of all families that are sampled; a sample is drawn from these sums alone."""
    statistics = {name: sampled(name, "price") for name in SAMPLED if name not in BY_LOGARITHMS}
    found = assert_alike(spec_of(hostile, statistics, groups={"flag": ["false", "true"]}))
    assert len(found) == 10
    assert all(any(map(any, sums)) for sums in found.values())


@pytest.mark.parametrize("name", sorted(BY_LOGARITHMS))
def test_a_sample_that_rests_on_logarithms_is_refused_by_name(name: str) -> None:
    with pytest.raises(SpecError, match=f"{name} takes a logarithm of each value.*leave push_down out"):
        spec_of("rows.duckdb", {"x": sampled(name)})


def test_draws_of_pushed_sums_are_of_the_datas_posterior(tmp_path: Path) -> None:
    """With 60,000 rows a cell, draws at another point of the grid have a chance below exp(-200)."""
    path = tmp_path / "rows.duckdb"
    with duckdb.connect(path) as connection:
        connection.execute(
            "CREATE TABLE t AS SELECT n % 2 AS g, n // 2 % 5 < 2 + n % 2 AS flag FROM range(120000) AS r(n)"
        )
    spec = spec_of(
        path,
        {"flag": {**bernoulli("flag"), "sample": {"draws": "3", "within": ["0.2", "0.8"], "grid": "4"}}},
        groups={"g": ["0", "1"]},
    )
    job, plan = chunk_job(spec), compile_plan(spec)
    pin = sources.pin(spec)
    totals = pushed_sums(job, sum_queries(job, sources.schema(pin)[0].columns), pin, n_threads=1)
    assert collected(privatize(totals, spec, plan))["flag"].tolist() == [[1] * 3, [2] * 3]


def test_an_empty_table_gives_zeros(tmp_path: Path) -> None:
    path = tmp_path / "rows.duckdb"
    write(path, hostile_table(0, seed=1).select(["float", "text"]))
    found = pushed(spec_of(path, {"x": normal("float", "0", "1"), "t": categorical("text", ["a", "b"])}))
    assert found == {"x": [[0, 0, 0]], "t": [[0, 0]]}


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"privacy": {**ROW, "unit": {"column": "who", "max_rows": "3"}}}, "bounded by unit"),
        ({"derived": {"d": {"column": "x", "above": "15"}}}, "derived columns"),
        (
            {"statistics": {"x": {"family": "lognormal", "column": "x", "lower": "1", "upper": "2"}}},
            "logarithm",
        ),
        (
            {"statistics": {"x": {"family": "pareto", "column": "x", "minimum": "1", "upper": "2"}}},
            "logarithm",
        ),
        (
            {"statistics": {"x": {"family": "weibull", "column": "x", "shape": "2", "upper": "2"}}},
            "weibull takes a logarithm",
        ),
    ],
)
def test_what_would_not_be_the_same_is_refused_by_name(changes: dict[str, Any], rule: str) -> None:
    terms = {"statistics": {"x": normal("x", "0", "1")}, **changes}
    with pytest.raises(SpecError, match=rule):
        spec_of("rows.duckdb", **terms)


@pytest.mark.parametrize("kind", ["HUGEINT", f"DECIMAL({MOST_DIGITS + 1}, 2)"])
def test_numbers_of_more_digits_are_refused(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "rows.duckdb"
    with duckdb.connect(path) as connection:
        connection.execute(f"CREATE TABLE t (x {kind}, s TIMESTAMP_S)")
    with pytest.raises(SchemaError, match=r"source\.push_down: the column 'x' is read as decimal"):
        pushed(spec_of(path, {"x": normal("x", "0", "1")}))
    with pytest.raises(SchemaError, match=r"the column 's' is read as timestamp\[s\]"):
        pushed(spec_of(path, {"s": categorical("s", ["2013-01-01", "2013-01-02"])}))


def test_a_view_and_other_processes_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows.duckdb"
    with duckdb.connect(path) as connection:
        connection.execute("CREATE VIEW t AS SELECT 1.5 AS x")
    with pytest.raises(UsageError, match=r"source\.push_down: main\.t is a view"):
        pushed(spec_of(path, {"x": normal("x", "0", "1")}))
    with duckdb.connect(path) as connection:
        connection.execute("DROP VIEW t; CREATE TABLE t (n INT, x DOUBLE GENERATED ALWAYS AS (random()))")
    with pytest.raises(UsageError, match=r"source\.push_down: main\.t has generated columns"):
        pushed(spec_of(path, {"x": normal("x", "0", "1")}))
    with pytest.raises(UsageError, match="use the cluster threads"):
        require_threads("local")


MACROS = (
    *("sum(a)", "count(a)", "abs(a)", "isnan(a)", "floor(a)", "epoch_us(a)", "coalesce(a, b)"),
    *('"+"(a, b)', '"-"(a, b)', '"*"(a, b)', '"/"(a, b)', '"%"(a, b)', '"//"(a, b)'),
)


def test_macros_of_the_file_replace_no_function_or_operator(tmp_path: Path) -> None:
    path = tmp_path / "rows.duckdb"
    write(path, pa.table({"x": [0.25, math.nan, 3.0, -9.0], "d": [dt.date(2013, 1, 1)] * 4}))
    statistics = {
        "x": normal("x", "0", "1"),
        "away": {"family": "laplace", "column": "x", "location": "0.3", "half_range": "5"},
        "d": categorical("d", ["2013-01-01", "2013-01-02"]),
        "whole": categorical("x", {"range": [2, 5]}),
    }
    spec = spec_of(path, statistics)
    wanted = pushed(spec)
    with duckdb.connect(path) as connection:
        for macro in MACROS:
            connection.execute(f"CREATE MACRO {macro} AS 99")
        assert connection.execute("SELECT DISTINCT sum(x) + 1 FROM t").fetchall() == [(99,)]
    assert assert_alike(spec) == wanted


def test_an_interrupt_of_a_query_stays_one(tmp_path: Path) -> None:
    """DuckDB would make a reading failure of it, and a run that was cancelled would read again."""
    path = tmp_path / "rows.duckdb"
    write(path, pa.table({"x": [1.0]}))
    pin = sources.pin(spec_of(path, {"x": normal("x", "0", "1")}))

    def interrupt(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    earlier = signal.signal(signal.SIGALRM, interrupt)
    try:
        with querying(pin, 2) as run:
            signal.setitimer(signal.ITIMER_REAL, 0.2)
            with pytest.raises(KeyboardInterrupt):
                run(
                    "SELECT sum(sin(a.range * b.range)) AS n FROM range(10000000) a, range(1000000) b", {}, {}
                )
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, earlier)


def test_a_file_that_changed_is_not_summed(tmp_path: Path) -> None:
    path = tmp_path / "rows.duckdb"
    write(path, pa.table({"x": [1.0, dt.timedelta(1).total_seconds()]}))
    spec = spec_of(path, {"x": normal("x", "0", "1")})
    pin = sources.pin(spec)
    write(path, pa.table({"x": [2.0] * 100_000}))
    job = chunk_job(spec)
    with pytest.raises(StageFailedError, match="has changed since it was pinned"):
        pushed_sums(job, sum_queries(job, sources.schema(pin)[0].columns), pin, n_threads=1)
