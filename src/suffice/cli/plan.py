"""``suffice plan``: what would be released, how noisy it would be, and what another choice is worth."""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from suffice.cli import output
from suffice.cli.division import AskedDivision, check_division, print_division, with_division
from suffice.cli.options import JsonOption, SpecArgument, check_simulation
from suffice.cli.output import say
from suffice.errors import AccountMissingError, LedgerError, MissingExtraError, SufficeWarning, UsageError
from suffice.pipeline.terms.declaration.delta import shown_epsilons
from suffice.pipeline.terms.declaration.documents import Count, CountOrNone, Sha256, document, printed
from suffice.pipeline.terms.declaration.loss_in_words import with_epsilons
from suffice.pipeline.terms.declaration.privacy_loss import PrivacyLoss, PrivacyMeasure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suffice.pipeline.ask.planning.beside_sample import ErrorComparison
    from suffice.pipeline.ask.planning.smallest_loss import NeededLoss
    from suffice.pipeline.spec.plan import Plan
    from suffice.pipeline.spec.spec import Spec


SAMPLE = "sample"
_MOST_RECORDS = 10**12
_MOST_SIZES = 20


@with_division
def plan(
    spec: SpecArgument,
    division: AskedDivision,
    target: Annotated[
        list[str] | None,
        typer.Option(
            "--target",
            help='Find the smallest epsilon, or rho, for it, as "arr_delay mean width 2"; with --divide what '
            'a share has to reach, as "arr_delay mean sd 0.5", which may repeat.',
        ),
    ] = None,
    beside: Annotated[
        str | None,
        typer.Option(
            "--beside",
            metavar=SAMPLE,
            help="Compare the samples that statistics state with Laplace releases at equal epsilon.",
        ),
    ] = None,
    n: Annotated[
        str | None,
        typer.Option("--n", help="Records in a cell, for --target; one or more, as 10,100, for --beside."),
    ] = None,
    truth: Annotated[
        list[str] | None,
        typer.Option(
            "--truth",
            metavar="[STATISTIC=]VALUE",
            help="The parameter that data are drawn with, for --beside; may repeat.",
        ),
    ] = None,
    method: Annotated[
        str | None,
        typer.Option(
            "--method", metavar="noise-aware|plug-in", help="Of the Laplace posterior, for --beside."
        ),
    ] = None,
    prior: Annotated[str | None, typer.Option("--prior", help="Of the parameters, for --target.")] = None,
    per_year: Annotated[
        str | None,
        typer.Option(
            "--per-year",
            metavar="LOSS",
            help="Find the epsilon, or rho, with which a unit loses at most so much in any twelve months.",
        ),
    ] = None,
    delta: Annotated[
        str | None,
        typer.Option(
            "--delta", metavar="D", help="Of a spec in rho: --per-year is an epsilon, at this delta."
        ),
    ] = None,
    max_windows: Annotated[
        int | None,
        typer.Option(
            "--max-windows",
            min=1,
            metavar="K",
            help="For --per-year: in how many windows of twelve months a unit has rows, as you assume.",
        ),
    ] = None,
    n_prior: Annotated[
        str | None,
        typer.Option("--n-prior", help="Of a private N; default: up to twice --n for --target."),
    ] = None,
    simulations: Annotated[
        int | None,
        typer.Option(
            "--simulations",
            help="Data sets to draw; default: 200, or 40 under a density; 1000, or 100, for --beside.",
        ),
    ] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="Makes simulations repeatable.")] = None,
    ledger: Annotated[
        str | None,
        typer.Option("--ledger", metavar="URL", help="Check the spec by its account's contract in it."),
    ] = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """Show what would be released and how noisy it would be; reads no data, spends nothing."""
    from suffice.pipeline.spec.expected import ExpectPlan
    from suffice.pipeline.spec.plan import compile_plan, plan_document, plan_text, source_columns
    from suffice.pipeline.spec.spec import load_spec
    from suffice.storage.releases.manifest import require_manifest

    read = load_spec(spec)
    compiled = compile_plan(read)
    require_manifest(compiled)
    contracted = None if ledger is None else _contracted(read, ledger)
    if contracted is None or contracted.contract is None:
        _warn_of_units(read)
    expected = ExpectPlan.of(read)
    year = year_of(read, compiled, per_year, max_windows, delta)
    targets, divides = target or [], division["divide"]
    check_division(division, targets)
    wanted = targets[0] if targets and not divides else None
    _check_combination(
        wanted,
        beside,
        simulating={"n": n, "n-prior": n_prior, "simulations": simulations, "seed": seed},
        of_target={"prior": prior},
        of_beside={"truth": truth, "method": method},
    )
    check_simulation(simulations, seed)
    simulating: dict[str, Any] = {"n_prior": n_prior, "simulations": simulations, "rng": seed}
    if divides:
        if beside is not None:
            message = "--divide and --beside are two questions: ask one at a time"
            raise UsageError(message)
        print_division(read, compiled, division, targets, as_json=as_json)
    elif wanted is not None:
        size = _sizes(n, "--target", 1)[0]
        _find_epsilon(read, compiled, wanted, as_json=as_json, n=size, prior=prior, **simulating)
    elif beside is not None:
        sizes, method = _sizes(n, "--beside", _MOST_SIZES), method or "noise-aware"
        _compare(read, compiled, as_json=as_json, n=sizes, truth=_truths(truth), method=method, **simulating)
    elif as_json:
        unchecked = list(source_columns(read))
        further = {"expect": document(expected), "person": document(year), "unchecked_columns": unchecked}
        output.print_json({**plan_document(compiled), **further, **(document(contracted) or {})})
    else:
        unchecked_text = output.unchecked_text(source_columns(read))
        text = plan_text(compiled, says_unit=year is None)
        lines = (text, _unused(read), _reading(read), expected, year, unchecked_text)
        say("\n".join(map(str, filter(None, lines))))
        if contracted is not None:
            say(f"\n{contracted}")


def _unused(spec: Spec) -> str:
    """Name the derived columns that nothing reads; no source is looked at for them."""
    from suffice.pipeline.spec.plan import derived_in_use
    from suffice.pipeline.terms.declaration.derived_conditions import listed

    names = sorted(spec.derived.keys() - set(derived_in_use(spec)))
    return f"nothing reads: {listed(tuple(names))}" if names else ""


def _reading(spec: Spec) -> str:
    """Say what each window reads; empty without windows. It is a matter of time and cost, not of the plan."""
    window = spec.window
    if window is None:
        return ""
    if window.files_by_window is not None:
        return (
            f"reading: rows of the window's files alone, those named {window.files_by_window}: a row enters "
            f"if its file's name and its {window.column} both say so"
        )
    rule = spec.derived.get(window.column)
    if rule is not None:
        from suffice.pipeline.terms.declaration.derived_values import ParsedText
        from suffice.pipeline.terms.declaration.source_specs import WHOLE_TABLE, DatabaseSpec

        if isinstance(rule, ParsedText) and rule.rises and isinstance(spec.source, DatabaseSpec):
            return f"reading: the window's rows alone, where {rule.column} is an integer; else {WHOLE_TABLE}"
        return f"reading: {WHOLE_TABLE}, as {window.column} is derived"
    return f"reading: {spec.source.window_reading(window.column)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Contracted:
    """What the ledger says of the contract of a spec's account, which the spec fits."""

    contract: Sha256 | None

    def __str__(self) -> str:
        if self.contract is None:
            return "contract: none: how files are typed, and which there are, may decide a status"
        return f"contract: {self.contract[:16]}, which the spec fits"


def _contracted(spec: Spec, ledger: str) -> _Contracted | None:
    """Hold a spec against its account's contract; None where no ledger or no account is in sight.

    Raises
    ------
    SchemaError
        Where the spec does not fit it.
    """
    from suffice.pipeline.spec.contract_fit import check_contract, floating_unit_warning
    from suffice.storage.ledger.opening import open_ledger

    try:
        with open_ledger(ledger, reading_only=True) as opened:
            contract = opened.account(spec.dataset).contract
    except (AccountMissingError, LedgerError, MissingExtraError):
        return None
    if contract is None:
        return _Contracted(contract=None)
    check_contract(spec, contract)
    text = floating_unit_warning(contract)
    if text is not None:
        warnings.warn(text, SufficeWarning, stacklevel=2)
    return _Contracted(contract=contract.sha256)


@printed("*needed seed")
@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What ``--target`` finds."""

    needed: NeededLoss
    seed: CountOrNone


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """What ``--beside`` finds."""

    seed: CountOrNone
    statistics: Sequence[ErrorComparison]


def _find_epsilon(read: Spec, compiled: Plan, target: str, *, as_json: bool, **asked: Any) -> None:
    from suffice.pipeline.ask.planning.smallest_loss import smallest_loss
    from suffice.pipeline.spec.plan import plan_document

    progress = None if as_json else output.Progress("planning", "posteriors")
    needed = smallest_loss(read, target, **asked, progress=progress)
    if as_json:
        target_document = document(Target(needed=needed, seed=asked["rng"]))
        output.print_json({**plan_document(compiled), "target": target_document})
    else:
        say(f"{compiled}\n\n{needed}")


def _compare(read: Spec, compiled: Plan, *, as_json: bool, **asked: Any) -> None:
    from suffice.pipeline.ask.planning.beside_sample import beside_sample
    from suffice.pipeline.spec.plan import plan_document

    progress = None if as_json else output.Progress("comparing", "sizes")
    comparisons = beside_sample(read, **asked, progress=progress)
    if as_json:
        beside = document(Compared(seed=asked["rng"], statistics=comparisons))
        output.print_json({**plan_document(compiled), "beside": beside})
    else:
        say("\n\n".join(map(str, (compiled, *comparisons))))


def _check_combination(
    target: str | None,
    beside: str | None,
    simulating: dict[str, object],
    of_target: dict[str, object],
    of_beside: dict[str, object],
) -> None:
    """Refuse options whose question is not asked.

    Raises
    ------
    UsageError
    """
    if target is not None and beside is not None:
        message = "--target and --beside are two questions: ask one at a time"
        raise UsageError(message)
    if beside not in {None, SAMPLE}:
        message = f"--beside {beside}: a Laplace release is compared with a {SAMPLE}: write --beside {SAMPLE}"
        raise UsageError(message)
    asked = {
        "--target": (target, of_target),
        "--beside": (beside, of_beside),
        "--target or --beside": (target if beside is None else beside, simulating),
    }
    for question, (given, options) in asked.items():
        idle = [f"--{name}" for name, value in options.items() if value is not None]
        if given is None and idle:
            message = f"{', '.join(idle)}: of use with {question} alone: give that too"
            raise UsageError(message)


def _sizes(text: str | None, question: str, most: int) -> list[int]:
    """Read --n: integers, with commas between them."""
    if text is None:
        message = f"{question} needs --n: the records that a cell is expected to have"
        raise UsageError(message)
    sizes = text.split(",")
    if not all(re.fullmatch(r"\s*[1-9][0-9]{0,12}\s*", size, re.ASCII) for size in sizes) or not all(
        int(size) <= _MOST_RECORDS for size in sizes
    ):
        message = f"--n {text}: write numbers of records in 1..{_MOST_RECORDS}, as 10,100,1000"
        raise UsageError(message)
    if len(sizes) > most:
        message = f"--n {text}: {question} takes at most {most} of them"
        raise UsageError(message)
    return [int(size) for size in sizes]


def _truths(texts: list[str] | None) -> float | dict[str, float]:
    """Read --truth: one number, or one for each statistic."""
    if texts is None:
        message = f"--beside {SAMPLE} needs --truth: the parameter that data are drawn with"
        raise UsageError(message)
    truths: dict[str, float] = {}
    for text in texts:
        statistic, equals, value = text.rpartition("=")
        try:
            truth = float(value)
        except ValueError:
            message = f"--truth {text}: write a number, or STATISTIC=NUMBER"
            raise UsageError(message) from None
        if not equals and len(texts) == 1:
            return truth
        if not equals or statistic in truths:
            message = f"--truth {text}: of several, write each once, as STATISTIC=NUMBER"
            raise UsageError(message)
        truths[statistic] = truth
    return truths


def _warn_of_units(spec: Spec) -> None:
    """Warn of files whose units cannot be told to be equal: from schemas, where the source is in sight."""
    if spec.privacy.column_unit is None:
        return
    from suffice.pipeline.rows import sources
    from suffice.pipeline.rows.sources.schema_check import unit_warnings

    try:
        texts = unit_warnings(spec, sources.schema(sources.pin(spec)))
    except UsageError:
        texts = ("no schema: the source is not in sight, so the types of its unit column were not compared",)
    for text in texts:
        warnings.warn(text, SufficeWarning, stacklevel=2)


@printed(
    "in_a_window=in_a_window.amount in_a_year=in_a_year.amount windows_in_a_year max_windows "
    "per_year=per_year.amount epsilon=each.epsilon rho?=each.rho"
)
@dataclass(frozen=True, slots=True, kw_only=True)
class YearOfPerson:
    """What one unit loses in twelve months of a series, and which loss of a release keeps it to a number.

    All losses are in the spec's measure.

    Attributes
    ----------
    windows_in_a_year : int
        The most windows of the grid that share a day with twelve months.
    in_a_window : PrivacyLoss
        With every amendment of the calendar, and the count before the first release.
    max_windows : int or None
        In how many windows of twelve months a unit has rows, as somebody assumes.
    per_year, each : PrivacyLoss or None
        What a unit may lose in twelve months, and the loss of a release for it, where that is asked.
    """

    windows_in_a_year: Count
    in_a_window: PrivacyLoss
    max_windows: CountOrNone
    per_year: PrivacyLoss | None
    each: PrivacyLoss | None

    @property
    def windows(self) -> int:
        """In how many windows of twelve months a unit is taken to have rows."""
        return self.max_windows or self.windows_in_a_year

    @property
    def in_a_year(self) -> PrivacyLoss:
        """What a unit loses in so many windows."""
        return self.in_a_window * self.windows

    def __str__(self) -> str:
        window = f"{self.in_a_window} in a window, with all that the calendar charges"
        year = self.in_a_year
        lines = [f"one unit: {window}; {year.text} in twelve months with rows in {self.windows} windows"]
        if year.rho is not None:
            lines.append(f"rho {year.text} is (epsilon, delta) = {shown_epsilons(year.rho)}")
        if self.each is not None and self.per_year is not None:
            lines.append(
                f"{self.each} for each release leaves it at most {with_epsilons(self.per_year)} in twelve "
                "months"
            )
        if self.max_windows is not None:
            lines.append(
                f"assumed, and enforced by nothing: no unit has rows in over {self.max_windows} windows of "
                "twelve months"
            )
        return "\n".join(lines)


def year_of(
    spec: Spec, plan: Plan, per_year: str | None, max_windows: int | None, delta: str | None = None
) -> YearOfPerson | None:
    """Return what a plan says of a year; None of a spec without windows.

    Raises
    ------
    UsageError
        Where it is asked of a spec without windows, or nothing is left for a release.
    """
    from suffice.pipeline.spec.person import loss_for_a_year, windows_in_a_year  # it imports numpy

    if spec.window is None:
        if per_year is not None or max_windows is not None or delta is not None:
            message = "--per-year, --max-windows, --delta: the spec has no windows, so its one release is all"
            raise UsageError(message)
        return None
    if max_windows is not None and per_year is None:
        message = "--max-windows is of use with --per-year alone: give that too"
        raise UsageError(message)
    if delta is not None and per_year is None:
        message = "--delta is of use with --per-year alone: give that too"
        raise UsageError(message)
    before = spec.expect.loss if spec.expect else None
    asked = each = None
    if per_year is not None:
        asked = _asked_of_a_year(per_year, delta, plan.loss.measure)
        n = 1 + len(plan.amend)
        each = loss_for_a_year(asked, spec.window.every, max_windows=max_windows, before=before, n=n)
    return YearOfPerson(
        windows_in_a_year=windows_in_a_year(spec.window.every),
        in_a_window=plan.window_loss if before is None else plan.window_loss + before,
        max_windows=max_windows,
        per_year=asked,
        each=each,
    )


def _asked_of_a_year(per_year: str, delta: str | None, measure: PrivacyMeasure) -> PrivacyLoss:
    """Read what a unit may lose in twelve months, in a spec's measure."""
    from suffice.releasing.granted_total import in_rho, read_stated

    def named(argument: str) -> str:
        return f"--{argument.replace('_', '-').removeprefix('rho-')}"

    if delta is not None and measure is PrivacyMeasure.EPSILON:
        message = "--delta: the spec states epsilon, which has none: leave it out, or state rho"
        raise UsageError(message)
    is_rho = measure is PrivacyMeasure.RHO and delta is None
    asked = read_stated("rho_per_year" if is_rho else "per_year", per_year, named)
    return asked if delta is None else in_rho(asked, delta, named)
