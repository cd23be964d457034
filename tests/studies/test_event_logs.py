"""Event logs: the shape of the crashes and of generated logs, their release, states and scores."""

from __future__ import annotations

import dataclasses
import secrets
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.parquet as pq
import pytest

from studies.event_log_models import EXACT, exact_table, laplace_table, table_draws
from studies.event_log_release import released_table
from studies.event_log_scores import score, score_of_emissions
from studies.event_log_states import distance_of_emissions, matching, share_alike, share_covered, states_of
from studies.event_logs import FILES, Kind, crash_log, event_log, generated_log
from studies.result import Size
from studies.war_logs import release_name
from suffice.pipeline.ask.models.state_draws import StateDraws
from suffice.storage.ledger.opening import open_ledger
from support.real_data import real_data

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("kind", "shape", "n_rows", "median", "n_categories"),
    [("many", (51, 31), 1_153_687, 549, 21), ("few", (51, 36), 92_424, 35, 76)],
)
def test_the_crashes_have_the_shape_that_the_page_states(
    kind: Kind, shape: tuple[int, int], n_rows: int, median: int, n_categories: int
) -> None:
    log = crash_log(kind, real_data("fars") / FILES[kind])
    assert log.shape == shape
    assert log.n_rows == n_rows
    assert log.median_rows == median
    assert [len(each) for each in log.categories] == [each.shape[-1] for each in log.counts]
    assert sum(len(each) for each in log.categories) == n_categories
    assert all(each.sum() == n_rows for each in log.counts)
    assert all(len(set(names)) == len(names) for names in log.categories)
    # Three states that other counts of deaths name as well: the codes are those of FIPS 5-2.
    by_size = [log.regions[place] for place in np.argsort(-log.counts[0].sum(axis=(1, 2)))]
    assert set(by_size[:3]) == {"California", "Texas", "Florida"}
    assert "District of Columbia" in by_size[-4:]


@pytest.mark.parametrize("kind", ["many", "few"])
def test_generated_logs_stand_in_where_there_are_no_data(
    kind: Kind, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SUFFICE_SHARED_DATA", str(tmp_path))
    rng = np.random.default_rng(secrets.randbits(32))
    if kind == "few":
        whole = event_log(kind, rng)
        assert (whole.source, whole.shape, whole.median_rows) == ("generated", (18, 70), 58)
        assert [each.shape[-1] for each in whole.counts] == [10, 60, 2, 2, 2]
    log = generated_log(kind, rng, shape=(4, 6), n_categories=(3, 2))
    assert log.median_rows == pytest.approx({"many": 972, "few": 58}[kind], abs=1)
    totals = [each.sum(axis=-1) for each in log.counts]
    assert np.array_equal(totals[0], totals[1])


def test_what_is_written_has_the_counts_of_the_log(tmp_path: Path) -> None:
    log = generated_log("few", np.random.default_rng(1), shape=(4, 6), n_categories=(3, 2)).part(3, 5)
    log.write(tmp_path / "log.parquet")
    rows = pq.read_table(tmp_path / "log.parquet").to_pydict()
    assert len(rows["region"]) == log.n_rows
    for name, names, counts in zip(log.features, log.categories, log.counts, strict=False):
        counted = np.zeros_like(counts)
        for region, time, value in zip(rows["region"], rows["time"], rows[name], strict=True):
            counted[log.regions.index(region), log.times.index(time), names.index(value)] += 1
        assert np.array_equal(counted, counts)


def test_event_logs_are_released_once(tmp_path: Path) -> None:
    """The noisy counts come from a release with a charge of its own; the same run finds it again."""
    log = generated_log("few", np.random.default_rng(secrets.randbits(32)), shape=(3, 4), n_categories=(3, 2))
    crashes = dataclasses.replace(log, source="fatal crashes")
    names = [release_name(each, Size.SMALLEST, 1) for each in (log, crashes)]
    assert names == ["generated-few-smallest-1", "fatal-crashes-few-smallest-1"]
    first = released_table(log, "few", 5, tmp_path)
    again = released_table(log, "few", 5, tmp_path)
    for table, repeated in zip(first.counts, again.counts, strict=True):
        assert np.array_equal(table, repeated)
    assert first.scales == pytest.approx((2 / 5, 2 / 5))
    with open_ledger(f"sqlite:///{tmp_path / 'ledger.db'}") as ledger:
        account = ledger.account("few")
    assert account.spent == account.granted == 5
    # A noise of scale .4 is beyond 40 with a chance of 1e-43 a count; 20 counts.
    for noisy, exact in zip(first.counts, log.counts, strict=True):
        assert np.abs(noisy - exact).max() < 40


def test_states_are_matched_whatever_their_numbers() -> None:
    """Draws whose states are numbered the other way give the same numbers as the reference."""
    log = generated_log("many", np.random.default_rng(1), shape=(3, 4), n_categories=(4, 2))
    table = exact_table(log.counts, np.ones(log.shape, dtype=bool))
    settings = {"n_states": 2, "n_sweeps": 20, "n_draws": 10, "n_restarts": 1}
    draws = table_draws(table, EXACT, **settings, rng=np.random.default_rng(2))
    turned = dataclasses.replace(
        draws,
        states=1 - draws.states,
        transitions=np.concatenate([draws.transitions[:, :, :1], draws.transitions[:, :, :0:-1]], axis=2)[
            ..., ::-1
        ],
        emissions=tuple(each[:, :, ::-1] for each in draws.emissions),
    )
    reference = states_of(draws, 0, None, is_one_sample=False)
    other = states_of(turned, 0, reference, is_one_sample=False)
    assert share_alike(other.most_frequent, reference.most_frequent) == 1.0
    assert distance_of_emissions(other, reference) == pytest.approx(0.0, abs=1e-12)
    assert other.transitions == pytest.approx(reference.transitions)
    assert share_covered(reference, reference) == 1.0
    assert list(matching([each[::-1] for each in reference.emissions], reference.emissions)) == [1, 0]


def test_scores_of_held_out_events() -> None:
    """One state's score of known emissions is the sum over events of log chances, a feature at a time."""
    counts = (np.array([[[3, 1], [2, 2]]]), np.array([[[4, 0], [1, 3]]]))
    held_out = np.array([[False, True]])
    theta = (np.array([0.75, 0.25]), np.array([0.5, 0.5]))
    draws = StateDraws(
        states=np.zeros((1, 1, 1, 2), dtype=np.int8),
        transitions=np.ones((1, 1, 2, 1)),
        emissions=tuple(each[None, None, None] for each in theta),
        expected_rows=None,
        log_joint=np.zeros((1, 1)),
        trace=np.zeros((1, 1)),
    )
    expected = (2 * np.log(0.75) + 2 * np.log(0.25) + 4 * np.log(0.5)) / 4
    assert score_of_emissions(counts, held_out, draws, 0) == pytest.approx(expected)
    assert score(counts, held_out, draws, 0) == pytest.approx(expected)


def test_noise_of_a_replaced_row_is_twice_as_wide() -> None:
    """Standard deviations of 20,000 counts: the error of each is .9 %, 8 of them have a chance of 1e-15."""
    counts, observed = (np.zeros((1, 1, 20_000), dtype=np.int64),) * 2, np.ones((1, 1), dtype=bool)
    rng = np.random.default_rng(secrets.randbits(32))
    added, replaced = (
        laplace_table(counts, observed, 0.1, relation=relation, rng=rng)
        for relation in ("add_or_remove_one", "replace_one")
    )
    assert added.scales == (20.0, 20.0)
    assert replaced.scales == (40.0, 40.0)
    assert np.std(replaced.counts[0]) / np.std(added.counts[0]) == pytest.approx(2.0, rel=0.1)
