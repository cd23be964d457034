"""What a release is about, in words for the public: titles, labels, units; no term of what is charged.

Words can be mended after publication, so nothing that is computed, charged or stored under a name follows
from them. They come from other people: what cannot be seen, or turns text around, is refused when they are
read, and whoever shows them escapes them as any other text.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, Field, PlainValidator, ValidationError

from suffice.errors import UsageError
from suffice.pipeline.terms.declaration import canonical_json
from suffice.pipeline.terms.declaration.fields import SpecModel
from suffice.pipeline.terms.declaration.scalars import read_integer, read_text
from suffice.pipeline.terms.declaration.spec_text import read_mapping
from suffice.pipeline.terms.declaration.wording import is_safe

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from suffice.pipeline.terms.declaration.domains import Domain
    from suffice.pipeline.terms.statistics.sensitivity import Constants

LARGEST_ABOUT = 256 * 2**10
"""Bytes of a release's words in canonical JSON; every reader reads them."""
LONGEST_LABEL, LONGEST_UNIT, LONGEST_LINE, LONGEST_DESCRIPTION = 100, 40, 300, 2000
"""In characters."""
MOST_DIGITS = 12
_BRACKETS = re.compile(r"\[(.+)\]")
_JOINERS = "\u200c\u200d"
_POWERS = {"mean": "", "scale": "", "variance": "\N{SUPERSCRIPT TWO}"}
"""Parameters in the unit of a column, or in its square."""


def read_line(value: object, most: int) -> str:
    """Return a text as one line, white space as single blanks.

    Raises
    ------
    ValueError
        Where it is empty, too long, or not all of it can be seen.
    """
    text = " ".join(read_text(value).split())
    visible = all(character.isprintable() or character in _JOINERS for character in text)
    if not text or len(text) > most or not visible or not is_safe(text):
        message = f"needs 1 to {most} characters that can be seen"
        raise ValueError(message)
    return text


def _digits(value: int) -> int:
    if not 0 <= value <= MOST_DIGITS:
        message = f"digits after the point lie in 0..{MOST_DIGITS}, not {value}"
        raise ValueError(message)
    return value


def _said(stated: dict[str, Any]) -> dict[str, Any]:
    """Leave out mappings in which nothing is said."""
    entries = {name: _said(entry) if isinstance(entry, dict) else entry for name, entry in stated.items()}
    return {name: entry for name, entry in entries.items() if entry != {}}


def _saying(entries: dict[str, SpecModel]) -> dict[str, SpecModel]:
    """Leave out entries in which nothing is said: what says the same is the same."""
    return {name: entry for name, entry in entries.items() if _said(entry.model_dump(exclude_none=True))}


_SAYING = AfterValidator(_saying)
Label = Annotated[str, PlainValidator(partial(read_line, most=LONGEST_LABEL))]
Unit = Annotated[str, PlainValidator(partial(read_line, most=LONGEST_UNIT))]
Line = Annotated[str, PlainValidator(partial(read_line, most=LONGEST_LINE))]
Description = Annotated[str, PlainValidator(partial(read_line, most=LONGEST_DESCRIPTION))]
Digits = Annotated[int, PlainValidator(read_integer), AfterValidator(_digits)]


class Words(SpecModel):
    """What a number is called, its unit, how many digits after the point are shown, and what it means."""

    label: Label | None = None
    unit: Unit | None = None
    digits: Digits | None = None
    description: Description | None = None


class StatisticWords(Words):
    """Words for a statistic, for its categories or columns, and for its parameters."""

    values: dict[str, Label] = Field(default_factory=dict)
    parameters: Annotated[dict[str, Words], _SAYING] = Field(default_factory=dict)


class KeyWords(SpecModel):
    """Words for a group column, and for its keys."""

    label: Label | None = None
    unit: Unit | None = None
    description: Description | None = None
    values: dict[str, Label] = Field(default_factory=dict)


class About(SpecModel):
    """What a release is about. Empty where its owner said nothing: then names stand for themselves.

    Attributes
    ----------
    title, description, licence, contact, source : str or None
        Of the release; the last three in words, or an address that begins with ``https://``.
    statistics : dict of str to StatisticWords
    keys : dict of str to KeyWords
        Of group columns.
    """

    title: Label | None = None
    description: Description | None = None
    licence: Line | None = None
    contact: Line | None = None
    source: Line | None = None
    statistics: Annotated[dict[str, StatisticWords], _SAYING] = Field(default_factory=dict)
    keys: Annotated[dict[str, KeyWords], _SAYING] = Field(default_factory=dict)

    def __bool__(self) -> bool:
        """Tell whether anything is said."""
        return bool(self.document())

    def document(self) -> dict[str, Any]:
        """Return the words as JSON states them: what is not said is left out."""
        return _said(self.model_dump(exclude_none=True))

    def words(self, statistic: str) -> StatisticWords:
        """Return what is said of a statistic."""
        return self.statistics.get(statistic) or StatisticWords()

    def label(self, statistic: str) -> str:
        """Return what a statistic is called."""
        return self.words(statistic).label or statistic

    def column(self, name: str) -> str:
        """Return what a group column is called, with its unit."""
        words = self.keys.get(name) or KeyWords()
        return (words.label or name) + (f" ({words.unit})" if words.unit else "")

    def key(self, column: str, key: object) -> str:
        """Return what a key of a group column is called."""
        words = self.keys.get(column)
        return words.values.get(str(key), str(key)) if words else str(key)

    def in_names(self, where: Mapping[str, object], columns: Collection[str]) -> dict[str, object]:
        """Return keys by the names of their group columns, of what a caller states by names or by labels.

        A name is never another one's label (see `misfit`). What is neither stays, for whoever refuses it.

        Raises
        ------
        UsageError
            Where several have the label, or a column is stated twice.
        """
        words = {column: self.keys.get(column) or KeyWords() for column in columns}
        labels = {column: {self.column(column), of.label} for column, of in words.items()}
        named: dict[str, object] = {}
        for said, key in where.items():
            column = _meant(said, labels, "groups")
            if column in named:
                message = f"where names {column} twice: by its name and by its label"
                raise UsageError(message)
            values = words[column].values if column in words else {}
            called = {name: {label} for name, label in values.items()}
            named[column] = _meant(key, called, f"keys of {column}")
        return named

    def value(self, statistic: str, value: str) -> str:
        """Return what a category of a statistic, or a column of several, is called."""
        return self.words(statistic).values.get(value, value)

    def quantity(self, statistic: str, name: str) -> str:
        """Return what a released quantity is called: ``count[UA]`` as ``count[United]``."""
        return _BRACKETS.sub(lambda of: f"[{self.value(statistic, of[1])}]", name)

    def parameter(self, statistic: str, name: str) -> str:
        """Return what a parameter is called among those of its statistic, with its unit."""
        words, unit = self.words(statistic).parameters.get(name), self.unit(statistic, name)
        return ((words and words.label) or name) + (f" ({unit})" if unit else "")

    def unit(self, statistic: str, parameter: str) -> str:
        """Return the unit of a parameter; empty where none is known."""
        words = self.words(statistic)
        of_parameter = words.parameters.get(parameter)
        if of_parameter is not None and of_parameter.unit:
            return of_parameter.unit
        return f"{words.unit}{_POWERS[parameter]}" if words.unit and parameter in _POWERS else ""

    def digits(self, statistic: str, parameter: str) -> int | None:
        """Return how many digits after the point a parameter is shown with; None where nothing is said."""
        words = self.words(statistic)
        of_parameter = words.parameters.get(parameter)
        if of_parameter is not None and of_parameter.digits is not None:
            return of_parameter.digits
        return None if "variance" in parameter else words.digits

    def of(self, statistic: str, parameter: str) -> str:
        """Return what a parameter of a statistic is called, as ``Arrival delay, mean``."""
        words = self.words(statistic)
        of_parameter = words.parameters.get(parameter)
        if of_parameter is not None and of_parameter.label:
            return of_parameter.label
        return f"{words.label or statistic}, {parameter.replace('_', ' ')}"

    def axis(self, statistic: str, parameter: str) -> str:
        """Return the same with its unit, as beside an axis: ``Arrival delay, mean (minutes)``."""
        unit = self.unit(statistic, parameter)
        return self.of(statistic, parameter) + (f" ({unit})" if unit else "")

    def groups(self, groups: Mapping[str, Sequence[Any]]) -> dict[str, list[Any]]:
        """Return the keys of cells in words, by columns in words; distinct columns stay distinct."""
        names = self._distinct(groups)
        return {
            names[column]: [self.key(column, key) for key in keys] if self._has_values(column) else list(keys)
            for column, keys in groups.items()
        }

    def rows(
        self, statistic: str, rows: Iterable[Mapping[str, Any]], columns: Iterable[str]
    ) -> list[dict[str, Any]]:
        """Return rows of a table for people: group columns, keys, categories and parameters in words.

        Parameters
        ----------
        statistic : str
        rows : iterable of mapping
            As tables of a statistic have them.
        columns : iterable of str
            The group columns among theirs.
        """
        names = self._distinct(columns)
        values = self.words(statistic).values

        def shown(column: str, value: Any) -> Any:
            if column in names:
                return self.key(column, value) if self._has_values(column) else value
            if column == "parameter":
                return self.parameter(statistic, value)
            return values.get(value, value) if column in {"category", "component"} else value

        return [
            {names.get(column, column): shown(column, value) for column, value in row.items()} for row in rows
        ]

    def _has_values(self, column: str) -> bool:
        return column in self.keys and bool(self.keys[column].values)

    def _distinct(self, columns: Iterable[str]) -> dict[str, str]:
        """Return columns in words by name; as names where two would be called alike, or as a table's own."""
        named = {column: self.column(column) for column in columns}
        called = [name.lower() for name in named.values()]
        is_plain = len(set(called)) == len(called) and not _OF_TABLES & set(called)
        return named if is_plain else {column: column for column in named}


def _meant(said: Any, labels: Mapping[str, Collection[str | None]], of: str) -> Any:
    """Return the name whose label is said; what is said, where it is a name or no label."""
    if not isinstance(said, str) or said in labels:
        return said
    meant = [name for name, called in labels.items() if said in called]
    if not meant:
        return said
    if len(meant) > 1:
        message = f"{said!r} is what several {of} are called: name one, as {' or '.join(map(repr, meant))}"
        raise UsageError(message)
    return meant[0]


_OF_TABLES = frozenset(
    {"parameter", "category", "component", "quantity", "draw", "value", "estimate", "noise_sd", "mean"}
    | {"sd", "lower", "upper", "conflict"}
)
"""Other columns of tables."""
NOTHING = About()
"""Of a release without words."""


def read_about(content: object) -> About:
    """Read words from the JSON document that :meth:`About.document` gave; it may be hostile.

    Raises
    ------
    ValueError
        Where it is anything else.
    """
    if not isinstance(content, dict):
        message = "words are a mapping"
        raise ValueError(message)  # noqa: TRY004 - one error type for whoever reads
    try:
        about = About.model_validate(read_mapping(content).content)
    except ValidationError:
        message = "no words of a release"
        raise ValueError(message) from None
    if about.document() != content:
        message = "not the one form of these words"
        raise ValueError(message)
    return about


def is_address(text: str) -> bool:
    """Tell whether words are an address that a page may lead to."""
    return (
        text.startswith("https://") and text.isascii() and not any(sign in text for sign in " \"'<>\\^`{|}")
    )


def is_small(about: About) -> bool:
    """Tell whether words are few enough for every reader."""
    return len(canonical_json.encode(about.document())) <= LARGEST_ABOUT // 2


def misfit(
    about: About,
    statistics: Collection[str],
    terms_of: Callable[[str], tuple[str, Constants]],
    columns: Mapping[str, Collection[Domain]],
) -> tuple[tuple[str, ...], str] | None:
    """Return the place of words for something that a release does not have, and the rule; None where all fit.

    Parameters
    ----------
    about : About
    statistics : collection of str
        The names of all.
    terms_of : callable
        Returns family and public constants of a statistic.
    columns : mapping of str to collection of Domain
        Those that any statistic is grouped by, and their keys.
    """
    for name, words in about.statistics.items():
        if name not in statistics:
            return ("statistics", name), f"there is no such statistic: there are {', '.join(statistics)}"
        if not words.values and not words.parameters:
            continue
        family, constants = terms_of(name)
        for part, known in (("values", _values(constants)), ("parameters", _parameters(family, constants))):
            other = next((each for each in getattr(words, part) if each not in known), None)
            if other is not None:
                return ("statistics", name, part, other), f"the statistic has none of these {part}"
    for column, key_words in about.keys.items():
        of_group = _misfit_of_group(column, key_words, columns)
        if of_group is not None:
            place, rule = of_group
            return ("keys", column, *place), rule
    return None


def _misfit_of_group(
    column: str, words: KeyWords, columns: Mapping[str, Collection[Domain]]
) -> tuple[tuple[str, ...], str] | None:
    """Return the same of a group column; a label that is another's name would be taken for that one."""
    if column not in columns:
        return (), f"there is no such group: there are {', '.join(columns) or 'none'}"
    if words.label in columns and words.label != column:
        return ("label",), "this is the name of another group"
    known = {str(key) for domain in columns[column] for key in domain} if words.values else set()
    for key, label in words.values.items():
        if key not in known:
            return ("values", key), "the group has no such key"
        if label in known and label != key:
            return ("values", key), "this is the name of another key"
    return None


def _values(constants: Constants) -> set[str]:
    counted = {
        each for table in constants.tables for variable in table.variables for each in variable.categories
    }
    return {*constants.categories, *counted, *(column.name for column in constants.columns)}


def _parameters(family: str, constants: Constants) -> set[str]:
    from suffice.pipeline.families import FAMILIES  # numpy is slow to import

    return {space.name for space in FAMILIES[family].parameter_spaces(constants)}
