"""What a dataset's releases spent over time: by published releases alone, or by a ledger's public export."""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections import defaultdict
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from suffice.errors import LedgerCorruptError, UsageError
from suffice.pages.drawing import steps
from suffice.pipeline.spec.person import loss_of, windows_in_a_year
from suffice.pipeline.spec.terms import ROW
from suffice.pipeline.spec.windows_and_amendments import ALL, edition
from suffice.pipeline.terms.declaration.delta import DELTAS, shown_delta, shown_epsilon, shown_epsilons
from suffice.pipeline.terms.declaration.domains import Every
from suffice.pipeline.terms.declaration.exact_numbers import format_number
from suffice.pipeline.terms.declaration.privacy_loss import PrivacyLoss, PrivacyMeasure
from suffice.pipeline.terms.declaration.row_rules import in_words
from suffice.pipeline.terms.declaration.wording import counted
from suffice.storage.ledger.amounts import stated_measure, stated_name
from suffice.storage.ledger.replay import read_export

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from markupsafe import Markup


_HEIGHT_OF_WIDE = 150
_MOST_NAMED = 20
"""Releases that a note names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Charged:
    """One charge, as the public may know it.

    Attributes
    ----------
    hour : str
        ``2026-01-31T08Z``.
    what : str
        Name and edition of the release, or what is known of a charge without one.
    loss : Fraction
        In the account's measure.
    state : str
    granted : Fraction or None
        All that was granted by then; None where it is not known.
    release_id : str or None
        Of the release that it is for.
    window : str
        Its window, or ``all``.
    """

    hour: str
    what: str
    loss: Fraction
    state: str
    granted: Fraction | None = None
    release_id: str | None = None
    window: str = ALL


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What was charged to a dataset.

    Attributes
    ----------
    guarantee : str
        Who is protected, as a sentence.
    charges : tuple of Charged
        In order of time.
    measure : PrivacyMeasure
        What the account counts.
    per_window : str or None
        The window grid where the grant holds for each window by itself.
    complete : bool
        Whether a ledger's export lists every charge, and not the published releases alone.
    uncounted : tuple of str
        Published releases that the export does not list: it is older than they are, or of another ledger.
    export_is_of_others : bool
        Whether there is an export, and it knows nothing of this dataset.
    unit : str
        As accounts name it.
    max_windows : int or None
        In how many windows of twelve months a unit has rows, as the owner assumes.
    """

    guarantee: str
    charges: tuple[Charged, ...]
    measure: PrivacyMeasure = PrivacyMeasure.EPSILON
    per_window: str | None = None
    complete: bool = False
    uncounted: tuple[str, ...] = ()
    export_is_of_others: bool = False
    unit: str = ROW
    max_windows: int | None = None
    rows: list[dict[str, Any]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        total, rows = Fraction(0), []
        for charge in self.charges:
            total += charge.loss
            rows.append(
                {
                    "hour": charge.hour,
                    "release": charge.what,
                    "state": charge.state,
                    str(self.measure): format_number(charge.loss),
                    "in all": format_number(total),
                    **self._epsilons(total),
                }
            )
        object.__setattr__(self, "rows", rows)

    def _epsilons(self, total: Fraction) -> dict[str, str]:
        """Return the epsilon of so much rho, by delta; nothing of an account in epsilon."""
        if self.measure is PrivacyMeasure.EPSILON:
            return {}
        return {f"epsilon at {shown_delta(delta)}": shown_epsilon(total, delta) for delta in DELTAS}

    def _in_epsilon(self, amount: Fraction) -> str:
        """Return what to say after an amount of rho; empty of an account in epsilon."""
        if self.measure is PrivacyMeasure.EPSILON or amount <= 0:
            return ""
        return f", which is (epsilon, delta) = {shown_epsilons(amount)}"

    @property
    def _name(self) -> str:
        return f"{self.measure[0].upper()}{self.measure[1:]}"

    @property
    def total(self) -> Fraction:
        """The loss of all charges together."""
        return sum((charge.loss for charge in self.charges), Fraction(0))

    @property
    def sentence(self) -> str:
        """What was spent, in words."""
        what = "charge" if self.complete else "published release"
        spent = f"{self._name} {format_number(self.total)} in {counted(len(self.charges), what)}"
        spent += self._in_epsilon(self.total)
        granted = self.charges[-1].granted if self.charges else None
        if granted is not None and self.per_window is not None:
            spent += f"; {format_number(granted)} is granted for each window by itself"
        elif granted is not None:
            spent += f"{';' if self._in_epsilon(self.total) else ', of'} {format_number(granted)} granted"
        if self.uncounted:
            spent += f". Not counted: {counted(len(self.uncounted), 'release')} that the export does not list"
        return f"{spent}."

    @property
    def caption(self) -> str:
        """What the picture shows."""
        if self.complete:
            charges = "charges that the ledger's public export lists" if self.uncounted else "all charges"
            by = "" if self.uncounted else ", by the ledger's public export"
            dashed = "; dashed: what was granted" if self._limits() else ""
            return f"{self._name} of {charges} over time{by}{dashed}."
        why = (
            "the ledger's export that this page was made with knows nothing of this dataset."
            if self.export_is_of_others
            else "a ledger's export would show it."
        )
        return (
            f"{self._name} of published releases over time. What was charged and never published is not in "
            f"it: {why}"
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """What has to be said beside the picture."""
        notes = []
        if self.uncounted:
            shown = ", ".join(self.uncounted[:_MOST_NAMED])
            more = len(self.uncounted) - _MOST_NAMED
            notes.append(
                f"Published, but not in the ledger's export that this page was made with: {shown}"
                + (f" and {more} more" if more > 0 else "")
                + ". The export is older than they are, or of another ledger: the sum lacks what they spent."
            )
        if self.per_window is not None and self.unit == ROW:
            notes.append(
                f"The grant holds for each window of {in_words(self.per_window)} by itself. Their rows are "
                "disjoint: what one row can lose is bounded by the grant of its window, not by the sum shown "
                "here."
            )
        elif self.per_window is not None:
            notes.append(
                f"The grant holds for each window of {in_words(self.per_window)} by itself. The owner states "
                f"that no {self.protected} has rows in two windows; one that has loses in each of them."
            )
        return tuple(notes)

    @property
    def protected(self) -> str:
        """One unit, in a word: ``row``, or the name of the unit's column."""
        return "row" if self.unit == ROW else in_words(self.unit).removeprefix("column:")

    @property
    def person(self) -> tuple[str, ...]:
        """What one unit loses over all windows and in a year, as sentences."""
        loss = loss_of(
            (None if charge.window == ALL else "", charge.window, charge.loss) for charge in self.charges
        )
        who = "A person with one row" if self.unit == ROW else f"One {self.protected} with rows"
        by = "by all charges" if self.complete and not self.uncounted else "by what is listed here"
        year, whole = format_number(loss.in_a_year), format_number(loss.in_every_window)
        first = (
            f"{who} in every window loses at most {self.measure} {year} in any twelve months, "
            f"and {whole} in all, {by} so far{self._in_epsilon(loss.in_every_window)}."
        )
        sentences = [first]
        granted = self.charges[-1].granted if self.charges else None
        if granted is not None:
            sentences.append(f"The grant allows {self._allowed(granted)}{self._in_epsilon(granted)}.")
        if self.unit == ROW:
            times = "r" if self.measure is PrivacyMeasure.EPSILON else "r^2"
            sentences.append(f"With r rows in each window it is up to {times} times as much.")
        return tuple(sentences)

    def _allowed(self, granted: Fraction) -> str:
        if self.per_window is None:
            return f"{format_number(granted)} in all"
        windows = windows_in_a_year(Every(self.per_window.rsplit(":", 2)[1]))
        year = format_number(granted * min(windows, self.max_windows or windows))
        text = f"{format_number(granted)} in a window and {year} in any twelve months"
        if self.max_windows is not None:
            text += (
                f", if nobody has rows in more than {counted(self.max_windows, 'window')} of them, which the "
                "owner assumes and nothing enforces"
            )
        return text

    def _limits(self) -> tuple[Fraction, ...]:
        granted = [charge.granted for charge in self.charges]
        if self.per_window is not None or None in granted:
            return ()
        return tuple(limit for limit in granted if limit is not None)

    def chart(self, name: str, height: int) -> Markup:
        """Return the picture of what a dataset of this name spent."""
        hours = [_hour(charge) for charge in self.charges]
        span = (hours[-1] - hours[0]).total_seconds() if hours else 0.0
        times = [
            0.03 + 0.9 * ((hour - hours[0]).total_seconds() / span if span else place / len(hours))
            for place, hour in enumerate(hours)
        ]
        totals, total = [], Fraction(0)
        for charge in self.charges:
            total += charge.loss
            totals.append(float(total))
        ends = (f"{hours[0]:%Y-%m-%d}", f"{hours[-1]:%Y-%m-%d}") if hours else ("", "")
        if hours and not span:
            ends = (f"in order, all within an hour of {ends[0]}" if len(hours) > 1 else ends[0], "")
        return steps(
            times,
            totals,
            labels=ends,
            axis=f"{self.measure} in all",
            title=f"{self._name} charged to {name} over time",
            description=f"{self.sentence} The axis: {ends[0]} {ends[1]}",
            limits=[float(limit) for limit in self._limits()],
            height=height,
            is_wide=height > _HEIGHT_OF_WIDE,
        )


def _hour(charge: Charged) -> dt.datetime:
    return dt.datetime.strptime(charge.hour, "%Y-%m-%dT%HZ").replace(tzinfo=dt.UTC)


def guarantee(neighboring: str, unit: str) -> str:
    """Return in a sentence what is protected."""
    what = "row" if unit == "row" else f"{in_words(unit).removeprefix('column:')}, with all of its rows"
    how = "adding or removing" if neighboring == "add_or_remove_one" else "replacing"
    return f"Protects every {what}: the guarantee is about {how} one."


def budgets_of(
    releases: Sequence[Mapping[str, Any]], charges: Mapping[str, Budget] | None
) -> dict[str, Budget]:
    """Return what each dataset spent: by an export where there is one, else by its published releases.

    Releases are facts as pages list them, of any datasets.
    """
    budgets: dict[str, Budget] = {}
    for name in sorted({facts["dataset"] for facts in releases} | set(charges or {})):
        of = sorted(
            (facts for facts in releases if facts["dataset"] == name),
            key=lambda facts: (facts["created"], facts["label"]),
        )
        if charges is not None and name in charges:
            listed = {charge.release_id for charge in charges[name].charges}
            uncounted = [facts["label"] for facts in of if facts["release_id"] not in listed]
            budgets[name] = dataclasses.replace(charges[name], uncounted=tuple(uncounted))
            continue
        first = of[0]
        losses = [PrivacyLoss.read(facts) for facts in of]
        is_rho = any(loss.rho is not None for loss in losses)  # an account of epsilon takes no rho
        budgets[name] = Budget(
            measure=PrivacyMeasure.RHO if is_rho else PrivacyMeasure.EPSILON,
            guarantee=guarantee(first["neighboring"], first["unit"]),
            charges=tuple(
                Charged(
                    hour=facts["created"],
                    what=facts["label"],
                    loss=Fraction(facts["costs_rho"]) if is_rho else loss.amount,
                    state="published",
                    window=facts["window"],
                )
                for facts, loss in zip(of, losses, strict=True)
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
    measures: dict[str, PrivacyMeasure] = {}
    reserved: dict[str, dict[str, Any]] = {}
    drawn: defaultdict[str, list[tuple[str, str, Fraction | None]]] = defaultdict(list)
    ended: dict[str, str] = {}
    for line in lines:
        content = line.payload
        if line.kind == "grant":
            terms[content["dataset"]] = content
            measures[content["dataset"]] = stated_measure(content)
        elif line.kind == "reserved":
            reserved[content["charge_id"]] = content
        elif line.kind == "drawing":
            dataset = reserved[content["charge_id"]]["dataset"]
            granted = _amount("granted", terms[dataset], measures[dataset])
            drawn[dataset].append((line.hour, content["charge_id"], granted))
        elif line.kind in {"published", "abandoned"}:
            ended[content["charge_id"]] = line.kind
    return {
        dataset: Budget(
            guarantee=guarantee(term["neighboring"], term["unit"]),
            charges=tuple(
                Charged(
                    hour=hour,
                    what=f"{reserved[charge]['name']}@"
                    f"{edition(reserved[charge]['window'], reserved[charge]['amendment'])}",
                    loss=_amount("charged", reserved[charge], measures[dataset]),
                    state=ended.get(charge, "not published yet"),
                    granted=granted,
                    release_id=reserved[charge]["release_id"],
                    window=reserved[charge]["window"],
                )
                for hour, charge, granted in drawn[dataset]
            ),
            measure=measures[dataset],
            per_window=term["per_window"],
            complete=True,
            unit=term["unit"],
            max_windows=term["max_windows"],
        )
        for dataset, term in terms.items()
    }


def _amount(what: str, content: Mapping[str, Any], measure: PrivacyMeasure) -> Fraction:
    """Return an amount that an entry of the chain states."""
    return measure.loss(content[stated_name(what, measure)]).amount
