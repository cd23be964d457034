"""What a ledger says of accounts and of their charges; nothing here changes one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from contextlib import AbstractContextManager
    from fractions import Fraction

    from suffice.pipeline.terms.declaration.data_contract import DataContract
    from suffice.storage.ledger.account import Account, NamedAudit, WindowBalance
    from suffice.storage.ledger.charge import Charge, ChargeSummary, HeldCharges, KeyCount


class AccountsRead(ABC):
    """Accounts and charges, as :class:`suffice.storage.ledger.ledger.Ledger` has them at one moment."""

    @abstractmethod
    def account(self, dataset: str) -> Account:
        """Return one account.

        Raises
        ------
        AccountMissingError
            Where nothing was ever granted for `dataset`.
        """

    @abstractmethod
    def accounts(self, dataset: str | None = None) -> tuple[Account, ...]:
        """Return all accounts in the order of their names, or the one of `dataset`."""

    @abstractmethod
    def checksums(self, dataset: str) -> str | None:
        """Return the list of checksums that an account's input must fit, if it demands one.

        Raises
        ------
        AccountMissingError
        """

    @abstractmethod
    def contract(self, dataset: str) -> DataContract | None:
        """Return what the owner says that the data are; None also where there is no account."""

    @abstractmethod
    def audit(self, dataset: str) -> NamedAudit | None:
        """Return the audit that the account's grant names; None also where there is no account."""

    @abstractmethod
    def witness(self, dataset: str) -> str | None:
        """Return the URI of the witness that runs have to ask; None also where there is no account."""

    @abstractmethod
    def remaining(self, dataset: str, window: str) -> Fraction:
        """Return what a release of a window, or of ``all``, could still take, in the account's measure.

        Raises
        ------
        AccountMissingError
        """

    @abstractmethod
    def windows(self, dataset: str) -> Iterator[WindowBalance]:
        """Give the windows that were ever charged, in order; none unless the grant is per window."""

    @abstractmethod
    def charges(self, dataset: str, *, last: int | None = None) -> Iterator[ChargeSummary]:
        """Give an account's charges in the order of their reservation, or the `last` of them.

        They are read while they are asked for, a few at a time: an account may have 100,000.
        """

    @abstractmethod
    def charge(self, charge_id: str) -> Charge | None:
        """Return a charge by its id, if the ledger has it."""

    @abstractmethod
    def returned(self, dataset: str) -> Mapping[str, Fraction]:
        """Return by window, or ``all``, what was returned of charges, in the account's measure."""

    @abstractmethod
    def held(self, dataset: str) -> Iterator[HeldCharges]:
        """Give what charges hold of an account; of many, those of one window, plan and loss together.

        As `charges`, they are read while they are asked for.
        """

    @abstractmethod
    def failed_readings(self, dataset: str) -> tuple[KeyCount, ...]:
        """Return the keys of an account with attempts that did not come to their draw, and how many.

        Attempts that gave their epsilon back, and take-overs of charges whose run was gone before its draw.
        """

    @abstractmethod
    def returned_draws(self, dataset: str) -> tuple[KeyCount, ...]:
        """Return the keys of an account with draws that were returned, and how many."""

    @abstractmethod
    def is_returnable(self, charge: Charge) -> bool:
        """Tell whether the numbers of a key let ``return_draw`` return another draw."""

    @abstractmethod
    def zone_data(self, dataset: str) -> str | None:
        """Return the version of time zone data that the last of an account's charges states that needed some.

        Of many charges the newest hundred are looked at.
        """

    @abstractmethod
    def count_charges(self, dataset: str) -> int:
        """Return how many charges ``charges`` gives."""

    @abstractmethod
    def unsettled(self) -> tuple[ChargeSummary, ...]:
        """Return the charges that recovery has to look at, by account, in the order of their reservation.

        Those that have not ended, and those that were abandoned after a draw: files may be left of them.
        """

    @abstractmethod
    def at_one_moment(self) -> AbstractContextManager[None]:
        """Let all that this thread reads until the context ends be of one moment."""

    @abstractmethod
    def find(self, dataset: str, name: str, window: str, *, amendment: int = 0) -> Charge | None:
        """Return the newest attempt of a key, if there is any; of a window's first release, unless said.

        Raises
        ------
        NameTakenError
            Where `name` belongs to another dataset.
        """

    @abstractmethod
    def editions(self, dataset: str, name: str) -> dict[str, list[ChargeSummary]]:
        """Return of each window of a name the newest charge of its first release and of each amendment.

        Each in the order of amendments.
        """
