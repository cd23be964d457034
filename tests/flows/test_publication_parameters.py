"""What a deployment of `publish_posterior` states of pooled cells is what `suffice publish` asks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pydantic import ValidationError

import suffice
from suffice.flows.publication_parameters import PublicationParameters
from suffice.publishing.asking import question_of
from support.pooled_cells import make_cells

if TYPE_CHECKING:
    from pathlib import Path

STATED: dict[str, Any] = {"release": "cells", "statistics": ["ill"]}


@pytest.mark.parametrize(
    ("fields", "asked"),
    [
        (
            {"pooled": ["region", "logit-normal"], "draws": 3},
            {"pooled": ["logit-normal", "region"], "draws": 3},
        ),
        ({"pooled": ["all"], "over": "town"}, {"pooled": suffice.Pooling(over="town")}),
        ({"kind": "likelihood"}, {"kind": "likelihood"}),
        ({}, {}),
    ],
    ids=["names", "over", "likelihood", "neither"],
)
def test_a_deployment_asks_what_a_command_asks(
    fields: dict[str, Any], asked: dict[str, Any], tmp_path: Path
) -> None:
    release = make_cells(tmp_path, 2)
    terms = PublicationParameters(**STATED, **fields).terms()
    of_flow = question_of(release, ["ill"], **terms).request
    assert of_flow == question_of(release, "ill", **asked).request


def test_a_flow_reads_no_tables() -> None:
    with pytest.raises(ValidationError):
        PublicationParameters.model_validate({**STATED, "covariates": "income.csv"})
