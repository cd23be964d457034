"""A drawn quantile in JavaScript, R and SQL: its bins are Python's, and a sharper law is refused."""

from __future__ import annotations

import copy
import itertools
import json
import subprocess
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import pytest

import suffice
from suffice.errors import ReleaseCorruptError
from suffice.storage.releases.manifest_reader import parse_manifest
from support.in_r import run_in_r
from support.javascript import judge, node
from support.manifest_mutants import sealed
from support.releases import make_plan, publish
from support.samples import drawn_quantile

if TYPE_CHECKING:
    from pathlib import Path

UNIT = 2**20
IN_R = """
    for (file in list.files(commandArgs(TRUE)[1], full.names = TRUE)) source(file)
    for (folder in commandArgs(TRUE)[-1]) {
      read <- tryCatch(release_samples(read_release(folder), "p90"), error = function(e) NULL)
      cat(if (is.null(read)) "refused" else paste(read$lower, read$upper, sep = ":", collapse = " "), "\\n")
    }
"""
IN_JAVASCRIPT = """
    import { readFileSync } from "node:fs";
    const { readRelease } = await import(process.argv[2]);
    const bytes = (name) => new Uint8Array(readFileSync(`${process.argv[3]}/${name}`));
    const release = await readRelease(bytes("manifest.json"), { "p90.parquet": bytes("p90.parquet") }, {});
    console.log(JSON.stringify(release.samples("p90")));
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every bin is drawn; one atom is at an edge, one inside of a bin, one at an end."""
    entry = drawn_quantile("stops", atoms=["0", "2.5", "3"], bins=["0", "1", "3", "8"], sample={"draws": "6"})
    plan = make_plan(statistics={"p90": entry}, groups={"g": ["a"]})
    drawn = np.arange(6, dtype=object)[None, :]
    return publish(tmp_path_factory.mktemp("drawn"), plan, {"p90": drawn})


def mutants(folder: Path) -> dict[str, bytes]:
    """Return manifests that state a sharper law, each consistent in itself."""
    content = json.loads((folder / "manifest.json").read_text())

    def of(**changes: Any) -> bytes:
        changed = copy.deepcopy(content)
        changed["statistics"][0].update(changes)
        return sealed(changed)

    entry = content["statistics"][0]
    half, scale = int(entry["range_sensitivity"]) // 2, int(entry["scale"]) // 2 + 1
    return {
        "scale": of(scale=str(scale)),
        "rank scale": of(rank_scale="1"),
        "range": of(range_sensitivity=str(half), scale=str(scale), rank_scale=_exact(scale)),
        "another quantile": of(quantile="0.5"),
        "draws": of(draws=3),
    }


def _exact(scale: int) -> str:
    from fractions import Fraction

    from suffice.pipeline.terms.declaration.exact_numbers import format_number

    return format_number(Fraction(scale, 10 * UNIT))


def test_python_and_javascript_compute_the_law_again(folder: Path) -> None:
    sharper = mutants(folder)
    for manifest in sharper.values():
        with pytest.raises(ReleaseCorruptError):
            parse_manifest(manifest)
    right = (folder / "manifest.json").read_bytes()
    codes = [verdict["code"] for verdict in judge([right, *sharper.values()])]
    assert codes[0] is None
    assert None not in codes[1:], dict(zip(sharper, codes[1:], strict=True))


@pytest.mark.slow
def test_javascript_finds_pythons_range(tmp_path: Path) -> None:
    """Under both relations, with and without groups, units and rho."""
    manifests = []
    relations, units = ("add_or_remove_one", "replace_one"), (None, {"column": "who", "max_rows": "4"})
    shapes: tuple[tuple[dict[str, str], dict[str, Any]], ...] = (
        ({}, {}),
        ({"quantile": "0.25"}, {"g": ["a", "b"]}),
    )
    losses = ({"epsilon": "1"}, {"rho": "0.5"})
    for at, (relation, unit, (change, groups), loss) in enumerate(
        itertools.product(relations, units, shapes, losses)
    ):
        privacy = {**loss, "neighboring": relation, **({} if unit is None else {"unit": unit})}
        entry = drawn_quantile("stops", sample=change)
        plan = make_plan(statistics={"p90": entry}, groups=groups, privacy=privacy)
        folder = publish(tmp_path / str(at), plan, {"p90": np.zeros((plan.n_cells, 2), dtype=object)})
        manifests.append((folder / "manifest.json").read_bytes())
    assert judge(manifests) == [{"code": None}] * 16


def test_javascript_reads_the_bins(repository: Path, folder: Path, tmp_path: Path) -> None:
    script = tmp_path / "draws.mjs"
    script.write_text(IN_JAVASCRIPT)
    reader = repository / "readers" / "javascript" / "src" / "index.js"
    done = subprocess.run(
        [node(), str(script), reader.as_uri(), str(folder)], capture_output=True, text=True, check=True
    )
    expected = suffice.open_release(str(folder)).table("p90")
    assert [{**row.pop("cell"), **row} for row in json.loads(done.stdout)] == list(expected)


@pytest.mark.slow
def test_r_reads_the_bins_and_refuses_a_sharper_law(repository: Path, folder: Path, tmp_path: Path) -> None:
    folders = [str(folder)]
    for name in ("scale", "rank scale", "another quantile"):
        place = tmp_path / name.replace(" ", "-")
        place.mkdir()
        for each in folder.iterdir():
            (place / each.name).write_bytes(each.read_bytes())
        (place / "manifest.json").write_bytes(mutants(folder)[name])
        folders.append(str(place))
    script = tmp_path / "draws.R"
    script.write_text(IN_R)
    read, *refused = run_in_r(script, str(repository / "readers" / "r" / "R"), *folders).splitlines()
    draws = suffice.open_release(str(folder)).samples("p90")
    expected = zip(draws.lower[0].tolist(), draws.upper[0].tolist(), strict=True)  # type: ignore[attr-defined]
    assert [tuple(map(float, pair.split(":"))) for pair in read.split()] == list(expected)
    assert [each.strip() for each in refused] == ["refused"] * 3


def test_macros_say_that_it_is_a_drawn_quantile(repository: Path, folder: Path) -> None:
    connection = duckdb.connect()
    connection.execute((repository / "readers" / "sql" / "suffice.sql").read_text())
    with pytest.raises(duckdb.Error, match="it is a drawn quantile"):
        connection.execute("FROM suffice_samples($1, 'p90')", [str(folder)]).fetchall()
