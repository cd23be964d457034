"""Releases on a scratch ledger, and exact passes over scratch data, watched from outside.

What is released here is marked as it is put: no reader takes it for a release. The product has no switch for
any of this; what is watched or marked is wrapped here, in a process that does nothing else.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import logging
import re
import shutil
import warnings
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.parquet as pq

from suffice.auditing.scratch_sources import write_source
from suffice.errors import ReleaseMissingError, SufficeError
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.families.shared.beside_sums import totals_of
from suffice.pipeline.rows import sources
from suffice.pipeline.rows.chunk.exact_sums import to_python
from suffice.pipeline.rows.chunk.partition import chunk_job
from suffice.pipeline.rows.contribution.records import UnitKey
from suffice.pipeline.rows.mechanism import mechanism
from suffice.pipeline.rows.mechanism.sampling import CellSampler
from suffice.pipeline.rows.reduce import tree
from suffice.pipeline.rows.sources import contract, schema_check
from suffice.pipeline.spec.plan import compile_plan
from suffice.pipeline.terms.declaration.privacy_loss import PrivacyLoss
from suffice.profile import finding
from suffice.profile.settings import Settings
from suffice.releasing import release as releasing
from suffice.storage.ledger.opening import create_ledger, open_ledger
from suffice.storage.operations.witness import make_witness
from suffice.storage.releases.manifest import is_tombstone, rehearsal_manifest
from suffice.storage.releases.release_store import ReleaseStore, open_release, open_store

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping

    from numpy.typing import NDArray

    from suffice.auditing.hostile_rows import DataSet
    from suffice.auditing.implied_columns import ImpliedColumn
    from suffice.pipeline.cluster.connection import Cluster
    from suffice.pipeline.rows.chunk.exact_sums import Sums
    from suffice.pipeline.spec.plan import Plan
    from suffice.pipeline.spec.spec import Spec
    from suffice.pipeline.terms.declaration.data_contract import DataContract
    from suffice.storage.ledger.ledger import Ledger

    Totals = dict[str, NDArray[Any]]

AUDITED = UnitKey.of(bytes(range(48)))
"""The key of every pass: under one key neighbours are compared as the proof compares them."""

_HEX = re.compile(r"[0-9a-f]{16,}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d[0-9:.]*(Z|\+00:00)?")
_VALUES = frozenset({"value", "estimate"})


@contextlib.contextmanager
def patched(place: Any, name: str, value: object) -> Iterator[None]:
    """Put something in the place of an attribute, until the block ends."""
    before = place.__dict__[name]
    setattr(place, name, value)
    try:
        yield
    finally:
        setattr(place, name, before)


@dataclass(frozen=True, kw_only=True)
class ObservedRun:
    """What one run of a release showed.

    Attributes
    ----------
    status : str
        Exit status, and the kind of error where there was one.
    text : str
        All that was said: warnings, logs, both streams, the error's text.
    shape : str
        Names and sizes of all files, layouts and keys, the manifest but for its noise.
    ledger : str
        All entries but for hashes and times.
    values : dict of str to ndarray
        What was published.
    totals : dict of str to ndarray
        What noise was added to.
    faults : tuple of str
        What broke the order of charge and draw.
    """

    status: str
    text: str
    shape: str
    ledger: str
    values: Totals
    totals: Totals
    faults: tuple[str, ...]


@dataclass(kw_only=True)
class Runner:
    """Runs one spec over data sets, in one scratch directory.

    Attributes
    ----------
    spec, window
    schema : mapping of str to ImpliedColumn
    directory : Path
        Its own; removed with all that is in it when the audit ends.
    cluster : Cluster
        What exact passes run on.
    address : str
        The same, as releases name it.
    contract : DataContract or None
        What the scratch account's contract is, of the kind of source that is tried.
    """

    spec: Spec
    window: str
    schema: Mapping[str, ImpliedColumn]
    directory: Path
    cluster: Cluster
    address: str
    contract: DataContract | None
    passes: int = 0
    releases: int = 0
    _look: Callable[[], None] = lambda: None
    _in_release: bool = False
    _drawn_from: list[Totals] = field(default_factory=list)
    _manifest: bytes = b""

    def plan(self) -> Plan:
        """Compile the plan, as the product does now."""
        return compile_plan(self.spec)

    def prepare(self) -> None:
        """Make the ledger and the store that every release begins with a copy of."""
        place = self.directory / "release" / "place"  # where every copy of it lies, in turn
        place.mkdir(parents=True)
        with create_ledger(f"sqlite:///{place}/ledger.db") as ledger:
            self._grant(ledger, str(place / "witness"))
            open_store(str(place / "releases"), ledger_id=ledger.ledger_id, create=True)
        place.rename(self.directory / "template")

    def _grant(self, ledger: Ledger, witness: str) -> None:
        """Grant the scratch account what the spec asks; with a contract, as owners do, beside a witness."""
        plan = compile_plan(self.spec)
        granted = PrivacyLoss(plan.loss.measure, max(plan.loss.amount * 100, Fraction(1)))
        ledger.grant(
            plan.dataset,
            epsilon=granted.epsilon,
            rho=granted.rho,
            neighboring=str(plan.neighboring),
            unit=plan.unit,
            contract=self.contract,
            witness=witness,
            reason="an audit's scratch account: it pays for generated rows alone",
        )
        make_witness(ledger, witness)

    def totals(self, data: DataSet) -> Totals:
        """Write a data set, and return what noise would be added to: no noise, no ledger.

        Raises
        ------
        SufficeError
            What a release would end in.
        """
        return added_to(self.sums(data), self.spec, self.plan())

    def sums(self, data: DataSet) -> Sums:
        """Return the exact sums of a data set, as `totals` reads it."""
        directory = self.directory / "pass"
        try:
            return self._sums(write_source(self.spec, self.schema, data, directory))
        finally:
            shutil.rmtree(directory, ignore_errors=True)

    def _sums(self, spec: Spec) -> Sums:
        self.passes += 1
        job = chunk_job(spec, self.window)
        with closing(sources.pin(spec, self.window, self.contract)) as pin:
            schemas = sources.schema(pin)
            schema_check.check_columns(spec, schemas, self.contract)
            splits = sources.splits(pin)
            totals = tree.exact_sums(job, splits, self.cluster)
        return totals.open_totals()

    def release(self, data: DataSet) -> ObservedRun:
        """Release a data set on a copy of the scratch ledger."""
        with closing(self._released(data, 1)) as runs:
            return next(runs)

    def release_twice(self, data: DataSet) -> tuple[ObservedRun, ObservedRun]:
        """Release a data set, and run the same release again."""
        first, second = self._released(data, 2)
        return first, second

    def _released(self, data: DataSet, times: int) -> Generator[ObservedRun]:
        directory = self.directory / "release"  # always the same: texts may name it
        try:
            shutil.copytree(self.directory / "template", directory / "place")
            spec = write_source(self.spec, self.schema, data, directory / "data")
            self._manifest = b""
            for _ in range(times):
                yield self._observed(spec, directory)
        finally:
            shutil.rmtree(directory, ignore_errors=True)

    def _observed(self, spec: Spec, directory: Path) -> ObservedRun:
        self.releases += 1
        place = directory / "place"
        url = f"sqlite:///{place}/ledger.db"
        faults: list[str] = []
        self._drawn_from = []
        self._look = lambda: _must_be_drawing(url, faults)
        said = io.StringIO()
        status, self._in_release = "0", True
        with _heard(said):
            try:
                releasing.carry_out(
                    spec,
                    store=str(place / "releases"),
                    ledger=url,
                    cluster=self.address,
                    window=self.window,
                    publish_timeout=0,
                )
            except SufficeError as error:
                status = f"{error.exit_status} {type(error).__name__}"
                said.write(f"{error}\n")
            except Exception as error:  # noqa: BLE001 - a mutant may raise anything
                status = f"1 {type(error).__name__}"
                said.write(f"{error}\n")
        self._in_release = False
        if len(self._drawn_from) > 1:
            faults.append("noise was drawn twice in one run")
        shape, values = _shape(place, self._manifest)
        return ObservedRun(
            status=status,
            text=said.getvalue().replace(str(directory), "DIR"),
            shape=shape,
            ledger=_entries(url),
            values=values,
            totals=self._drawn_from[-1] if self._drawn_from else {},
            faults=tuple(faults),
        )

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Watch and mark what releases do, until the block ends."""
        with ExitStack() as stack:
            put_manifest = ReleaseStore.put_manifest

            def put_marked(
                store: ReleaseStore, name: str, edition: str, release_id: str, data: bytes
            ) -> None:
                if is_tombstone(data):
                    put_manifest(store, name, edition, release_id, data)
                    return
                self._manifest = data
                put_manifest(store, name, edition, release_id, rehearsal_manifest(data, None))

            def open_marked(uri: str, **_: object) -> Any:
                """Make sure that a reader refuses it; no release comes of it."""
                try:
                    open_release(uri)
                except ReleaseMissingError:
                    return _NoRelease()
                message = "a reader takes what an audit released for a release"
                raise AssertionError(message)

            privatize = mechanism.privatize

            def seen(totals: Any, spec: Spec, plan: Plan, *noise: Any) -> Any:
                if self._in_release:
                    self._look()
                    self._drawn_from.append(added_to(totals._sums, spec, plan))  # noqa: SLF001 - looked at, not taken
                return privatize(totals, spec, plan, *noise)

            stack.enter_context(patched(ReleaseStore, "put_manifest", put_marked))
            stack.enter_context(patched(releasing, "open_release", open_marked))
            stack.enter_context(patched(releasing, "settings", _as_asked))
            stack.enter_context(patched(releasing, "signer_from_environment", lambda: None))
            stack.enter_context(patched(finding, "FIXED_PLACE", Path("/nonexistent/suffice.toml")))
            stack.enter_context(
                patched(contract, "SPLIT_VALUES", 1)
            )  # of few rows there are several splits, too
            stack.enter_context(patched(mechanism, "privatize", seen))
            stack.enter_context(patched(UnitKey, "fresh", classmethod(lambda _: AUDITED)))
            yield


class _NoRelease:
    """What stands in the place of a release that nobody may read."""

    withdrawn = None


def added_to(sums: Sums, spec: Spec, plan: Plan) -> Totals:
    """Return what noise is added to, by statistic, in Python integers; of samples, what is drawn by."""
    exact = to_python(sums)
    totals: Totals = {}
    for statistic in plan.statistics:
        entry = spec.statistics[statistic.name]
        if statistic.sample is not None:
            scores = CellSampler.of(statistic, entry).scores(exact[statistic.name])
            totals[statistic.name] = scores.astype(object)
        else:
            family = FAMILIES[statistic.family]
            totals[statistic.name] = totals_of(family, entry, statistic, exact[statistic.name])
    return totals


def _as_asked(**asked: Any) -> Settings:
    return Settings(
        ledger=asked["ledger"],
        store=asked["store"],
        cluster=asked["cluster"],
        cluster_certificates=None,
        spool=None,
        witness=None,
    )


@contextlib.contextmanager
def _heard(said: io.StringIO) -> Iterator[None]:
    """Write all that a block says to one text."""
    handler = logging.StreamHandler(said)
    root = logging.getLogger()
    root.addHandler(handler)
    try:
        with (
            warnings.catch_warnings(record=True) as caught,
            contextlib.redirect_stdout(said),
            contextlib.redirect_stderr(said),
        ):
            warnings.simplefilter("always")
            yield
        said.write("".join(f"{each.category.__name__}: {each.message}\n" for each in caught))
    finally:
        root.removeHandler(handler)


def _must_be_drawing(url: str, faults: list[str]) -> None:
    """Note where noise meets totals for a charge that is not durably in ``drawing``."""
    with open_ledger(url, reading_only=True) as ledger:
        states = [str(charge.state) for charge in ledger.unsettled()]
    if states != ["drawing"]:
        faults.append("noise met totals before the charge stood in the ledger as drawing")


def _entries(url: str) -> str:
    with open_ledger(url, reading_only=True) as ledger:
        entries = [
            {
                "sequence": entry.sequence,
                "kind": entry.kind,
                **{name: value for name, value in json.loads(entry.payload).items() if name not in _OF_PLACE},
            }
            for entry in ledger.entries()
        ]
    return _blanked(json.dumps(entries, sort_keys=True))


_OF_PLACE = frozenset({"source", "store_uri", "spool_host", "spool_id", "holder_process"})


def _blanked(text: str) -> str:
    """Take hashes, ids and times out of a text, but not their lengths."""
    return _TIME.sub(lambda match: "T" * len(match[0]), _HEX.sub(lambda match: "h" * len(match[0]), text))


def _shape(place: Path, manifest: bytes) -> tuple[str, Totals]:
    """Return all that can be seen of a store but for noise, and the values that were published."""
    lines: list[str] = []
    values: Totals = {}
    for path in sorted(path for path in place.rglob("*") if path.is_file()):
        if path.name.startswith("ledger.db"):
            continue
        stat = path.stat()
        lines.append(f"{_blanked(str(path.relative_to(place)))} {stat.st_size} {stat.st_mode:o}")
        if path.suffix == ".parquet":
            values[path.stem] = _read_values(path, lines)
    lines.sort()
    lines.append(_blanked(manifest.decode()))
    return "\n".join(lines), values


def _read_values(path: Path, lines: list[str]) -> NDArray[Any]:
    file = pq.ParquetFile(path)
    footer = file.metadata
    for group in range(footer.num_row_groups):
        for index in range(footer.num_columns):
            column = footer.row_group(group).column(index)
            lines.append(
                f"{path.name} {column.path_in_schema} {column.encodings} {column.compression} "
                f"{column.total_compressed_size} {column.data_page_offset} {column.statistics}"
            )
    table = file.read()
    names = [name for name in table.column_names if name not in _VALUES]
    keys = json.dumps(table.select(names).to_pydict(), default=str)
    lines.append(f"{path.name} {hashlib.sha256(keys.encode()).hexdigest()[:15]}")
    if "value" not in table.column_names:
        return np.zeros(0, object)
    return np.array([int(each) for each in table["value"].to_pylist()], object)
