"""Exact numbers sought in all that an error shows: its frames, what they reach, its chain, its text.

Frames of tests are left out, and so is what only modules and classes reach. Nothing is asked of the garbage
collector but what an object refers to.
"""

from __future__ import annotations

import decimal
import fractions
import gc
import logging
import re
import sys
import threading
import traceback
import types
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

import suffice
from suffice import flows, pipeline, storage
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.families.shared.beside_sums import totals_of
from suffice.pipeline.rows import sources
from suffice.pipeline.rows.chunk.exact_sums import to_python
from suffice.pipeline.rows.chunk.partition import chunk_job
from suffice.pipeline.rows.mechanism.cone.sampler import ConeSampler
from suffice.pipeline.rows.mechanism.noise import Sampler
from suffice.pipeline.rows.mechanism.sampling import Selector
from suffice.pipeline.rows.reduce.tree import exact_sums, open_cluster_for_sums
from suffice.pipeline.spec.plan import compile_plan

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest

    from suffice.pipeline.spec.spec import Spec

LEAST = 1 << 17
"""Smaller numbers are not sought: ports, processes and places in code have such."""
_LEAST_IN_BYTES = 1 << 40
_MOST_OBJECTS = 2_000_000
_TESTS = str(Path(__file__).parents[1])
_OURS = tuple(str(Path(room.__file__ or "").parent) for room in (suffice, pipeline, storage, flows))
_NUMBER = re.compile(r"(?<![0-9a-zA-Z_])\d{6,40}(?![0-9a-zA-Z_])")


class Sought:
    """The numbers that nothing may show; the search does not look in here."""

    def __init__(self) -> None:
        self.numbers: dict[int, str] = {}

    def add(self, what: str, numbers: Any) -> None:
        """Seek some more numbers, those that are large enough to be recognised."""
        for number in np.asarray(numbers, dtype=object).ravel().tolist():
            if abs(int(number)) >= LEAST:
                self.numbers[abs(int(number))] = what

    def add_noise(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Seek noise that is drawn from now on, its sums with what is sought now, and scores of samples."""
        known = list(self.numbers)
        original, overwrite = Sampler.draw_into, ConeSampler.overwrite

        def seek(out: Any) -> None:
            drawn = [int(number) for number in out.ravel()]
            self.add("noise", drawn)
            for number in drawn:
                if abs(number) >= LEAST:
                    self.add("a noisy value", [each + number for each in known])

        def noted(sampler: Sampler, out: Any) -> None:
            original(sampler, out)
            seek(out)

        def noted_on_a_cone(sampler: ConeSampler, out: Any, *, is_long: bool) -> None:
            overwrite(sampler, out, is_long=is_long)
            seek(out)

        select = Selector.draw_into

        def noted_scores(selector: Selector, scores: Any, out: Any) -> None:
            self.add("a score", scores)
            select(selector, scores, out)

        monkeypatch.setattr(Sampler, "draw_into", noted)
        monkeypatch.setattr(ConeSampler, "overwrite", noted_on_a_cone)
        monkeypatch.setattr(Selector, "draw_into", noted_scores)


def sought_in(spec: Spec) -> Sought:
    """Return the exact numbers of a spec's source: totals, sums and their limbs, rows, sizes and times."""
    sought = Sought()
    pin = sources.pin(spec)
    splits = sources.splits(pin)
    pinned = pin.private.files
    for file in pinned.files:
        sought.add("a file's size or time", [file.size, int(file.version)])
    sought.add("a number of rows", [group.n_rows for footer in pinned.footers for group in footer.row_groups])
    sought.add("a number of rows", [sum(split.n_rows for split in splits), *(each.n_rows for each in splits)])
    with open_cluster_for_sums("threads") as cluster:
        sums = exact_sums(chunk_job(spec), splits, cluster).open_totals()
    for statistic in compile_plan(spec).statistics:
        table = sums[statistic.name]
        exact = to_python(sums)[statistic.name]
        sought.add("a limb", table.low)
        sought.add("an exact sum", exact)
        entry = spec.statistics[statistic.name]
        sought.add("an exact total", totals_of(FAMILIES[statistic.family], entry, statistic, exact))
    return sought


def leaks(error: BaseException, sought: Sought, *, without: tuple[str, ...] = ()) -> list[str]:
    """Return where an error shows a number that is sought: the way to it, and what it is.

    Parameters
    ----------
    error : BaseException
        As it was caught.
    sought : Sought
    without : tuple of str
        Frames of files with one of these in their path are left out, as those of tests are.
    """
    search = _Search(sought, (_TESTS, *without))
    search.text("the traceback with its locals", _printed(error, search.without))
    search.walk("the error", error)
    for name in ("last_exc", "last_value", "last_traceback"):
        search.walk(f"sys.{name}", getattr(sys, name, None))
    here = threading.get_ident()
    for thread, frame in sys._current_frames().items():
        each: types.FrameType | None = frame
        while each is not None and thread != here:
            if each.f_code.co_filename.startswith(_OURS):  # Dask's own threads keep what they last sent
                search.walk("another thread", each)
            each = each.f_back
    return search.leaked


def _printed(error: BaseException, without: tuple[str, ...]) -> str:
    """Return what a crash reporter prints of frames that are not a test's."""
    lines: list[str] = []
    chain: list[BaseException | None] = [error]
    seen: set[int] = set()
    while chain:
        each = chain.pop()
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        shown = traceback.TracebackException.from_exception(each, capture_locals=True, compact=True)
        lines.extend(repr(frame.locals) for frame in shown.stack if not _is_in(frame.filename, without))
        lines.extend(shown.format_exception_only())
        chain += [each.__cause__, each.__context__]
    return "\n".join(lines)


class _Search:
    """Walks over objects, each once."""

    def __init__(self, sought: Sought, without: tuple[str, ...]) -> None:
        self.sought = sought
        self.without = without
        self.leaked: list[str] = []
        self._kept: dict[int, object] = {}
        self._integers = np.array([each for each in sought.numbers if each < 2**63], np.int64)
        self._patterns = [
            (each * sign).to_bytes(16 if each >= 2**63 else 8, "little", signed=True)
            for each in sought.numbers
            if _LEAST_IN_BYTES <= each < 2**127
            for sign in (1, -1)
        ]

    def walk(self, place: str, start: object) -> None:
        waiting = deque([(place, start)])
        while waiting:
            path, value = waiting.popleft()
            if id(value) in self._kept or _is_left_out(value):
                continue
            if len(self._kept) >= _MOST_OBJECTS:
                raise AssertionError("the search does not end")
            self._kept[id(value)] = value
            self._look(path, value)
            waiting.extend((f"{path} > {name}"[-400:], each) for name, each in _inside(value, self.without))

    def _look(self, path: str, value: object) -> None:
        if isinstance(value, str):
            self.text(path, value)
        elif isinstance(value, bytes | bytearray | memoryview | pa.Buffer):
            self._bytes(path, bytes(value))
        elif isinstance(value, np.ndarray):
            if value.dtype.kind in "iu":
                self._integers_in(path, value)
            elif value.dtype != object:
                self._bytes(path, value.tobytes())
        elif isinstance(value, bool):
            return
        elif isinstance(value, int | np.integer) or (
            isinstance(value, float | np.floating | decimal.Decimal | fractions.Fraction) and _is_whole(value)
        ):
            self._number(path, int(value))

    def text(self, path: str, text: str) -> None:
        """Seek numbers in decimal text, whole."""
        for number in _NUMBER.findall(text):
            self._number(f"{path} > text", int(number))

    def _number(self, path: str, number: int) -> None:
        if abs(number) in self.sought.numbers:
            self.leaked.append(f"{path}: {self.sought.numbers[abs(number)]}")

    def _integers_in(self, path: str, array: Any) -> None:
        same = np.isin(np.abs(array.ravel().astype(np.int64)), self._integers)
        for number in array.ravel()[same][:3]:
            self._number(f"{path} > element", int(number))

    def _bytes(self, path: str, data: bytes) -> None:
        self.text(path, data.decode("latin-1"))
        if any(pattern in data for pattern in self._patterns):
            self.leaked.append(f"{path} > bytes: a number")


def _is_in(path: str, places: tuple[str, ...]) -> bool:
    return any(place in path for place in places)


def _is_whole(value: Any) -> bool:
    return bool(abs(value) < 2**127 and value == int(value))


def _is_left_out(value: object) -> bool:
    return isinstance(
        value, Sought | types.ModuleType | type | logging.Logger | logging.Handler | _Search
    ) or type(value).__module__.startswith(("_pytest", "pytest", "pluggy"))


def _inside(value: Any, without: tuple[str, ...]) -> Iterator[tuple[str, object]]:
    """Return what an object holds, with names where it has some."""
    for kind, names in _HELD.items():
        if isinstance(value, kind):
            yield from ((name, getattr(value, name)) for name in names)
    if isinstance(value, types.FrameType):
        if not _is_in(value.f_code.co_filename, without):
            name = value.f_code.co_name
            yield from ((f"{name}.{local}", each) for local, each in list(value.f_locals.items()))
    elif isinstance(value, types.FunctionType):
        if not _is_in(value.__code__.co_filename, without):
            yield from (("closure", _content(cell)) for cell in value.__closure__ or ())
    elif isinstance(value, np.ndarray):
        yield "elements", value.ravel().tolist() if value.dtype == object else None
    elif isinstance(value, pa.Array):
        yield "buffers", value.buffers()
    elif not isinstance(value, types.TracebackType | types.GeneratorType):
        yield from ((type(value).__name__, each) for each in gc.get_referents(value))


_HELD: dict[Any, tuple[str, ...]] = {
    BaseException: ("__traceback__", "__cause__", "__context__"),
    types.TracebackType: ("tb_frame", "tb_next"),
    types.GeneratorType: ("gi_frame",),
    types.FunctionType: ("__defaults__", "__kwdefaults__"),
    np.ndarray: ("base",),
    pa.ChunkedArray: ("chunks",),
    pa.Table: ("columns",),
    pa.RecordBatch: ("columns",),
}
"""What some kinds of object hold, by the attributes that tell."""


def _content(cell: Any) -> object:
    try:
        return cell.cell_contents
    except ValueError:
        return None
