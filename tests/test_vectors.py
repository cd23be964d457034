"""The test vectors of the format, read by this package: what every other reader is held to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from suffice import open_release
from suffice.errors import ReleaseCorruptError, ReleaseMissingError, ReleaseWithdrawnError, SignatureError
from suffice.pipeline.math.engines.histogram.histogram_posterior import histogram_posterior
from suffice.pipeline.math.engines.tree.noisy_tree import NoisyTree
from suffice.pipeline.math.engines.tree.populations import named_population
from suffice.pipeline.math.engines.tree.posterior import tree_posterior
from suffice.pipeline.terms.released.noise_distribution import NoisyTotals
from suffice.pipeline.terms.statistics.histogram_bins import HistogramBins

VECTORS = Path(__file__).parent / "vectors"
KEY = VECTORS / "test-key.pem.pub"


def listed(name: str) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = json.loads((VECTORS / f"{name}.json").read_text())[
        "valid" if name == "index" else name
    ]
    return entries


VALID, HOSTILE = listed("index"), listed("hostile")
REFUSALS: dict[str, Any] = {
    "existence": ReleaseMissingError,
    "signature": SignatureError,
    "withdrawal": (ReleaseWithdrawnError, ReleaseCorruptError),
}
"""By check; all others say that the release is corrupt."""


def names(entries: list[dict[str, Any]]) -> list[str]:
    return [entry["name"] for entry in entries]


@pytest.mark.parametrize("entry", VALID, ids=names(VALID))
def test_a_valid_vector_holds_its_totals_and_its_noise(entry: dict[str, Any]) -> None:
    folder = VECTORS / "valid" / entry["name"]
    release = open_release(folder / "release", public_keys=[KEY] if entry["signed"] else None)
    known = json.loads((folder / "known.json").read_text())
    stated = [entry["name"] for entry in release.manifest["statistics"]]
    assert list(known["values"]) == stated
    assert sorted(stated) == sorted([*release.statistics, *release.sampled])
    for name, sample in release.sampled.items():
        assert [[str(point) for point in cell] for cell in sample.indices.tolist()] == known["values"][name]
    for name, statistic in release.statistics.items():
        lowest, highest = statistic.plan.value_limits
        sums = [
            [int(total) + int(noise) for total, noise in zip(*row, strict=True)]
            for row in zip(known["totals"][name], known["noise"][name], strict=True)
        ]
        held = [[min(max(number, lowest), highest) for number in row] for row in sums]
        assert statistic.values.tolist() == held
        assert [[str(number) for number in row] for row in held] == known["values"][name]


@pytest.mark.slow
@pytest.mark.parametrize("entry", VALID, ids=names(VALID))
def test_a_valid_vector_has_the_tables_and_posteriors_stated(entry: dict[str, Any]) -> None:
    folder = VECTORS / "valid" / entry["name"]
    release = open_release(folder / "release")
    expected = json.loads((folder / "expected.json").read_text())
    assert expected["label"] == release.label
    assert expected["about"] == release.about.document()
    for name, table in expected["tables"].items():
        assert table["rows"] == release.table(name)
        assert table["saturated"] == release.statistic(name).n_saturated
    assert expected["samples"] == {name: sample.table() for name, sample in release.sampled.items()}
    for stated in expected.get("trees", []):
        tree = release.tree(stated["tree"], stated["where"])
        assert tree.log_evidence == pytest.approx(stated["log_evidence"], rel=1e-9)
        for row, wanted in zip(tree.table(stated["mass"]), stated["rows"], strict=True):
            texts = {name: value for name, value in wanted.items() if isinstance(value, str)}
            assert texts.items() <= row.items()
            assert row.keys() == wanted.keys()
            numbers = {name: value for name, value in wanted.items() if name not in texts}
            assert {name: row[name] for name in numbers} == pytest.approx(numbers, rel=1e-7)
    for stated in expected["posteriors"]:
        posterior = release.posterior(stated["statistic"], **stated["arguments"])
        assert (stated["prior"], stated["family"]) == (str(posterior.prior), posterior.family)
        for cell, of_cell in enumerate(stated["cells"]):
            assert {
                column: keys[cell] for column, keys in posterior.groups.items()
            }.items() <= of_cell.items()
            for parameter, numbers in of_cell["parameters"].items():
                mean, sd = flat(numbers, "mean"), flat(numbers, "sd")
                moments = posterior.mean(parameter)[cell].ravel(), posterior.sd(parameter)[cell].ravel()
                # Noise on a lattice that is finer than the counts is the engines' roughest case. Cells that
                # bounds cut off are summed over merged pairs where priors are spread (decision 84).
                restricted = getattr(posterior.distribution, "cut", np.zeros(cell + 1, dtype=bool))[cell]
                near = 1e-3 if restricted else 3e-6
                np.testing.assert_allclose(moments[0], mean, rtol=1e-9, atol=near * np.nanmax(sd))
                np.testing.assert_allclose(moments[1], sd, rtol=near)


def flat(numbers: Any, field: str) -> np.ndarray:
    """Return one number of every entry, whatever a parameter's shape is; infinite where it is null."""
    if isinstance(numbers, list):
        return np.concatenate([flat(entry, field) for entry in numbers])
    return np.array([np.inf if numbers[field] is None else numbers[field]])


@pytest.mark.parametrize("entry", HOSTILE, ids=names(HOSTILE))
def test_a_hostile_vector_is_refused(entry: dict[str, Any]) -> None:
    keys = [KEY] if entry["refused_by"] == "signature" else None
    expected = (
        REFUSALS.get(entry["check"], ReleaseCorruptError)
        if keys or entry["check"] != "signature"
        else (ReleaseCorruptError)
    )
    with pytest.raises(expected) as caught:
        open_release(VECTORS / "hostile" / entry["name"], public_keys=keys)
    assert len(str(caught.value)) <= 500


def test_what_a_demanded_signature_refuses_is_read_without_one() -> None:
    forged = [entry for entry in HOSTILE if entry["refused_by"] == "signature"]
    assert len(forged) > 3
    for entry in forged:
        open_release(VECTORS / "hostile" / entry["name"])


@pytest.mark.parametrize("entry", HOSTILE, ids=names(HOSTILE))
def test_what_takes_a_compiler_is_refused_by_a_signature_too(entry: dict[str, Any]) -> None:
    if entry["refused_by"] != "recomputation":
        return
    content = json.loads((VECTORS / "hostile" / entry["name"] / "manifest.json").read_text())
    assert content["signature"] is not None, "a reader that compiles no plan has nothing to refuse it by"


def test_every_family_has_a_vector() -> None:
    from suffice.pipeline.families import FAMILIES

    shown = {
        statistic["family"]
        for entry in VALID
        for statistic in json.loads(
            (VECTORS / "valid" / entry["name"] / "release" / "manifest.json").read_text()
        )["statistics"]
    }
    assert shown == set(FAMILIES)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::suffice.errors.ConflictWarning")
@pytest.mark.parametrize("document", ["conflicts.json", "conflicts-of-sums.json"])
def test_conflicts_are_judged_as_the_vector_says(document: str) -> None:
    stated = json.loads((VECTORS / document).read_text())
    release = open_release(VECTORS / stated["release"])
    for case in stated["together"]:
        conflict = release.posterior(case["statistic"], prior=case["prior"], clipping="ignored").conflict
        assert conflict.alternative == case["alternative"]
        assert conflict.log_bayes_factors.sum() == pytest.approx(case["log_bayes_factor"], abs=0.01)
        assert conflict.is_against_all == case["is_against_all"]
    for case in stated["cases"]:
        posterior = release.posterior(
            case["statistic"], prior=case["prior"], where=case["where"], clipping="ignored"
        )
        conflict = posterior.conflict
        judged = ~conflict.of_n
        assert [
            name for name, of_n in zip(conflict.quantities, conflict.of_n, strict=True) if not of_n
        ] == case["quantities"]
        assert conflict.is_said[0, judged].tolist() == case["is_said"]
        for tail, expected in zip(conflict.tails[0, judged], case["tails"], strict=True):
            if expected is None:
                assert tail >= 0.01
            else:
                assert tail == pytest.approx(expected, rel=stated["relative_tolerance"])


@pytest.mark.parametrize(
    "about", [case["about"] for case in json.loads((VECTORS / "trees.json").read_text())["cases"]]
)
def test_trees_have_the_counts_that_the_vector_states(about: str) -> None:
    stated = json.loads((VECTORS / "trees.json").read_text())
    case = next(case for case in stated["cases"] if case["about"] == about)
    tree = NoisyTree(
        parents=tuple(np.array(each, dtype=np.int64) for each in case["parents"]),
        values=tuple(None if each is None else np.array(each, dtype=np.int64) for each in case["values"]),
        scales=tuple(case["scales"]),
        sizes=None if case["sizes"] is None else np.array(case["sizes"], dtype=np.float64),
    )
    posterior = tree_posterior(tree, named_population(case["population"]))
    assert posterior.log_evidence == pytest.approx(case["log_evidence"], rel=1e-10)
    for level in range(tree.depth + 1):
        nodes = [node for node in case["nodes"] if node["level"] == level]
        places = [node["node"] for node in nodes]
        lower, upper = posterior.interval(level, stated["mass"])
        assert posterior.means(level)[places] == pytest.approx([node["mean"] for node in nodes], rel=1e-9)
        assert posterior.sds(level)[places] == pytest.approx([node["sd"] for node in nodes], rel=1e-8)
        assert [*zip(lower[places], upper[places], strict=True)] == [
            (node["lower"], node["upper"]) for node in nodes
        ]
    if about == stated["enumerated"]["about"]:
        assert posterior.log_evidence == pytest.approx(stated["enumerated"]["log_evidence"], rel=1e-9)
        for level, means in enumerate(stated["enumerated"]["means"]):
            assert posterior.means(level) == pytest.approx(means, rel=1e-8)


def test_histograms_have_the_counts_that_the_vector_states() -> None:
    for case in json.loads((VECTORS / "histograms.json").read_text())["cases"]:
        totals = NoisyTotals.of_counts([np.array([case["values"]], dtype=np.float64)], [case["scale"]])
        posterior = histogram_posterior(totals, HistogramBins.parse(case["bins"]))
        mean, sd = posterior.expected_counts()
        assert posterior.log_evidence()[0] == pytest.approx(case["log_evidence"], rel=1e-9)
        assert mean[0] == pytest.approx(case["means"], rel=1e-9)
        assert sd[0] == pytest.approx(case["sds"], rel=1e-8)
