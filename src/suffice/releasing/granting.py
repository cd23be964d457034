"""Grants: what a data owner says of a protected population, from the command line and from Python."""

from __future__ import annotations

import json
import os
import re
import shlex
import warnings
from collections.abc import Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from suffice.errors import AccountMissingError, LedgerMissingError, SufficeWarning, UsageError
from suffice.pipeline.terms.declaration.data_contract import DataContract, parse_contract, read_contract
from suffice.pipeline.terms.declaration.domains import Every
from suffice.pipeline.terms.declaration.row_rules import (
    entry_of,
    is_rule,
    read_rule,
    read_unit,
    read_window_grid,
)
from suffice.pipeline.terms.declaration.source_specs import GivenSpec, is_url, source_path
from suffice.pipeline.terms.declaration.time_zones import window_grid
from suffice.pipeline.terms.statistics.sensitivity import NeighboringRelation
from suffice.profile.settings import settings
from suffice.releasing.granted_total import StatedTotal
from suffice.storage.ledger.account import UNGUARDED
from suffice.storage.ledger.opening import create_ledger, open_ledger
from suffice.storage.ledger.places import overlapping
from suffice.storage.objects.address import read_address
from suffice.storage.operations.witness import make_witness

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from suffice.pipeline.spec.spec import Spec
    from suffice.releasing.granted_total import AnyNumber
    from suffice.storage.ledger.account import Account
    from suffice.storage.operations.audits import FittingAudit

    AnyPath = str | os.PathLike[str]
    Named = Callable[[str], str]


def grant(
    dataset: str,
    epsilon: AnyNumber | None = None,
    *,
    rho: AnyNumber | None = None,
    delta: AnyNumber | None = None,
    reason: str,
    ledger: str | None = None,
    create: bool = False,
    contract: DataContract | Mapping[str, Any] | AnyPath | None = None,
    neighboring: str | None = None,
    unit: str | Mapping[str, Any] | None = None,
    sources: Sequence[str] | None = None,
    stores: Sequence[str] | None = None,
    per_window: str | None = None,
    per_year: AnyNumber | None = None,
    rho_per_year: AnyNumber | None = None,
    max_windows: int | None = None,
    units_disjoint: bool = False,
    checksums: AnyPath | None = None,
    no_checksums: bool = False,
    audited: AnyPath | None = None,
    witness: str | None = None,
    unwitnessed: bool = False,
    failed_readings: int | None = None,
) -> Account:
    """Set the total budget of an account, as ``suffice ledger grant`` does; repeating one changes nothing.

    Parameters
    ----------
    dataset : str
        The protected population: the account.
    epsilon : str, int, float or Fraction, nats
        The account's new total.
    rho : str, int, float or Fraction
        The new total of an account that counts rho; the first grant decides what an account counts.
    delta : str, int, float or Fraction
        Beside `epsilon` or `per_year`: the account counts rho, and gets the largest one that is
        (epsilon, delta)-private, rounded down.
    reason : str
        Why; kept in the ledger.
    ledger : str, optional
        URL of the privacy ledger; otherwise ``SUFFICE_LEDGER``, what the profile pins, or
        ``sqlite:///ledger.db``.
    create : bool
        Make the ledger where there is none.
    contract : path, mapping or DataContract, optional
        What the data are; kept from then on. A mapping of column names to what they hold, as ``{"origin":
        "text", "cancelled": "boolean"}``, is one of rows that are handed over in memory, of this `unit`.
    neighboring, unit : str, optional
        Fixed by the first grant: ``add_or_remove_one`` and ``row``, unless it says otherwise. A column unit
        is ``column:NAME``.
    sources, stores : sequence of str, optional
        Where data may come from, and releases may go; any, or as before. ``data:`` is what is in memory.
    per_window, units_disjoint, per_year, rho_per_year, max_windows
        As the options of ``suffice ledger grant``.
    checksums : path, optional
        A list of SHA-256 that every release must fit; `no_checksums` demands none any more.
    audited : path, optional
        An audit of a spec of this data set that found nothing.
    witness : str, optional
        The URI of the ledger's witness, which every run has to ask; `unwitnessed` says that there is none.
    failed_readings : int, optional
        Attempts of a release that may fail and give back what they were charged.

    Returns
    -------
    Account
        What is granted, spent and left.

    Raises
    ------
    UsageError, GuaranteeError, BudgetExceededError, LedgerMissingError
        Nothing was granted.
    """
    account, texts = carry_out_grant(
        dataset,
        reason=reason,
        stated=StatedTotal(
            epsilon=epsilon, rho=rho, delta=delta, per_year=per_year, rho_per_year=rho_per_year
        ),
        max_windows=max_windows,
        neighboring=neighboring,
        unit=unit,
        sources=sources,
        stores=stores,
        per_window=per_window,
        checksums=checksums,
        audited=audited,
        contract=contract,
        witness=witness,
        failed_readings=failed_readings,
        ledger=settings(ledger=ledger).ledger,
        unwitnessed=unwitnessed,
        no_checksums=no_checksums,
        units_disjoint=units_disjoint,
        create=create,
        named=str,
    )
    for text in texts:
        warnings.warn(text, SufficeWarning, stacklevel=2)
    return account


def carry_out_grant(
    dataset: object,
    *,
    reason: str,
    stated: StatedTotal,
    max_windows: int | None,
    neighboring: str | None,
    unit: str | Mapping[str, Any] | None,
    sources: Sequence[str] | None,
    stores: Sequence[str] | None,
    per_window: str | None,
    checksums: AnyPath | None,
    audited: AnyPath | None,
    contract: DataContract | Mapping[str, Any] | AnyPath | None,
    witness: str | None,
    failed_readings: int | None,
    ledger: str,
    unwitnessed: bool,
    no_checksums: bool,
    units_disjoint: bool,
    create: bool,
    named: Named,
) -> tuple[Account, list[str]]:
    """Do what :func:`grant` does; return the account, and what there is to warn of.

    Parameters
    ----------
    stated : StatedTotal
        The total, in whatever form it is stated.
    named : callable
        Gives what messages call an argument: ``--max-windows`` on the command line.

    The others are those of :func:`grant`.
    """
    if not isinstance(dataset, str):
        message = f"dataset is the name of an account, as 'flights', and no {type(dataset).__name__}"
        raise UsageError(message)
    if witness is not None and unwitnessed:
        message = f"{named('witness')} and {named('unwitnessed')} exclude each other"
        raise UsageError(message)
    protected = _unit(unit, named)
    _require_text(neighboring, "add_or_remove_one", named("neighboring"))
    _require_text(per_window, "visit_date:month", named("per_window"))
    _require_texts(sources, "data:", named("sources"))
    _require_texts(stores, "s3://bucket/releases", named("stores"))
    owned = _contract(contract, protected or "row", named)
    if owned is not None and protected == owned.unit:  # by the name that the contract has for its rule
        protected = owned.unit_name
    asked = None if witness is None else read_address(witness).uri
    listed = _checksums(checksums, none=no_checksums, named=named)
    fitting = None if audited is None else _audit(audited, dataset)
    grid = None if per_window is None else _grid(per_window, named, owned)
    total = stated.loss(grid, max_windows, named)
    with create_ledger(ledger) if create else open_ledger(ledger) as opened:
        if fitting is not None:
            fitting.check_contract(owned or opened.contract(dataset))
        if asked is not None:  # before the grant, which an older copy of the ledger is not to make
            make_witness(opened, asked)
        account = opened.grant(
            dataset,
            epsilon=total.epsilon,
            rho=total.rho,
            neighboring=neighboring,
            unit=protected,
            sources=[source_prefix(prefix, named) for prefix in sources] if sources else None,
            stores=[read_address(uri).uri for uri in stores] if stores else None,
            per_window=grid,
            units_disjoint=units_disjoint,
            checksums=listed,
            witness=asked if asked is not None else "" if unwitnessed else None,
            contract=owned,
            unwitnessed=unwitnessed,
            failed_readings=failed_readings,
            max_windows=max_windows,
            audit=None if fitting is None else fitting.named,
            reason=reason,
        )
        if account.witness is not None:
            make_witness(opened, account.witness)
        texts = list(overlapping(opened.allowed_sources(), dataset))
    if not account.is_guarded and not unwitnessed:
        texts.append(f"{UNGUARDED.format(dataset)}; {named('unwitnessed')} says that it is meant so")
    return account, texts


def _unit(unit: object, named: Named) -> str | None:
    """Return the unit as accounts name it; of a spec's mapping, the column."""
    column = unit.get("column") if isinstance(unit, Mapping) else None
    if isinstance(column, str) and column:
        unit = f"column:{column}"
    if unit is None:
        return None
    if isinstance(unit, str) and (unit == "row" or unit.removeprefix("column:") != unit):
        try:
            return read_unit(unit)
        except ValueError as error:
            message = f"{named('unit')}: {error}"
            raise UsageError(message) from None
    message = f"{named('unit')} is 'row', or a column whose values are the units, as 'column:patient_id'"
    raise UsageError(message)


def _require_text(value: object, example: str, name: str) -> None:
    if value is not None and not isinstance(value, str):
        message = f"{name} is a text, as {example!r}, and no {type(value).__name__}"
        raise UsageError(message)


def _require_texts(value: object, example: str, name: str) -> None:
    """Refuse a bare text, too: it is a sequence of its letters."""
    if value is None:
        return
    if not isinstance(value, list | tuple) or not all(isinstance(each, str) for each in value):
        message = f"{name} is a list of texts, as [{example!r}], and no {type(value).__name__}"
        raise UsageError(message)


def source_prefix(text: str, named: Named) -> str:
    """Return a source prefix as charges state their sources.

    A URL, and what begins with a kind, as ``postgresql:public.flights``, stand for themselves; all else is a
    path: absolute, links resolved.
    """
    if not is_url(text):
        return text if re.match(r"[a-z][a-z0-9]+:", text) else os.path.realpath(text)
    try:
        return source_path(text)
    except ValueError as error:
        message = f"{named('source')}: {error}"
        raise UsageError(message) from None


def _checksums(path: AnyPath | None, *, none: bool, named: Named) -> str | None:
    """Return what a grant states of the list of checksums: its absolute path, empty text for none."""
    if path is None:
        return "" if none else None
    if none:
        message = f"{named('checksums')} and {named('no_checksums')} exclude each other"
        raise UsageError(message)
    from suffice.pipeline.rows.sources.checksums import read_checksums  # grants need no engine

    try:
        read_checksums(os.fspath(path))
    except UsageError as error:
        message = f"{named('checksums')}: {error}"
        raise UsageError(message) from None
    return os.path.realpath(path)


def _audit(path: AnyPath, dataset: str) -> FittingAudit:
    from suffice.storage.operations.audits import fitting_audit
    from suffice.storage.signatures.signing import pinned_keys

    return fitting_audit(Path(path), dataset, pinned_keys())


def _contract(
    stated: DataContract | Mapping[str, Any] | AnyPath | None, unit: str, named: Named
) -> DataContract | None:
    """Read a contract: a file, a document, or columns of rows in memory."""
    if stated is None or isinstance(stated, DataContract):
        return stated
    place = named("contract")
    if isinstance(stated, Mapping):
        rule = unit.removeprefix("column:")
        of_unit: dict[str, Any] = {"unit": unit}
        if is_rule(rule):
            of_unit = {"unit": "column:unit", "derived": {"unit": entry_of(read_rule(rule))}}
        columns = {
            "format_version": 1,
            "columns": dict(stated),
            **of_unit,
            "source": {"kind": GivenSpec.kind},
        }
        is_whole = isinstance(stated.get("columns"), Mapping)
        return parse_contract(json.dumps(dict(stated) if is_whole else columns, default=str), place)
    try:
        return read_contract(os.fspath(stated))
    except UsageError as error:
        message = f"{place}: {error}"
        raise UsageError(message) from None


def _grid(text: str, named: Named, contract: DataContract | None) -> str:
    """Return the grid as accounts name it; a contract may have a name for the rule of the window's column."""
    try:
        grid = read_window_grid(text)
    except ValueError as error:
        message = f"{named('per_window')}: {error}"
        raise UsageError(message) from None
    column, every, time_zone = grid.rsplit(":", 2)
    if contract is None or contract.window is None or column != contract.window.column:
        return grid
    return window_grid(contract.window_column or column, Every(every), time_zone)


@contextmanager
def naming_the_grant(spec: Spec) -> Iterator[None]:
    """Name the very grant that a spec needs, where its account or the ledger is missing."""
    try:
        yield
    except (AccountMissingError, LedgerMissingError) as error:
        loss = spec.privacy.loss
        terms = {**loss.stated, "reason": "WHY"}
        unit, neighboring = spec.privacy.column_unit, str(spec.privacy.neighboring)
        if unit is not None:
            terms["unit"] = spec.unit_name
        if neighboring != NeighboringRelation.ADD_OR_REMOVE_ONE:
            terms["neighboring"] = neighboring
        creates = isinstance(error, LedgerMissingError)
        stated = ", ".join(f"{name}={json.dumps(value)}" for name, value in terms.items())
        options = " ".join(f"--{name} {shlex.quote(value)}" for name, value in terms.items())
        message = (
            f"{str(error).partition(': ')[0]}: its owner makes one with "
            f"suffice.grant({json.dumps(spec.dataset)}, {stated}{', create=True' if creates else ''}) or "
            f"`suffice ledger grant {spec.dataset} {options}{' --create' if creates else ''}`, on the same "
            f"ledger; {loss.text} is enough for this release alone"
        )
        raise type(error)(message) from None
