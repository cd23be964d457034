"""Draw the pictures of the gallery, each by the command that stands beside it.

Releases of simulated flights are made with numbers that a seed fixes, noise included, so that pictures stay
as they are: nothing of them is private, and nothing was spent. It needs the extra ``plot``::

    python docs/figures/gallery.py
"""

from __future__ import annotations

import datetime as dt
import hashlib
import io
import shlex
import tempfile
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.cli import app
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.spec.plan import compile_plan
from suffice.pipeline.spec.spec import load_spec
from suffice.pipeline.terms.statistics.simulated_sums import discrete_laplace
from suffice.storage.releases.manifest import DataFile, compose_manifest
from suffice.storage.releases.release_parquet import encode_statistic
from suffice.storage.releases.release_store import open_store

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

HERE = Path(__file__).parent
SEED = 2013
LEDGER_ID = "5eed" * 8
CREATED = dt.datetime(2026, 1, 31, 8, tzinfo=dt.UTC)
ROW = {"epsilon": "1.5", "neighboring": "add_or_remove_one", "unit": "row"}
ORIGINS = ["EWR", "JFK", "LGA"]
CANCELLED = {"family": "bernoulli", "column": "cancelled"}
CARRIER = {"family": "categorical", "column": "carrier", "categories": ["UA", "B6", "DL"], "other": "true"}
DELAY = {"family": "normal", "column": "arr_delay", "lower": "-60", "upper": "180"}
COUNTIES = 900

PICTURES = {
    "posterior": 'posterior flights@2013-02 cancelled --prior "Beta(1, 20)" --beside plug-in --seed 1',
    "delays": "posterior flights@2013-02 arr_delay --seed 1",
    "forest": "posterior year cancelled --where origin=LGA --seed 1 --plot-kind forest",
    "ranked": "posterior counties ill --seed 1",
    "table": "table year cancelled",
    "estimates": "table flights@2013-02 carrier",
    "comparison": "compare flights@2013-01 flights@2013-02 cancelled --seed 1",
    "priors": 'compare-priors flights@2013-02 cancelled --prior "Beta(1, 20)" --prior "Beta(1, 1)" '
    '--prior "Beta(10, 10)"',
    "robustness": 'posterior flights@2013-02 cancelled --prior "Beta(1, 20)" --plot-kind robustness --seed 1',
    "pool": "pool cancelled --disjoint flights@2013-01 --disjoint flights@2013-02 --seed 1",
    "calibration": "calibrate flights@2013-02 cancelled --where origin=EWR --simulations 2000 --seed 1",
}
"""Each picture's command, but for ``--plot``."""


def main() -> None:
    """Make the releases, and draw every picture."""
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "releases"
        make_releases(store)
        for name, command in PICTURES.items():
            draw(HERE / f"gallery-{name}.svg", command, store)


def make_releases(store: Path) -> None:
    """Write every release that a picture is of, in a new store."""
    open_store(str(store), ledger_id=LEDGER_ID, create=True)
    rng = np.random.default_rng(SEED)
    monthly = {"window": {"column": "day", "every": "month"}}
    statistics = {"cancelled": CANCELLED, "arr_delay": DELAY, "carrier": CARRIER}
    for month, rate in (("2013-01", [0.025, 0.02, 0.03]), ("2013-02", [0.05, 0.045, 0.07])):
        truth = {
            "cancelled": np.array(rate),
            "arr_delay": np.array([[8.0, 1400.0], [5.0, 1250.0], [6.5, 1300.0]]),
            "carrier": np.array([[0.5, 0.1, 0.1, 0.3], [0.1, 0.4, 0.2, 0.3], [0.1, 0.05, 0.25, 0.6]]),
        }
        sizes = np.array([900, 420, 160])
        grid = {"name": "flights", "groups": {"origin": ORIGINS}, **monthly}
        release(store, grid, statistics, truth, sizes, rng, month)
    season = 0.03 + 0.03 * np.cos(np.arange(12) / 12.0 * 2.0 * np.pi - 0.6) ** 2
    year = {"cancelled": np.concatenate([season * scale for scale in (1.0, 0.7, 1.3)])}
    sizes = rng.integers(700, 1000, 36)
    groups = {"origin": ORIGINS, "month": {"range": ["1", "12"]}}
    release(store, {"name": "year", "groups": groups}, {"cancelled": CANCELLED}, year, sizes, rng)
    ill = {"ill": rng.beta(4.0, 30.0, COUNTIES)}
    groups = {"county": {"range": ["1", str(COUNTIES)]}}
    entry = {"ill": {"family": "bernoulli", "column": "ill"}}
    sizes = rng.integers(40, 600, COUNTIES)
    release(store, {"name": "counties", "groups": groups}, entry, ill, sizes, rng)


def release(
    store: Path,
    grid: dict[str, Any],
    statistics: dict[str, Any],
    truth: dict[str, Floats],
    sizes: NDArray[np.int64],
    rng: np.random.Generator,
    window: str = "all",
) -> None:
    """Write a release of simulated records, with a generator's noise of the plan's scale."""
    source = {"dataset": "simulated", "source": {"parquet": "none"}, "privacy": ROW}
    spec = load_spec({**grid, **source, "statistics": statistics})
    plan = compile_plan(spec)
    release_id = hashlib.sha256(f"{plan.name}@{window}".encode()).hexdigest()[:16]
    folder = store / plan.name / window / release_id
    folder.mkdir(parents=True)
    files = []
    for statistic in plan.statistics:
        family, entry = FAMILIES[statistic.family], spec.statistics[statistic.name]
        simulate: Any = family.simulate
        sums = simulate(entry, truth[statistic.name], sizes, rng).clipped
        totals = family.totals(entry, statistic.design, sums)
        noise = discrete_laplace(statistic.scale, totals.shape, rng)
        data = encode_statistic(statistic, totals + noise.astype(object))
        path = f"{statistic.name}.parquet"
        (folder / path).write_bytes(data)
        files.append(
            DataFile(
                statistic=statistic.name,
                path=path,
                size=len(data),
                sha256=hashlib.sha256(data).hexdigest(),
                rows=totals.size,
            )
        )
    manifest = compose_manifest(
        plan,
        window=window,
        amendment=0,
        amends=None,
        release_id=release_id,
        public_n=None,
        input_verified=False,
        files=files,
        ledger_id=LEDGER_ID,
        drawing_sequence=3,
        drawing_hash=hashlib.sha256(release_id.encode()).hexdigest(),
        created=CREATED,
        signer=None,
    )
    (folder / "manifest.json").write_bytes(manifest)


def draw(path: Path, command: str, store: Path) -> None:
    """Run a command with ``--plot``."""
    path.unlink(missing_ok=True)
    words = [*shlex.split(command), "--store", str(store), "--plot", str(path)]
    try:
        with redirect_stdout(io.StringIO()) as said:
            app.main(words)
    except SystemExit as end:
        if end.code:
            print(said.getvalue())
            raise
    print(path.name)


if __name__ == "__main__":
    main()
