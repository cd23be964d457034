"""What every kind of source does: pin a snapshot, tell its schema, divide it, read a part, check the pin.

Whatever is found at the source is exact data: sizes, times, row counts, ids of snapshots. It stands in the
private part of a pin and in splits, which tell nothing of themselves when they are printed.

Exact data stand in memory alone: what holds them prints nothing, and is neither copied nor pickled. What has
to reach a worker travels as bytes that `pack` makes and nothing else does.
"""

from __future__ import annotations

import io
import pickle
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, TypeVar, dataclass_transform

from suffice.pipeline.spec.plan import source_columns
from suffice.pipeline.spec.windows_and_amendments import ALL

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import pyarrow as pa

    from suffice.pipeline.spec.spec import Spec
    from suffice.pipeline.terms.declaration.data_contract import DataContract

Instance = TypeVar("Instance")

_TRAVELLING: set[type] = set()


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
def exact_data(*, travels: bool) -> Callable[[type[Instance]], type[Instance]]:
    """Make a class of exact data: a frozen dataclass to its users, and to `dataclasses` none.

    It is compared and hashed like one. Its repr is its name, unless it has one of its own; `pickle`, `copy`,
    `dataclasses.asdict` and `vars` refuse it.

    Parameters
    ----------
    travels : bool
        Whether `pack` takes it.
    """

    def make(plain: type[Instance]) -> type[Instance]:
        made: Any = dataclass(frozen=True, slots=True, kw_only=True, repr=False)(plain)
        if "__repr__" not in plain.__dict__:
            made.__repr__ = name_alone
        made.__reduce_ex__ = refuse
        del made.__dataclass_fields__  # `asdict` and `astuple` go by it
        if travels:
            _TRAVELLING.add(made)
        return made  # type: ignore[no-any-return]

    return make


class Kept:
    """What stays in the process that made it, inside of exact data that travel: what arrives is empty.

    All are equal: they add nothing to what the exact data say.

    Parameters
    ----------
    value : object
        Anything; None where there is nothing, or where this has travelled.
    """

    __slots__ = ("value",)

    def __init__(self, value: Any = None) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        """Tell whether the other is one."""
        return isinstance(other, Kept)

    def __hash__(self) -> int:
        """Return the same of all."""
        return hash(Kept)

    def __repr__(self) -> str:
        """Show the class alone."""
        return name_alone(self)

    def __reduce__(self) -> tuple[type[Kept], tuple[()]]:
        """Leave the value behind."""
        return Kept, ()


def name_alone(self: object) -> str:
    """Return what is printed of exact data: the name of their class."""
    return f"{type(self).__name__}(...)"


def refuse(self: object, _protocol: object) -> NoReturn:
    """Refuse to be pickled or copied."""
    message = f"a {type(self).__name__} holds exact data and is neither pickled nor copied"
    raise TypeError(message)


def pack(value: object, buffers: Callable[[pickle.PickleBuffer], object] | None = None) -> bytes:
    """Return bytes from which `unpack` makes the value again, on a worker.

    Parameters
    ----------
    value : object
        Exact data that travel, or holds such.
    buffers : callable, optional
        Takes the memory of arrays, which then is not in the bytes.
    """
    packed = io.BytesIO()
    _Packer(packed, protocol=5, buffer_callback=buffers).dump(value)
    return packed.getvalue()


def unpack(packed: bytes | memoryview, buffers: Iterable[Any] = ()) -> Any:
    """Return the value that `pack` took."""
    return pickle.loads(packed, buffers=buffers)  # noqa: S301 - it comes from our own processes


class _Packer(pickle.Pickler):
    def reducer_override(self, value: Any) -> Any:
        """Take travelling exact data apart; all else goes as usual, or refuses."""
        if type(value) not in _TRAVELLING:
            return NotImplemented
        return _rebuilt, (type(value), *(getattr(value, name) for name in value.__slots__))


def _rebuilt(kind: Any, *parts: object) -> Any:
    return kind(**dict(zip(kind.__slots__, parts, strict=True)))


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
    absent : tuple of str
        Columns of the source that the part lacks: of type null here, and null in all its rows.
    """

    part: str
    columns: pa.Schema = field(repr=False)
    absent: tuple[str, ...] = ()


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
    return source_columns(spec)


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
