"""Hostile posterior samples."""

# ruff: noqa: E501 - cases stand in tables, a line each

from __future__ import annotations

import io
import json
from fractions import Fraction
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from scripts.vectors.damage import (
    READER,
    RECOMPUTATION,
    Hostile,
    nullable_field,
    parquet_bytes,
    statistic_of,
    with_file,
    with_manifest,
)
from suffice.pipeline.terms.declaration.exact_numbers import format_number
from suffice.pipeline.terms.declaration.privacy_loss import PrivacyLoss
from suffice.pipeline.terms.statistics.exponential_draws import (
    LARGEST_RANGE,
    LARGEST_SAMPLE_SCALE,
    SCORE_BITS,
    smallest_scale,
)
from suffice.pipeline.terms.statistics.histogram_bins import HistogramBins

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from scripts.vectors.damage import Content
    from scripts.vectors.releases import MadeRelease


def _with_first(made: MadeRelease, name: str, column: str, value: int) -> bytes:
    """Return a data file whose first row says something else."""
    table = pq.read_table(io.BytesIO(made.files[f"{name}.parquet"]))
    table = table.cast(pa.schema([nullable_field(field, nullable=False) for field in table.schema]))
    values = pa.array([value, *table[column].to_pylist()[1:]], pa.int64())
    field = pa.field(column, pa.int64(), nullable=False)
    return parquet_bytes(table.set_column(table.schema.get_field_index(column), field, values))


def hostile_samples(made: MadeRelease) -> list[Hostile]:
    """Return samples that the format does not know, or that cost more than they state."""
    name = "cancelled_drawn"

    def of(**changes: object) -> Callable[[Content], None]:
        return lambda content: statistic_of(content, name).update(changes)

    def hotter(content: Content) -> None:
        scale = 2 * int(statistic_of(content, name)["scale"])
        statistic_of(content, name).update(scale=str(scale), temperature=_exact_temperature(scale))

    def understated(content: Content) -> None:
        entry = statistic_of(content, name)
        scale = int(entry["scale"]) // 2 + 1
        smaller = str(int(entry["range_sensitivity"]) // 2)
        entry.update(range_sensitivity=smaller, scale=str(scale), temperature=_exact_temperature(scale))

    def too_large(content: Content) -> None:
        largest, entry = LARGEST_RANGE + 2, statistic_of(content, name)
        scale = smallest_scale(largest, entry["draws"], PrivacyLoss.read(entry))
        entry.update(range_sensitivity=str(largest), scale=str(scale), temperature=_exact_temperature(scale))

    def too_hot(content: Content) -> None:
        scale = LARGEST_SAMPLE_SCALE + 1
        statistic_of(content, name).update(scale=str(scale), temperature=_exact_temperature(scale))

    manifests: dict[str, tuple[str, str, Callable[[Content], None], str]] = {
        "range-too-large": ("noise", "a range above 2^62, and the scale that follows", too_large, READER),
        "scale-too-large": ("noise", "a scale above 2^46, at which the data hardly count", too_hot, READER),
        "scale-too-small": ("noise", "a sample colder than epsilon allows", of(scale=str(2**20), temperature="1"), READER),
        "temperature": ("noise", "a temperature that is not its scale's", of(temperature="999"), READER),
        "mechanism": ("shape", "draws that claim to be noisy sums", of(mechanism="discrete_laplace"), READER),
        "draws": ("shape", "fewer draws than its file has rows of", of(draws=2), READER),
        "hotter": ("plan", "twice the scale that follows from the plan", hotter, RECOMPUTATION),
        "range": ("plan", "half the range that follows from the plan", understated, RECOMPUTATION),
    }  # fmt: skip
    files = {
        "beyond-grid": ("a draw that is no point of its grid", _with_first(made, name, "value", 1025)),
        "below-grid": ("a draw below its grid", _with_first(made, name, "value", -1)),
        "draw-column": ("draws that are counted otherwise", _with_first(made, name, "draw", 1)),
    }
    return _named("sample", made, name, manifests, files)


def hostile_quantiles(made: MadeRelease) -> list[Hostile]:
    """Return drawn quantiles whose law is sharper than it costs, or that are of no bin."""
    name = "delay_p90"
    entry = statistic_of(json.loads(made.manifest), name)
    unit = Fraction(entry["quantile"]).denominator << SCORE_BITS

    def of(**changes: object) -> Callable[[Content], None]:
        return lambda content: statistic_of(content, name).update(changes)

    def scaled(scale: int, **changes: object) -> Callable[[Content], None]:
        return of(scale=str(scale), rank_scale=format_number(Fraction(scale, unit)), **changes)

    scale, half = int(entry["scale"]), int(entry["range_sensitivity"]) // 2
    manifests: dict[str, tuple[str, str, Callable[[Content], None], str]] = {
        "scale-too-small": ("noise", "draws that are sharper than epsilon allows", scaled(scale // 2), READER),
        "rank-scale": ("noise", "a rank scale that is not its scale's", of(rank_scale="1"), READER),
        "mechanism": ("shape", "draws that claim to be noisy sums", of(mechanism="discrete_laplace"), READER),
        "draws": ("shape", "fewer draws than its file has rows of", of(draws=2), READER),
        "other-quantile": ("noise", "another quantile than its rank scale is of", of(quantile="0.5"), READER),
        "hotter": ("plan", "twice the scale that follows from the plan", scaled(2 * scale), RECOMPUTATION),
        "range": ("plan", "half the range that follows from the plan", scaled(scale // 2 + 1, range_sensitivity=str(half)), RECOMPUTATION),
    }  # fmt: skip
    n_bins = len(HistogramBins.parse(entry["parameters"]["bins"]))
    files = {
        "beyond-bins": ("a draw that is none of its bins", _with_first(made, name, "value", n_bins)),
        "below-bins": ("a draw below its bins", _with_first(made, name, "value", -1)),
        "draw-column": ("draws that are counted otherwise", _with_first(made, name, "draw", 1)),
    }
    return _named("quantile", made, name, manifests, files)


def _named(
    kind: str,
    made: MadeRelease,
    name: str,
    manifests: Mapping[str, tuple[str, str, Callable[[Content], None], str]],
    files: Mapping[str, tuple[str, bytes]],
) -> list[Hostile]:
    return [
        *(
            Hostile(
                name=f"{kind}-{key}",
                reason=reason,
                check=check,
                refused_by=by,
                files=with_manifest(made, change, keep_signature=by == RECOMPUTATION),
            )
            for key, (check, reason, change, by) in manifests.items()
        ),
        *(
            Hostile(name=f"{kind}-{key}", reason=reason, check="data file", files=with_file(made, name, data))
            for key, (reason, data) in files.items()
        ),
    ]


def _exact_temperature(scale: int) -> str:
    return format_number(Fraction(scale, 2**20))
