"""What every family has to say of itself, as sentences about what one does not say."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any

from suffice.errors import SpecError
from suffice.pipeline.families.shared.contract import Absent, Family
from suffice.pipeline.spec.plan import compile_plan
from suffice.pipeline.spec.spec import load_spec
from support.entries import privacy_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

REQUIRED = {
    "noise_aware": "posterior that takes the noise into account",
    "simulate": "way to simulate data",
    "parameter_spaces": "parameters",
    "jax_likelihood": "likelihood in JAX",
    "example": "example",
    "generative_case": "generative case for its calibration",
}
"""What a family states, in words."""


TABLES = ("docs/reference/families.md", "docs/reference/priors.md")
"""The documents whose table of families has every family: its keys and parameters, its default prior."""


def documented(repository: Path, document: str) -> list[str]:
    """Return the families that the only table of families in a document has rows of."""
    (table,) = tables_of_families(repository / document)
    return table


def tables_of_families(document: Path) -> list[list[str]]:
    """Return, of every table of a document about families, the families in the first column."""
    text = document.read_text(encoding="utf-8")
    tables = re.findall(r"^\| family \|.*\n((?:\|.*\n)+)", text, re.MULTILINE)
    cells = [re.findall(r"^\|(.*?)\|", table, re.MULTILINE) for table in tables]
    return [[name for cell in column for name in re.findall(r"`(\w+)`", cell)] for column in cells]


def missing_from(family: Family, repository: Path) -> Iterator[str]:
    """Say what a family lacks, a sentence each.

    Every family is asked by `tests/pipeline/families/test_contract.py`; `docs/contributing/a-family.md` tells
    how to add one.
    """
    for field, words in REQUIRED.items():
        stated = getattr(family, field)
        if stated is None:
            yield f"{family.name} has no {words}: state {field}, or why there is none."
        elif isinstance(stated, Absent) and not stated.reason.strip():
            yield f"{family.name} has no {words} and gives no reason: state Absent with the reason."
    for what in ("example", "generative_case"):
        stated = getattr(family, what)
        if stated is not None:
            yield from _wrong_with(family, what, stated.entry)
    documentation = sys.modules[family.spec.__module__].__doc__ or ""
    proofs = repository / "pipeline" / "terms" / "statistics" / "sensitivity.md"
    sections = set(re.findall(r"^## ([a-z-]+)$", proofs.read_text(encoding="utf-8"), re.MULTILINE))
    _, _, after = documentation.partition("`sensitivity.md`")
    if not sections & set(re.findall(r"[a-z]+(?:-[a-z]+)+", after)):
        yield (
            f'{family.name} has no sensitivity: let the docstring of its file say "Sensitivity in '
            '`sensitivity.md`: ..." with the sections there that bound its block.'
        )
    for document in TABLES:
        if family.name not in documented(repository, document):
            yield f"{family.name} is in no row of the table of families in {document}: add one."


def _wrong_with(family: Family, what: str, entry: Mapping[str, Any]) -> Iterator[str]:
    """Say what is wrong with the entry of an example or a generative case."""
    spec = {
        "name": "example",
        "dataset": "example",
        "source": {"parquet": "rows/"},
        "privacy": privacy_of(family.name, epsilon="1", public_n=False),
        "statistics": {"measured": {"family": family.name, **entry}},
    }
    try:
        (plan,) = compile_plan(load_spec(spec)).statistics
    except SpecError as error:
        yield f"{family.name} has no valid {what}: {error}"
        return
    spaces: Any = family.parameter_spaces
    if what == "example" and spaces is not None and not spaces(plan.parameters):
        yield f"{family.name} has no parameters: name them in parameter_spaces."
