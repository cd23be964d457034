"""Releases of neighbouring data sets: all that differs is noise, and what is hashed from it.

Each pair is two real runs of the whole road, from files to a signed manifest, on equal copies of one
granted ledger, over data sets that differ in one record.
"""

from __future__ import annotations

import datetime as dt
import itertools
import json
import shutil
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from suffice.errors import ReleaseCorruptError
from suffice.pipeline.spec.spec import load_spec
from suffice.pipeline.terms.declaration import canonical_json
from suffice.releasing import run as release_run
from suffice.releasing.release import carry_out
from suffice.storage.ledger.opening import open_ledger
from suffice.storage.releases import release_parquet
from suffice.storage.releases.manifest import checksum, compose_manifest
from suffice.storage.releases.release_store import open_store
from suffice.storage.signatures.signing import new_keys
from support.making import ORIGINS, flights, make_workspace, mapping, write_parts
from support.paid import copy_database
from support.postgres import execute
from support.postgres_tables import source_url
from support.samples import drawn, drawn_quantile

if TYPE_CHECKING:
    from pathlib import Path

    from support.making import Workspace

MAY_DIFFER = frozenset(
    {"release_id", "created", "checksum", "signature.value", "drawing_sequence", "drawing_hash"}
)
"""Of a manifest, besides its files' hashes: ids and hashes, the signature, the ledger's sequence, time."""

HOSTILE: dict[str, list[Any]] = {
    "origin": ["JFK", "XXX", "", None, "\0", "Zürich" * 1000],
    "carrier": ["UA", "other", None, "x" * 100_000],
    "cancelled": [True, False, None],
    "arr_delay": [0.0, float("nan"), float("inf"), -float("inf"), 1e308, None],
    "stops": [0, 5, 2**62, -(2**62), None],
}


@dataclass(frozen=True)
class Shape:
    """What a reader sees of a release besides its noise."""

    paths: tuple[tuple[str, int, int], ...]
    schemas: tuple[tuple[str, str, object, object, tuple[tuple[object, ...], ...]], ...]
    keys: tuple[object, ...]
    manifest: dict[str, Any]
    account: tuple[object, ...]


def record(rng: np.random.Generator) -> dict[str, Any]:
    """Return one more row, of any kind."""
    row = {column: values[rng.integers(len(values))] for column, values in HOSTILE.items()}
    return {**row, "day": dt.date(2013, 1, 1) + dt.timedelta(days=int(rng.integers(200)))}


def neighbours(rng: np.random.Generator, *, replaced: bool) -> tuple[pa.Table, pa.Table]:
    """Return two data sets: one has a record more, or another record."""
    base = flights(int(rng.choice([0, 1, 2, 40])), seed=int(rng.integers(2**31)))

    def with_record(row: dict[str, Any]) -> pa.Table:
        columns = {
            name: pa.array([row[name]], type=base.schema.field(name).type) for name in base.column_names
        }
        return pa.concat_tables([base, pa.table(columns)])

    return with_record(record(rng)), with_record(record(rng)) if replaced else base


UNIT = {"column": "passenger", "max_rows": "3"}


def neighbours_by_unit(rng: np.random.Generator, *, replaced: bool) -> tuple[pa.Table, pa.Table]:
    """Return two data sets: one has a passenger more, or another passenger, with few rows or many."""
    base = flights(int(rng.choice([0, 1, 40])), seed=int(rng.integers(2**31)))
    base = base.append_column("passenger", pa.array(rng.integers(0, 9, base.num_rows)))

    def with_passenger() -> pa.Table:
        name = rng.choice(np.array([77, -(2**63), None], dtype=object))
        rows = [{**record(rng), "passenger": name} for _ in range(int(rng.choice([1, 3, 30])))]
        return pa.concat_tables([base, pa.Table.from_pylist(rows, schema=base.schema)])

    return with_passenger(), with_passenger() if replaced else base


def released(template: Workspace, directory: Path, table: pa.Table, changes: dict[str, Any]) -> Shape:
    """Release a data set from a copy of the template's ledger and empty store."""
    directory.mkdir()
    data = directory / "data"
    write_parts(table, data, n_files=1) if table.num_rows else _write_empty(table, data)
    return released_from(template, directory, data, changes)


def released_from(
    template: Workspace,
    directory: Path,
    source: Path | dict[str, Any],
    changes: dict[str, Any],
    window: str = "all",
) -> Shape:
    """Release what a source holds from a copy of the template's ledger and empty store."""
    copy_database(template.directory / "ledger.db", directory / "ledger.db")
    shutil.copytree(template.store, directory / "releases")
    url = f"sqlite:///{directory}/ledger.db"
    spec = load_spec(mapping(source, **changes))
    outcome = carry_out(spec, store=str(directory / "releases"), ledger=url, window=window)
    with open_ledger(url) as ledger:
        account, charges = ledger.account("passengers"), list(ledger.charges("passengers"))
    release = directory / "releases" / "flights" / window / outcome.release.release_id
    return shape_of(release, account, charges)


def _write_empty(table: pa.Table, directory: Path) -> None:
    directory.mkdir()
    pq.write_table(table, directory / "part-0.parquet")


def shape_of(release: Path, account: Any, charges: Any) -> Shape:
    manifest = json.loads((release / "manifest.json").read_bytes())
    schemas, keys = [], []
    for file in manifest["files"]:
        parquet = pq.ParquetFile(release / file["path"])
        footer = parquet.metadata
        columns = [footer.row_group(0).column(index) for index in range(footer.num_columns)]
        layout = tuple(
            (
                column.path_in_schema,
                column.encodings,
                column.compression,
                column.total_compressed_size,
                column.data_page_offset,
                column.statistics,
                column.has_dictionary_page,
            )
            for column in columns
        )
        schemas.append(
            (
                file["path"],
                str(parquet.schema_arrow),
                footer.metadata,
                (footer.num_rows, footer.created_by),
                layout,
            )
        )
        table = parquet.read()
        numbers = [name for name in ("value", "estimate") if name in table.column_names]
        keys.append(table.drop_columns(numbers).to_pydict())
    return Shape(
        paths=tuple(
            (path.name, path.stat().st_size, path.stat().st_mode) for path in sorted(release.iterdir())
        ),
        schemas=tuple(schemas),
        keys=tuple(keys),
        manifest=manifest,
        account=(account.spent, account.reserved, [(c.loss, c.state, c.attempt) for c in charges]),
    )


def differing(first: object, second: object, workspace: str = "") -> set[str]:
    """Name the fields in which two manifests differ."""
    if isinstance(first, dict) and isinstance(second, dict):
        names = first.keys() | second.keys()
        inner = (differing(first.get(n), second.get(n), f"{workspace}.{n}".lstrip(".")) for n in names)
        return set(itertools.chain.from_iterable(inner))
    if isinstance(first, list) and isinstance(second, list) and len(first) == len(second):
        inner = (differing(a, b, workspace) for a, b in zip(first, second, strict=True))
        return set(itertools.chain.from_iterable(inner))
    return set() if first == second else {workspace}


def check_pair(
    template: Workspace,
    directory: Path,
    rng: np.random.Generator,
    *,
    replaced: bool,
    by_unit: bool = False,
    changes: dict[str, Any] | None = None,
) -> set[str]:
    relation = "replace_one" if replaced else "add_or_remove_one"
    unit = UNIT if by_unit else "row"
    privacy = {"epsilon": "1", "neighboring": relation, "unit": unit}
    statistics = {**mapping("")["statistics"], "drawn": drawn("cancelled"), "p90": drawn_quantile("stops")}
    changes = {"privacy": privacy, "statistics": statistics, **(changes or {})}
    pair = (neighbours_by_unit if by_unit else neighbours)(rng, replaced=replaced)
    directory.mkdir()
    first, second = (
        released(template, directory / side, table, changes) for side, table in zip("ab", pair, strict=True)
    )
    differences = check_shapes(first, second)
    shutil.rmtree(directory)
    return differences


def check_shapes(first: Shape, second: Shape) -> set[str]:
    """Check that two releases differ in noise alone; name the fields of manifests that do."""
    assert first.paths == second.paths
    assert first.schemas == second.schemas
    assert first.keys == second.keys
    assert first.account == second.account
    differences = differing(first.manifest, second.manifest)
    assert differences <= {*MAY_DIFFER, "files.sha256"}, differences
    assert all(
        len(str(first.manifest[name])) == len(str(second.manifest[name]))
        for name in ("release_id", "checksum")
    )
    return differences


@pytest.fixture
def templates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[bool, Workspace]:
    """A granted ledger with an empty store for each relation; everything is signed."""
    monkeypatch.setenv("SUFFICE_SIGNING_KEY", str(new_keys(tmp_path / "key.pem").private_key))
    workspaces = {}
    for replaced in (False, True):
        relation = "replace_one" if replaced else "add_or_remove_one"
        workspace = make_workspace(tmp_path / relation, neighboring=relation)
        with open_ledger(workspace.ledger) as ledger:
            open_store(workspace.store, ledger_id=ledger.ledger_id, create=True)
        workspaces[replaced] = workspace
    return workspaces


def check_pairs(templates: dict[bool, Workspace], directory: Path, n_pairs: int) -> None:
    rng = np.random.default_rng(2013)
    differences: set[str] = set()
    for number in range(n_pairs):
        replaced = number % 2 == 1
        differences |= check_pair(templates[replaced], directory / f"pair-{number}", rng, replaced=replaced)
    # The comparison sees what does differ: noise, by the hashes of the files, and what hashes that.
    assert {"files.sha256", "checksum", "signature.value", "release_id"} <= differences


@pytest.mark.slow
def test_releases_of_neighbours_differ_in_their_noise_only(
    templates: dict[bool, Workspace], tmp_path: Path
) -> None:
    check_pairs(templates, tmp_path, 20)


@pytest.mark.slow
@pytest.mark.parametrize("replaced", [False, True])
def test_releases_of_neighbouring_units_differ_in_their_noise_only(tmp_path: Path, *, replaced: bool) -> None:
    relation = "replace_one" if replaced else "add_or_remove_one"
    template = make_workspace(tmp_path / "template", neighboring=relation, unit="column:passenger")
    with open_ledger(template.ledger) as ledger:
        open_store(template.store, ledger_id=ledger.ledger_id, create=True)
    rng = np.random.default_rng(2013)
    for number in range(8):
        differences = check_pair(template, tmp_path / f"pair-{number}", rng, replaced=replaced, by_unit=True)
        assert "files.sha256" in differences


TREES: dict[str, Any] = {
    "derived": {"coast": {"column": "origin", "map": dict.fromkeys(ORIGINS, "east")}},
    "groups": None,
    "statistics": {
        "cancelled": {
            "family": "bernoulli",
            "column": "cancelled",
            "hierarchy": ["all", "coast", "origin"],
            "groups": {"origin": ORIGINS},
        },
        "carrier": {
            "family": "categorical",
            "column": "carrier",
            "categories": ["UA", "DL"],
            "hierarchy": ["year", "month", "day"],
            "groups": {"day": {"from": "2013-01-01", "to": "2013-12-31", "every": "day"}},
        },
    },
}


@pytest.mark.slow
@pytest.mark.parametrize("by_unit", [False, True])
def test_levels_of_neighbours_differ_in_their_noise_only(tmp_path: Path, *, by_unit: bool) -> None:
    template = make_workspace(tmp_path / "template", **({"unit": "column:passenger"} if by_unit else {}))
    with open_ledger(template.ledger) as ledger:
        open_store(template.store, ledger_id=ledger.ledger_id, create=True)
    rng = np.random.default_rng(2013)
    for number in range(3):
        directory = tmp_path / f"pair-{number}"
        assert "files.sha256" in check_pair(
            template, directory, rng, replaced=False, by_unit=by_unit, changes=TREES
        )


HIVE = {"year": "integer", "month": "integer", "first": {"year": "year", "month": "month"}}
DAILY: dict[str, Any] = {
    "groups": {"cancelled": ["true", "false"]},
    "statistics": {"delay": {"family": "normal", "column": "arr_delay", "lower": -60, "upper": 180}},
}
MONTHLY = {**DAILY, "window": {"column": "first", "every": "month"}}
ROW = pa.table({"cancelled": [True], "arr_delay": [42.5]})
LINE = "JFK,true,42.5\n"
STRAY = {
    "opening": '"JFK,true,42.5\n',
    "within": 'J"FK,true,42.5\n',
    "alone": '"\n',
    "closing": 'JFK,true,"\n',
}


def a_folder(directory: Path, *, is_there: bool) -> tuple[dict[str, Any], dict[str, Any], str]:
    """Write one folder, and another of one record."""
    for origin in ("EWR", "JFK")[: 1 + is_there]:
        write_parts(ROW, directory / "rows" / f"origin={origin}", n_files=1)
    source = {"parquet": str(directory / "rows"), "hive": {"origin": "text"}}
    return source, {**DAILY, "groups": {"origin": ORIGINS}}, "all"


def a_month(directory: Path, *, is_there: bool) -> tuple[dict[str, Any], dict[str, Any], str]:
    """Write a month, and the released one, whose one file has one record."""
    for month in ("01", "02")[: 1 + is_there]:
        write_parts(ROW, directory / "rows" / "year=2013" / f"month={month}", n_files=1)
    return {"parquet": str(directory / "rows"), "hive": HIVE}, MONTHLY, "2013-02"


def a_stray_quote(
    directory: Path, *, is_there: bool, line: str
) -> tuple[dict[str, Any], dict[str, Any], str]:
    """Write lines of text, and one with a quote that encloses nothing in the middle of them."""
    lines = [LINE] * 5 + [line] * is_there + [LINE] * 5
    (directory / "rows.csv").write_text("".join(["origin,cancelled,arr_delay\n", *lines]))
    types = {"cancelled": "boolean", "arr_delay": "number"}
    return {"csv": str(directory / "rows.csv"), "columns": types}, DAILY, "all"


def a_decimal(
    directory: Path,  # noqa: ARG001 - the rows are in a database
    *,
    is_there: bool,
    value: str,
) -> tuple[dict[str, Any], dict[str, Any], str]:
    """Write a table of decimals, and one record more of a value that Arrow's decimals do not have."""
    execute(
        source_url(),
        "DROP TABLE IF EXISTS public.decimals",
        "CREATE TABLE public.decimals (cancelled boolean, arr_delay numeric(10, 2), free numeric)",
        "INSERT INTO public.decimals VALUES (true, 42.5, 1), (false, 3, 2)",
        f"INSERT INTO public.decimals SELECT true, '{value}', 'NaN' WHERE {is_there}",
    )
    return {"postgresql": "public.decimals"}, DAILY, "all"


PAIRS: dict[str, Any] = {
    "a folder": a_folder,
    "a month": a_month,
    **{f"a quote, {how}": partial(a_stray_quote, line=line) for how, line in STRAY.items()},
    "a decimal that is NaN": partial(a_decimal, value="NaN"),
    "a decimal at the end of its range": partial(a_decimal, value="99999999.99"),
}


@pytest.mark.slow
@pytest.mark.parametrize("made_as", PAIRS)
def test_a_record_of_any_source_changes_noise_only(
    templates: dict[bool, Workspace],
    source_database: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    made_as: str,
) -> None:
    monkeypatch.setenv("SUFFICE_POSTGRESQL", source_database)
    shapes, said = [], []
    for is_there in (True, False):
        directory = tmp_path / f"pair-{int(is_there)}"
        directory.mkdir()
        source, changes, window = PAIRS[made_as](directory, is_there=is_there)
        capfd.readouterr()
        caplog.clear()
        shapes.append(released_from(templates[False], directory, source, changes, window))
        said.append((*capfd.readouterr(), caplog.messages))
    differences = check_shapes(*shapes)
    assert {"files.sha256", "checksum", "signature.value", "release_id"} <= differences
    assert said[0] == said[1]


@pytest.mark.audit
@pytest.mark.timeout(900)
def test_releases_of_many_neighbours_differ_in_their_noise_only(
    templates: dict[bool, Workspace], tmp_path: Path
) -> None:
    check_pairs(templates, tmp_path, 200)


@pytest.mark.slow
@pytest.mark.parametrize("mutant", ["default parquet", "stated rows", "observed groups"])
def test_what_leaks_would_be_seen(
    templates: dict[bool, Workspace], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mutant: str
) -> None:
    """Controls: three ways of following the data, each of which fails the same comparison."""
    compose, read_spec = compose_manifest, load_spec

    def read_table() -> pa.Table:
        (newest,) = sorted(tmp_path.glob("pair/*"))[-1:]
        return pq.read_table(newest / "data")

    def stated_rows(*arguments: Any, **fields: Any) -> bytes:
        """State how many rows were read."""
        content = json.loads(compose(*arguments, **{**fields, "signer": None}))
        content["versions"]["rows"] = str(read_table().num_rows)
        content["checksum"] = checksum(content)
        return canonical_json.encode({**content, "signature": fields["signer"].sign(content)})

    def observed_groups(content: dict[str, Any]) -> Any:
        """Take the keys of groups from the data."""
        keys = sorted({key for key in read_table()["origin"].to_pylist() if key})
        return read_spec({**content, "groups": {"origin": keys or ["none"]}})

    if mutant == "default parquet":
        monkeypatch.setattr(release_parquet, "_WRITER", {})  # statistics, dictionaries and compressed pages
    elif mutant == "stated rows":
        monkeypatch.setattr(release_run, "compose_manifest", stated_rows)
    else:
        monkeypatch.setitem(globals(), "load_spec", observed_groups)
    rng = np.random.default_rng(2013)

    def check_twenty() -> None:
        for _ in range(20):
            check_pair(templates[False], tmp_path / "pair", rng, replaced=False)

    with pytest.raises((AssertionError, ReleaseCorruptError)):  # readers refuse another layout
        check_twenty()
