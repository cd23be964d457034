"""How much of a sample fits a spec: what parses, falls into domains, lies within bounds.

The sample is a file that its owner declares public or synthetic. Everything told here is exact, so nothing
else may be given: whoever names a file of the source itself is refused.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from suffice.errors import StageFailedError, UsageError
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.rows.chunk.derived_columns import has_value, with_derived
from suffice.pipeline.rows.chunk.encoding import Encoder
from suffice.pipeline.rows.chunk.partition import chunk_job
from suffice.pipeline.rows.sources import csv_files
from suffice.pipeline.rows.sources.column_values import TEXT_TYPES, as_float64, read_texts
from suffice.pipeline.rows.sources.contract import spec_columns
from suffice.pipeline.rows.sources.file_access import is_data_file, reaches, status
from suffice.pipeline.rows.sources.schema_check import type_family
from suffice.pipeline.rows.sources.times_of_96_bits import parquet_file, stored_columns, with_instants
from suffice.pipeline.spec.contract_fit import column_uses
from suffice.pipeline.spec.plan import measures
from suffice.pipeline.terms.declaration.column_types import ANY_FAMILY
from suffice.pipeline.terms.declaration.derived_columns import needed
from suffice.pipeline.terms.declaration.documents import Count, printed
from suffice.pipeline.terms.declaration.exact_numbers import format_number
from suffice.pipeline.terms.declaration.fields import ColumnSpec
from suffice.pipeline.terms.declaration.source_specs import CsvSpec, CsvType, Declared, is_url
from suffice.pipeline.terms.declaration.unit_aggregates import Aggregate
from suffice.pipeline.terms.statistics.measure import BinColumn, CodeColumn, LatticeColumn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from suffice.pipeline.rows.chunk.partition import ChunkJob
    from suffice.pipeline.spec.spec import Spec
    from suffice.pipeline.terms.declaration.column_types import TypeFamily
    from suffice.pipeline.terms.declaration.domains import Domain

    Fits = Callable[[pa.Array], NDArray[np.bool_]]

_BLOCK_ROWS = 1 << 16
_CSV, _PARQUET = "csv", "parquet"


@printed("column use values fit")
@dataclass(frozen=True, slots=True, kw_only=True)
class SampleCheck:
    """How many values of a column serve one use of it.

    Attributes
    ----------
    column, use : str
        What is read, and what for.
    values : int
        Rows of the sample that have a value; of a derived column, all rows.
    fit : int
        Of those, which parse, are among a domain's keys, or lie within bounds.
    """

    column: str
    use: str
    values: Count
    fit: Count


@printed("sample declared rows checks")
@dataclass(frozen=True, slots=True, kw_only=True)
class SampleFit:
    """How much of a public or synthetic file fits a spec.

    Attributes
    ----------
    sample : str
        The file, as it was named.
    declared : Declared
        What its owner says that it is.
    rows : int
    checks : tuple of SampleCheck
        By column and use.
    """

    sample: str
    declared: Declared
    rows: Count
    checks: tuple[SampleCheck, ...]

    def unchecked(self, spec: Spec) -> tuple[str, ...]:
        """Return the columns that a spec reads and of which the sample has no value."""
        checked = {check.column for check in self.checks if check.values}
        return tuple(column for column in spec_columns(spec) if column not in checked)


@dataclass(slots=True, kw_only=True)
class _Counts:
    """What is counted of a sample."""

    rows: int = 0
    values: dict[tuple[str, str], int] = field(default_factory=dict)
    fit: dict[tuple[str, str], int] = field(default_factory=dict)

    def add(self, column: str, use: str, values: int, fit: int) -> None:
        """Add rows of a column and a use."""
        key = (column, use)
        self.values[key] = self.values.get(key, 0) + values
        self.fit[key] = self.fit.get(key, 0) + fit


def sample_fit(spec: Spec, sample: str, declared: Declared) -> SampleFit:
    """Count how much of a sample fits a spec.

    Parameters
    ----------
    spec : Spec
        Of which the source says how texts are read, and is not opened.
    sample : str
        A local file: of delimited text where the spec's source is, else Parquet.
    declared : Declared
        What its owner says that it is.

    Raises
    ------
    UsageError
        Where the file is of the source, is of another kind, or cannot be read.
    """
    path = os.path.realpath(sample)
    kind = _CSV if isinstance(spec.source, CsvSpec) else _PARQUET
    if is_url(sample) or not is_data_file(os.path.basename(path), kind):  # noqa: PTH119 - a text
        message = f"--sample {sample}: the sample of this source is a local .{kind} file"
        raise UsageError(message)
    if not is_url(spec.source_address) and reaches(spec.source_address, path, kind):
        message = f"--sample {sample}: it is a file of the source: a sample is public or synthetic"
        raise UsageError(message)
    counts = _Counts()
    try:
        status(path)
        texts = isinstance(spec.source, CsvSpec)
        batches = _of_csv(spec, path, counts) if texts else _of_parquet(spec, path, counts)
        _count(spec, batches, counts)
    except (OSError, pa.ArrowException, StageFailedError):
        message = f"--sample {sample}: it cannot be read as a .{kind} file"
        raise UsageError(message) from None
    return SampleFit(
        sample=sample,
        declared=declared,
        rows=counts.rows,
        checks=tuple(
            SampleCheck(column=column, use=use, values=values, fit=counts.fit[column, use])
            for (column, use), values in counts.values.items()
        ),
    )


def _of_csv(spec: Spec, path: str, counts: _Counts) -> Iterator[pa.RecordBatch]:
    """Read a file of delimited text as the spec's source says, and count what parses."""
    source = spec.source
    if not isinstance(source, CsvSpec):
        message = "the source is of another kind"
        raise TypeError(message)
    names = spec_columns(spec)
    as_text = spec.model_copy(update={"source": source.model_copy(update={"csv": path, "columns": {}})})
    pin = csv_files.pin(as_text)
    held = {name for csv in pin.private.files for name in names if csv.names.count(name) == 1}
    kinds = {name: source.columns.get(name, CsvType.TEXT) for name in names}
    for split in csv_files.splits(pin):
        for batch in csv_files.read(split, names, _BLOCK_ROWS):
            read = []
            for name in names:
                texts = batch.column(name)
                values = read_texts(texts, kinds[name])
                if name in held:
                    counts.add(
                        name, f"read as {kinds[name]}", pc.count(texts).as_py(), pc.count(values).as_py()
                    )
                read.append(values if name in held else pa.nulls(batch.num_rows, TEXT_TYPES[kinds[name]]))
            yield pa.RecordBatch.from_arrays(read, names=list(names))


def _of_parquet(spec: Spec, path: str, counts: _Counts) -> Iterator[pa.RecordBatch]:
    """Read a Parquet file; a column of a type that does not serve has no value that fits."""
    names = spec_columns(spec)
    families = _needed_families(spec)
    with parquet_file(path) as file:
        schema = stored_columns(file)
        held = [name for name in names if schema.names.count(name) == 1]
        for stored_batch in file.iter_batches(_BLOCK_ROWS, columns=held):
            batch = with_instants(stored_batch, file)
            arrays = []
            for name in names:
                stored = batch.column(name) if name in held else pa.nulls(batch.num_rows)
                serves = type_family(stored.type) in families[name]
                if name in held:
                    n_values = len(stored) - stored.null_count
                    needed_names = " or ".join(sorted(families[name] - {"null"}))
                    use = "read" if families[name] == ANY_FAMILY else f"read as {needed_names}"
                    counts.add(name, use, n_values, n_values * serves)
                arrays.append(stored if serves else pa.nulls(batch.num_rows))
            yield pa.RecordBatch.from_arrays(arrays, names=list(names))


def _needed_families(spec: Spec) -> dict[str, frozenset[TypeFamily]]:
    """Return the type families that serve every use of a column."""
    families = dict.fromkeys(spec_columns(spec), ANY_FAMILY)
    for _, of in column_uses(spec):
        if of.column in families:
            families[of.column] &= of.families
    return families


def _count(spec: Spec, batches: Iterator[pa.RecordBatch], counts: _Counts) -> None:
    """Count what fits domains and bounds, and which derived columns have values."""
    job = chunk_job(spec.model_copy(update={"window": None}))
    uses = [*_sums_of_units(job), *(use for use in _uses(spec) if use[0] not in job.of_units)]
    wanted = (*job.names, *([spec.window.column] if spec.window else []))
    of_rows = {name: of for name, of in needed(wanted, job.derived).items() if name not in job.of_units}
    derived = {name: of for name, of in of_rows.items() if name in spec.derived}
    conditions = [
        (place, name, spec.conditions[place])
        for place, name in spec.condition_columns.items()
        if name not in job.of_units
    ]
    for batch in with_derived(batches, job, wanted):
        counts.rows += batch.num_rows
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        for name, of in derived.items():
            counts.add(name, f"derived: {of}", batch.num_rows, _true(has_value(columns[name])))
        for place, name, condition in conditions:
            holds = pc.fill_null(columns[name], fill_value=False)
            counts.add(place, f"holds: {condition}", batch.num_rows, _true(holds))
        for column, use, fits in uses:
            there = has_value(columns[column])
            fitting = fits(columns[column]) & there.to_numpy(zero_copy_only=False)
            counts.add(column, use, _true(there), int(np.count_nonzero(fitting)))


def _true(flags: pa.Array) -> int:
    return int(pc.sum(flags).as_py() or 0)


def _sums_of_units(job: ChunkJob) -> Iterator[tuple[str, str, Fits]]:
    """Give the columns that units have sums of, and what tells the values within their bounds."""
    for name, of in job.aggregates.items():
        if of.per_unit is Aggregate.SUM:
            lower, upper, _ = of.row_bounds
            within = f"within {format_number(lower)}..{format_number(upper)} of {name}"
            yield str(of.column), within, _bounded(float(lower), float(upper))


def _uses(spec: Spec) -> Iterator[tuple[str, str, Fits]]:
    """Give columns with domains and bounds: what each is for, and what tells the values that fit."""
    for column, domains in spec.key_columns.items():
        for domain in domains:
            yield column, "a key of groups", _listed(domain)
    for name, measure in measures(spec).items():
        statistic = spec.statistics[name]
        family = FAMILIES[statistic.family]
        for read in dict.fromkeys(measure.reads):
            if isinstance(read, CodeColumn):
                yield read.column, f"a key of {name}", _listed(read.domain)
        if family.clipping_bounds is not None and isinstance(statistic, ColumnSpec):
            lower, upper = family.clipping_bounds(statistic)
            within = f"within {format_number(lower)}..{format_number(upper)} of {name}"
            yield statistic.column, within, _bounded(float(lower), float(upper))
            continue
        for read in dict.fromkeys(measure.reads):
            if isinstance(read, BinColumn):
                lower, upper = read.bins.edges[0], read.bins.edges[-1]
                within = f"within {format_number(lower)}..{format_number(upper)} of {name}"
                yield read.column, within, _bounded(float(lower), float(upper))
            if isinstance(read, LatticeColumn) and read.transform is None:
                of = read.quantiser
                ends = [of.centre + of.half_range * end / of.steps for end in (of.lowest, of.highest)]
                yield read.column, f"within {ends[0]:g}..{ends[1]:g} of {name}", _bounded(*ends)


def _listed(domain: Domain) -> Fits:
    encoder = Encoder(domain)
    return lambda column: encoder.codes(column) >= 0


def _bounded(lower: float, upper: float) -> Fits:
    def fits(column: pa.Array) -> NDArray[np.bool_]:
        numbers = as_float64(column)
        if numbers is None:
            return np.zeros(len(column), np.bool_)
        values, _ = numbers
        with np.errstate(invalid="ignore"):
            return (values >= lower) & (values <= upper)

    return fits
