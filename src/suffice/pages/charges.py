"""What datasets were charged: by a ledger's public export, or by published releases alone."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from suffice.errors import LedgerCorruptError, UsageError
from suffice.pages.budget import Budget, Charged, guarantee
from suffice.pipeline.spec.terms import edition
from suffice.storage.ledger.replay import read_export

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from suffice.pages.site_pages import SiteEntry


def budgets_of(entries: Sequence[SiteEntry], charges: Mapping[str, Budget] | None) -> dict[str, Budget]:
    """Return what each dataset spent: by an export where there is one, else by its published releases."""
    budgets: dict[str, Budget] = {}
    for name in sorted({entry.facts["dataset"] for entry in entries} | set(charges or {})):
        of = sorted(
            (entry for entry in entries if entry.facts["dataset"] == name),
            key=lambda entry: (entry.facts["created"], entry.facts["label"]),
        )
        if charges is not None and name in charges:
            listed = {charge.release_id for charge in charges[name].charges}
            uncounted = [entry.facts["label"] for entry in of if entry.facts["release_id"] not in listed]
            budgets[name] = dataclasses.replace(charges[name], uncounted=tuple(uncounted))
            continue
        first = of[0].facts
        budgets[name] = Budget(
            guarantee=guarantee(
                first["neighboring"],
                first["unit"],
                [entry.facts["max_rows"] for entry in of if entry.facts["max_rows"] is not None],
            ),
            charges=tuple(
                Charged(
                    hour=entry.facts["created"],
                    what=entry.facts["label"],
                    epsilon=Fraction(entry.facts["epsilon"]),
                    state="published",
                    window=entry.facts["window"],
                )
                for entry in of
            ),
            unit=first["unit"],
            export_is_of_others=charges is not None,
        )
    return budgets


def read_charges(path: Path) -> dict[str, Budget]:
    """Read a ledger's export and verify it; return what was charged to each dataset.

    Raises
    ------
    UsageError
        Where the file cannot be read.
    LedgerCorruptError
        Where it is no export, or does not verify.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError):
        message = f"--ledger-export {path}: the file cannot be read"
        raise UsageError(message) from None
    try:
        export = read_export(text)
    except LedgerCorruptError as error:
        message = f"--ledger-export {path}: {error}"
        raise LedgerCorruptError(message) from None
    problems = export.verify()
    if problems:
        message = f"--ledger-export {path}: {problems[0]}"
        raise LedgerCorruptError(message)
    return _charged_by(export.lines)


def _charged_by(lines: Iterable[Any]) -> dict[str, Budget]:
    """Return the budget of each dataset by the public lines of a ledger: what was drawn counts for good."""
    terms: dict[str, dict[str, Any]] = {}
    reserved: dict[str, dict[str, Any]] = {}
    drawn: defaultdict[str, list[tuple[str, str, Fraction | None]]] = defaultdict(list)
    ended: dict[str, str] = {}
    for line in lines:
        content = line.payload
        if line.kind == "grant":
            terms[content["dataset"]] = content
        elif line.kind == "reserved":
            reserved[content["charge_id"]] = content
        elif line.kind == "drawing":
            dataset = reserved[content["charge_id"]]["dataset"]
            granted = Fraction(terms[dataset]["micro_granted"], 10**6)
            drawn[dataset].append((line.hour, content["charge_id"], granted))
        elif line.kind in {"published", "abandoned"}:
            ended[content["charge_id"]] = line.kind
    return {
        dataset: Budget(
            guarantee=guarantee(term["neighboring"], term["unit"], []),
            charges=tuple(
                Charged(
                    hour=hour,
                    what=f"{reserved[charge]['name']}@"
                    f"{edition(reserved[charge]['window'], reserved[charge]['amendment'])}",
                    epsilon=Fraction(reserved[charge]["micro_epsilon"], 10**6),
                    state=ended.get(charge, "not published yet"),
                    granted=granted,
                    release_id=reserved[charge]["release_id"],
                    window=reserved[charge]["window"],
                )
                for hour, charge, granted in drawn[dataset]
            ),
            per_window=term["per_window"],
            complete=True,
            unit=term["unit"],
            max_windows=term["max_windows"],
        )
        for dataset, term in terms.items()
    }
