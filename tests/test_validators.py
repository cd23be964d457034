"""Validators are built when they are first used: here all are, so that no annotation is wrong."""

from __future__ import annotations

import importlib
import pkgutil
from typing import TYPE_CHECKING

import pytest
from pydantic import BaseModel

import suffice

if TYPE_CHECKING:
    from collections.abc import Iterator


def models(of: type[BaseModel]) -> Iterator[type[BaseModel]]:
    """Return every model that is derived from another, once or more often."""
    for model in of.__subclasses__():
        yield model
        yield from models(model)


@pytest.mark.slow
def test_every_validator_can_be_built() -> None:
    for room in ("pipeline", "storage", "profile"):
        package = importlib.import_module(f"suffice.{room}")
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.startswith(
                ("suffice.pipeline.ask.numpyro", "suffice.storage.ledger.sql.migrations")
            ):
                importlib.import_module(module.name)
    suffice_models = {
        model for model in models(BaseModel) if model.__module__.startswith(f"{suffice.__name__}.")
    }
    assert len(suffice_models) > 100
    for model in suffice_models:
        model.model_rebuild(raise_errors=True)
        assert model.__pydantic_complete__, model
