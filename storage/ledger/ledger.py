"""The ledger's contract: who may spend how much of a population's privacy, and who did.

Every change of an account is one durable transaction, decided by one conditional UPDATE, before any
noise is drawn. Implementations are opened by URL; their database libraries load only then.
"""

from __future__ import annotations

from abc import abstractmethod
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import TYPE_CHECKING, Self

from suffice.storage.ledger.accounts_read import AccountsRead

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from fractions import Fraction
    from types import TracebackType

    from suffice.pipeline.terms.declaration.data_contract import DataContract
    from suffice.storage.ledger.account import Account, KnownStore, NamedAudit
    from suffice.storage.ledger.chain import Entry, Examination, Head
    from suffice.storage.ledger.charge import (
        Charge,
        ChargeRequest,
        ChargeSummary,
        LostCharge,
        Reconciled,
        SpoolName,
    )

LEASE = timedelta(minutes=2)
"""How long a run may go without :meth:`Ledger.renew` before another may take its charge over."""


def utc_now() -> datetime:
    """Return the present moment in UTC."""
    return datetime.now(UTC)


class Ledger(AccountsRead):
    """Accounts, charges and the chain of entries behind them.

    A charge moves ``reserved -> drawing -> staged -> published``, or to ``abandoned``. Each move is a
    compare-and-set on its state, on its epoch and on the holder of its lease, which is the `Ledger`
    object that reserved it or took it over: all other callers get `ChargeLostError`.
    """

    ledger_id: str
    """32 hex digits, drawn when the ledger was made."""
    most_kept: int
    """Bytes of a staged charge's data files that it keeps; 0 where it is on the machine of its runs."""

    @abstractmethod
    def now(self) -> datetime:
        """Return the ledger's time, in UTC: what leases are held against."""

    @abstractmethod
    def grant(
        self,
        dataset: str,
        *,
        epsilon: Fraction | None = None,
        rho: Fraction | None = None,
        neighboring: str | None = None,
        unit: str | None = None,
        sources: Sequence[str] | None = None,
        stores: Sequence[str] | None = None,
        per_window: str | None = None,
        units_disjoint: bool = False,
        checksums: str | None = None,
        witness: str | None = None,
        contract: DataContract | None = None,
        unwitnessed: bool = False,
        failed_readings: int | None = None,
        max_windows: int | None = None,
        audit: NamedAudit | None = None,
        reason: str,
    ) -> Account:
        """Set the total of an account; the first grant makes it.

        Parameters
        ----------
        dataset : str
        epsilon, rho : Fraction, > 0
            The new total, one of the two, so that repeating a grant changes nothing and leaves no entry. The
            first grant fixes which of them the account counts. One of rho takes releases in epsilon too, at
            what they cost in rho.
        neighboring, unit, per_window, units_disjoint
            See :class:`suffice.storage.ledger.account.AccountTerms`; fixed by the first grant, where they
            default to ``add_or_remove_one``, ``row``, none and false. Left out later, they stay.
        sources : sequence of str, optional
            Prefixes of allowed sources; replaces the list. An empty one allows any source. A grant per
            window names them, and keeps them.
        stores : sequence of str, optional
            Prefixes of the stores that releases may go to, as their URIs; replaces the list. An empty one
            allows any store.
        checksums : str, optional
            The absolute path of a list of the input files' SHA-256, which every release must fit; left out
            it stays, and empty text demands none.
        witness : str, optional
            The URI of the witness that every run asks; left out it stays, and empty text demands none.
        contract : DataContract, optional
            What the data are; left out it stays. It can gain columns, and takes nothing back.
        unwitnessed : bool
            That the owner knows that nothing guards the account against an older copy of its ledger.
        failed_readings : int, optional
            How many attempts of a key may end before their draw and give their epsilon back; left out it
            stays, and is 10 at first.
        max_windows : int, optional
            In how many windows of twelve months a unit has rows, as the owner assumes, for what is said of a
            unit's loss; nothing enforces it. Left out it stays; 0 assumes nothing.
        audit : NamedAudit, optional
            An audit that found nothing, of a spec of this account; left out it stays.
        reason : str
            Why, for the record.

        Raises
        ------
        GuaranteeError
            Where the first grant fixed other terms, or a contract would take something back.
        BudgetExceededError
            Where the total is below what is spent or reserved.
        UsageError
            Where an argument breaks its rule, the contract is not of the account's unit and windows, or
            nothing guards an account with a contract and `unwitnessed` is false.
        """

    @abstractmethod
    def check(self, request: ChargeRequest) -> None:
        """Refuse what the account would refuse, and charge nothing.

        Measure, relation, unit, window grid and source, then what remains; a reservation that the
        key already has is not counted against itself.

        Raises
        ------
        AccountMissingError, GuaranteeError, BudgetExceededError, AmendmentError
        """

    @abstractmethod
    def reserve(self, request: ChargeRequest, *, new_attempt: bool = False) -> Charge:
        """Take what a request costs from its account, or go on with what the key already has.

        Returns
        -------
        Charge
            In state ``reserved``: this ledger object holds it now. In state ``staged`` or
            ``published``: another run came first, nothing was charged, and :func:`decide_rerun` says
            what to do.

        Raises
        ------
        AccountError, AmendmentError
            As :meth:`check`.
        SpecChangedError, WrongStoreError, ChargeInProgressError, ChargeSpentError, NameTakenError
            As :func:`decide_rerun` and :meth:`find`.
        """

    @abstractmethod
    def rehearse(self, request: ChargeRequest) -> Charge:
        """Do what :meth:`reserve` does, and undo it in the same transaction: nothing of it stays.

        So the login, the account, its terms and what remains are tried as a release would try them.

        Returns
        -------
        Charge
            As it would be.

        Raises
        ------
        SufficeError
            As :meth:`reserve`.
        """

    @abstractmethod
    def renew(self, charge: Charge) -> None:
        """Extend the lease (the heartbeat of a run); leaves no entry.

        Raises
        ------
        ChargeLostError
            Where this run no longer holds the charge.
        """

    @abstractmethod
    def mark(self, charge: Charge) -> Charge:
        """Note that a reserved charge's marker is about to be put; extend the lease too; leave no entry.

        Durable when it returns: a marker that stands although its charge is not marked was put by a run of
        another copy of the ledger.

        Raises
        ------
        ChargeLostError
            Where this run no longer holds the charge, or it is not ``reserved``.
        """

    @abstractmethod
    def let_go(self, charge: Charge) -> None:
        """End the lease of a charge, for the run that held it has ended; leaves no entry.

        A charge that this run does not hold, or that has ended, is left as it is.
        """

    @abstractmethod
    def take_over(self, charge: Charge) -> Charge:
        """Claim a charge whose lease has passed, whose holder is dead, or that is staged; the epoch moves on.

        From then on whoever held it gets `ChargeLostError`. Act on the returned charge: it may have
        moved on since `charge` was read.

        Raises
        ------
        ChargeInProgressError
            Where the lease still holds.
        ChargeLostError
            Where another run took it over first, or it has ended.
        """

    @abstractmethod
    def enter_drawing(
        self, charge: Charge, *, spool: SpoolName | None = None, zone_data: str | None = None
    ) -> Charge:
        """Move from ``reserved`` to ``drawing``: from here on noise may meet totals.

        Its epsilon stays reserved, until the charge is staged or ends.

        Durable when it returns. The charge returned names this entry (`drawing_sequence`,
        `drawing_hash`).

        Parameters
        ----------
        charge : Charge
        spool : SpoolName, optional
            Where the drawn files are kept until they are published. Without one, they are to be in the
            store before the charge is staged.
        zone_data : str, optional
            The version of the time zone data that the release rests on, for the chain.

        Raises
        ------
        ChargeLostError
        """

    @abstractmethod
    def stage(
        self, charge: Charge, manifest: bytes, *, files: Mapping[str, bytes] = MappingProxyType({})
    ) -> Charge:
        """Move from ``drawing`` to ``staged``, keeping the exact bytes that will be published.

        Its epsilon is spent: nothing drawn may leave the host before this returns.
        Their hash stays for good; the bytes themselves go when the charge is published or abandoned.

        Parameters
        ----------
        charge : Charge
        manifest : bytes
        files : mapping, optional
            The data files by name, for a ledger that keeps them: at most `most_kept` bytes in all. They are
            paid for, and never returned.

        Raises
        ------
        ChargeLostError
        """

    @abstractmethod
    def staged_file(self, charge: Charge, name: str) -> bytes | None:
        """Return a data file that the ledger keeps of a staged charge, if it does.

        Whoever publishes it holds it against the manifest.
        """

    @abstractmethod
    def staged_names(self, charge: Charge) -> frozenset[str]:
        """Return the names of the data files that the ledger keeps of a staged charge."""

    @abstractmethod
    def publish(self, charge: Charge) -> Charge:
        """Move from ``staged`` to ``published``, once the manifest stands in the store.

        A charge that is published already is returned as it is: its bytes were fixed by ``staged``.

        Raises
        ------
        ChargeLostError
        """

    @abstractmethod
    def abandon(self, charge: Charge, *, reason: str) -> Charge:
        """End a charge without a release; its epsilon returns if and only if it never drew.

        Parameters
        ----------
        charge : Charge
            Held by this ledger object. If it ever drew, a tombstone must stand in the store first.
        reason : str
            A fixed text; goes into the chain.

        Raises
        ------
        ChargeLostError
        ReadingsExhaustedError
            Where its epsilon would return, and as many attempts of its key returned theirs as the owner
            allows: it stays reserved, to be spent.
        """

    @abstractmethod
    def return_draw(self, charge: Charge, *, reason: str) -> Charge:
        """End a charge that its run left in its draw, and give its epsilon back.

        Parameters
        ----------
        charge : Charge
            In state ``drawing``, and taken over since by this ledger object. Its tombstone stands in the
            store, alone, and it is proved that nobody saw what was drawn: the ledger cannot know that.
        reason : str
            A fixed text; goes into the chain.

        Raises
        ------
        ChargeLostError
        LedgerError
            Where nobody took it over since it drew.
        DrawsExhaustedError
            Where `MOST_RETURNED_DRAWS` draws of its key were returned before.
        ReadingsExhaustedError
            Where its key has as many failed attempts as the owner allows: then it is to be spent.
        """

    @abstractmethod
    def reconcile(self, lost: Sequence[LostCharge], *, beyond: int, reason: str) -> tuple[Charge, ...]:
        """Charge what stores show and this copy of the ledger lacks: all of it, or nothing.

        Parameters
        ----------
        lost : sequence of LostCharge
            In the order of their reservation. Each is spent, and ends published or abandoned.
        beyond : int
            The highest number of an entry that any store or witness names: entries are skipped until
            the chain is longer, so that no later charge has the number of a lost one.
        reason : str
            Why, for the record.

        Returns
        -------
        tuple of Charge

        Raises
        ------
        AccountMissingError, BudgetExceededError
            Where an account is granted less here than was spent of it: its owner grants again first.
        NameTakenError, WrongStoreError, ChargeInProgressError
            Where this copy has the key for something else, or a charge of it that has not ended.
        """

    @abstractmethod
    def reconciled(self) -> tuple[Reconciled, ...]:
        """Return what stores name of charges that this ledger lacked and was charged for again."""

    @abstractmethod
    def stores(self) -> tuple[KnownStore, ...]:
        """Return every store that was ever charged for, in the order of their first charges."""

    @abstractmethod
    def adopt_store(self, store_id: str, *, uri: str) -> None:
        """Record where a store stands now; a retired one is in use again.

        Raises
        ------
        UsageError
            Where the ledger never charged for it.
        """

    @abstractmethod
    def retire_store(self, store_id: str, *, reason: str) -> None:
        """Give a store up: it is asked no longer, and charged for no more.

        Raises
        ------
        UsageError
            Where the ledger never charged for it, or there is no reason.
        """

    @abstractmethod
    def allowed_stores(self, dataset: str) -> tuple[str, ...]:
        """Return the prefixes of the stores that an account allows; empty also where there is no account."""

    @abstractmethod
    def allowed_sources(self) -> dict[str, tuple[str, ...]]:
        """Return the prefixes of the sources that each account allows."""

    @abstractmethod
    def unfinished(self, store_id: str) -> Sequence[ChargeSummary]:
        """Return the charges of a store that are reserved or drawing, in the order of their reservation."""

    @abstractmethod
    def stores_of_charges(self) -> Sequence[tuple[int, str, str]]:
        """Return of every charge the sequence of its reservation, its release id and its store's id."""

    @abstractmethod
    def head(self) -> Head:
        """Return the end of the chain."""

    @abstractmethod
    def plan(self, plan_hash: str) -> str:
        """Return the canonical plan with a hash; charges and manifests name plans so.

        Raises
        ------
        LedgerCorruptError
            Where the ledger has no such plan.
        """

    @abstractmethod
    def entry(self, sequence: int) -> Entry | None:
        """Return one entry of the chain, if there is such an entry."""

    @abstractmethod
    def entry_hash(self, sequence: int) -> str | None:
        """Return the hash of one entry of the chain, if there is such an entry."""

    @abstractmethod
    def entries(self, *, after: int = 0) -> Iterator[Entry]:
        """Give the chain as it is at one moment, in order, or what follows one entry of it."""

    @abstractmethod
    def examine(self, *, full: bool = False) -> Examination:
        """Find everything in which the chain and the current state disagree.

        The chain is hashed anew, then all accounts, windows, charges, plans and staged manifests are
        computed from its entries and compared with their rows; where the ledger is a file, the file itself
        and the rules in it are checked too.

        Parameters
        ----------
        full : bool
            Recompute everything. Otherwise entries and charges that ended before the last checkpoint are
            trusted to be what they were when the checkpoint was made.
        """

    def verify(self) -> tuple[str, ...]:
        """Recompute everything, and name all that is wrong; empty where nothing is."""
        return self.examine(full=True).problems

    @abstractmethod
    def add_checkpoint(self, *, full: bool = False) -> Examination:
        """Examine the ledger and, where nothing is wrong, seal what was found in an entry of the chain.

        Returns
        -------
        Examination
            With the checkpoint's entry as its head, unless there are problems.
        """

    @abstractmethod
    def close(self) -> None:
        """Close the connections to the database."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
