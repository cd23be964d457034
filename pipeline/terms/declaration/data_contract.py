"""The contract of an account: what its owner says that the data are, apart from any row of them.

A spec is held against it before anything is opened. Loose files are read by it, whatever they turn out to
hold. It names columns and formats; where rows are and who may read them, it does not say.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError

from suffice.errors import UsageError
from suffice.pipeline.terms.declaration import canonical_json
from suffice.pipeline.terms.declaration.column_types import (
    ColumnFamily,
    HiveColumn,
)
from suffice.pipeline.terms.declaration.derived_columns import UniformText
from suffice.pipeline.terms.declaration.derived_values import ParsedText
from suffice.pipeline.terms.declaration.documents import LEFT_OUT, printed
from suffice.pipeline.terms.declaration.fields import read_column
from suffice.pipeline.terms.declaration.files_by_window import FilesByWindow  # noqa: TC001 - as above
from suffice.pipeline.terms.declaration.row_rules import (
    column_or_rule,
    entry_of,
    read_entry,
    stored_column,
    unit_misfit,
    window_misfit,
)
from suffice.pipeline.terms.declaration.spec_text import read_small_file
from suffice.pipeline.terms.declaration.time_zones import known_time_zone
from suffice.pipeline.terms.declaration.wording import shown

if TYPE_CHECKING:
    from suffice.pipeline.terms.declaration.derived_conditions import DerivedColumn
    from suffice.pipeline.terms.declaration.documents import Sha256

MOST_COLUMNS = 10_000
_LARGEST = 1 << 22
"""Bytes of a contract's file."""
_CONFIG = ConfigDict(extra="forbid", defer_build=True)


def _entry(value: object) -> dict[str, Any]:
    of = read_entry(value)
    if not isinstance(of, UniformText | ParsedText):
        message = "it is derived in another way: by parse, or by normalize, trim and case"
        raise ValueError(message)  # noqa: TRY004 - pydantic collects ValueError only
    return entry_of(of)


ColumnName = Annotated[str, AfterValidator(read_column)]
DerivedEntry = Annotated[dict[str, str | bool | dict[str, str]], BeforeValidator(_entry)]
Zone = Annotated[str, AfterValidator(known_time_zone)]


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowRule:
    """By which column, and by whose midnights, rows fall into windows.

    Attributes
    ----------
    column : str
    time_zone : str
    files_by_window : str or None
        How names of files state days, which then divide rows, too.
    """

    __pydantic_config__: ClassVar[ConfigDict] = _CONFIG

    column: ColumnName
    time_zone: Zone
    files_by_window: Annotated[FilesByWindow | None, Field(json_schema_extra={LEFT_OUT: True})] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DelimitedForm:
    """How lines of delimited text are divided, and who names their columns.

    Attributes
    ----------
    delimiter, quote : str
        One sign each; no quote is empty.
    header : tuple of str or None
        The names of the columns; None where each file's first line has them.
    """

    __pydantic_config__: ClassVar[ConfigDict] = _CONFIG

    delimiter: str
    quote: str
    header: tuple[ColumnName, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceForm:
    """What kind of source the rows are in, and how its files and folders are written.

    Attributes
    ----------
    kind : str
        The key of the kind in a spec.
    compression : {"as_stored", "by_suffix", "none"} or None
        ``as_stored``: what a file's own footer names. ``by_suffix``: what the end of a file's name says.
        ``none``: files are read as they are, and one whose name says otherwise has no rows. None: no files.
    dates : {"iso_8601"} or None
        How texts and folders write dates and times; None where neither does.
    folders : dict of str to HiveColumn
        Columns that folders ``KEY=VALUE`` state.
    delimited : DelimitedForm or None
        Of delimited text.
    """

    __pydantic_config__: ClassVar[ConfigDict] = _CONFIG

    kind: Annotated[str, Field(pattern=r"^[a-z]{1,40}$")]
    compression: Literal["as_stored", "by_suffix", "none"] | None = None
    dates: Literal["iso_8601"] | None = None
    folders: dict[ColumnName, HiveColumn] = field(default_factory=dict)
    delimited: DelimitedForm | None = None


@printed("format_version columns derived? unit window source")
@dataclass(frozen=True, slots=True, kw_only=True)
class DataContract:
    """What an account's data are.

    Attributes
    ----------
    format_version : int
        1.
    columns : dict of str to ColumnFamily
        What each column holds; a spec may read these, and no others.
    derived : dict of str to dict, or None
        How the columns of the unit and the window are read from stored ones, as in a spec; of no others.
    unit : str
        ``row``, or ``column:`` and the column whose values are the protected units.
    window : WindowRule or None
        Without one, no spec of the account has windows.
    source : SourceForm
    """

    __pydantic_config__: ClassVar[ConfigDict] = _CONFIG

    format_version: Literal[1] = 1
    columns: Annotated[dict[ColumnName, ColumnFamily], Field(min_length=1, max_length=MOST_COLUMNS)]
    derived: Annotated[
        dict[ColumnName, DerivedEntry] | None,
        Field(json_schema_extra={LEFT_OUT: True}),
    ] = None
    unit: Annotated[str, Field(pattern=r"^(row|column:[^\x00-\x1f]{1,255})$")]
    window: WindowRule | None = None
    source: SourceForm

    @property
    def rules(self) -> dict[str, DerivedColumn]:
        """The derived columns of the unit and the window."""
        return {name: read_entry(entry) for name, entry in (self.derived or {}).items()}

    @property
    def unit_column(self) -> str | None:
        """The stored column that tells the units; None where a row is the unit."""
        column = _unit_column(self)
        return None if column is None else stored_column(column, self.rules)

    @property
    def unit_name(self) -> str:
        """The unit as accounts name it: a derived column by its rule."""
        column = _unit_column(self)
        return self.unit if column is None else f"column:{column_or_rule(column, self.rules)}"

    @property
    def window_column(self) -> str:
        """The column of the windows as accounts name it: a derived one by its rule."""
        return "" if self.window is None else column_or_rule(self.window.column, self.rules)

    def document(self) -> dict[str, Any]:
        """Return the contract as JSON has it."""
        document: dict[str, Any] = _ADAPTER.dump_python(self, mode="json")
        for folder in document["source"]["folders"].values():
            if folder["format"] is None:  # what is not stated is no part of the contract's identity
                del folder["format"]
        if self.window is not None and self.window.files_by_window is None:
            del document["window"]["files_by_window"]
        if self.derived is None:
            del document["derived"]
        return document

    @property
    def canonical(self) -> str:
        """The contract in canonical JSON."""
        return canonical_json.encode(self.document()).decode()

    @property
    def sha256(self) -> Sha256:
        """The SHA-256 of the canonical JSON, in hex: what runs and ledgers call the contract by."""
        return hashlib.sha256(self.canonical.encode()).hexdigest()


def _unit_column(contract: DataContract) -> str | None:
    """Return the column of the units, derived or not; None where a row is the unit."""
    return None if contract.unit == "row" else contract.unit.removeprefix("column:")


def _misfit(contract: DataContract) -> str | None:
    """Say why the derived columns are not those of the unit and the window; None where they are."""
    rules, unit, window = contract.rules, _unit_column(contract), contract.window
    used = {unit, None if window is None else window.column}
    for name in rules:
        if name in contract.columns:
            return f"derived.{shown(name)}: columns names it, too"
        if name not in used:
            return f"derived.{shown(name)}: it is neither the unit's column nor the window's"
    if unit in rules:
        stored = contract.columns[stored_column(unit, rules)]
        misfit = unit_misfit(unit, rules)
        if misfit is not None or stored is not ColumnFamily.TEXT:
            return f"unit: {misfit or f'a derived one is read from text, and by columns that is {stored}'}"
    if window is not None and window.column in rules:
        misfit = window_misfit(window.column, rules, window.time_zone)
        return None if misfit is None else f"window: {misfit}"
    return None


_ADAPTER = TypeAdapter(DataContract)


def parse_contract(text: str | bytes, place: str) -> DataContract:
    """Read a contract.

    Parameters
    ----------
    text : str or bytes
        JSON.
    place : str
        What messages name.

    Raises
    ------
    UsageError
        Naming the field and the rule.
    """
    try:
        contract = _ADAPTER.validate_python(_document(text))
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        where = ".".join(shown(str(part)) for part in first["loc"])
        message = f"{place}: {where or 'the document'}: {first['msg'].removeprefix('Value error, ')}"
        raise UsageError(message) from None
    except (ValueError, RecursionError):
        message = f"{place}: it is no JSON object: `suffice inspect SPEC --out FILE` writes a contract"
        raise UsageError(message) from None
    for name, folder in contract.source.folders.items():
        family = contract.columns.get(name)
        if family is not None and str(family) != str(folder.type):
            message = f"{place}: source.folders.{shown(name)}: it is {folder.type}, by columns {family}"
            raise UsageError(message)
    for column, what in _stated(contract):
        if column not in contract.columns:
            message = f"{place}: {what} is the column {shown(column)!r}, which columns does not name"
            raise UsageError(message)
    misfit = _misfit(contract)
    if misfit is not None:
        message = f"{place}: {misfit}"
        raise UsageError(message)
    return contract


def read_contract(path: str) -> DataContract:
    """Read a contract from a file.

    Raises
    ------
    UsageError
        Where it cannot be read, or as :func:`parse_contract`.
    """
    try:
        content = read_small_file(path, _LARGEST)
    except (OSError, ValueError):
        message = f"{path}: the contract cannot be read: it is not there, or no regular file"
        raise UsageError(message) from None
    if content is None:
        message = f"{path}: a contract has at most {_LARGEST} bytes"
        raise UsageError(message)
    return parse_contract(content, path)


def _document(text: str | bytes) -> object:
    document = json.loads(text, object_pairs_hook=_once)
    if not isinstance(document, dict):
        message = "no object"
        raise ValueError(message)  # noqa: TRY004 - as for what is no JSON
    return document


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse a key that occurs twice: which of the two counts, nobody could tell."""
    entries = dict(pairs)
    if len(entries) < len(pairs):
        message = "a key occurs twice"
        raise ValueError(message)
    return entries


def _stated(contract: DataContract) -> list[tuple[str, str]]:
    """Return the columns that have a part of their own, and which."""
    rules = contract.rules
    uses = (
        []
        if contract.window is None
        else [(stored_column(contract.window.column, rules), "the window's column")]
    )
    if contract.unit_column is not None:
        uses.append((contract.unit_column, "the unit"))
    return uses + [(name, "a folder's value") for name in contract.source.folders]
