"""What every kind of source does: pin a snapshot, tell its schema, divide it, read a part, check the pin.

Whatever is found at the source is exact data: sizes, times, row counts, ids of snapshots. It stands in the
private part of a pin and in splits, which tell nothing of themselves when they are printed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from suffice.pipeline.rows.sources.exact_data import exact_data
from suffice.pipeline.spec.plan import measures
from suffice.pipeline.spec.windows_and_amendments import ALL
from suffice.pipeline.terms.declaration.derived_columns import physical
from suffice.pipeline.terms.statistics.measure import columns_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import pyarrow as pa

    from suffice.pipeline.spec.spec import Spec
    from suffice.pipeline.terms.declaration.data_contract import DataContract

SPLIT_VALUES = 2_000_000
"""Values (rows times columns) that are worth a split: some 25 ms of one processor. Tasks join splits."""
MOST_SPLITS = 1 << 14


def _nothing_is_held() -> None:
    """Close a pin that holds nothing at its source."""


@exact_data(travels=False)
class Pin:
    """A source as it was when a release began.

    It stays in the process that made it; what workers need of it is in its splits.

    Parameters
    ----------
    kind : str
        The key of the source's kind.
    public : mapping of str to str
        What may be printed and logged: it follows from the spec alone.
    private : object
        What was found at the source, as the kind keeps it.
    close : callable
        Lets go of what the pin holds at the source, and does nothing a second time. The splits of a pin are
        read while it is open. A kind closes a pin that is dropped, too.
    count_rows : callable, optional
        Counts the rows of the snapshot, or raises `StageFailedError`. A kind has it whose splits only
        estimate how many rows they have; it is called where their number is public.
    """

    kind: str
    public: Mapping[str, str]
    private: Any
    close: Callable[[], None] = _nothing_is_held
    count_rows: Callable[[], int] | None = None

    def __repr__(self) -> str:
        """Show what is public."""
        return f"Pin(kind={self.kind!r}, public={self.public!r})"


class Piece(Protocol):
    """A part of a source that is read at a time: `exact_data` that travel, without credentials."""

    @property
    def n_rows(self) -> int:
        """Rows in it, or an estimate, as in a split."""


@exact_data(travels=True)
class Split:
    """Rows of a source that are read together; it travels to workers.

    Parameters
    ----------
    kind : str
        The key of the source's kind.
    pieces : tuple of Piece
        What is read, one after the other.
    n_rows : int
        Rows in them. Where the pin has `count_rows`, it is an estimate that divides work and nothing else.
    """

    kind: str
    pieces: tuple[Any, ...]
    n_rows: int

    @classmethod
    def of(cls, kind: str, pieces: Sequence[Piece]) -> Split:
        """Return the split of these pieces, of one source."""
        return cls(kind=kind, pieces=tuple(pieces), n_rows=sum(piece.n_rows for piece in pieces))


@dataclass(frozen=True, slots=True, kw_only=True)
class PartSchema:
    """The columns of one part of a source: a file, a table.

    Parameters
    ----------
    part : str
        What messages call it, as a file's path.
    columns : pyarrow.Schema
        Names and types.
    """

    part: str
    columns: pa.Schema = field(repr=False)


class Source(Protocol):
    """A kind of source; a module with these names is one.

    No error quotes a value, a driver's text or a credential, and none has a cause or context that does.
    Credentials come from the environment of the process that reads.
    """

    @property
    def KIND(self) -> str:  # noqa: N802 - a constant of most kinds
        """The key of the kind: the same that chooses its declaration."""

    def pin(self, spec: Spec, window: str = ALL, contract: DataContract | None = None) -> Pin:
        """Take a consistent snapshot of what the spec names; read no rows.

        Parameters
        ----------
        spec : Spec
            The spec.
        window : str
            The window that will be read, or ``all``. Parts of the source that public names place outside
            of it may be left out; rows are chosen later, one by one.
        contract : DataContract, optional
            What the data are, where their account says so; the spec fits it. Files are then read by a total
            rule, and nothing that they hold, lack or are typed as is refused. A kind with a catalogue gives
            its columns in `schema`, which are checked.

        Raises
        ------
        UsageError
            Where nothing is there, or it cannot be read.
        """

    def schema(self, pin: Pin) -> tuple[PartSchema, ...]:
        """Return the columns of every part of the snapshot."""

    def splits(self, pin: Pin) -> tuple[Split, ...]:
        """Divide the snapshot into splits of about `split_rows`: every row in one.

        None is without rows where their numbers are known.
        """

    def read(self, split: Split, columns: Sequence[str], block_rows: int) -> Iterator[pa.RecordBatch]:
        """Read these columns of a split in blocks of at most `block_rows` rows, in the order of the columns.

        The order of the rows is not promised.

        Raises
        ------
        StageFailedError
            Where the rows cannot be read, or are not those that were pinned; the text is fixed.
        """

    def verify(self, pin: Pin, checksums: str) -> None:
        """Check what was pinned against an owner's list of SHA-256; reads all of it.

        Every part of the snapshot is in the list with its hash, and every entry of the list that the spec
        reaches is in the snapshot.

        Parameters
        ----------
        pin : Pin
            The snapshot.
        checksums : str
            The path of the list.

        Raises
        ------
        InputNotVerifiedError
            Where it is not so, the list cannot be read, or the kind has no files; the text is fixed.
        """

    def check(self, pin: Pin) -> None:
        """Check that the source still is what was pinned; what was read, `read` has checked by itself.

        Raises
        ------
        StageFailedError
            Where it is not; the text is fixed.
        """


def spec_columns(spec: Spec) -> tuple[str, ...]:
    """Return the columns of the source that a spec reads, each once: none that is derived."""
    window = (spec.window.column,) if spec.window else ()
    unit = (spec.privacy.column_unit.column,) if spec.privacy.column_unit else ()
    statistics = (column for measure in measures(spec).values() for column in columns_of(measure))
    return physical((*window, *spec.groups, *unit, *statistics), spec.derived)


def split_rows(n_rows: int, n_columns: int) -> int:
    """Return how many rows are enough for a split, of a source of so many rows and columns."""
    return max(1, SPLIT_VALUES // n_columns, n_rows // MOST_SPLITS)


def join(splits: Sequence[Split], most: int) -> list[Split]:
    """Join consecutive splits to at most `most`, of about as many rows each."""
    if len(splits) <= most:
        return list(splits)
    n_rows = max(1, sum(split.n_rows for split in splits))
    parts: dict[int, list[Split]] = {}
    before = 0
    for split in splits:
        parts.setdefault(min(before * most // n_rows, most - 1), []).append(split)
        before += split.n_rows
    return [
        Split.of(part[0].kind, [piece for split in part for piece in split.pieces]) for part in parts.values()
    ]
