"""Fitted models as files: tables, pictures and a summary, in a folder that is there whole or not at all."""

from __future__ import annotations

import json
import os
import secrets
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from suffice.data_files.tables import columns_of, parquet_bytes, table_of
from suffice.errors import UsageError
from suffice.pipeline.ask.models.hidden_markov_fit import FitSummary, HiddenMarkovFit
from suffice.pipeline.terms.declaration.documents import document
from suffice.storage.publications.publication_store import holds_store
from suffice.storage.releases.location import MANIFEST

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from suffice.data_files.source import Provenance
    from suffice.pipeline.ask.models.hidden_markov import StateComparison

SUMMARY = "summary.json"


def check_folder(folder: Path) -> None:
    """Refuse a folder that cannot be written, before any work is done.

    Raises
    ------
    UsageError
        Where it exists, or lies inside a store or a release.
    """
    try:
        real = Path(os.path.realpath(folder))
        is_inside = any(holds_store(place) or (place / MANIFEST).exists() for place in real.parents)
        exists = os.path.lexists(folder)
    except (OSError, ValueError):
        message = f"{folder}: the folder cannot be made"
        raise UsageError(message) from None
    if is_inside:
        message = f"{folder}: this lies inside a store or a release: name another place"
        raise UsageError(message)
    if exists:
        message = f"{folder}: it exists, and is not replaced: remove it, or name another place"
        raise UsageError(message)


def write_model(
    model: HiddenMarkovFit | StateComparison, folder: Path, title: str, source: Provenance
) -> None:
    """Write a model into a new folder.

    Of a fit: ``cells.parquet``, ``parameters.parquet``, four pictures and ``summary.json``; of a comparison
    ``comparison.parquet`` and ``summary.json``.

    Raises
    ------
    UsageError
        As :func:`check_folder`, or where it cannot be written.
    MissingExtraError
        Where matplotlib is not installed.
    """
    check_folder(folder)
    hidden = folder.with_name(f".{secrets.token_hex(8)}")
    try:
        hidden.mkdir(parents=True)
        if isinstance(model, HiddenMarkovFit):
            _write_fit(model, hidden, title, source)
        else:
            _write_rows(model.rows(), hidden / "comparison.parquet", source)
            _write_json(document(model), hidden / SUMMARY, source)
        hidden.rename(folder)
    except OSError:
        message = f"{folder}: the folder cannot be written"
        raise UsageError(message) from None
    finally:
        shutil.rmtree(hidden, ignore_errors=True)


def _write_fit(fit: HiddenMarkovFit, folder: Path, title: str, source: Provenance) -> None:
    from suffice.plots.states import state_figures  # matplotlib is slow to import
    from suffice.plots.style import footer_of, save_figure

    written = document(FitSummary(fit=fit))
    _write_rows(written.pop("cells"), folder / "cells.parquet", source)
    _write_rows(written["rows"], folder / "parameters.parquet", source)
    _write_json(written, folder / SUMMARY, source)
    for name, figure in state_figures(fit, title, footer_of(source)).items():
        save_figure(figure, folder / f"{name}.png")


def _write_rows(rows: Sequence[Mapping[str, Any]], path: Path, source: Provenance) -> None:
    path.write_bytes(parquet_bytes(table_of(columns_of(rows)), source))


def _write_json(document: Mapping[str, Any], path: Path, source: Provenance) -> None:
    stated = {"source": source.document(), **document}
    path.write_text(json.dumps(stated, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
