"""Pictures of fits: all four are drawn, of one state and of many, and name what they show."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import suffice
from suffice import models
from suffice.data_files.source import Provenance
from suffice.plots.states import FIGURES, state_figures
from suffice.publishing.model_files import SUMMARY, write_model
from support.hidden_states import publish_crashes

if TYPE_CHECKING:
    from pathlib import Path

    from suffice.models import HiddenMarkovFit

SOURCE = Provenance(what="hidden Markov model", releases=(), statistic="deaths")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    return publish_crashes(tmp_path_factory.mktemp("figures") / "store")[0]


def fitted(store: str, states: int) -> HiddenMarkovFit:
    release = suffice.open_release("crashes", store=store)
    return models.hidden_markov(
        release,
        chain="STATE",
        time=["YEAR", "MONTH"],
        states=states,
        rng=1,
        method="plug-in",
        restarts=1,
        sweeps=20,
        draws=10,
    )


@pytest.mark.parametrize("states", [1, 3])
def test_every_picture_shows_every_state(store: str, states: int) -> None:
    fit = fitted(store, states)
    figures = state_figures(fit, "crashes@all", "Source: simulated.")
    assert tuple(figures) == FIGURES
    legend = figures["states"].legends[0]
    assert len(legend.get_texts()) == states
    bars = figures["emissions"].axes
    assert len(bars) == states * 2
    heights = [patch.get_height() for patch in bars[0].patches]  # type: ignore[attr-defined]
    assert heights == pytest.approx(fit.emissions["manner"].mean(axis=0)[0])
    assert len(figures["trace"].axes[0].lines) == 1
    said = " ".join(text.get_text() for text in figures["transitions"].axes[0].texts)
    assert f"stays {fit.transitions.mean(axis=0)[0, 0]:.2f}" in said
    for figure in figures.values():
        assert any("not calibrated" in text.get_text() for text in figure.texts)
        assert figure.texts[-1].get_text() == "Source: simulated."


@pytest.mark.slow
def test_a_model_is_written_whole_and_never_over_another(store: str, tmp_path: Path) -> None:
    import json

    import pyarrow.parquet as pq

    fit, folder = fitted(store, 2), tmp_path / "models" / "crashes"
    write_model(fit, folder, "crashes@all", SOURCE)
    names = sorted(path.name for path in folder.iterdir())
    assert names == sorted(
        [SUMMARY, "cells.parquet", "parameters.parquet", *(f"{figure}.png" for figure in FIGURES)]
    )
    assert pq.read_table(folder / "cells.parquet").to_pylist() == fit.cells()
    summary = json.loads((folder / SUMMARY).read_text(encoding="utf-8"))
    assert (summary["states"], summary["method"]) == (2, "plug-in")
    assert b"written by suffice" in (folder / "states.png").read_bytes()[:4096]
    with pytest.raises(suffice.SufficeError, match="it exists, and is not replaced"):
        write_model(fit, folder, "crashes@all", SOURCE)
    with pytest.raises(suffice.SufficeError, match="inside a store"):
        write_model(fit, type(folder)(store) / "model", "crashes@all", SOURCE)
    assert [path.name for path in folder.parent.iterdir()] == ["crashes"]
