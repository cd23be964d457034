"""The page on monitoring has every metric, every field of a log and every check, as the code has them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from suffice.doctor.examination import CHECKS
from suffice.monitoring.records import EVENTS, FIELDS, KINDS
from suffice.monitoring.textfile import METRICS
from suffice.releasing.gap_report import AmendmentState, WindowState

if TYPE_CHECKING:
    from pathlib import Path


def rows_below(page: str, title: str) -> list[list[str]]:
    """Return the cells of the first table below a title."""
    section = page.partition(f"## {title}\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\|(.*)\|$", section, re.MULTILINE)
    return [[cell.strip() for cell in row.split("|")] for row in rows[2:]]


def test_the_tables_are_those_of_the_code(repository: Path) -> None:
    page = (repository / "docs" / "how-to" / "monitor-an-installation.md").read_text(encoding="utf-8")
    assert rows_below(page, "Metrics") == [
        [f"`{metric.name}`", metric.kind, ", ".join(f"`{label}`" for label in metric.labels), metric.says]
        for metric in METRICS
    ]
    assert rows_below(page, "Logs") == [[f"`{name}`", says] for name, says in FIELDS.items()]
    assert [row[0].strip("`") for row in rows_below(page, "What is wrong")] == list(CHECKS)
    words = {str(word) for word in (*WindowState, *AmendmentState, *KINDS, *EVENTS)}
    assert words <= set(re.findall(r"`([a-z_]+)`", page))
