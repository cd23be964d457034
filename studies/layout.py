"""How a study's numbers stand on the page: grids of many like numbers, and a table of all others."""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

WIDTH = 118
"""Characters a line of text."""
SHORT = {
    "agrees": "agrees",
    "holds, but loosely": "loose",
    "does not reproduce": "differs",
    "the paper is wrong": "wrong",
    "not in the paper": "added",
    "no number printed": "no number",
}
"""A verdict, as the page says it."""
NOTES_ELSEWHERE = {"mistakes"}
"""Studies whose notes are in the page's list of mistakes."""
LEFT_OUT = {
    "sample_error": r"largest distance.*",
    "robustness": r"Theorem 3: rho, L = 1.*",
    "mistakes": r"Foulds 4\.1.*|Foulds Lemma 8.*|Foulds Theorem 4.*|Dimitrakakis Lemma.*",
}
"""Rows that check a simulation, or that another study's table shows."""
UNJUDGED = {"not in the paper", "no number printed"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """Numbers of one kind: a line and a column each.

    Attributes
    ----------
    pattern : str
        A regular expression of the whole quantity, with named groups.
    line, column : str
        Format texts of those groups.
    first : str
        The heading of the lines.
    says : str
        What stands before the grid.
    """

    pattern: str
    line: str
    column: str
    first: str
    says: str = ""


SIZE = r"fatal crashes, (?P<size>many|few) a cell"
METHOD = r"(?P<method>non-private|Laplace, clipped|Laplace, noise-aware|OPS, M = 100?)(?: \(if converged\))?"
LAW = r"(?P<mechanism>smooth|local|global|Laplace)(?:, the (?P<law>text|code)'s law)?"

LAYOUT: dict[str, tuple[Grid, ...]] = {
    "sample_error": (
        Grid(
            says="The mean error of one draw, with a record replaced as in the paper, or added or removed.",
            pattern=r"(?P<method>non-private|Laplace|OPS), N = (?P<n>[\d,]+), "
            r"a record (?P<step>replaced|added).*",
            line="{n}",
            column="{method}, {step}",
            first="N",
        ),
        Grid(
            says="The least N at which Laplace errs less than OPS; the paper does not state its prior.",
            pattern=r"least N at which Laplace errs less than OPS, (?P<prior>.*) prior, "
            r"a record (?P<step>\w+).*",
            line="{prior}",
            column="{step}",
            first="prior",
        ),
    ),
    "kl_of_laplace": (
        Grid(pattern=r"N E\[KL\] at N = (?P<n>[\d,]+)", line="N E[KL]", column="{n}", first="N"),
    ),
    "robustness": (
        Grid(
            says="The proof of Theorems 1(ii) and 2(ii) integrates against the prior, not the posterior.",
            pattern=r"Theorem 1\(ii\): KL, n = (?P<n>[\d,]+), one record of 1",
            line="Theorem 1(ii): KL, one record of 1",
            column="n = {n}",
            first="quantity",
        ),
    ),
    "query_model": (
        Grid(
            says="The mean error of E(y given z) on adult, epsilon 1 for all queries together.",
            pattern=r"mean error of .*, (?P<queries>one|[\d,]+|any number of) quer(?:y|ies),? "
            r"(?P<how>by draws|one Laplace release).*",
            line="error",
            column="{queries}, {how}",
            first="queries",
        ),
    ),
    "adversary": (
        Grid(pattern=r"loss at N = (?P<n>[\d,]+)", line="loss of a draw", column="{n}", first="N"),
    ),
    "war_logs": (
        Grid(
            says="The war logs have 390,000 and 75,000 events, medians of 972 and 58.",
            pattern=rf"{SIZE}: (?P<what>events|median events of a cell|cells|categories"
            r"|events that clipping adds to a cell)(?:, road|, first_event)?",
            line="{what}",
            column="{size} a cell",
            first="log",
        ),
        Grid(
            says="States are compared with those of the model without privacy. Those of OPS are of a hundred "
            "draws, which cost a hundred times as much.",
            pattern=rf"{SIZE}: (?P<what>(?!cells whose last).*), {METHOD}",
            line="{size}: {what}",
            column="{method}",
            first="events a cell: quantity",
        ),
        Grid(
            says="By OPS with M = 100.",
            pattern=rf"{SIZE}: (?P<what>cells whose last state is that of most draws), .*",
            line="{what}",
            column="{size} a cell",
            first="quantity",
        ),
    ),
    "war_logs_held_out": (
        Grid(
            says="Mean log likelihood of a held-out event, in nats.",
            pattern=rf"{SIZE}, (?P<model>.*): {METHOD}(?:, epsilon (?P<epsilon>[\d.]+))?",
            line="{size}, {model}, {epsilon}",
            column="{method}",
            first="events a cell, model, epsilon",
        ),
        Grid(
            says="Laplace less the better OPS.",
            pattern=rf"{SIZE}, (?P<model>.*): {METHOD} less the better OPS, epsilon (?P<epsilon>[\d.]+)",
            line="{size}, {model}, {epsilon}",
            column="{method}",
            first="events a cell, model, epsilon",
        ),
    ),
    "hellinger_mechanisms": (
        Grid(
            says="Certified losses by the law of the text and of the code, DL(7, 4, 5) with n = 40 at "
            "epsilon .8 and Beta(7, 4) with n = 300 at epsilon .5. The local one has no guarantee; the proof "
            "of the smooth one does not hold, and its delta is no privacy.",
            pattern=rf"certified loss, {LAW}, (?P<prior>DL|Beta).*",
            line="{prior}, {mechanism}",
            column="{law}",
            first="loss",
        ),
        Grid(
            says="Mean Hellinger (L1) distances on balanced data. In Figure 2 Laplace noise has scale "
            "1 / epsilon on one count, n being public.",
            pattern=r"Figure (?P<figure>\w+): mean (?:Hellinger|(?P<metric>L1)) distance, "
            rf"{LAW}, (?:DL|Beta).*",
            line="{figure}, {metric}",
            column="{mechanism}, {law}",
            first="figure",
        ),
        Grid(
            says="The same, over Laplace's.",
            pattern=r"Figure (?P<figure>\w+): (?P<whose>best candidate|global) over Laplace, "
            r"the (?P<law>text|code)'s law,.*",
            line="{figure}",
            column="{whose}, {law}",
            first="figure",
        ),
        Grid(
            says="Medians of 200 runs on data from the prior; *agrees*: in the central 99 % of such runs.",
            pattern=r"Figure (?P<figure>\w+)(?:, file of \((?P<file>.)\))?: "
            rf"median (?:Hellinger|(?P<metric>L1)) distance, {LAW}, (?:DL|Beta).*",
            line="{figure}{file}, {metric}, {mechanism}",
            column="{law}",
            first="figure",
        ),
    ),
}


def tables(name: str, rows: Sequence[Mapping[str, str]]) -> list[str]:
    """Return the lines of a study's tables: its grids, and a table of the rows that no grid takes.

    Parameters
    ----------
    name : str
        The study's.
    rows : sequence of mapping of str to str
        As `read_rows` reads them.
    """
    lines: list[str] = []
    left = [row for row in rows if not re.fullmatch(LEFT_OUT.get(name, "(?!)"), row["quantity"])]
    for grid in LAYOUT.get(name, ()):
        taken = [(row, match) for row in left if (match := re.fullmatch(grid.pattern, row["quantity"]))]
        left = [row for row in left if all(row is not other for other, _ in taken)]
        lines += [*textwrap.wrap(grid.says, WIDTH, break_on_hyphens=False), "", *grid_lines(grid, taken), ""]
    return lines + (plain_lines(left, has_notes=name not in NOTES_ELSEWHERE) if left else [])


def grid_lines(grid: Grid, taken: Sequence[tuple[Mapping[str, str], re.Match[str]]]) -> list[str]:
    """Return a grid; the paper's numbers have a column where there are any."""
    cells: dict[str, dict[str, str]] = {}
    papers: dict[str, str] = {}
    columns: dict[str, None] = {}
    for row, match in taken:
        parts = {key: value or "" for key, value in match.groupdict().items()}
        line, column = (
            ", ".join(filter(None, text.format(**parts).split(", "))) for text in (grid.line, grid.column)
        )
        column = column or "either"
        columns[column] = None
        judged = "" if row["verdict"] in UNJUDGED else f", {SHORT[row['verdict']]}"
        cells.setdefault(line, {})[column] = number(row) + judged
        if row["paper"]:
            papers[line] = row["paper"].removesuffix(" in the picture")
    header = [grid.first, *(["paper"] if papers else []), *columns]
    return table(
        header,
        (
            [
                line,
                *([papers.get(line, "")] if papers else []),
                *(by_column.get(column, "") for column in columns),
            ]
            for line, by_column in cells.items()
        ),
    )


def plain_lines(rows: Sequence[Mapping[str, str]], *, has_notes: bool) -> list[str]:
    """Return a table with a line a row; a note stands where it explains a difference, once in a run."""
    has_paper = any(row["paper"] for row in rows)
    lines, before = [], ""
    for row in rows:
        note = row["note"] if has_notes and row["verdict"] not in {"agrees", *UNJUDGED} else ""
        judged = SHORT[row["verdict"]] + (f": {note}" if note not in {"", before} else "")
        before = note
        paper = [row["paper"]] if has_paper else []
        lines.append([row["quantity"], *paper, number(row), judged])
    return table(["quantity", *(["paper"] if has_paper else []), "ours", "verdict"], lines)


def number(row: Mapping[str, str]) -> str:
    """Return our number, with its standard error in brackets where it has one."""
    return row["ours"] if row["standard error"] == "exact" else f"{row['ours']} ({row['standard error']})"


def table(header: Sequence[str], lines: Iterable[Sequence[str]]) -> list[str]:
    """Return a table in Markdown."""
    written = [[cell.replace("|", "\\|") for cell in line] for line in (header, *lines)]
    first, *others = (f"| {' | '.join(line)} |" for line in written)
    return [first, "|" + "---|" * len(header), *others]
