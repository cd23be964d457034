"""Every document that a command prints in these tests is held against its schema, where it has one."""

from __future__ import annotations

import functools
import json
import sys
from typing import Any

import jsonschema
import pytest

from scripts.schemas.cli_documents import PRINTED


@functools.cache
def validator(printed_by: str) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(PRINTED[printed_by][1])


@pytest.fixture(autouse=True)
def checked_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    """Validate what is printed; and see that one field more would be refused."""
    from suffice.cli import output

    print_json = output.print_json

    def checked(document: Any) -> None:
        caller = sys._getframe(1)
        printed_by = f"{caller.f_globals['__name__'].rpartition('.')[2]}.{caller.f_code.co_name}"
        if printed_by in PRINTED:
            schema, content = validator(printed_by), json.loads(json.dumps(document))
            schema.validate(content)
            assert not schema.is_valid({**content, "note": "hello"})
        print_json(document)

    monkeypatch.setattr(output, "print_json", checked)
