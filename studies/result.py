"""What a study finds: the paper's number beside ours, and the files that keep both."""

from __future__ import annotations

import csv
import enum
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

COLUMNS = ("quantity", "paper", "ours", "standard error", "verdict", "note")
NOT_A_RELEASE = "Not a release: exact data stand behind it, and no guarantee holds for it."
Choice = TypeVar("Choice")


class Size(enum.StrEnum):
    """How much a study simulates; what is worked out without chance is the same in each."""

    SMALLEST = "smallest"
    """For tests: seconds for all studies."""
    USUAL = "usual"
    """Minutes for all studies."""
    FULL = "full"
    """At least as many repeats as the papers'."""

    def pick(self, *, smallest: Choice, usual: Choice, full: Choice) -> Choice:
        """Return the choice that belongs to this size."""
        return {Size.SMALLEST: smallest, Size.USUAL: usual, Size.FULL: full}[self]


class Verdict(enum.StrEnum):
    """How the paper's number stands beside ours."""

    AGREES = "agrees"
    LOOSE = "holds, but loosely"
    DIFFERS = "does not reproduce"
    WRONG = "the paper is wrong"
    ADDED = "not in the paper"


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """The values that a paper's statement leaves for a number; the verdict follows from it.

    Attributes
    ----------
    low, high : float
        The least and the largest of them.
    if_not : Verdict
        What is said of a number beyond them.
    if_below : Verdict, optional
        What is said of one below `low`, where that is something else.
    """

    low: float = -math.inf
    high: float = math.inf
    if_not: Verdict = Verdict.DIFFERS
    if_below: Verdict | None = None

    def verdict_on(self, ours: float, error: float | None) -> Verdict:
        """Return the verdict; a number with chance may be five standard errors beyond."""
        slack = 1e-12 * abs(ours) if error is None else 5.0 * error
        if ours < self.low - slack:
            return self.if_below or self.if_not
        return Verdict.AGREES if ours <= self.high + slack else self.if_not


def tight(limit: float, share: float = 0.99) -> Claim:
    """Return the claim of an upper bound: beyond it the paper is wrong, below a share of it, it is loose."""
    return Claim(low=share * limit, high=limit, if_not=Verdict.WRONG, if_below=Verdict.LOOSE)


def near(value: float, within: float, if_not: Verdict = Verdict.DIFFERS) -> Claim:
    """Return the claim that a number is `value`, up to what was rounded or is left to a limit."""
    return Claim(low=value - within, high=value + within, if_not=if_not)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One number of a paper, and ours.

    Attributes
    ----------
    quantity : str
        What the number is of.
    ours : float
        An integer is shown as it is.
    paper : str
        The number as printed, or the claim; empty where there is none, as of curves without numbers.
    error : float or None
        The Monte Carlo standard error of `ours`; None where no chance enters.
    claim : Claim or None
        What `paper` leaves for `ours`, where it says anything of it.
    verdict : Verdict
        Of a number without a claim.
    note : str
        What explains a difference.
    digits : int
        Significant digits of `ours` that are shown.
    """

    quantity: str
    ours: float
    paper: str = ""
    error: float | None = None
    claim: Claim | None = None
    verdict: Verdict = Verdict.AGREES
    note: str = ""
    digits: int = 6

    @property
    def judged(self) -> Verdict:
        """The verdict on the number that was found."""
        return self.verdict if self.claim is None else self.claim.verdict_on(self.ours, self.error)

    def cells(self) -> tuple[str, ...]:
        """Return the texts of `COLUMNS`."""
        error = "exact" if self.error is None else f"{self.error:.1g}"
        ours = f"{self.ours:,}" if isinstance(self.ours, int) else f"{self.ours:#.{self.digits}g}".rstrip(".")
        is_unprinted = self.judged is Verdict.AGREES and not self.paper
        verdict = "no number printed" if is_unprinted else self.judged.value
        return (self.quantity, self.paper, ours, error, verdict, self.note)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a study found, and the files that it wrote.

    Attributes
    ----------
    rows : tuple of Row
    files : tuple of Path
    """

    rows: tuple[Row, ...]
    files: tuple[Path, ...]

    def __getitem__(self, quantity: str) -> Row:
        """Return the row of a quantity."""
        return next(row for row in self.rows if row.quantity == quantity)


def conclude(
    out: Path,
    name: str,
    rows: Iterable[Row],
    *,
    pictures: Iterable[Path] = (),
    curves: Mapping[str, Sequence[object]] | None = None,
) -> Result:
    """Write a study's rows, and the numbers behind its picture.

    Parameters
    ----------
    out : Path
        An existing folder.
    name : str
        The study's: ``NAME.csv`` holds the rows, ``NAME-curves.csv`` the columns of `curves`.
    rows : iterable of Row
    pictures : iterable of Path
        Already written.
    curves : mapping of str to sequence, optional
        Columns of one length.
    """
    kept = tuple(rows)
    files = [*pictures, out / f"{name}.csv"]
    write_rows(files[-1], COLUMNS, [row.cells() for row in kept])
    if curves is not None:
        files.append(out / f"{name}-curves.csv")
        write_rows(files[-1], tuple(curves), zip(*curves.values(), strict=True))
    return Result(rows=kept, files=tuple(files))


def write_rows(path: Path, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Write a CSV file: its first line says that it is no release."""
    with path.open("w", newline="", encoding="utf-8") as file:
        file.write(f"# {NOT_A_RELEASE}\n")
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


def read_rows(path: Path) -> list[dict[str, str]]:
    """Read a CSV file that `write_rows` wrote."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("# ")))
