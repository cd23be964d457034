"""The standing of an installation as a Prometheus textfile, which a node exporter serves.

A series of samples is a clock: one that changes says when. So a file is written once in an hour at most: of
the time of a release it tells what the release's manifest does. No sample is a row count, a duration, or the
age of a lease.
"""

from __future__ import annotations

import os
import re
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from suffice.errors import UsageError
from suffice.pipeline.terms.declaration.exact_numbers import format_number
from suffice.pipeline.terms.declaration.privacy_loss import PrivacyMeasure

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from suffice.monitoring.standing import Standing

SUFFIX = ".prom"
_HEAD = "# Written by suffice metrics, once in an hour at most.\n"
_HOUR = re.compile(r"^suffice_metrics_hour_seconds (\d{1,15})$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One metric: its name, its type, its labels, and what it says."""

    name: str
    kind: str
    labels: tuple[str, ...]
    says: str


def _metric(name: str, says: str, *labels: str) -> Metric:
    """Return a metric; what counts up has a name that says so."""
    return Metric(name=name, kind="counter" if name.endswith("_total") else "gauge", labels=labels, says=says)


def _of_accounts(measure: PrivacyMeasure) -> Iterator[Metric]:
    """Return the metrics of accounts that count one measure."""
    name, labels = f"{measure[0].upper()}{measure[1:]}", ("dataset", "scope")
    yield _metric(
        f"suffice_{measure}_granted", f"{name} that was granted, in all or for each window.", *labels
    )
    yield _metric(
        f"suffice_{measure}_spent",
        f"{name} that was spent or is held by runs; of a grant for each window, in the one charged most.",
        *labels,
    )
    yield _metric(
        f"suffice_{measure}_remaining",
        f"{name} that remains; of a grant for each window, in one never charged.",
        *labels,
    )


_SERIES = ("dataset", "name")
METRICS = (
    _metric(
        "suffice_metrics_hour_seconds", "The hour in which these metrics were taken, in seconds since 1970."
    ),
    _metric("suffice_releases_total", "Releases that the ledger has as published, amendments too.", *_SERIES),
    _metric(
        "suffice_windows",
        "Windows that have ended, by state; a spec without windows has one.",
        *_SERIES,
        "state",
    ),
    _metric("suffice_amendments", "Amendments that are still to be released, by state.", *_SERIES, "state"),
    _metric(
        "suffice_releases_due",
        "Releases that are still to come now: windows missing, overdue or stopped, and amendments.",
        *_SERIES,
    ),
    _metric(
        "suffice_releases_covered",
        "Releases that the budget still covers, those that are due first; +Inf: every one.",
        *_SERIES,
    ),
    *(metric for measure in PrivacyMeasure for metric in _of_accounts(measure)),
    _metric("suffice_spool_charges", "Charges that were drawn and are not published yet."),
    _metric(
        "suffice_specs_unreadable",
        "Specs that cannot be judged: they, their account or their store cannot be read.",
    ),
    _metric(
        "suffice_refusals_total",
        "Runs that were refused before they charged anything, where SUFFICE_METRICS names a folder.",
        "kind",
    ),
    _metric(
        "suffice_audit_ok",
        "1 where the last audit found no problem, else 0; where SUFFICE_METRICS names a folder.",
    ),
    _metric(
        "suffice_audit_hour_seconds",
        "The hour of the last audit, in seconds since 1970; where SUFFICE_METRICS names a folder.",
    ),
)
"""Every metric. Labels are names that the ledger checked, or words of ours: few, and no value of the data."""

Sample = tuple[str, tuple[str, ...], str]
"""A metric's name, its labels' values, and the number."""


def rendered(standing: Standing, *, now: datetime) -> str:
    """Return a standing in Prometheus' text format."""
    lines: dict[str, list[str]] = {metric.name: [] for metric in METRICS}
    known = {metric.name: metric for metric in METRICS}
    for name, values, number in _samples(standing, now):
        labels = dict(zip(known[name].labels, values, strict=True))
        lines[name].append(f"{name}{_labelled(labels)} {number}\n")
    text = [_HEAD]
    for metric in METRICS:
        if lines[metric.name]:
            text += [f"# HELP {metric.name} {metric.says}\n", f"# TYPE {metric.name} {metric.kind}\n"]
            text += lines[metric.name]
    return "".join(text)


def _samples(standing: Standing, now: datetime) -> Iterator[Sample]:
    yield "suffice_metrics_hour_seconds", (), str(_hour(now))
    for series in standing.series:
        key = (series.dataset, series.name)
        yield "suffice_releases_total", key, str(series.releases)
        for state, number in series.windows.items():
            yield "suffice_windows", (*key, state), str(number)
        for state, number in series.amendments.items():
            yield "suffice_amendments", (*key, state), str(number)
        yield "suffice_releases_due", key, str(series.due)
        yield "suffice_releases_covered", key, "+Inf" if series.covered is None else str(series.covered)
    for account in standing.accounts:
        labels = (account.dataset, "window" if account.per_window else "account")
        for what in ("granted", "spent", "remaining"):
            yield f"suffice_{account.measure}_{what}", labels, format_number(getattr(account, what))
    yield "suffice_spool_charges", (), str(standing.in_spool)
    yield "suffice_specs_unreadable", (), str(len(standing.unreadable))
    if standing.counted is not None:
        for kind, number in standing.counted.refusals.items():
            yield "suffice_refusals_total", (kind,), str(number)
        if (audit := standing.counted.audit) is not None:
            yield "suffice_audit_ok", (), str(int(audit.ok))
            yield "suffice_audit_hour_seconds", (), str(_hour(audit.hour))


def hour_of(path: Path) -> datetime | None:
    """Return the hour in which a textfile of ours was written; None where there is no file.

    Raises
    ------
    UsageError
        Where something else stands there, or it cannot be read.
    """
    try:
        if not os.path.lexists(path):
            return None
        content = b"" if path.is_symlink() or not path.is_file() else _beginning(path)
    except (OSError, ValueError):
        message = f"--out {path}: the file cannot be read"
        raise UsageError(message) from None
    text = content.decode("utf-8", "replace")
    stated = _HOUR.search(text) if text.startswith(_HEAD) else None
    if stated is None:
        message = f"--out {path}: suffice did not write what stands here, and never replaces it: name another"
        raise UsageError(message)
    return datetime.fromtimestamp(int(stated[1]), UTC)


def write_textfile(path: Path, text: str) -> None:
    """Put a textfile in its place, whole or not at all, for everyone to read.

    Raises
    ------
    UsageError
        Where it cannot be written.
    """
    draft = path.with_name(f".{secrets.token_hex(8)}.draft")  # an exporter reads every *.prom
    try:
        try:
            descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
            with os.fdopen(descriptor, "w", encoding="utf-8", newline="\n") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            draft.replace(path)
        finally:
            draft.unlink(missing_ok=True)
    except (OSError, ValueError):
        message = f"--out {path}: the file cannot be written"
        raise UsageError(message) from None


def hour(now: datetime) -> datetime:
    """Return the hour that a moment lies in."""
    return datetime.fromtimestamp(_hour(now), UTC)


def _hour(now: datetime) -> int:
    return int(now.timestamp()) // 3600 * 3600


def _beginning(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(4096)


def _labelled(labels: Mapping[str, str]) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_quoted(value)}"' for name, value in labels.items()) + "}"


def _quoted(value: str) -> str:
    """Escape a label's value as Prometheus' text format does."""
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
