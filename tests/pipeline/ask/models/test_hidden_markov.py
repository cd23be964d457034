"""Hidden Markov models of a release with known truth: states, parameters, comparison, refusals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import suffice
from suffice import models
from suffice.errors import UsageError
from suffice.models import HiddenMarkovFit, StateComparison
from suffice.pipeline.ask.models import state_sampling
from suffice.pipeline.ask.models.chain_tables import chain_table
from suffice.pipeline.ask.models.state_sampling import read_settings, sampled_states
from suffice.pipeline.terms.declaration.documents import document
from support.hidden_states import DRUNK, MANNER, STATES, TRANSITIONS, publish_crashes, publish_series

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from suffice.pipeline.ask.models.chain_tables import CountsOverTime
    from suffice.pipeline.ask.models.state_draws import StateDraws
    from suffice.pipeline.ask.pooling.release import Release

TIME = ["YEAR", "MONTH"]
QUICK: dict[str, Any] = {"restarts": 2, "sweeps": 60, "draws": 30}


@pytest.fixture(scope="module")
def crashes(tmp_path_factory: pytest.TempPathFactory) -> tuple[Release, NDArray[np.int64]]:
    store, states = publish_crashes(tmp_path_factory.mktemp("hidden") / "store")
    return suffice.open_release("crashes", store=store), states


@pytest.fixture(scope="module")
def fit(crashes: tuple[Release, NDArray[np.int64]]) -> HiddenMarkovFit:
    return models.hidden_markov(crashes[0], chain="STATE", time=TIME, states=2, rng=1, sweeps=100, draws=50)


def agreement(fit: HiddenMarkovFit, truth: NDArray[np.int64]) -> float:
    """Share of cells whose state is the true one, under the better of both numberings."""
    same = float((fit.most_probable_path == truth).mean())
    return max(same, 1.0 - same)


@pytest.mark.slow
def test_states_and_parameters_are_found_behind_the_noise(
    fit: HiddenMarkovFit, crashes: tuple[Release, NDArray[np.int64]]
) -> None:
    truth = crashes[1]
    assert agreement(fit, truth) > 0.97
    number = np.argsort(-np.bincount(truth.ravel()))  # the state with most cells is the first
    for name, known in (("manner", MANNER), ("drunk", DRUNK)):
        np.testing.assert_allclose(fit.emissions[name].mean(axis=0), known[number], atol=0.05)
    mean = fit.transitions.mean(axis=0)
    np.testing.assert_allclose(mean, TRANSITIONS[number][:, number], atol=0.15)
    assert fit.state_probability.shape == (144, 2)
    np.testing.assert_allclose(fit.state_probability.sum(axis=1), 1.0)
    assert fit.most_probable_path.shape == (6, 24)


def test_a_control_without_hidden_states_is_not_found(crashes: tuple[Release, NDArray[np.int64]]) -> None:
    """Truth in another order agrees no better than chance does."""
    control = models.hidden_markov(crashes[0], chain="STATE", time=TIME, states=2, rng=2, **QUICK)
    assert agreement(control, np.random.default_rng(1).permutation(crashes[1].ravel()).reshape(6, 24)) < 0.75


def test_rows_have_intervals_of_every_number(fit: HiddenMarkovFit) -> None:
    rows = fit.rows()
    kinds = [row["parameter"] for row in rows]
    counted = {kind: kinds.count(kind) for kind in dict.fromkeys(kinds)}
    assert counted == {"share": 2, "start": 2, "transition": 4, "emission": 2 * (4 + 2)}
    for row in rows:
        assert 0.0 <= row["lower"] <= row["upper"] <= 1.0
        if row["parameter"] != "share":  # of few cells: nearly always the same
            assert row["lower"] < row["mean"] < row["upper"]
    (in_second_state,) = [row for row in rows if (row["category"], row["state"]) == ("true", 2)]
    assert in_second_state["mean"] == pytest.approx(fit.emissions["drunk"][:, 1, 1].mean())
    narrow = fit.rows(mass=0.5)
    assert all(n["upper"] - n["lower"] <= r["upper"] - r["lower"] for n, r in zip(narrow, rows, strict=True))
    with pytest.raises(UsageError, match="mass"):
        fit.rows(mass=1.5)


def test_cells_are_rows_with_their_keys(fit: HiddenMarkovFit) -> None:
    cells = fit.cells()
    assert len(cells) == 144
    assert list(cells[0]) == ["STATE", *TIME, "is_observed", "state", "p_1", "p_2", "expected_rows"]
    cell = cells[24 + 13]
    assert (cell["STATE"], cell["YEAR"], cell["MONTH"]) == (STATES[1], "2014", 2)
    assert cell[f"p_{cell['state']}"] > 0.5


def test_draws_are_tidy_columns(fit: HiddenMarkovFit) -> None:
    columns = fit.draw_columns()
    assert len({len(values) for values in columns.values()}) == 1
    kept = columns["parameter"] == "transition"
    stays = kept & (columns["state"] == 1) & (columns["to_state"] == 1)
    np.testing.assert_allclose(columns["value"][stays], fit.transitions[:, 0, 0])
    assert set(columns["restart"].tolist()) == {restart + 1 for restart in fit.diagnostics.kept}


@pytest.mark.slow
def test_arviz_gets_restarts_as_chains_and_reads_the_file(fit: HiddenMarkovFit, tmp_path: Path) -> None:
    drawn = fit.to_arviz()
    values = drawn["posterior"]["transition"].values
    assert values.shape == (len(fit.diagnostics.kept), 50, 2, 2)
    np.testing.assert_array_equal(values, fit.draws.transitions[:, :, 1:])
    assert drawn["posterior"]["cell_state"].values.max() == 2
    assert drawn["posterior"]["STATE"].values[24] == STATES[1]
    assert drawn["sample_stats"]["lp"].shape == fit.draws.log_joint.shape
    fit.to_netcdf(tmp_path / "draws.nc")
    assert (tmp_path / "draws.nc").stat().st_size > 0


@pytest.mark.slow
def test_sweeps_are_doubled_until_restarts_agree(
    crashes: tuple[Release, NDArray[np.int64]], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[str, Any] = {"chain": "STATE", "time": TIME, "states": 2, "rng": 5, "restarts": 2, "draws": 4}
    monkeypatch.setattr("suffice.pipeline.ask.models.state_sampling.MOST_SWEEPS", 80)
    monkeypatch.setattr("suffice.pipeline.ask.models.state_sampling.SWEEPS", 20)
    told: list[tuple[int, int]] = []
    doubled = models.hidden_markov(
        crashes[0], **asked, progress=lambda done, total: told.append((done, total))
    )
    assert doubled.settings.n_sweeps == 80  # four draws are never worth a hundred
    assert doubled.all_draws.trace.shape == (2, 80)
    np.testing.assert_array_equal(doubled.all_draws.log_joint[:, -1], doubled.all_draws.trace[:, -1])
    assert told[-1] == (80, 80)
    assert any("doubled until they agree, up to 80" in line for line in doubled.settings.lines)
    assert agreement(doubled, crashes[1]) > 0.95
    stated = models.hidden_markov(crashes[0], **asked, sweeps=20)
    assert (stated.settings.n_sweeps, stated.settings.until_settled) == (20, False)


@pytest.mark.parametrize("method", ["noise-aware", "plug-in"])
def test_draws_go_on_from_where_earlier_ones_end(
    crashes: tuple[Release, NDArray[np.int64]], method: str
) -> None:
    """The first sweep after them is as probable as they are; the first sweep of a fresh start is not."""
    counts = chain_table(crashes[0], None, chain="STATE", time=TIME).counts
    priors = {"alpha": 1.0, "beta": 0.1, "rate": 0.001}
    run = {"restarts": 4, "sweeps": 60, "draws": 30}
    settings = read_settings(states=2, method=method, project=None, sampler=None, **run, **priors)
    rng = np.random.default_rng(6)
    earlier = sampled_states(counts, settings, rng=rng)
    later = sampled_states(counts, settings, rng=rng, start=earlier)
    lowest = earlier.log_joint.min(axis=1)
    width = np.ptp(earlier.log_joint, axis=1)
    assert (later.trace[:, 0] > lowest - width).all()
    assert (earlier.trace[:, 0] < lowest - width).all()
    assert later.log_joint.shape == (4, 30)
    np.testing.assert_array_equal(later.log_joint, later.trace[:, 1::2])  # of all sweeps, not of half


def test_plug_in_says_that_it_is_not_calibrated(crashes: tuple[Release, NDArray[np.int64]]) -> None:
    plug_in = models.hidden_markov(
        crashes[0], chain="STATE", time=TIME, states=2, method="plug-in", rng=1, **QUICK
    )
    assert agreement(plug_in, crashes[1]) > 0.95
    assert (plug_in.settings.project, plug_in.settings.sampler) == ("simplex", "ffbs")
    assert "not calibrated" in plug_in.settings.lines[0]
    assert "expected_rows" not in plug_in.cells()[0]


def test_a_missing_window_takes_part_without_an_emission(tmp_path: Path) -> None:
    labels = ("2013-01", "2013-02", "2013-03", "2013-05", "2013-06")
    store, truth = publish_series(tmp_path / "store", labels)
    opened = [suffice.open_release(f"monthly@{label}", store=store) for label in labels]
    with_gap = models.hidden_markov(opened, chain="STATE", states=2, rng=3, **QUICK)
    cells = with_gap.cells()
    assert [row["window"] for row in cells[:6]] == [
        "2013-01", "2013-02", "2013-03", "2013-04", "2013-05", "2013-06"
    ]  # fmt: skip
    assert [row["is_observed"] for row in cells[:6]] == [True, True, True, False, True, True]
    seen = np.delete(with_gap.most_probable_path, 3, axis=1)
    same = (seen == truth).mean()
    assert max(same, 1 - same) > 0.9
    sure = with_gap.state_probability.max(axis=1).reshape(6, 6)
    assert sure[:, 3].mean() < np.delete(sure, 3, axis=1).mean()


@pytest.mark.slow
def test_two_states_predict_held_out_cells_better_than_one(
    crashes: tuple[Release, NDArray[np.int64]],
) -> None:
    told: list[tuple[int, int]] = []
    scored = models.hidden_markov(
        crashes[0],
        chain="STATE",
        time=TIME,
        states=[2],
        rng=4,
        splits=3,
        restarts=2,
        sweeps=40,
        draws=20,
        progress=lambda done, total: told.append((done, total)),
    )
    assert isinstance(scored, StateComparison)
    assert told[-1] == (240, 240)
    first, second = scored.rows()
    assert (first["states"], first["difference"], second["states"]) == (1, 0.0, 2)
    assert second["difference"] > 2.0  # nats a cell
    assert (scored.difference[1] > 0.0).all()
    assert scored.best == 2
    assert document(scored)["holdout"] == 0.1


def test_held_out_cells_take_no_part_in_the_fit(
    crashes: tuple[Release, NDArray[np.int64]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 144 cells a tenth: fits see the others alone, and every number of states the same ones."""
    seen: list[NDArray[np.bool_]] = []

    def watched(table: CountsOverTime, *words: Any, **terms: Any) -> StateDraws:
        seen.append(table.is_observed)
        return sampled_states(table, *words, **terms)

    monkeypatch.setattr(state_sampling, "sampled_states", watched)
    quick: dict[str, Any] = {"restarts": 1, "sweeps": 8, "draws": 4}
    models.hidden_markov(crashes[0], chain="STATE", time=TIME, states=[2], splits=2, rng=1, **quick)
    assert [each.sum() for each in seen] == [seen[0].size - round(0.1 * seen[0].size)] * 4
    np.testing.assert_array_equal(seen[0], seen[1])
    np.testing.assert_array_equal(seen[2], seen[3])
    assert (seen[0] != seen[2]).any()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"states": 0}, r"states is an integer in 1\.\."),
        ({"states": 2.5}, "states is an integer"),
        ({"states": []}, "the list is empty"),
        ({"states": [2, 2]}, "names a number twice"),
        ({"method": "exact"}, "method is noise-aware or plug-in"),
        ({"project": "clip"}, "project is a choice of method plug-in"),
        ({"method": "plug-in", "project": "round"}, "project is clip or simplex or none"),
        ({"method": "plug-in", "sampler": "hmc"}, "sampler is ffbs or single-site"),
        ({"restarts": 0}, "restarts is an integer"),
        ({"sweeps": 60, "draws": 31}, "the second half of 60 sweeps has 30"),
        ({"alpha": 0}, "alpha is a number above 0"),
        ({"beta": float("nan")}, "beta is a number above 0"),
        ({"rate": float("inf")}, "rate is a number above 0"),
        ({"holdout": 0.1}, "holdout is of comparisons"),
        ({"splits": 3}, "splits is of comparisons"),
        ({"states": [2], "holdout": 1.0}, "between 0 and 1"),
        ({"states": [2], "splits": 0}, "splits is an integer"),
        ({"rng": -1}, "rng"),
    ],
)
def test_impossible_choices_are_usage_errors(
    crashes: tuple[Release, NDArray[np.int64]], changes: dict[str, Any], said: str
) -> None:
    asked: dict[str, Any] = {"chain": "STATE", "time": TIME, "states": 2, **changes}
    with pytest.raises(UsageError, match=said):
        models.hidden_markov(crashes[0], **asked)
