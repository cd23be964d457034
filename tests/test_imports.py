"""What a step imports, seen in ``sys.modules`` of a fresh interpreter: consumers need no engine."""

from __future__ import annotations

import datetime as dt
import json
import subprocess
import sys
from decimal import Decimal
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from suffice.pipeline.rows.chunk.jit import NUMBA, how_compiled
from suffice.pipeline.rows.sources.contract import pack
from suffice.pipeline.spec.spec import load_spec
from support.source_makers import MAKERS
from support.splits import splits_of

if TYPE_CHECKING:
    from pathlib import Path

ENGINE = frozenset({"dask", "distributed", "numba", "opendp"})
LEDGER = frozenset({"alembic", "sqlalchemy"})
ORCHESTRATOR = frozenset({"fastapi", "prefect"})
HEAVY = frozenset({"arviz", "matplotlib", "pandas", "sklearn", "xarray"})
NUMERIC = frozenset({"numpy", "pyarrow", "pydantic", "scipy", "yaml"})
SIGNING = frozenset({"cryptography"})
CLUSTER = frozenset({"dask", "distributed", "jinja2", "toolz"})
OTHER_SOURCES = frozenset(
    {"bigquery", "csv_files", "delta", "duckdb_tables", "given_rows", "iceberg", "postgresql"}
)
ONLY_OF_SPECS = frozenset(
    f"suffice.pipeline.{name}" for name in ("spec.spec", "spec.assumed", "terms.declaration.source_specs")
)
RARELY_ASKED = frozenset(
    {"configparser", "html", "numpy.f2py.crackfortran", "numpy.ma.core", "suffice.cli.adopt"}
)
OPTIONAL = ENGINE | LEDGER | ORCHESTRATOR | HEAVY | SIGNING

SPEC = """\
name: flips
dataset: coins
source: {parquet: coins.parquet}
privacy: {epsilon: "1", neighboring: add_or_remove_one, unit: row}
statistics:
  heads: {family: bernoulli, column: heads}
"""

CONSUMER_MODULES = (
    "suffice.models",
    "suffice.pipeline.ask.calibration.calibrate",
    "suffice.pipeline.math.parameters.contrasts",
    "suffice.pipeline.ask.posterior.posterior",
    "suffice.pipeline.math.priors.by_name",
    "suffice.pipeline.ask.pooling.release",
    "suffice.pipeline.ask.planning.beside_sample",
    "suffice.pipeline.ask.planning.divided_plan",
    "suffice.pipeline.ask.planning.smallest_loss",
    "suffice.storage.releases.manifest",
    "suffice.storage.releases.release_parquet",
    "suffice.storage.releases.release_store",
    "suffice.storage.releases.statistic_reading",
    "suffice.storage.signatures.signing",
    "suffice.storage.operations.verify_store",
    "suffice.storage.operations.verify_ledger",
)


def modules_after(code: str, directory: Path) -> set[str]:
    """Return the top-level names of everything that a fresh interpreter imports to run `code`."""
    return {name.partition(".")[0] for name in all_modules_after(code, directory)}


def all_modules_after(code: str, directory: Path) -> set[str]:
    """Likewise, with all names in packages."""
    report = "import json, sys; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code + "\n" + report],
        cwd=directory,
        check=True,
        capture_output=True,
        text=True,
    )
    names: list[str] = json.loads(done.stdout.splitlines()[-1])
    return set(names)


def command(*words: str) -> str:
    return f"""
import suffice.cli.app
try:
    suffice.cli.app.main({list(words)!r})
except SystemExit as end:
    assert end.code == 0, end.code
"""


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    (tmp_path / "spec.yaml").write_text(SPEC)
    return tmp_path


def test_the_check_itself_sees_what_is_imported(directory: Path) -> None:
    assert {"sqlalchemy", "suffice"} <= modules_after("import suffice, sqlalchemy", directory)


def test_importing_the_package_imports_nothing_else(directory: Path) -> None:
    assert not modules_after("import suffice", directory) & (OPTIONAL | NUMERIC | {"typer"})


@pytest.mark.slow
def test_a_consumers_module_imports_nothing_optional(directory: Path) -> None:
    """One interpreter for all, as what one imports stays: a module is named where the first such one came."""
    code = f"""
import sys
for module in {CONSUMER_MODULES!r}:
    __import__(module)
    optional = {set(OPTIONAL)!r} & {{name.partition('.')[0] for name in sys.modules}}
    assert not optional, (module, optional)
"""
    assert {"numpy", "suffice"} <= modules_after(code, directory)


def test_help_needs_no_numbers(directory: Path) -> None:
    assert not modules_after(command("--help"), directory) & (OPTIONAL | NUMERIC)


@pytest.mark.slow
def test_a_plan_needs_no_engine_no_ledger_and_no_reader_of_data(directory: Path) -> None:
    loaded = modules_after(command("plan", "spec.yaml"), directory)
    assert not loaded & (OPTIONAL | {"pyarrow", "scipy"})


@pytest.mark.slow
def test_the_ledger_needs_no_engine(directory: Path) -> None:
    loaded = modules_after("import suffice.storage.ledger.sql.sqlite", directory)
    assert not loaded & (ENGINE | ORCHESTRATOR | HEAVY | {"pyarrow", "scipy"})


RELEASE = """
name: sales
dataset: shop
source: {parquet: rows.parquet}
privacy: {epsilon: "1", neighboring: add_or_remove_one, unit: {column: customer, max_rows: 2}}
groups: {city: [north, south], price: ["1.5", "2"], day: ["2013-01-01", "2013-01-02"]}
statistics:
  heads: {family: bernoulli, column: heads}
  colour: {family: categorical, column: colour, categories: [red, blue]}
"""


READING = """
import json
from pathlib import Path
from suffice.pipeline.rows import sources
from suffice.pipeline.rows.chunk.exact_sums import to_python
from suffice.pipeline.rows.chunk.partition import chunk_job
from suffice.pipeline.rows.reduce.tree import open_cluster_for_sums
from suffice.pipeline.rows.reduce.tree import exact_sums
from suffice.pipeline.rows.sources.contract import unpack
from suffice.pipeline.spec.spec import load_spec
for directory in (Path(kind) for kind in ("csv", "delta", "iceberg", "duckdb")):
    spec = load_spec(json.loads((directory / "spec.json").read_text()))
    packed = directory / "splits"
    splits = unpack(packed.read_bytes()) if packed.exists() else sources.splits(sources.pin(spec, "2013-01"))
    with open_cluster_for_sums("threads") as cluster:
        sums = to_python(exact_sums(chunk_job(spec, "2013-01"), splits, cluster).open_totals())
    assert sums["heads"].sum() == 20, directory
"""
"""Reads a window of each source, or splits of one that was pinned elsewhere: one process, as it takes 4 s."""


@pytest.mark.slow
def test_reading_listed_domains_needs_no_pandas(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    n_rows = 60
    noon = dt.datetime(2013, 1, 2, 12, tzinfo=dt.UTC)
    table = pa.table(
        {
            "customer": pa.array([1, 2, None] * (n_rows // 3), pa.int64()),
            "city": pa.array(["north", "south", None] * (n_rows // 3)),
            "price": pa.array([Decimal("1.5"), Decimal("2.0"), None] * (n_rows // 3), pa.decimal128(5, 1)),
            "day": pa.array([noon.date()] * n_rows),
            "sold": pa.array([noon] * n_rows, pa.timestamp("us", "UTC")),
            "heads": pa.array([True, None] * (n_rows // 2), pa.bool_()),
            "colour": pa.array(["red", "green"] * (n_rows // 2)),
        }
    )
    window = {"column": "sold", "every": "month", "time_zone": "Europe/Berlin"}
    for kind in ("csv", "delta", "iceberg", "duckdb"):
        for name, value in MAKERS[kind].prepare(request).items():
            monkeypatch.setenv(name, value)
        directory = tmp_path / kind
        directory.mkdir()
        content = {
            **yaml.safe_load(RELEASE),
            "source": MAKERS[kind].write(directory, table),
            "window": window,
        }
        content["privacy"]["unit"]["max_rows"] = n_rows  # fewer would be chosen by chance
        (directory / "spec.json").write_text(json.dumps(content))
        if kind == "iceberg":  # pyiceberg imports pandas by itself, where a table is pinned
            (directory / "splits").write_bytes(pack(splits_of(load_spec(content))))
    loaded = modules_after(READING, tmp_path)
    assert "pyarrow" in loaded
    assert not loaded & HEAVY


@pytest.mark.slow
def test_a_release_with_listed_domains_needs_no_pandas(directory: Path) -> None:
    n_rows = 60
    texts = pa.array(["north", "south", None] * (n_rows // 3))
    pq.write_table(
        pa.table(
            {
                "customer": texts.dictionary_encode(),
                "city": texts,
                "price": pa.array(
                    [Decimal("1.5"), Decimal("2.0"), None] * (n_rows // 3), pa.decimal128(5, 1)
                ),
                "day": pa.array([dt.date(2013, 1, 1)] * n_rows),
                "heads": pa.array([True, None] * (n_rows // 2)),
                "colour": pa.array(["red", "green"] * (n_rows // 2)),
            }
        ),
        directory / "rows.parquet",
    )
    (directory / "release.yaml").write_text(RELEASE)
    grant = ("ledger", "grant", "shop", "--epsilon", "1", "--reason", "test", "--create")
    modules_after(command(*grant, "--unit", "column:customer"), directory)
    modules = all_modules_after(command("release", "release.yaml"), directory)
    loaded = {name.partition(".")[0] for name in modules}
    assert {"opendp", "pyarrow"} <= loaded
    assert not loaded & (HEAVY | CLUSTER)
    assert ("numba" in loaded) == (how_compiled() == NUMBA)
    of = "suffice.pipeline.rows.sources."
    assert {name.removeprefix(of) for name in modules if name.startswith(of)}.isdisjoint(OTHER_SOURCES)


@pytest.mark.slow
def test_a_posterior_of_three_cells_imports_one_family_and_no_engine(directory: Path) -> None:
    rows = pa.table({"city": ["a", "b", "c"] * 20, "heads": [True, False, False] * 20})
    pq.write_table(rows, directory / "coins.parquet")
    (directory / "grouped.yaml").write_text(
        SPEC.replace("statistics:", "groups: {city: [a, b, c]}\nstatistics:")
    )
    grant = ("ledger", "grant", "coins", "--epsilon", "1", "--reason", "test", "--create")
    modules_after(command(*grant), directory)
    modules_after(command("release", "grouped.yaml"), directory)
    asked = command("posterior", "flips", "heads")
    loaded = all_modules_after(asked, directory)
    assert not loaded & (OPTIONAL | CLUSTER | {"pyarrow", "unittest", "yaml"})
    of = "suffice.pipeline.math.engines."
    engines = {name.removeprefix(of).partition(".")[0] for name in loaded if name.startswith(of)}
    assert engines.isdisjoint({"histogram", "mean_variance", "normal"})
    assert not loaded & {f"suffice.cli.{command}" for command in ("audit", "predict", "publish", "release")}
    of = "suffice.pipeline.families."
    families = {name.removeprefix(of).partition(".")[0] for name in loaded if name.startswith(of)}
    assert families == {"bernoulli", "shared"}
    assert not loaded & (ONLY_OF_SPECS | RARELY_ASKED | {"suffice.pipeline.ask.inference.clipped_cells"})
    loaded = all_modules_after(command("table", "flips", "heads"), directory)
    assert not loaded & (
        ONLY_OF_SPECS | RARELY_ASKED | {"scipy", "suffice.pipeline.math.distributions.intervals"}
    )
