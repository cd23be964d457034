"""Every error that `suffice` raises, and the exit status that each one means.

::

    SufficeError                          1
    ├── UsageError (ValueError)           2   a command, an argument, a call
    │   ├── DocumentError                 2   a rule of a document is broken; carries the place
    │   │   ├── SpecError                 2   the document is a spec
    │   │   ├── ProfileError              2   the document is a deployment profile
    │   │   ├── LawError                  2   the document declares the law of a published table
    │   │   └── AdoptedTableError         2   a published table does not fit its declared law
    │   ├── AdoptedReleaseError           2   not of releases that were adopted; says what to do
    │   ├── PinnedError                   2   a parameter outside of what the operator pinned
    │   ├── PriorError                    2   a prior that cannot be read or used
    │   ├── UnknownNameError (KeyError)   2   a statistic, a parameter or a column that is not there
    │   ├── SpecChangedError              2   the key was charged for a different spec
    │   ├── DataChangedError              2   the key was released from other rows in this session
    │   ├── NameTakenError                2   the release name belongs to another dataset
    │   └── AmendmentError                2   there is nothing to amend, or a later amendment was charged
    ├── AccountError                      3   the account refuses
    │   ├── AccountMissingError           3   no grant for this dataset
    │   ├── BudgetExceededError           3   less remains than is asked for
    │   ├── GuaranteeError                3   other relation, unit, window grid, source or store
    │   └── InputNotVerifiedError         3   the input is not what the owner listed
    ├── SchemaError                       4   column names or type families do not fit
    ├── StorageError (OSError)            5   store or ledger
    │   ├── LedgerError                   5
    │   │   ├── LedgerMissingError        5   no ledger there; says how to make one
    │   │   ├── ChargeInProgressError     5   another run holds the charge
    │   │   ├── ChargeSpentError          5   abandoned after noise may have existed
    │   │   ├── DrawsExhaustedError       5   so many draws were returned that this one may not
    │   │   ├── ReadingsExhaustedError    5   so many attempts returned their charge that this one may not
    │   │   ├── ChargeLostError           5   this run no longer holds its charge
    │   │   ├── CommitUnknownError        5   the commit may have landed: counted as spent
    │   │   └── LedgerCorruptError        5   the chain of entries does not verify
    │   ├── SpoolError                    5   drawn files cannot be kept until they are published
    │   │   └── SpoolElsewhereError       5   they are in the spool of another host
    │   └── StoreError                    5
    │       ├── WrongStoreError           5   the store is another ledger's, was moved, or lost its identity
    │       ├── ObjectExistsError         5   a create-only write found its key taken
    │       ├── ReleaseMissingError       5   no such release
    │       ├── ReleaseCorruptError       5   a release whose bytes do not verify
    │       ├── ReleaseWithdrawnError     5   a release that was withdrawn; says why and when
    │       ├── PublicationMissingError   5   no such publication
    │       ├── PublicationCorruptError   5   a publication whose bytes do not verify
    │       └── SignatureError            5   a release or publication that no pinned key signed
    ├── StageFailedError                  1   a stage of a charged release failed; fixed text
    ├── ExpectationNotMetError            8   a noisy count is below what the spec expects
    ├── ClusterError                      1   the cluster is refused or cannot be reached
    ├── MissingExtraError (ImportError)   1   an optional dependency is not installed
    └── ReleaseInterruptedError           130

A message states the rule, the place and the way out. It never holds a value read from the data. Its
length is bounded, whatever a caller wrote: a message quotes names, paths and values of any length, and what
is printed, logged and stored by orchestrators must not grow with them. What is worth saying and refuses
nothing is a `SufficeWarning`, under the same rules.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from fractions import Fraction


LONGEST_MESSAGE = 500
"""Characters of a message."""
_LONGEST_WORD = 60
"""Characters that are left of a word, or of a quoted value, in a message that was too long."""
_LONG_PART = re.compile(
    rf"'[^']{{{_LONGEST_WORD},}}'|\"[^\"]{{{_LONGEST_WORD},}}\"|\S{{{_LONGEST_WORD + 1},}}"
)


def shortened(text: str, limit: int = _LONGEST_WORD) -> str:
    """Return at most `limit` characters of a text, its middle left out: both ends say most."""
    if len(text) <= limit:
        return text
    tail = (limit - 5) // 2
    return f"{text[: limit - 5 - tail]} ... {text[len(text) - tail :]}"


def bounded_message(text: str) -> str:
    """Return a message of at most `LONGEST_MESSAGE` characters.

    A message that is short enough stays as it is. In any other, long words and quoted values lose their
    middle first, so that the place at the beginning and the way out at the end are kept.
    """
    if len(text) > LONGEST_MESSAGE:
        text = _LONG_PART.sub(lambda part: shortened(part[0]), text)
    return shortened(text, LONGEST_MESSAGE)


class SufficeError(Exception):
    """Base of every error this package raises on purpose; its message is bounded here, for all of them."""

    exit_status: ClassVar[int] = 1

    def __init__(self, message: str = "") -> None:
        super().__init__(bounded_message(message))


class SufficeWarning(UserWarning):
    """What an operator should know, though nothing is refused for it; never depends on a data value."""


class ConflictWarning(SufficeWarning):
    """A prior and what was released disagree: intervals rest on both, and one of the two is wrong.

    It depends on released values, which are public.
    """


class UsageError(SufficeError, ValueError):
    """A command, an argument or a call that cannot be carried out as written."""

    exit_status = 2


class DocumentError(UsageError):
    """A rule of a document is broken.

    Attributes
    ----------
    location : str
        Where: file, line where known, and the path of keys, as ``release.yaml:7: privacy.epsilon``.
    rule : str
        The rule, and the value as written in the document.
    hint : str
        A way out; may be empty.
    """

    def __init__(self, location: str, rule: str, hint: str = "") -> None:
        self.location = location
        self.rule = rule
        self.hint = hint
        super().__init__(f"{location}: {rule}" + (f" ({hint})" if hint else ""))


class SpecError(DocumentError):
    """A rule of the spec is broken."""


class ProfileError(DocumentError):
    """A rule of a deployment profile is broken, or the profile may not be trusted."""


class LawError(DocumentError):
    """A rule of the declared law of a published table is broken."""


class AdoptedTableError(DocumentError):
    """A published table does not fit its declared law; the table is public, and the text may quote it."""


class AdoptedReleaseError(UsageError):
    """What was asked is of releases of one's own data, and this one was adopted; the text says what to do."""

    def __init__(self, named: str) -> None:
        super().__init__(
            f"{named} was adopted: its law is declared, and no ledger, plan or store belongs to it. Ask it "
            "with suffice show, table, posterior and verify, or in Python with suffice.open_adopted; what "
            "publishes, catalogues, compares, pools, calibrates or models releases does not take it"
        )


class PinnedError(UsageError):
    """A parameter lies outside of what the deployment profile allows; nothing was opened."""


class PriorError(UsageError):
    """A prior that cannot be read, or that this posterior cannot use."""


class UnknownNameError(UsageError, KeyError):
    """Nothing of this name is there: of a statistic in a release, a parameter in a posterior, a column."""

    def __str__(self) -> str:  # a KeyError would quote the sentence
        return str(self.args[0])


class SpecChangedError(UsageError):
    """The same (dataset, name, window) was already charged for a different canonical plan.

    Attributes
    ----------
    differing_keys : tuple of str
        The keys of the canonical plans that differ.
    """

    def __init__(self, message: str, differing_keys: tuple[str, ...] = ()) -> None:
        self.differing_keys = differing_keys
        super().__init__(message)


class DataChangedError(UsageError):
    """The same (dataset, name, window) was released in this session, from other rows than are given now."""


class NameTakenError(UsageError):
    """A release name belongs to one dataset for good."""


class AmendmentError(UsageError):
    """An amendment that is not due, would amend nothing, or comes after a later one."""


class AccountError(SufficeError):
    """The account refuses; nothing was read and nothing charged."""

    exit_status = 3


class AccountMissingError(AccountError, LookupError):
    """No budget was ever granted for this dataset."""


class BudgetExceededError(AccountError):
    """Less remains than the release asks for.

    Attributes
    ----------
    requested, remaining : Fraction
        In the account's measure: epsilon in nats, or rho.
    """

    def __init__(self, message: str, *, requested: Fraction, remaining: Fraction) -> None:
        self.requested = requested
        self.remaining = remaining
        super().__init__(message)


class GuaranteeError(AccountError):
    """The account's relation, unit, window grid, allowed sources or stores are others."""


class InputNotVerifiedError(AccountError):
    """The account demands the owner's checksums of its input files, and these are others.

    The text is fixed: neither a file, nor which of several, nor any hash stands in it.
    """


class SchemaError(SufficeError, TypeError):
    """A column is missing, or its type family cannot serve the statistic."""

    exit_status = 4


class StorageError(SufficeError, OSError):
    """The store or the ledger."""

    exit_status = 5


class LedgerError(StorageError):
    """The ledger cannot be used as asked."""


class LedgerMissingError(LedgerError):
    """There is no ledger at this address."""


class ChargeInProgressError(LedgerError):
    """Another live run holds this charge.

    Attributes
    ----------
    seconds : float
        Until its lease passes, if it is not renewed.
    """

    def __init__(self, message: str, *, seconds: float = 0.0) -> None:
        self.seconds = seconds
        super().__init__(message)


class ChargeSpentError(LedgerError):
    """The charge was abandoned after noise may have existed: it stays spent."""


class ReadingsExhaustedError(LedgerError):
    """So many attempts of a key returned their charge that another one does not: it is to be spent."""

    def __init__(self, label: str, allowed: int) -> None:
        super().__init__(
            f"{allowed} attempts of {label} ended before their draw, which is what the owner allows: the "
            "charge of this one is spent; once the cause is mended, `suffice ledger grant "
            "--failed-readings N` allows more"
        )


class DrawsExhaustedError(LedgerError):
    """So many draws of a key were returned that another one is not: it is to be spent."""

    def __init__(self, label: str, most: int) -> None:
        super().__init__(f"{most} draws of {label} were returned, which is the most: this one is spent")


class ChargeLostError(LedgerError):
    """The run no longer holds its charge: its lease passed and another run took over."""


class CommitUnknownError(LedgerError):
    """A commit may or may not have landed: what it would have spent counts as spent."""


class LedgerCorruptError(LedgerError):
    """The ledger's chain of entries, or its accounts, do not verify."""


class SpoolError(StorageError):
    """The spool, which keeps drawn files until they are published, cannot be used."""


class SpoolElsewhereError(SpoolError):
    """The drawn files of a charge are in another spool than this run's; the message names its host."""


class StoreError(StorageError):
    """The store cannot be used as asked.

    Attributes
    ----------
    reason : str
        Why, in a few fixed words, as ``no space left (ENOSPC)``; empty where the message says it all.
    may_pass : bool
        Whether the same request may succeed later.
    """

    def __init__(self, message: str, *, reason: str = "", may_pass: bool = False) -> None:
        self.reason = reason
        self.may_pass = may_pass
        super().__init__(message)


class WrongStoreError(StoreError):
    """The store belongs to another ledger, was moved or stripped, or the charge is another store's."""


class ObjectExistsError(StoreError):
    """A create-only write found that its key exists."""


class ReleaseMissingError(StoreError, LookupError):
    """No release stands at this place."""


class ReleaseCorruptError(StoreError):
    """A release's bytes are not those its manifest states, or its manifest is malformed."""


class ReleaseWithdrawnError(StoreError):
    """A release was withdrawn by those who publish it; the message says why and when."""


class PublicationMissingError(StoreError, LookupError):
    """No publication stands at this place."""


class PublicationCorruptError(StoreError):
    """A publication's bytes are not those its manifest states, or its manifest is malformed."""


class SignatureError(StoreError):
    """A release or a publication is not signed, or by none of the public keys that the reader pinned."""


class StageFailedError(SufficeError, RuntimeError):
    """A stage of a release failed after its charge was reserved.

    The text is fixed per stage, so that nothing about the data can pass through it.

    Attributes
    ----------
    stage : str
        ``preflight``, ``reading``, ``drawing``, ``staging`` or ``publishing``.
    """

    def __init__(self, stage: str, message: str) -> None:
        self.stage = stage
        super().__init__(message)


class ExpectationNotMetError(SufficeError, RuntimeError):
    """A window holds fewer rows or units than its spec expects, by a noisy count that is published.

    Its text and its exit status follow from the published count alone.
    """

    exit_status = 8


class ClusterError(SufficeError, RuntimeError):
    """The cluster is refused, or cannot be reached."""


class MissingExtraError(SufficeError, ImportError):
    """An optional dependency is not installed; the message holds the pip line."""

    def __init__(self, feature: str, extra: str) -> None:
        self.extra = extra
        super().__init__(f"{feature} needs an optional part: pip install 'suffice[{extra}]'")


class ReleaseInterruptedError(SufficeError):
    """The run was interrupted; the message states what became of the charge."""

    exit_status = 130
