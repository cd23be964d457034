"""Names that no release may have, because others may write to that folder of a store."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from suffice.errors import SpecError
from suffice.pipeline.spec.spec import load_spec
from suffice.storage.publications.publication import PUBLICATIONS
from support.making import mapping

if TYPE_CHECKING:
    from pathlib import Path


def test_no_release_is_called_publications(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="for published posteriors"):
        load_spec(mapping(tmp_path, name=PUBLICATIONS))
    assert load_spec(mapping(tmp_path, name="publications-2")).name == "publications-2"
    assert load_spec(mapping(tmp_path, dataset=PUBLICATIONS)).dataset == PUBLICATIONS
