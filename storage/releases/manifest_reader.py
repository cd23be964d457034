"""Read a manifest that may be hostile: what follows from its plan is computed again, and compared.

The plan stands in the manifest, and is compiled as a spec's is. With it every byte that follows from it is
known; it is compared where it stands, part by part, and no part of it is ever parsed. So the work and the
memory are bounded by what a plan may declare, whatever else the bytes hold.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from suffice.errors import ReleaseCorruptError, SpecError
from suffice.pipeline.spec.entry_reading import LARGEST_PLAN
from suffice.pipeline.spec.recompile import read_canonical_plan
from suffice.pipeline.spec.terms import DeclaredOrder
from suffice.pipeline.spec.windows_and_amendments import check_window
from suffice.pipeline.terms.declaration import canonical_json
from suffice.pipeline.terms.declaration.wording import shown
from suffice.storage.releases.manifest_model import (
    FORMAT_VERSION,
    Manifest,
    Stated,
    declared_fields,
    statistic_fields,
)
from suffice.storage.releases.parquet_layout import Sizes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from suffice.pipeline.spec.plan import Plan
    from suffice.pipeline.spec.recompile import CanonicalPlan
    from suffice.pipeline.terms.declaration.fields import StatisticSpec
    from suffice.pipeline.terms.statistics.statistic_plan import StatisticPlan

LARGEST_MANIFEST = 24 * 2**20
"""Readers refuse a manifest of more bytes, and plans whose manifest would have more are not released."""

MOST_NAMES = 100_000
"""Of groups, statistics and their variables."""

_LARGEST_FILES = 2**20
_LARGEST_SMALL = 4096

_STATED = frozenset(Stated.model_fields)
_BEGINNING = re.compile(
    rb'\{"amends":(?:null|\{[^{}]{1,200}\})(?P<audit>,"audit":[^,]{1,80})?,"cells":\d{1,8},'
    rb'"checksum":(?=(?P<checksum>"[0-9a-f]{64}"),)'
)
_MAY_LACK = frozenset({"audit", "contract"})
"""Fields that a manifest leaves out where there is nothing to state."""
_VERSION = re.compile(rb',"format_version":([^,]{1,20}),')
# What follows a release id is no part of the plan: a statistic of that name would be a mapping.
_SIGNATURE = re.compile(
    rb',"release_id":"[0-9a-f]{16}"(?:,"rho":"[0-9.]{1,40}")?,"signature":(?=(null|\{[^{}]{1,400}\}),"statistics":\[)'
)
_SCALAR = re.compile(rb'"[^"\\\\]{0,100}"|-?\d{1,16}|null|true|false')
_PLAN = re.compile(rb'"plan":(?=\{)')
_PLAN_END = re.compile(rb',"plan_hash":"')
_ORDER = re.compile(rb',"declared_order":(?=\{)')
_ORDER_END = re.compile(rb',"drawing_hash":"')


def parse_manifest(data: bytes) -> Manifest:
    """Read a manifest, and check all that can be checked without its files.

    Raises
    ------
    ReleaseCorruptError
        Where a byte of it was changed, it contradicts its plan, or is of another format. The text names
        the field.
    """
    if len(data) > LARGEST_MANIFEST:
        raise _corrupt(f"it has more than {LARGEST_MANIFEST} bytes")
    _check_checksum(data)
    text = _between(data, _PLAN, _PLAN_END, "plan")
    order = _declared_order(data, most=len(text))
    try:
        return _Walk(data).read(read_canonical_plan(text.decode(), order))
    except SpecError as error:
        raise _corrupt(f"{shown(error.location)}: no spec could have this plan") from None
    except UnicodeDecodeError:
        raise _corrupt("plan: it is not UTF-8 text") from None


def _check_checksum(data: bytes) -> None:
    """Check what finds accidents first, so that a damaged manifest is not taken for a forged one."""
    beginning, signature, version = (pattern.search(data) for pattern in (_BEGINNING, _SIGNATURE, _VERSION))
    if version is None or version[1] != b"%d" % FORMAT_VERSION:
        raise _corrupt(f"it is damaged, or of another format than {FORMAT_VERSION}, which this suffice reads")
    if beginning is None or beginning.start() or signature is None:
        raise _corrupt("it is damaged, or not in canonical form")
    digest = hashlib.sha256(data[: beginning.end()])
    digest.update(b"null")
    digest.update(memoryview(data)[beginning.end("checksum") : signature.end()])
    digest.update(b"null")
    digest.update(memoryview(data)[signature.end(1) :])
    if beginning["checksum"] != b'"%s"' % digest.hexdigest().encode():
        raise _corrupt("its checksum does not fit")


def _declared_order(data: bytes, *, most: int) -> DeclaredOrder:
    """Read the order of the plan's names: it repeats names of the plan, and so is no longer."""
    order = _between(data, _ORDER, _ORDER_END, "declared_order")
    if order.count(b"[") + order.count(b"{") + order.count(b",") > MOST_NAMES:
        raise _corrupt(f"declared_order: it has more than {MOST_NAMES} parts")
    try:
        return DeclaredOrder.read(_decoded(order, "declared_order", most))
    except ValueError:
        raise _corrupt("declared_order: it is not what the format states there") from None


def _between(data: bytes, begins: re.Pattern[bytes], ends: re.Pattern[bytes], field: str) -> bytes:
    """Return the bytes of a field that is needed before its turn, which will show that it stands there."""
    begin = begins.search(data)
    end = ends.search(data, begin.end()) if begin else None
    if begin is None or end is None:
        raise _corrupt(f"{field}: it is missing, or not in canonical form")
    return data[begin.end() : end.start()]


def _decoded(stored: bytes, field: str, most: int) -> Any:
    if len(stored) > most:
        raise _corrupt(f"{field}: it has more than {most} bytes")
    try:
        return canonical_json.decode(stored)
    except ValueError:
        raise _corrupt(f"{field}: it is not in canonical form") from None


class _Walk:
    """A walk through a manifest from its first byte to its last, each compared or read."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def read(self, canonical: CanonicalPlan) -> Manifest:
        """Compare what follows from the plan, read the rest, and return both."""
        heading = canonical.heading
        derived: dict[str, Any] = {
            **declared_fields(heading),
            "plan_hash": hashlib.sha256(canonical.text.encode()).hexdigest(),
        }
        names = sorted({*derived, *_STATED, "plan", "statistics"} - _left_out(self._data))
        stated: dict[str, Any] = {}
        plan = heading
        for name, following in zip(names, (*names[1:], None), strict=True):
            self._expect(f'{"," if self._position else "{"}"{name}":'.encode(), (name,))
            if name in _STATED:
                stated[name] = self._take(name, following)
            elif name == "plan":
                self._expect(canonical.text.encode(), (name,))
            elif name == "statistics":
                plan = self._statistics(canonical)
            else:
                self._compare(derived[name], (name,))
        self._expect(b"}", ("the end",))
        if self._position != len(self._data):
            raise _corrupt("there is more after its end")
        for name in _MAY_LACK:
            if stated.get(name, "") is None:
                raise _corrupt(f"{name}: it is left out where there is none")
        if not isinstance(stated["files"], list) or len(stated["files"]) != len(plan.statistics):
            raise _differs(("files",))  # before each of however many is complained of
        manifest = Manifest(plan=plan, stated=_validated(stated))
        _check_stated(manifest, canonical)
        return manifest

    def _statistics(self, canonical: CanonicalPlan) -> Plan:
        """Compile one statistic after another, and compare each before the next."""
        compiled: list[tuple[StatisticSpec, StatisticPlan]] = []
        for statistic in canonical.statistics():
            fields: Mapping[str, Any] = statistic_fields(statistic[1])
            path = ("statistics", statistic[1].name)
            opening = b",{" if compiled else b"[{"
            for field in sorted(fields):
                self._expect(opening + b'"%s":' % field.encode(), (*path, field))
                self._compare(fields[field], (*path, field))
                opening = b","
            self._expect(b"}", path)
            compiled.append(statistic)
        self._expect(b"]", ("statistics",))
        return canonical.assemble(compiled)

    def _compare(self, value: Any, path: tuple[str, ...]) -> None:
        """Step over a value that has to stand here; where another does, name the innermost field."""
        if isinstance(value, Iterator):
            separator = b"["
            for position, entry in enumerate(value):
                self._expect(separator, path)
                self._compare(entry, (*path, str(position)))
                separator = b","
            self._expect(b"]" if separator == b"," else b"[]", path)
            return
        expected = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
        if self._data.startswith(expected, self._position):
            self._position += len(expected)
        elif isinstance(value, dict) and value:
            separator = b"{"
            for key in sorted(value):
                self._expect(separator + json.dumps(key, ensure_ascii=False).encode() + b":", (*path, key))
                self._compare(value[key], (*path, key))
                separator = b","
            self._expect(b"}", path)
        elif isinstance(value, list) and value:
            self._compare(iter(value), path)
        else:
            raise _differs(path)

    def _expect(self, expected: bytes, path: tuple[str, ...]) -> None:
        if not self._data.startswith(expected, self._position):
            raise _differs(path)
        self._position += len(expected)

    def _take(self, name: str, following: str | None) -> Any:
        """Read a field that does not follow from the plan, up to where the next begins."""
        scalar = _SCALAR.match(self._data, self._position)
        if scalar is not None:
            self._position = scalar.end()
            return _decoded(scalar[0], name, _LARGEST_SMALL)
        most = {"declared_order": LARGEST_PLAN, "files": _LARGEST_FILES}.get(name, _LARGEST_SMALL)
        marker = f',"{following}":'.encode() if following else b"}"
        end = self._data.find(marker, self._position, self._position + most + len(marker))
        if end < 0:
            raise _differs((name,))
        text = self._data[self._position : end]
        self._position = end
        return _decoded(text, name, most)


def _left_out(data: bytes) -> frozenset[str]:
    """Return which fields a manifest leaves out, of those that it may."""
    beginning = _BEGINNING.search(data)
    if beginning is None:
        return _MAY_LACK
    has = {
        "audit": beginning["audit"] is not None,
        "contract": data.startswith(b',"contract":', beginning.end("checksum")),
    }
    return frozenset(name for name in _MAY_LACK if not has[name])


def _validated(stated: dict[str, Any]) -> Stated:
    try:
        return Stated.model_validate(stated)
    except ValidationError as error:
        path = tuple(map(str, error.errors(include_url=False, include_input=False)[0]["loc"]))
        raise _corrupt(f"{_place(path)}: it is not what the format states there") from None


def _check_stated(manifest: Manifest, canonical: CanonicalPlan) -> None:
    """Check what the plan says of fields that do not follow from it alone."""
    plan = manifest.plan
    try:
        check_window(canonical.terms, manifest.window)
    except SpecError:
        raise _corrupt("window: the plan has no such window") from None
    _check_amends(manifest)
    if (manifest.n is not None) != plan.n_is_public:
        raise _corrupt("n: it is stated exactly where the plan makes it public")
    if manifest.stated.declared_order != plan.order.document():
        raise _differs(("declared_order",))
    sizes = Sizes.of(plan.groups)
    for position, (file, statistic) in enumerate(zip(manifest.files, plan.statistics, strict=True)):
        expected = {
            "statistic": statistic.name,
            "path": f"{statistic.name}.parquet",
            "rows": statistic.n_cells * statistic.n_values,
        }
        for field, value in expected.items():
            if getattr(file, field) != value:
                raise _differs(("files", str(position), field))
        of_keys = Sizes.of(statistic.groups) if statistic.states_groups else sizes
        least, greatest = of_keys.of_file(statistic)
        if not least <= file.size <= greatest:
            raise _corrupt(f"files.{position}.size: no file of this plan has that size")


def _check_amends(manifest: Manifest) -> None:
    """Check the link of an amendment as far as it can be without the release that it names."""
    if manifest.amends is None:
        return
    if manifest.plan.grid is None:
        raise _corrupt("amends: the plan has no windows, so that none is amended")
    if manifest.amends.release_id == manifest.release_id:
        raise _corrupt("amends: no release replaces itself")


def _place(path: tuple[str, ...]) -> str:
    return ".".join(shown(part) for part in path[:6])


def _differs(path: tuple[str, ...]) -> ReleaseCorruptError:
    return _corrupt(f"{_place(path)}: it contradicts the plan that was charged, or the format")


def _corrupt(rule: str) -> ReleaseCorruptError:
    return ReleaseCorruptError(f"the manifest is corrupt: {rule}")
