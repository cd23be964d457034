"""``suffice ledger``: what the data owner and the privacy officer do."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path  # noqa: TC003 - Typer reads it
from typing import TYPE_CHECKING, Annotated

import typer

from suffice.cli import messages, migration, output, trust
from suffice.cli.options import DEFAULT_LEDGER, JsonOption, LedgerOption, WitnessOption
from suffice.cli.output import say
from suffice.errors import LedgerError, UsageError
from suffice.pipeline.terms.declaration.documents import document, printed
from suffice.pipeline.terms.declaration.wording import counted

if TYPE_CHECKING:
    from suffice.storage.ledger.account import Account
    from suffice.storage.ledger.charge import Charge, ChargeState
    from suffice.storage.ledger.ledger import Ledger
    from suffice.storage.releases.spool import Spool


def reconcile_ledger(
    reason: Annotated[str, typer.Option("--reason", help="Why; kept in the ledger.")],
    stores: Annotated[
        list[str] | None,
        typer.Option("--store", metavar="URI", help="A store that the copy may not know yet; may repeat."),
    ] = None,
    witness: WitnessOption = None,
    ledger: LedgerOption = DEFAULT_LEDGER,
    *,
    as_json: JsonOption = False,
) -> None:
    """Charge a ledger from a backup for what its stores show and it lacks; nothing may run meanwhile."""
    from suffice.storage.ledger.opening import open_ledger
    from suffice.storage.operations.reconciliation import reconcile

    with open_ledger(ledger) as opened:
        done = reconcile(opened, stores=stores or (), witness=witness, reason=reason)
    if as_json:
        output.print_json(document(done))
        return
    for charge in done.charges:
        say(f"{charge.dataset}: {charge.label}: {charge.state}; {charge.loss} is spent")
    lost = counted(done.skipped, "lost entry", "lost entries")
    say(
        f"{counted(len(done.charges), 'charge')} taken up, numbers of {lost} skipped"
        if done.charges or done.skipped
        else "nothing to reconcile: no store shows what this ledger lacks"
    )


SHOWN = 20
"""How many charges of an account ``ledger show`` prints as text, unless it is told."""

app = typer.Typer(help="Grants, charges, and what remains.", rich_markup_mode=None, no_args_is_help=True)


@app.command()
def grant(
    dataset: Annotated[str, typer.Argument(help="The protected population: the account.")],
    reason: Annotated[str, typer.Option("--reason", help="Why; kept in the ledger.")],
    epsilon: Annotated[
        str | None, typer.Option("--epsilon", help="The account's new total, decimal text.")
    ] = None,
    rho: Annotated[
        str | None,
        typer.Option("--rho", help="The new total of an account in rho; the first grant fixes the measure."),
    ] = None,
    delta: Annotated[
        str | None,
        typer.Option(
            "--delta",
            help="With --epsilon or --per-year: grant the largest rho that is (epsilon, delta)-private.",
        ),
    ] = None,
    per_year: Annotated[
        str | None,
        typer.Option(
            "--per-year",
            metavar="EPSILON",
            help="With --per-window, instead of --epsilon: what a unit may lose in any twelve months.",
        ),
    ] = None,
    rho_per_year: Annotated[
        str | None,
        typer.Option("--rho-per-year", metavar="RHO", help="As --per-year, of an account in rho."),
    ] = None,
    max_windows: Annotated[
        int | None,
        typer.Option(
            "--max-windows",
            min=0,
            metavar="K",
            help="In how many windows of twelve months a unit has rows, as you assume; 0: assume nothing.",
        ),
    ] = None,
    neighboring: Annotated[
        str | None,
        typer.Option(
            "--neighboring", metavar="RELATION", help="Fixed by the first grant; default: add_or_remove_one."
        ),
    ] = None,
    unit: Annotated[
        str | None,
        typer.Option(
            "--unit",
            help="row, column:NAME, or column: and a rule as '{column: raw_id, case: lower}'. Fixed by the "
            "first grant; default: row.",
        ),
    ] = None,
    source: Annotated[
        list[str] | None,
        typer.Option(
            "--source", metavar="PREFIX", help="Allowed sources; may repeat; default: any, or as before."
        ),
    ] = None,
    stores: Annotated[
        list[str] | None,
        typer.Option("--store", metavar="URI", help="Where releases may go, and below; may repeat."),
    ] = None,
    per_window: Annotated[
        str | None,
        typer.Option(
            "--per-window",
            metavar="COLUMN:EVERY[:TIME_ZONE]",
            help="The grant holds for each window; needs --source; default: for all time. Time zone: UTC.",
        ),
    ] = None,
    checksums: Annotated[
        Path | None,
        typer.Option(
            "--checksums",
            metavar="FILE",
            help="A list of the input files' SHA-256, as sha256sum writes it, that every release must fit.",
        ),
    ] = None,
    audited: Annotated[
        Path | None,
        typer.Option(
            "--audited",
            metavar="FILE",
            help="An audit of a spec of this data set that found nothing; entry and releases name it.",
        ),
    ] = None,
    contract: Annotated[
        Path | None,
        typer.Option(
            "--contract",
            metavar="FILE",
            help="What the data are, as `suffice inspect SPEC --out FILE` proposes; kept from then on.",
        ),
    ] = None,
    witness: Annotated[
        str | None,
        typer.Option(
            "--witness",
            metavar="URI",
            help="The ledger's witness, which every run has to ask; made where there is none.",
        ),
    ] = None,
    failed_readings: Annotated[
        int | None,
        typer.Option(
            "--failed-readings",
            min=0,
            metavar="N",
            help="Attempts of a release that may fail and be given back; 10 at first, or as before.",
        ),
    ] = None,
    ledger: LedgerOption = DEFAULT_LEDGER,
    *,
    unwitnessed: Annotated[
        bool,
        typer.Option(
            "--unwitnessed", help="Nothing guards the account against an older copy of its ledger; say so."
        ),
    ] = False,
    no_checksums: Annotated[
        bool, typer.Option("--no-checksums", help="Demand no checksums of the input any more.")
    ] = False,
    units_disjoint: Annotated[
        bool, typer.Option("--units-disjoint", help="No unit has rows in two windows.")
    ] = False,
    create: Annotated[bool, typer.Option("--create", help="Make the ledger where there is none.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Set an account's total budget; repeating a grant changes nothing."""
    from suffice.cli.ledger_show import print_account
    from suffice.releasing.granted_total import StatedTotal
    from suffice.releasing.granting import carry_out_grant

    account, warnings = carry_out_grant(
        dataset,
        reason=reason,
        stated=StatedTotal(
            epsilon=epsilon, rho=rho, delta=delta, per_year=per_year, rho_per_year=rho_per_year
        ),
        max_windows=max_windows,
        neighboring=neighboring,
        unit=unit,
        sources=source,
        stores=stores,
        per_window=per_window,
        checksums=checksums,
        audited=audited,
        contract=contract,
        witness=witness,
        failed_readings=failed_readings,
        ledger=ledger,
        unwitnessed=unwitnessed,
        no_checksums=no_checksums,
        units_disjoint=units_disjoint,
        create=create,
        named=lambda argument: f"--{argument.replace('_', '-')}",
    )
    granted = document(GrantDocument(account=account, warnings=warnings))
    for warning in warnings:
        messages.show_warning(warning)
    if as_json:
        output.print_json(granted)
    else:
        print_account(granted)


@printed("*account warnings")
@dataclass(frozen=True, slots=True, kw_only=True)
class GrantDocument:
    """An account as a grant left it, and what there is to say of it."""

    account: Account
    warnings: list[str]


@app.command()
def show(
    dataset: Annotated[str | None, typer.Argument(help="One account; all where left out.")] = None,
    ledger: LedgerOption = DEFAULT_LEDGER,
    last: Annotated[
        int | None,
        typer.Option("--last", min=0, metavar="N", help=f"The last N charges; {SHOWN} as text, all as JSON."),
    ] = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """Show what was granted, what is spent, what remains, and the charges of it."""
    from suffice.cli.ledger_show import show_json, show_text
    from suffice.storage.ledger.opening import open_ledger

    with open_ledger(ledger, reading_only=True) as opened, opened.at_one_moment():
        if as_json:
            show_json(opened, dataset, last)
        else:
            show_text(opened, dataset, SHOWN if last is None else last)


@app.command()
def person(
    dataset: Annotated[str, typer.Argument(metavar="ACCOUNT", help="The protected population.")],
    rows: Annotated[
        int | None,
        typer.Option(
            "--rows", min=1, metavar="R", help="Of a person with so many rows, each of them a unit."
        ),
    ] = None,
    windows: Annotated[
        int | None,
        typer.Option("--windows", min=1, metavar="W", help="Of one who has rows in so many windows."),
    ] = None,
    others: Annotated[
        list[str] | None,
        typer.Option(
            "--with", metavar="ACCOUNT", help="Also of one with rows in this account, too; may repeat."
        ),
    ] = None,
    ledger: LedgerOption = DEFAULT_LEDGER,
    *,
    as_json: JsonOption = False,
) -> None:
    """Say what one unit, or a person with several rows, loses: from charges and the calendar alone."""
    from suffice.cli.ledger_show import show_person
    from suffice.storage.ledger.opening import open_ledger

    with open_ledger(ledger, reading_only=True) as opened, opened.at_one_moment():
        show_person(opened, dataset, rows, windows, others or (), as_json=as_json)


app.command("verify")(trust.verify_ledger)
app.command("export")(trust.export_ledger)
app.command("witness")(trust.witness_ledger)
app.command("reconcile")(reconcile_ledger)
app.command("migrate")(migration.migrate)


@app.command("recover")
def recover_command(
    store: Annotated[
        str | None,
        typer.Option("--store", metavar="URI", help="Where the store is now, if not where charges say."),
    ] = None,
    ledger: LedgerOption = DEFAULT_LEDGER,
    *,
    as_json: JsonOption = False,
) -> None:
    """Carry every charge whose run is gone to its end; live runs are left alone."""
    from suffice.storage.ledger.opening import open_ledger
    from suffice.storage.operations.recovery import recover
    from suffice.storage.releases.release_store import open_store

    with open_ledger(ledger) as opened:
        report = recover(
            opened, lambda uri: open_store(store or uri, ledger_id=opened.ledger_id), spool=_spool(ledger)
        )
    if as_json:
        output.print_json(document(report))
    else:
        say(report)
    if not report.ok:
        raise typer.Exit(LedgerError.exit_status)


@printed(
    "charge_id=charge.charge_id dataset=charge.dataset name=charge.name window=charge.window "
    "amendment=charge.amendment before after=charge.state spent=charge.loss.amount"
)
@dataclass(frozen=True, slots=True, kw_only=True)
class AbandonedCharge:
    """A charge that was abandoned, and the state that it was in."""

    charge: Charge
    before: ChargeState


@app.command("abandon")
def abandon_command(
    charge: Annotated[
        str, typer.Argument(metavar="CHARGE", help="A charge's id, or DATASET/NAME[@WINDOW], its newest.")
    ],
    store: Annotated[
        str | None,
        typer.Option("--store", metavar="URI", help="Where the store is now, if not where the charge says."),
    ] = None,
    ledger: LedgerOption = DEFAULT_LEDGER,
    *,
    spool_lost: Annotated[
        bool, typer.Option("--spool-lost", help="Confirm that the drawn files are lost for good.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Spend a charge whose drawn files are lost: no release of it can follow."""
    from suffice.storage.ledger.opening import open_ledger
    from suffice.storage.operations.settling import abandon_lost
    from suffice.storage.releases.release_store import open_store

    if not spool_lost:
        message = "a charge is abandoned only where its drawn files are lost: say so with --spool-lost"
        raise UsageError(message)
    with open_ledger(ledger) as opened:
        lost = _find_charge(opened, charge)
        ended = abandon_lost(
            opened,
            open_store(store or lost.store_uri, ledger_id=opened.ledger_id),
            lost,
            spool=_spool(ledger),
        )
    if as_json:
        output.print_json(document(AbandonedCharge(charge=ended, before=lost.state)))
    else:
        say(f"{ended.dataset}: {ended.label}: {lost.state}, now {ended.state}; {ended.loss} is spent")


def _spool(ledger: str) -> Spool | None:
    """Open this host's spool. No store is asked for: charges name theirs, and a profile may pin several."""
    from suffice.profile.settings import pinned_profile, setting
    from suffice.storage.releases.spool import find_spool, spool_path

    return find_spool(spool_path(ledger, setting("spool", None, profile=pinned_profile()).value))


def _find_charge(ledger: Ledger, text: str) -> Charge:
    """Find a charge by its id, or the newest of a key."""
    from suffice.pipeline.spec.windows_and_amendments import read_edition

    dataset, slash, key = text.partition("/")
    name, _, wanted = key.partition("@")
    window, amendment = read_edition(wanted or "all") or (wanted, None)
    match = ledger.find(dataset, name, window, amendment=amendment or 0) if slash else ledger.charge(text)
    if match is None:
        message = "the ledger has no such charge: `suffice ledger show --json` lists them"
        raise UsageError(message)
    return match
