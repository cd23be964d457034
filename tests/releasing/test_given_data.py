"""Releases of rows in memory: charged, refused and repeated as those of files, and kept nowhere."""

from __future__ import annotations

import ast
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import suffice
from suffice.errors import DataChangedError, SchemaError, SufficeWarning
from suffice.pipeline.rows import sources
from suffice.pipeline.rows.sources import given_rows
from suffice.pipeline.rows.sources.contract import spec_columns
from suffice.releasing import release as releasing
from support.making import flights, make_workspace, mapping
from support.page_blocks import read_page

if TYPE_CHECKING:
    from pathlib import Path

    from support.making import Workspace

SECRET = "zq-secret-817"  # noqa: S105 - a value of a row


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return make_workspace(tmp_path)


def bare(**changes: Any) -> dict[str, Any]:
    content = mapping("data", **changes)
    del content["source"]
    return content


def run(workspace: Workspace, data: Any, **changes: Any) -> suffice.Release:
    return suffice.release(bare(**changes), store=workspace.store, ledger=workspace.ledger, data=data)


def test_a_frame_is_released_at_the_same_price_and_plan(workspace: Workspace) -> None:
    of_frame = run(workspace, flights().to_pandas())
    assert workspace.account().remaining == 10 - suffice.plan(bare()).loss.amount
    assert suffice.plan(bare()).plan_hash == suffice.plan(workspace.spec()).plan_hash
    assert of_frame.manifest["plan_hash"] == suffice.plan(workspace.spec()).plan_hash
    text = workspace.run(name="of-files")
    assert of_frame.statistics.keys() == text.release.statistics.keys()


def test_the_same_rows_again_return_the_release_and_charge_nothing(workspace: Workspace) -> None:
    frame = flights().to_pandas()
    first = run(workspace, frame)
    left = workspace.account().remaining
    with warnings.catch_warnings():
        warnings.simplefilter("error", SufficeWarning)
        again = run(workspace, frame.copy())
        as_arrow = run(workspace, pa.Table.from_pandas(frame))
    assert first.release_id == again.release_id == as_arrow.release_id
    assert workspace.account().remaining == left
    changed = frame.copy()
    changed.loc[7, "arr_delay"] = 817.25
    with pytest.raises(
        DataChangedError, match=r"flights was released in this session.*another name"
    ) as caught:
        run(workspace, changed)
    assert "817" not in str(caught.value)
    assert workspace.account().remaining == left
    run(workspace, changed, name="flights-2")
    assert workspace.account().remaining < left


def test_a_session_that_did_not_release_them_says_that_it_cannot_compare(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = run(workspace, flights())
    monkeypatch.setattr(releasing, "_RELEASED", {})  # as a new process has it
    said = []
    for rows in (flights(), flights(seed=2)):
        with pytest.warns(SufficeWarning, match="were not compared") as caught:
            assert run(workspace, rows).release_id == first.release_id
        assert caught[0].filename == __file__
        said.append(str(caught[0].message))
    assert said[0] == said[1], "nothing that is said depends on the rows"


def test_a_spec_has_a_source_or_rows_and_not_both(workspace: Workspace) -> None:
    with pytest.raises(suffice.SufficeError, match="leave one of the two out"):
        suffice.release(workspace.spec(), store=workspace.store, ledger=workspace.ledger, data=flights())
    for refused in (suffice.release, suffice.rehearse):
        with pytest.raises(suffice.SufficeError, match="names no source"):
            refused(bare(), store=workspace.store, ledger=workspace.ledger)
    with pytest.raises(suffice.SufficeError, match="names no source"):
        suffice.backfill(
            bare(window={"column": "day", "every": "month"}),
            "2013-01",
            store=workspace.store,
            ledger=workspace.ledger,
        )
    with pytest.raises(suffice.SufficeError, match="names no source"):
        suffice.audit(bare())
    assert workspace.charge() is None


@pytest.mark.parametrize("cluster", ["local", "tls://scheduler:8786"])
def test_rows_never_go_to_a_cluster(workspace: Workspace, cluster: str) -> None:
    with pytest.raises(suffice.SufficeError, match='cluster="threads"'):
        suffice.release(
            bare(), store=workspace.store, ledger=workspace.ledger, data=flights(), cluster=cluster
        )
    assert workspace.charge() is None


def test_what_does_not_fit_charges_nothing_and_the_owner_decides_first(workspace: Workspace) -> None:
    odd = flights().to_pandas().astype({"cancelled": object})
    odd.loc[3, "cancelled"] = SECRET
    with pytest.raises(suffice.SufficeError, match="'cancelled' is of dtype object") as caught:
        run(workspace, odd)
    assert SECRET not in str(caught.value)
    assert workspace.charge() is None
    unread = flights().to_reader()
    with pytest.raises(suffice.SufficeError, match="has epsilon 10 left"):
        run(workspace, unread, privacy={"epsilon": "11", "neighboring": "add_or_remove_one"})
    assert unread.read_all().num_rows == 600, "a refused account reads nothing"
    limited = make_workspace(workspace.directory / "limited", sources=["/warehouse"])
    with pytest.raises(suffice.SufficeError, match="does not allow this source"):
        run(limited, flights())
    assert run(make_workspace(workspace.directory / "open", sources=["data:"]), flights()).loss.amount == 1


def test_an_absent_column_does_not_print_the_names_of_others(workspace: Workspace) -> None:
    pivoted = flights().to_pandas().assign(**{SECRET: 1})  # pivots make values names
    statistics = {"late": {"family": "bernoulli", "column": "absent"}}
    for rows in (pivoted, pivoted.to_dict("list")):
        with pytest.raises(SchemaError, match=r"no column 'absent'; its columns are not listed") as caught:
            run(workspace, rows, groups={}, statistics=statistics)
        assert SECRET not in str(caught.value)
    assert workspace.charge() is None


def test_nothing_of_the_rows_is_on_disk(workspace: Workspace, tmp_path: Path) -> None:
    frame = flights().to_pandas()
    frame.loc[0, "carrier"] = SECRET
    frame.loc[0, "arr_delay"] = 81.7654321
    spec = suffice.load_spec(bare())
    run(workspace, frame)
    rows = given_rows.of(frame, spec_columns(spec))
    sources.pin(spec, "all", None, rows)
    needles = [
        SECRET.encode(),
        rows.digest().encode(),
        bytes.fromhex(rows.digest()),
        np.float64(81.7654321).tobytes(),
    ]
    for path in tmp_path.rglob("*"):
        if path.is_file() and workspace.data not in path.parents:
            content = path.read_bytes()
            assert not [needle for needle in needles if needle in content], path


def test_an_error_of_a_stage_shows_nothing_of_the_rows(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise ValueError(SECRET)

    monkeypatch.setattr(given_rows, "splits", fails)
    frame = flights().to_pandas()
    with pytest.raises(suffice.SufficeError) as caught:
        run(workspace, frame)
    assert SECRET not in str(caught.value)
    traceback, seen = caught.value.__traceback__, 0
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename != __file__:
            held = traceback.tb_frame.f_locals.values()
            assert not any(isinstance(value, pd.DataFrame | pa.Table) for value in held)
            seen += 1
        traceback = traceback.tb_next
    assert seen


def test_windows_amendments_and_counts_read_the_same_rows(workspace: Workspace) -> None:
    windowed = {
        "window": {"column": "day", "every": "month"},
        "groups": {"origin": ["EWR"]},
        "expect": {"rows": "10", "epsilon": "1"},
    }
    reader = pa.RecordBatchReader.from_batches(flights().schema, flights().to_batches(max_chunksize=100))
    release = suffice.release(
        bare(**windowed), store=workspace.store, ledger=workspace.ledger, data=reader, window="2013-01"
    )
    assert release.window == "2013-01"
    assert workspace.charge("flights.expect", "2013-01") is not None


def test_a_public_number_of_rows_is_that_of_the_frame(workspace: Workspace) -> None:
    with_n = make_workspace(workspace.directory / "replaced", neighboring="replace_one")
    minimal = bare(
        groups=None,
        privacy={"epsilon": "1", "neighboring": "replace_one"},
        statistics={"cancelled": {"family": "bernoulli", "column": "cancelled", "nulls": {"value": "0"}}},
    )
    release = suffice.release(minimal, store=with_n.store, ledger=with_n.ledger, data=flights(321))
    assert release.manifest["n"] == 321


def test_the_owners_checksums_hold_for_rows_too(workspace: Workspace) -> None:
    listed = workspace.directory / "SHA256SUMS"
    listed.write_text(f"{suffice.data_digest(bare(), flights())}  data:\n")
    checked = make_workspace(workspace.directory / "checked", checksums=str(listed))
    with pytest.raises(suffice.SufficeError, match="not what the account's owner listed"):
        run(checked, flights(seed=2))
    assert checked.charge() is None
    assert run(checked, flights().to_pandas()).manifest["input_verified"]


CONTRACT = {
    "origin": "text",
    "day": "date",
    "carrier": "text",
    "cancelled": "boolean",
    "arr_delay": "floating",
    "stops": "integer",
}


def test_a_contract_of_rows_in_memory_stands_in_the_grant(tmp_path: Path) -> None:
    ledger = f"sqlite:///{tmp_path / 'ledger.db'}"
    account = suffice.grant(
        "passengers",
        epsilon=10,
        reason="tests",
        ledger=ledger,
        create=True,
        contract=CONTRACT,
        unwitnessed=True,
    )
    assert account.contract is not None
    assert account.contract.source.kind == "data"
    frame = flights().to_pandas().astype({"cancelled": object})
    frame.loc[3, "cancelled"] = SECRET  # by the contract it is a null
    release = suffice.release(bare(), store=str(tmp_path / "releases"), ledger=ledger, data=frame)
    assert release.manifest["contract"] == account.contract.sha256
    again = suffice.release(bare(), store=str(tmp_path / "releases"), ledger=ledger, data=frame.copy())
    assert again.release_id == release.release_id
    with pytest.raises(suffice.SufficeError, match="contract is of data, the spec of parquet"):
        suffice.release(mapping(tmp_path, name="other"), store=str(tmp_path / "releases"), ledger=ledger)


def test_a_grant_is_that_of_the_command_line(tmp_path: Path) -> None:
    ledger = f"sqlite:///{tmp_path / 'ledger.db'}"
    with pytest.raises(suffice.SufficeError, match="no ledger"):
        suffice.grant("visits", epsilon=1, reason="tests", ledger=ledger)
    with pytest.warns(SufficeWarning, match="unwitnessed says that it is meant so"):
        account = suffice.grant("visits", epsilon=0.5, reason="tests", ledger=ledger, create=True)
    assert (account.dataset, str(account.granted), account.unit) == ("visits", "1/2", "row")
    assert "granted 0.5" in str(account)
    refusals: list[tuple[dict[str, Any], str]] = [
        ({"epsilon": "much"}, "epsilon: "),
        ({}, "state epsilon or rho, or per_year or rho_per_year beside per_window"),
        ({"epsilon": 1, "witness": "w", "unwitnessed": True}, "witness and unwitnessed exclude"),
        ({"epsilon": 1, "contract": {"x": "number"}}, "contract: columns.x"),
        ({"epsilon": 1, "contract": "nothing.json"}, "contract: nothing.json"),
        *(
            ({"epsilon": 1, "unit": unit}, "unit is 'row', or .* 'column:patient_id'")
            for unit in (5, ["patient_id"], ("column", "patient_id"), "patient_id", {"max_rows": 5})
        ),
        ({"epsilon": 1, "neighboring": {"a": 1}}, "neighboring is a text, as 'add_or_remove_one'"),
        ({"epsilon": 1, "per_window": {"a": 1}}, "per_window is a text, as 'visit_date:month'"),
        ({"epsilon": 1, "sources": "data:"}, r"sources is a list of texts, as \['data:'\]"),
        ({"epsilon": 1, "stores": "releases"}, "stores is a list of texts"),
        ({"epsilon": 1, "sources": [5]}, "sources is a list of texts"),
    ]
    for terms, rule in refusals:
        with pytest.raises(suffice.SufficeError, match=rule):
            suffice.grant("visits", reason="tests", ledger=ledger, **terms)


def test_the_page_on_sources_runs_as_it_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, repository: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    page = read_page(repository / "docs/how-to/read-from-a-source.md")
    (code,) = [block.text for block in page.blocks if "data=frame" in block.text]
    names: dict[str, Any] = {"frame": flights().to_pandas()}
    exec(compile(code, page.path.name, "exec"), names)  # noqa: S102 - our own text
    assert list(names["release"]) == ["cancelled", "delay"]
    assert suffice.load_spec(str(names["spec"])) == names["spec"]


def test_no_flow_and_no_command_takes_rows(repository: Path) -> None:
    """Prefect keeps parameters, and a command line is seen by all."""
    taken = {"data", "given", "frame", "table"}
    parameters: set[str] = set()
    for path in (*(repository / "flows").rglob("*.py"), repository / "src/suffice/cli/release.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and (node.decorator_list or node.name == "release"):
                parameters |= {each.arg for each in (*node.args.args, *node.args.kwonlyargs)}
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("run_release", "carry_out")):
                assert not taken & {str(keyword.arg) for keyword in node.keywords}
    assert {"window", "spec"} <= parameters
    assert not parameters & taken


@pytest.mark.parametrize("unit", [{"column": "patient_id", "max_rows": 5}, "column:patient_id"])
def test_a_grant_takes_the_unit_of_a_spec(tmp_path: Path, unit: Any) -> None:
    ledger = f"sqlite:///{tmp_path / 'ledger.db'}"
    account = suffice.grant(
        "hospital", epsilon=3, reason="tests", ledger=ledger, unit=unit, create=True, unwitnessed=True
    )
    assert account.unit == "column:patient_id"


def test_a_refused_unit_shows_the_grant_that_takes_it(tmp_path: Path) -> None:
    places: dict[str, Any] = {
        "ledger": f"sqlite:///{tmp_path / 'ledger.db'}",
        "store": str(tmp_path / "releases"),
    }
    unit = {"column": "carrier", "max_rows": 5}
    spec = bare(privacy={"epsilon": 1, "neighboring": "add_or_remove_one", "unit": unit})
    call = r'suffice\.grant\("passengers", epsilon="1", reason="WHY", unit="column:carrier"'
    with pytest.raises(suffice.SufficeError, match=rf"there is no ledger.*{call}, create=True\)"):
        suffice.release(spec, data=flights(), **places)
    for dataset, rule in (
        ("other", rf"there is no account.*{call}\) or `suffice ledger grant passengers --epsilon 1 "),
        ("passengers", r'unit="column:carrier"\)'),
    ):
        places = {"ledger": f"sqlite:///{tmp_path / dataset}.db", "store": str(tmp_path / dataset)}
        suffice.grant(
            dataset, epsilon=10, reason="tests", ledger=places["ledger"], create=True, unwitnessed=True
        )
        with pytest.raises(suffice.SufficeError, match=rule):
            suffice.release(spec, data=flights(), **places)


@pytest.mark.parametrize(
    ("column", "statistic", "remedy"),
    [
        (
            pa.array(["yes", "no"]),
            suffice.bernoulli(),
            r"derived: \{is_seen: \{column: seen, in: \['yes'\]\}\}",
        ),
        (pa.array([1, 2], pa.duration("s")), suffice.normal(None, 0, 9), r"dt\.total_seconds\(\)"),
    ],
    ids=["yes and no", "time spans"],
)
def test_a_column_of_another_type_says_how_it_is_made_one_that_fits(
    tmp_path: Path, column: pa.Array, statistic: dict[str, Any], remedy: str
) -> None:
    ledger = f"sqlite:///{tmp_path / 'ledger.db'}"
    suffice.grant("d", epsilon=1, reason="tests", ledger=ledger, create=True, unwitnessed=True)
    spec = suffice.spec(dataset="d", statistics={"seen": statistic}, epsilon=1)
    with pytest.raises(SchemaError, match=remedy):
        suffice.release(spec, data=pa.table({"seen": column}), store=str(tmp_path / "s"), ledger=ledger)
