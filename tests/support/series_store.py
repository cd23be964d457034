"""A store with the windows of a series, written as a release writes them, of simulated records."""

from __future__ import annotations

import datetime as dt
import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.pipeline.families import FAMILIES
from suffice.pipeline.spec.plan import compile_plan
from suffice.pipeline.spec.spec import load_spec
from suffice.pipeline.spec.windows_and_amendments import AmendedRelease, edition
from suffice.storage.releases.manifest import DataFile, compose_manifest
from suffice.storage.releases.release_parquet import encode_statistic
from suffice.storage.releases.release_store import open_store
from suffice.storage.releases.withdrawal import WITHDRAWN, compose_withdrawal
from support.noisy import discrete_laplace

if TYPE_CHECKING:
    from pathlib import Path

LEDGER_ID = "5e1e" * 8
CREATED = dt.datetime(2026, 1, 31, 8, tzinfo=dt.UTC)
CANCELLED: dict[str, Any] = {"family": "bernoulli", "column": "cancelled"}


@dataclass
class SeriesStore:
    """Writes windows of one name; a later edition amends the one before.

    Parameters
    ----------
    place : Path
    name : str
    """

    place: Path
    name: str = "flights"
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(7))
    _editions: dict[str, list[AmendedRelease]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.place.exists():
            open_store(str(self.place), ledger_id=LEDGER_ID, create=True)

    def publish(
        self,
        window: str,
        truth: Any,
        *,
        size: int = 200,
        epsilon: str = "1",
        every: str | None = "month",
        groups: dict[str, Any] | None = None,
        statistic: dict[str, Any] = CANCELLED,
        called: str = "cancelled",
        dataset: str = "simulated",
    ) -> Path:
        """Write a release of a window, or an amendment where it has one; return its folder."""
        document = {
            "name": self.name,
            "dataset": dataset,
            "source": {"parquet": "none"},
            "privacy": {"epsilon": epsilon, "neighboring": "add_or_remove_one", "unit": "row"},
            "statistics": {called: statistic},
            **({"window": {"column": "day", "every": every}} if every else {}),
            **({"groups": groups} if groups else {}),
        }
        spec = load_spec(document)
        plan = compile_plan(spec)
        before = self._editions.setdefault(window, [])
        amendment = len(before)
        label = edition(window, amendment)
        release_id = hashlib.sha256(f"{self.name}@{label}".encode()).hexdigest()[:16]
        folder = self.place / self.name / label / release_id
        folder.mkdir(parents=True)
        (released,) = plan.statistics
        family, entry = FAMILIES[released.family], spec.statistics[called]
        assert family.simulate is not None
        truth = np.atleast_1d(np.asarray(truth, dtype=float))
        sums = family.simulate(entry, truth, np.full(len(truth), size), self.rng).clipped
        totals = family.totals(entry, released.design, sums)
        noise = discrete_laplace(released.scale, totals.shape, self.rng)
        data = encode_statistic(released, (totals + noise).astype(object))
        (folder / f"{called}.parquet").write_bytes(data)
        file = DataFile(
            statistic=called,
            path=f"{called}.parquet",
            size=len(data),
            sha256=hashlib.sha256(data).hexdigest(),
            rows=totals.size,
        )
        manifest = compose_manifest(
            plan,
            window=window,
            amendment=amendment,
            amends=before[-1] if before else None,
            release_id=release_id,
            public_n=None,
            input_verified=False,
            files=[file],
            ledger_id=LEDGER_ID,
            drawing_sequence=3,
            drawing_hash=hashlib.sha256(release_id.encode()).hexdigest(),
            created=CREATED,
            signer=None,
        )
        (folder / "manifest.json").write_bytes(manifest)
        before.append(
            AmendedRelease(release_id=release_id, manifest_sha256=hashlib.sha256(manifest).hexdigest())
        )
        return folder


def withdraw(folder: Path, reason: str) -> None:
    """Put a withdrawal beside a manifest."""
    manifest = (folder / "manifest.json").read_bytes()
    data = compose_withdrawal(manifest, folder.name, reason=reason, created=CREATED)
    (folder / WITHDRAWN).write_bytes(data)
