"""Rows that show themselves: as text, as HTML in a notebook, and as a frame of pandas or Polars.

Names and keys come from releases of others. In text and in HTML they are escaped: what cannot be seen is
written as its code, and nothing in them is markup.
"""

from __future__ import annotations

import importlib
import importlib.util
import math
from typing import TYPE_CHECKING, Any

from suffice.errors import MissingExtraError, UsageError
from suffice.pipeline.terms.declaration.wording import escaped, not_a_name, text_table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

LIBRARIES = ("pandas", "polars")
"""Libraries of frames, the one that is taken first where both are installed first."""
MOST_SHOWN = 20
"""Rows of a table in a notebook or a terminal; frames have all."""
_DIGITS = 5
_LEAST_PLACE = -6
"""The last decimal that is written out; beyond it numbers have exponents."""

_OF_FRAMES = (
    *("head", "tail", "describe", "sort_values", "sort", "loc", "iloc", "query", "filter", "groupby"),
    *("to_csv", "to_parquet", "to_dict", "to_pandas", "to_polars", "plot", "shape", "values", "set_index"),
)
"""What people ask of rows that is a frame's to answer."""
STYLE = (
    "<style>"
    ".suffice{font:13px/1.5 system-ui,-apple-system,'Segoe UI',sans-serif;max-width:60em;"
    "padding:.4em 0 .6em;text-align:left}"
    ".suffice p{margin:.25em 0}"
    ".suffice .heading{font-size:15px;font-weight:650;margin:0}"
    ".suffice .quiet{opacity:.75;font-size:12px}"
    ".suffice .warning{border-left:4px solid #d9822b;background:rgba(217,130,43,.14);padding:.5em .8em;"
    "margin:.7em 0;border-radius:0 4px 4px 0}"
    ".suffice .scroll{overflow-x:auto;margin:.7em 0}"
    ".suffice table{border-collapse:collapse;margin:0;border:0;font-size:13px;"
    "font-variant-numeric:tabular-nums}"
    ".suffice table th{text-align:left;font-weight:600;font-size:12px;opacity:.8;padding:.2em 1.4em .3em 0;"
    "border:0;border-bottom:1px solid rgba(128,128,128,.6);background:none;white-space:nowrap}"
    ".suffice table td{text-align:left;padding:.24em 1.4em .24em 0;border:0;"
    "border-bottom:1px solid rgba(128,128,128,.18);background:none;white-space:nowrap}"
    ".suffice table .number{text-align:right}"
    ".suffice svg{display:block}"
    ".suffice code{font-size:12px;background:rgba(128,128,128,.14);padding:.1em .4em;border-radius:3px}"
    "</style>"
)
"""Colours of the page that it stands in, light or dark; classes begin with our name."""


class Table(list[dict[str, Any]]):
    """Rows with the same columns, each a mapping of names to values.

    A list as any other, which also shows itself and turns into a frame.

    Parameters
    ----------
    rows : iterable of dict
    title : str
        What the rows are, for a reader.
    notes : sequence of str
        What has to be said beside the numbers, a sentence each; shown above them.
    in_words : callable, optional
        Returns rows as people read them, with labels for names; frames have the names.
    digits : callable, optional
        Returns how many digits after the point a parameter is shown with, or None.
    foot : sequence of str
        What else there is to say, a sentence each; shown below them.
    """

    def __init__(
        self,
        rows: Iterable[dict[str, Any]],
        *,
        title: str = "",
        notes: Sequence[str] = (),
        in_words: Callable[[Sequence[dict[str, Any]]], list[dict[str, Any]]] = list,
        digits: Callable[[str], int | None] = lambda _: None,
        foot: Sequence[str] = (),
    ) -> None:
        super().__init__(rows)
        self.title, self.notes, self.foot = title, tuple(notes), tuple(foot)
        self.in_words, self.digits = in_words, digits

    if not TYPE_CHECKING:  # a type checker knows what there is

        def __getattr__(self, name: str) -> Any:
            raise not_a_name(type(self), name, dict.fromkeys(_OF_FRAMES, "to_frame().$()"))

        def __getitem__(self, index: Any) -> Any:
            if isinstance(index, str):
                message = f"a table is a list of rows: ask to_frame()[{index!r}]"
                raise TypeError(message)
            return super().__getitem__(index)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self[0]) if self else ()

    def to_frame(self, library: str | None = None) -> Any:
        """Return the rows as a data frame.

        Parameters
        ----------
        library : {"pandas", "polars"}, optional
            Of which library; where left out, of pandas if that is installed, else of Polars.

        Raises
        ------
        MissingExtraError
            Where it is not installed.
        UsageError
            Where there is no such library.
        """
        return frame_of({name: [row[name] for row in self] for name in self.columns}, library)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the rows as a stream of Arrow, for whatever takes one: Polars, DuckDB, pandas, pyarrow."""
        import pyarrow as pa

        return pa.Table.from_pylist(list(self)).__arrow_c_stream__(requested_schema)

    def _shown(self) -> tuple[list[str], list[list[str]]]:
        """Return the names of columns, and the texts of the first rows."""
        first = self[:MOST_SHOWN]
        named = self.in_words(first)
        texts = [
            texts_of(row, self.digits(of.get("parameter", ""))) for row, of in zip(named, first, strict=True)
        ]
        return list(named[0]) if named else [], texts

    def __str__(self) -> str:
        columns, shown = self._shown()
        cells = [[escaped(text) for text in row] for row in shown]
        body = text_table([escaped(name) for name in columns], cells) if self else ""
        left = [f"... and {len(self) - len(shown)} more rows"] if len(self) > len(shown) else []
        head = [escaped(line) for line in (self.title, *self.notes) if line]
        foot = [escaped(line) for line in self.foot]
        return "\n".join([*head, *([""] if head else []), body, *left, *([""] if foot else []), *foot])

    def _repr_html_(self) -> str:
        columns, shown = self._shown()
        cells = [[markup(text) for text in row] for row in shown]
        return card(
            self.title,
            warnings=self.notes,
            body=html_table(columns, cells, numbers_of(self.in_words(self[:MOST_SHOWN]))),
            foot=[
                *([f"The first {len(shown)} of {len(self)} rows."] if len(self) > len(shown) else []),
                *self.foot,
            ],
        )


def frame_of(columns: Mapping[str, Sequence[Any]], library: str | None = None) -> Any:
    """Return columns as a frame of pandas, or of Polars; see :meth:`Table.to_frame`."""
    if library not in {None, *LIBRARIES}:
        message = f"frames are of {' or '.join(LIBRARIES)}, not of {library!r}"
        raise UsageError(message)
    for name in [library] if library else LIBRARIES:
        if importlib.util.find_spec(name) is not None:
            return importlib.import_module(name).DataFrame(dict(columns))
    wanted = library or " or ".join(LIBRARIES)
    raise MissingExtraError(f"to_frame() with {wanted}", wanted.partition(" ")[0])


def text_of(value: object) -> str:
    """Return a value as text; nothing where there is none."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.{_DIGITS}g}" if isinstance(value, float) else "" if value is None else str(value)


def texts_of(row: Mapping[str, Any], digits: int | None = None) -> list[str]:
    """Return a row's values as text; numbers beside a standard deviation to as many digits as that tells.

    Parameters
    ----------
    row : mapping
    digits : int, optional
        After the point, in place of these; of the standard deviation itself never.
    """
    sd = row.get("sd", row.get("noise_sd"))
    return [
        number_beside(value, sd, None if name in _SPREADS else digits)
        if isinstance(value, float) and name in _IN_THE_UNIT
        else f"{value:,}"
        if type(value) is int and name in _ENDS
        else text_of(value)
        for name, value in row.items()
    ]


def numbers_of(rows: Sequence[Mapping[str, Any]]) -> list[bool]:
    """Tell of every column whether it holds numbers alone."""
    return [
        all(isinstance(row[name], int | float | None) and not isinstance(row[name], bool) for row in rows)
        for name in (rows[0] if rows else ())
    ]


_SPREADS = frozenset({"sd", "noise_sd"})
_IN_THE_UNIT = _SPREADS | {"mean", "median", "lower", "upper", "estimate", "value"}
"""Columns of numbers that a standard deviation is of; a probability beside them is none."""
_ENDS = frozenset({"lower", "upper"})
"""Ends of intervals; those of counts are whole numbers."""


def number_beside(value: float, sd: object, digits: int | None = None) -> str:
    """Return a number to as many digits as show two of its standard deviation, or so many after the point."""
    if digits is not None and math.isfinite(value):
        return f"{value:,.{digits}f}"
    if not isinstance(sd, float) or not math.isfinite(sd) or sd <= 0.0:
        return text_of(value)
    last = math.floor(math.log10(sd)) - 1
    if last >= _LEAST_PLACE:
        return f"{value:,.{max(0, -last)}f}"
    digits = math.floor(math.log10(abs(value))) - last + 1 if value else 1
    return f"{value:.{max(1, digits)}g}"


def markup(text: str) -> str:
    """Return a text as HTML that shows it as it is."""
    import html  # its table of entities is slow to import, and a terminal shows none

    return html.escape(escaped(text))


def html_table(names: Sequence[str], cells: Sequence[Sequence[str]], are_numbers: Sequence[bool]) -> str:
    """Return a table; `cells` are HTML already, `names` are not."""
    kinds = [' class="number"' if is_number else "" for is_number in are_numbers]
    heads = "".join(
        f'<th scope="col"{kind}>{markup(name)}</th>' for name, kind in zip(names, kinds, strict=True)
    )
    rows = "".join(
        "<tr>" + "".join(f"<td{kind}>{cell}</td>" for cell, kind in zip(row, kinds, strict=True)) + "</tr>"
        for row in cells
    )
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"


def card(
    title: str, *, lead: str = "", warnings: Iterable[str] = (), body: str = "", foot: Iterable[str] = ()
) -> str:
    """Return what an object shows in a notebook.

    Parameters
    ----------
    title, lead : str
        What it is.
    warnings : iterable of str
        What must not be overlooked; above the numbers.
    body : str
        HTML already.
    foot : iterable of str
        What else there is to say, a sentence each.
    """
    named = markup(title or "table")
    return "".join(
        [
            STYLE,
            '<div class="suffice">',
            f'<p class="heading">{markup(title)}</p>' if title else "",
            f'<p class="quiet">{markup(lead)}</p>' if lead else "",
            *(f'<p class="warning" role="note">{markup(line)}</p>' for line in warnings),
            f'<div class="scroll" tabindex="0" role="region" aria-label="{named}">{body}</div>',
            *(f'<p class="quiet">{markup(line)}</p>' for line in foot),
            "</div>",
        ]
    )
