"""The readers in R and SQL, held against the test vectors."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

import suffice
from support.in_r import program_of_r, run_in_r
from support.making import mapping
from support.manifest_mutants import changed, sealed
from support.releases import flip_bit, make_plan, publish
from support.samples import drawn

VECTORS = Path(__file__).parent / "vectors"
VALID = sorted(path.name for path in (VECTORS / "valid").iterdir())


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_reader_in_r_passes_the_test_vectors(repository: Path) -> None:
    script = repository / "readers" / "r" / "tests" / "vectors.R"
    printed = run_in_r(script, str(VECTORS), "fast", str(VECTORS / "publication"), timeout=550)
    by = [vector["refused_by"] for vector in json.loads((VECTORS / "hostile.json").read_text())["hostile"]]
    hostile = len(by) - by.count("words")
    by_signature = hostile - by.count("reader")
    assert f"{len(VALID)} valid vectors" in printed
    assert "200 draws of probability" in printed
    # Signatures need openssl, which is not everywhere.
    assert any(f"; {count} hostile ones refused" in printed for count in (hostile, hostile - by_signature))
    posteriors = 0
    for name in VALID:
        folder = VECTORS / "valid" / name
        manifest = json.loads((folder / "release" / "manifest.json").read_text())
        answered = {
            entry["name"]
            for entry in manifest["statistics"]
            if entry["family"] in {"bernoulli", "poisson", "categorical"}
            and not {"within_unit", "count_clipped"} & entry.keys()
        }
        stated = json.loads((folder / "expected.json").read_text())["posteriors"]
        posteriors += sum(len(answer["cells"]) for answer in stated if answer["statistic"] in answered)
    assert f"\n{posteriors} posteriors" in printed


@pytest.mark.slow
def test_the_package_passes_the_check_of_r(repository: Path, tmp_path: Path) -> None:
    """Its maintainer is stated by whoever publishes it. R's own tests would need the vectors."""
    package = tmp_path / "suffice"
    shutil.copytree(repository / "readers" / "r", package)
    with (package / "DESCRIPTION").open("a") as description:
        description.write("Maintainer: Nobody <nobody@example.org>\n")
    r = program_of_r("R")
    subprocess.run([r, "CMD", "build", package], check=True, capture_output=True, cwd=tmp_path, timeout=60)
    (built,) = tmp_path.glob("suffice_*.tar.gz")
    checked = subprocess.run(
        [r, "CMD", "check", "--no-manual", built],
        check=False,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=os.environ | {"_R_CHECK_CRAN_INCOMING_": "false", "_R_CHECK_FORCE_SUGGESTS_": "false"},
        timeout=250,
    )
    assert "Status: OK" in checked.stdout, checked.stdout


@pytest.mark.slow
def test_r_reads_draws_of_the_statistic_that_is_named_with_keys_as_they_are(
    repository: Path, tmp_path: Path
) -> None:
    release = suffice.open_release(VECTORS / "valid" / "first-families" / "release")
    names = [statistic["name"] for statistic in release.manifest["statistics"]][:2]
    made = suffice.publish(release, names, to=tmp_path, formats="csv", draws=7)
    script = tmp_path / "draws.R"
    script.write_text("""
        for (file in list.files(commandArgs(TRUE)[1], full.names = TRUE)) source(file)
        several <- tryCatch(published_draws(commandArgs(TRUE)[2]), error = conditionMessage)
        cat(several, nrow(published_draws(commandArgs(TRUE)[2], commandArgs(TRUE)[3])), "", sep = "|")
        keys <- .read_csv('"key","draw","value"\\n"007",0,0.5\\n"NA",1,\\n"T",2,1\\n')
        cat(keys$key, is.na(keys$value), class(keys$draw), sep = "|")
    """)
    printed = run_in_r(script, str(repository / "readers" / "r" / "R"), made.uri, names[1])
    several, count, *keys = printed.strip().split("|")
    assert several.endswith(f"one of: {names[0]}, {names[1]}")
    expected = [file.rows for file in made.files if file.name == f"{names[1]}-draws.csv"]
    assert [int(count)] == expected
    assert keys == ["007", "NA", "T", "FALSE", "TRUE", "FALSE", "integer"]


@pytest.mark.slow
def test_the_reader_in_r_refuses_what_is_of_another_type(repository: Path, tmp_path: Path) -> None:
    release = VECTORS / "valid" / "units" / "release"
    content = json.loads((release / "manifest.json").read_text())
    places: list[tuple[str | int, ...]] = [
        ("statistics", 3),
        ("statistics", 3, "quantities"),
        ("statistics", 3, "quantities", 1),
        ("statistics", 3, "quantities", 1, "name"),
        ("statistics", 3, "quantities", 1, "coefficients"),
        ("statistics", 3, "quantities", 1, "public_n_coefficient"),
        ("statistics", 4, "quantities", 2, "labels", 2),
        ("statistics", 3, "design"),
        ("statistics", 3, "partition_total"),
        ("groups", 0, "column"),
        ("plan", "window"),
    ]
    others: tuple[Any, ...] = (["0", "1"], {"a": []}, "x")
    written: list[tuple[Any, ...]] = []
    for place in places:
        for other in others:
            folder = tmp_path / str(len(written))
            shutil.copytree(release, folder)
            (folder / "manifest.json").write_bytes(sealed(changed(content, place, other)))
            written.append((place, other))
    script = repository / "readers" / "r" / "tests" / "refusals.R"
    printed = run_in_r(script, str(tmp_path))
    outcomes = dict(line.split(" ", 1) for line in printed.splitlines())
    codes = {f"{place} {other}": outcomes[str(at)] for at, (place, other) in enumerate(written)}
    assert set(codes.values()) == {"refused", "read"}, codes
    assert sum(outcome == "refused" for outcome in codes.values()) >= 24, codes


@pytest.mark.slow
def test_posteriors_in_r_are_pythons_on_releases_of_any_noise(repository: Path, tmp_path: Path) -> None:
    """Python's sums are within some 1e-5 of dense ones, the reader's within 1e-8.

    Of means and deviations cut off at a bound Python loses up to some 2e-4 where noise is large.
    """
    rng = np.random.default_rng(12)
    folder = tmp_path / "releases"
    expected: list[tuple[str, str, str, Any, Any]] = []
    for name, epsilon in (("a", "0.05"), ("b", "1"), ("c", "8")):
        statistics = {
            "event": {"family": "bernoulli", "column": "c", "nulls": "drop"},
            "count": {"family": "poisson", "column": "d", "upper": 7, "nulls": "drop"},
            "kind": {"family": "categorical", "column": "k", "categories": ["x", "y", "z"]},
        }
        if epsilon == "0.05":
            del statistics["kind"]
        plan = make_plan(
            groups=None,
            privacy={"epsilon": epsilon, "neighboring": "add_or_remove_one"},
            statistics=statistics,
        )
        totals = {"event": (55, 20), "count": (110, 415), "kind": (30, 5, 40)}
        values = {
            each.name: np.round(
                np.array([totals[each.name]]) + rng.laplace(size=(1, each.n_values)) * each.scale
            )
            .astype(int)
            .astype(object)
            for each in plan.statistics
        }
        release = suffice.open_release(publish(tmp_path / name, plan, values))
        shutil.copytree(release.uri, folder / name)
        for each in plan.statistics:
            posterior = release.posterior(each.name)
            (parameter,) = posterior.parameters
            pairs = zip(np.ravel(posterior.mean(parameter)), np.ravel(posterior.sd(parameter)), strict=True)
            expected += [(name, each.name, str(posterior.prior), mean, sd) for mean, sd in pairs]
    printed = run_in_r(repository / "readers" / "r" / "tests" / "posteriors.R", str(folder))
    answers = [line.split("|") for line in printed.splitlines()]
    assert [answer[:3] for answer in answers] == [list(stated[:3]) for stated in expected]
    for (*about, mean, sd), (*_, python_mean, python_sd) in zip(answers, expected, strict=True):
        assert abs(float(mean) - python_mean) < 5e-4 * python_sd, about
        assert abs(float(sd) / python_sd - 1) < 5e-4, about


@pytest.fixture(scope="module")
def connection(repository: Path) -> duckdb.DuckDBPyConnection:
    opened = duckdb.connect()
    opened.execute((repository / "readers" / "sql" / "suffice.sql").read_text())
    return opened


def rows(connection: duckdb.DuckDBPyConnection, query: str, *arguments: Any) -> list[dict[str, Any]]:
    result = connection.execute(query, arguments)
    names = [column[0] for column in result.description or ()]
    return [dict(zip(names, row, strict=True)) for row in result.fetchall()]


@pytest.mark.parametrize("name", VALID)
def test_macros_give_the_tables_of_a_vector(connection: duckdb.DuckDBPyConnection, name: str) -> None:
    folder = VECTORS / "valid" / name
    stated = json.loads((folder / "release" / "manifest.json").read_text())["statistics"]
    on_cone = {entry["name"] for entry in stated if entry["mechanism"] == "cone_noise"}
    for statistic, table in json.loads((folder / "expected.json").read_text())["tables"].items():
        query = "FROM suffice_table($1, $2)"
        if statistic in on_cone:
            with pytest.raises(duckdb.Error, match="its noise is on a cone"):
                rows(connection, query, str(folder / "release"), statistic)
            continue
        answers = rows(connection, query, str(folder / "release"), statistic)
        assert len(answers) == len(table["rows"])
        for ours, theirs in zip(answers, table["rows"], strict=True):
            keys = theirs.keys() - {"estimate", "noise_sd", "category", "component", "table"}
            shared = keys & ours.keys()
            assert "quantity" in shared
            assert {key: ours[key] for key in shared} == {key: theirs[key] for key in shared}
            np.testing.assert_allclose(ours["noise_sd"], theirs["noise_sd"], rtol=1e-12)
            if not table["saturated"]:
                room = 1e-12 * max(abs(theirs["estimate"]), theirs["noise_sd"])
                assert abs(ours["estimate"] - theirs["estimate"]) <= room


def test_macros_give_the_draws_of_samples(connection: duckdb.DuckDBPyConnection) -> None:
    folder = VECTORS / "valid" / "samples"
    stated = json.loads((folder / "expected.json").read_text())["samples"]
    assert len(stated) == 2
    for statistic, expected in stated.items():
        draws = rows(connection, "FROM suffice_samples($1, $2)", str(folder / "release"), statistic)
        for ours, theirs in zip(draws, expected, strict=True):
            np.testing.assert_allclose(ours.pop("value"), theirs.pop("value"), rtol=1e-12)
            assert ours == theirs
    with pytest.raises(duckdb.Error, match="released as noisy statistics"):
        rows(connection, "FROM suffice_samples($1, 'cancelled')", str(folder / "release"))
    with pytest.raises(duckdb.Error):
        rows(connection, "FROM suffice_table($1, 'cancelled_drawn')", str(folder / "release"))


def test_intervals_hold_the_exact_totals_at_least_as_often_as_they_say(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    held, narrow = [], []
    for name in ("first-families", "negative", "one-cell", "several-groups", "public-n-groups"):
        folder = VECTORS / "valid" / name
        known = json.loads((folder / "known.json").read_text())
        manifest = json.loads((folder / "release" / "manifest.json").read_text())
        for entry in manifest["statistics"]:
            if entry["family"] == "normal":
                continue
            query = "FROM suffice_intervals($1, $2, 0.9)"
            answers = rows(connection, query, str(folder / "release"), entry["name"])
            for position, row in enumerate(answers):
                quantity = entry["quantities"][position % len(entry["quantities"])]
                total = known["totals"][entry["name"]][position // len(entry["quantities"])]
                exact = sum(
                    float(Fraction(weight)) * int(total[entry["components"].index(component)])
                    for component, weight in quantity["coefficients"].items()
                )
                held.append(row["lower"] <= exact <= row["upper"])
                narrow.append(abs(exact - row["estimate"]) <= 0.01 * (row["upper"] - row["lower"]))
    # Known noise, so no chance is in this; of `negative` it is three times what its manifest states.
    assert np.mean(held) >= 0.9
    assert np.mean(narrow) < 0.5, "intervals of another width would pass as well"


HOSTILE = (
    *("file-changed", "file-truncated", "file-longer", "file-missing"),
    *("no-manifest", "manifest-format-2", "tombstone", "rehearsal", "withdrawn", "withdrawn-signed"),
)


@pytest.mark.parametrize("name", HOSTILE)
def test_macros_refuse_what_they_say_that_they_refuse(
    connection: duckdb.DuckDBPyConnection, name: str
) -> None:
    with pytest.raises(duckdb.Error):
        rows(connection, "FROM suffice_table($1, 'cancelled')", str(VECTORS / "hostile" / name))


def test_macros_say_that_a_release_was_withdrawn(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    folder = shutil.copytree(VECTORS / "hostile" / "withdrawn", tmp_path / "release")
    for query in (
        "suffice_statistics($1)",
        "suffice_table($1, 'cancelled')",
        "suffice_values($1, 'cancelled')",
    ):
        with pytest.raises(duckdb.Error, match=r"the release was withdrawn: its withdrawn\.json"):
            rows(connection, f"FROM {query}", str(folder))
    (folder / "withdrawn.json").unlink()
    assert rows(connection, "FROM suffice_table($1, 'cancelled')", str(folder))


def test_an_unknown_statistic_is_refused_with_the_name_of_its_file(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    """DuckDB opens files before it evaluates anything: no text of ours can come first."""
    folder = str(VECTORS / "valid" / "first-families" / "release")
    for query in ("suffice_table($1, $2)", "suffice_intervals($1, $2, 0.9)"):
        with pytest.raises(duckdb.Error, match=r"release/canceled\.parquet"):
            rows(connection, f"FROM {query}", folder, "canceled")
    assert "cancelled" in {
        row["statistic"] for row in rows(connection, "FROM suffice_statistics($1)", folder)
    }


def test_macros_read_draws_of_a_sample_and_nothing_else_of_it(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    plan = make_plan(statistics={**mapping("")["statistics"], "drawn": drawn("cancelled")})
    values = {each.name: np.full((plan.n_cells, each.n_values), 7, object) for each in plan.statistics}
    values["drawn"] = np.arange(plan.n_cells * 2).reshape(-1, 2).astype(object)
    folder = publish(tmp_path, plan, values)
    sample = suffice.open_release(folder).samples("drawn")
    draws = rows(connection, "FROM suffice_samples($1, 'drawn')", str(folder))
    expected = sample.table()
    assert [{**row, "value": None} for row in draws] == [{**row, "value": None} for row in expected]
    np.testing.assert_allclose([row["value"] for row in draws], sample.values.ravel(), rtol=1e-15)
    scales = {
        row["statistic"]: row["scale"] for row in rows(connection, "FROM suffice_statistics($1)", str(folder))
    }
    assert scales.pop("drawn") is None, "it is no scale of noise"
    assert None not in scales.values()
    for query in (
        "suffice_table($1, 'drawn')",
        "suffice_values($1, 'drawn')",
        "suffice_intervals($1, 'drawn', 0.9)",
    ):
        with pytest.raises(duckdb.Error, match="it is a posterior sample"):
            rows(connection, f"FROM {query}", str(folder))
    with pytest.raises(duckdb.Error, match="released as noisy statistics"):
        rows(connection, "FROM suffice_samples($1, 'cancelled')", str(folder))
    data = folder / "drawn.parquet"
    data.write_bytes(flip_bit(data.read_bytes(), 400))
    with pytest.raises(duckdb.Error):
        rows(connection, "FROM suffice_samples($1, 'drawn')", str(folder))
