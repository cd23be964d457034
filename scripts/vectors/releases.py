"""Make the valid test vectors: real sums of known rows, known noise, and the writer that releases have."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import math
import operator
import random
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.parquet as pq

from scripts.vectors.rows import read_rows
from scripts.vectors.samples import drawn_points, records_and_totals
from scripts.vectors.specs import VALID, VectorSpec
from suffice.pipeline.cluster.connection import open_cluster
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.families.shared.beside_sums import totals_of
from suffice.pipeline.rows import sources
from suffice.pipeline.rows.chunk.exact_sums import to_python
from suffice.pipeline.rows.chunk.partition import chunk_job
from suffice.pipeline.rows.reduce.tree import exact_sums
from suffice.pipeline.spec.about import About, read_about
from suffice.pipeline.spec.plan import Plan, compile_plan
from suffice.pipeline.spec.spec import Spec, load_spec
from suffice.pipeline.spec.windows_and_amendments import AmendedRelease
from suffice.storage.releases.about_file import Wording, about_name, compose_about
from suffice.storage.releases.manifest import DataFile, compose_manifest
from suffice.storage.releases.release_parquet import encode_statistic
from suffice.storage.signatures.signing import Signer, load_signer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from suffice.pipeline.cluster.connection import Cluster
    from suffice.pipeline.terms.statistics.cone_noise import ConeNoise

    Values = dict[str, NDArray[np.object_]]

LEDGER_ID = "5eed" * 8
CREATED = dt.datetime(2026, 1, 31, 8, tzinfo=dt.UTC)
TEST_KEY = "test-key.pem"
"""The private key that signs vectors. It is public: no release may be signed with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeRelease:
    """The files of one release, and what they were made of."""

    plan: Plan
    manifest: bytes
    files: dict[str, bytes]
    words: Wording
    totals: Values
    noise: Values
    values: Values

    def write(self, directory: Path) -> None:
        """Write the release's directory."""
        directory.mkdir(parents=True)
        words = {about_name(number): data for number, data in enumerate(self.words.files, start=1)}
        for name, data in {**self.files, **words, "manifest.json": self.manifest}.items():
            (directory / name).write_bytes(data)


def make_all(root: Path, scratch: Path) -> dict[str, MadeRelease]:
    """Make every valid vector, those that are amended first."""
    source = scratch / "rows.parquet"
    pq.write_table(read_rows(root / "rows.csv"), source)
    signer = vectors_signer(root, scratch)
    made: dict[str, MadeRelease] = {}
    with open_cluster("threads") as cluster:
        for number, (name, vector) in enumerate(VALID.items(), start=1):
            spec = load_spec(
                {**vector.spec, "name": name, "dataset": "rows", "source": {"parquet": str(source)}}
            )
            amends = None if vector.amends is None else made[vector.amends]
            made[name] = _make(number, vector, spec, cluster, amends, signer if vector.signed else None)
    return made


def vectors_signer(root: Path, scratch: Path) -> Signer:
    """Return what signs vectors; a private key's file has to be closed to others, which Git does not keep."""
    key = scratch / TEST_KEY
    shutil.copyfile(root / TEST_KEY, key)
    key.chmod(0o600)
    return load_signer(key)


def known_document(made: MadeRelease) -> dict[str, Any]:
    """Return what readers never see: totals and noise, in lattice units, cell by cell.

    Of a sample totals are the records and their T from its lower bound, of a drawn quantile the records in
    each bin; there is no noise to be added.
    """

    def texts(values: Values) -> dict[str, list[list[str]]]:
        return {
            name: [[str(number) for number in row] for row in rows.tolist()] for name, rows in values.items()
        }

    return {"totals": texts(made.totals), "noise": texts(made.noise), "values": texts(made.values)}


def written(document: object) -> bytes:
    """Write a document for people."""
    return (json.dumps(document, indent=1, ensure_ascii=False) + "\n").encode()


def _make(
    number: int,
    vector: VectorSpec,
    spec: Spec,
    cluster: Cluster,
    amended: MadeRelease | None,
    signer: Signer | None,
) -> MadeRelease:
    plan = compile_plan(spec)
    pin = sources.pin(spec)
    sums = to_python(exact_sums(chunk_job(spec, vector.window), sources.splits(pin), cluster).open_totals())
    totals = {
        statistic.name: np.asarray(
            totals_of(
                FAMILIES[statistic.family], spec.statistics[statistic.name], statistic, sums[statistic.name]
            )
            if statistic.sample is None
            else records_and_totals(statistic, spec.statistics[statistic.name], sums[statistic.name]),
            dtype=object,
        )
        for statistic in plan.statistics
    }
    draw = random.Random(number)  # noqa: S311 - known noise of a test vector
    stretch = {"drawn": 1.0, "large": 3.0}[vector.noise]
    noise, values = {}, {}
    for statistic in plan.statistics:
        if statistic.sample is not None:
            values[statistic.name] = drawn_points(
                statistic, spec.statistics[statistic.name], totals[statistic.name], draw
            )
            continue
        drawn = np.array(
            [
                [_laplace(stretch * statistic.scale, draw) for _ in row]
                if statistic.cone is None
                else on_cone(statistic.cone, draw)
                for row in totals[statistic.name]
            ],
            dtype=object,
        )
        lowest, highest = statistic.value_limits
        if vector.ends:
            drawn[0] = [2 * highest if column % 2 else 2 * lowest for column in range(drawn.shape[1])]
        noise[statistic.name] = drawn
        values[statistic.name] = np.clip(totals[statistic.name] + drawn, lowest, highest)
    release_id = hashlib.sha256(spec.name.encode()).hexdigest()[:16]
    files = {
        f"{statistic.name}.parquet": encode_statistic(statistic, values[statistic.name])
        for statistic in plan.statistics
    }
    entries = [
        DataFile(
            statistic=statistic.name,
            path=(path := f"{statistic.name}.parquet"),
            size=len(files[path]),
            sha256=hashlib.sha256(files[path]).hexdigest(),
            rows=values[statistic.name].size,
        )
        for statistic in plan.statistics
    ]
    manifest = compose_manifest(
        plan,
        window=vector.window,
        amendment=0 if amended is None else 1,
        amends=None
        if amended is None
        else AmendedRelease(
            release_id=json.loads(amended.manifest)["release_id"],
            manifest_sha256=hashlib.sha256(amended.manifest).hexdigest(),
        ),
        release_id=release_id,
        public_n=pq.read_metadata(spec.source_address).num_rows if plan.n_is_public else None,
        input_verified=False,
        files=entries,
        ledger_id=LEDGER_ID,
        drawing_sequence=3 * number,
        drawing_hash=hashlib.sha256(release_id.encode()).hexdigest(),
        created=CREATED,
        signer=signer,
    )
    words = Wording()
    for about in vector.words:
        words = with_words(manifest, words, read_about(about), signer)
    return MadeRelease(
        plan=plan, manifest=manifest, files=files, words=words, totals=totals, noise=noise, values=values
    )


def with_words(manifest: bytes, standing: Wording, about: About, signer: Signer | None) -> Wording:
    """Return the words of a release, described once more."""
    release_id = json.loads(manifest)["release_id"]
    data = compose_about(manifest, release_id, about, standing, created=CREATED, signer=signer)
    return Wording(about=about, files=(*standing.files, data))


def on_cone(noise: ConeNoise, source: random.Random) -> list[int]:
    """Return round(M^2 P) - round(M^2 Q): the law of the noise on a cone, with a known stream."""
    p, q = ([round(entry) for entry in _matrix(noise, source)] for _ in range(2))
    return [first - second for first, second in zip(p, q, strict=True)]


def _matrix(noise: ConeNoise, source: random.Random) -> Iterator[float]:
    t = -sum(math.log(1 - source.random()) for _ in range(noise.n_components))
    points: dict[int, list[float]] = {}
    for row in range(noise.columns + 1):
        normal = [source.gauss(0, 1) for _ in range(noise.dimension)]
        radius = 1.0 if row == 0 else source.random() ** (1 / noise.dimension)
        length = math.hypot(*normal)
        points[row] = [radius * number / length for number in normal]
    unit = float(noise.steps**2 / noise.rate)
    for i, j in noise.pairs:
        yield unit * t * (1.0 if j == 0 else sum(map(operator.mul, points[i], points[j])))


def _laplace(scale: float, source: random.Random) -> int:
    """Return the difference of two geometric numbers: the law of the noise, with a known stream."""
    geometric = [int(-scale * math.log(1 - source.random())) for _ in range(2)]
    return geometric[0] - geometric[1]
