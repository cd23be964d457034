"""Time the window from `drawing` to `staged`, in which a kill loses epsilon, and the whole release.

python benchmarks/drawing_window.py [--values 20000 400000 2000000]

Whole releases over one small file are timed by the ledger's own steps; the sampler draws as many times, by
as many threads, right before and after each release. Noise that is drawn in the window would show in it.
"""

from __future__ import annotations

import argparse
import contextlib
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from measuring import versions
from workloads import make_spec, n_threads

from suffice.pipeline.rows.mechanism.noise import discrete_laplace
from suffice.pipeline.terms.declaration.privacy_loss import PrivacyLoss
from suffice.releasing.release import carry_out
from suffice.storage.ledger.opening import create_ledger
from suffice.storage.ledger.sql.sql_ledger import SqlLedger

if TYPE_CHECKING:
    from collections.abc import Iterator

Times = tuple[float, float]

GOAL = 1.0
"""Seconds that a window may take, at two million values."""


def main() -> None:
    """Release, draw, and print seconds side by side."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--values", type=int, nargs="+", default=[20_000, 400_000, 2_000_000])
    sizes = parser.parse_args().values
    print(f"from drawing to staged; {n_threads()} threads\n{versions()}\n")
    print(f"{'':12}{'window':>18}{'release':>18}{'sampler alone':>18}")
    print(f"{'values':>12}" + f"{'wall s':>9}{'CPU s':>9}" * 3)
    with tempfile.TemporaryDirectory() as directory:
        window_and_release(Path(directory), 1_000)  # imports and kernels
        for values in sizes:
            before = sampler_times(values)
            window, release = window_and_release(Path(directory), values)
            sampler = [
                (earlier + later) / 2 for earlier, later in zip(before, sampler_times(values), strict=True)
            ]
            times = (window, release, sampler)
            shown = "".join(f"{wall:9.2f}{processor:9.2f}" for wall, processor in times)
            print(f"{values:12,}{shown}", flush=True)
    print(f"goal: a window of {GOAL:.0f} s: {'met' if window[0] <= GOAL else 'MISSED'}")


def window_and_release(directory: Path, values: int) -> tuple[Times, Times]:
    """Return what the window of one release of so many values takes, and the whole release."""
    directory = Path(tempfile.mkdtemp(dir=directory))
    data = pa.table({"g": pa.array([1, 2]), "x": pa.array([True, False])})
    pq.write_table(data, directory / "data.parquet")
    spec = make_spec(
        str(directory / "data.parquet"),
        {"g": {"range": ["1", str(values // 2)]}},
        {"s": {"family": "bernoulli", "column": "x"}},
    )
    url = f"sqlite:///{directory / 'ledger.db'}"
    with create_ledger(url) as ledger:
        ledger.grant(spec.dataset, epsilon=Fraction(100), reason="benchmark")
    with timed_steps() as moments:
        began = now()
        carry_out(spec, store=str(directory / "releases"), ledger=url)
        release = since(now(), began)
    return since(moments["stage"], moments["enter_drawing"]), release


def now() -> Times:
    """Return this moment, by the wall and by the processors of this process."""
    return time.perf_counter(), time.process_time()


def since(later: Times, earlier: Times) -> Times:
    """Return the seconds between two moments."""
    return later[0] - earlier[0], later[1] - earlier[1]


def sampler_times(values: int) -> Times:
    """Time the draws alone, of the scale and with the threads of that release."""
    sampler = discrete_laplace(scale=1.0, loss=PrivacyLoss.of_epsilon(Fraction(2)), l1_sensitivity=1)
    noise = np.empty(values, np.int64)
    began = now()
    with ThreadPoolExecutor(n_threads()) as threads:
        for draw in sampler.start(noise, threads):
            draw.result()
    return since(now(), began)


@contextlib.contextmanager
def timed_steps() -> Iterator[dict[str, Times]]:
    """Note when the ledger's steps return."""
    moments: dict[str, Times] = {}
    originals = {name: getattr(SqlLedger, name) for name in ("enter_drawing", "stage")}

    def noting(name: str) -> Any:
        @wraps(originals[name])
        def step(*args: Any, **kwargs: Any) -> Any:
            result = originals[name](*args, **kwargs)
            moments[name] = now()
            return result

        return step

    for name in originals:
        setattr(SqlLedger, name, noting(name))
    try:
        yield moments
    finally:
        for name, original in originals.items():
            setattr(SqlLedger, name, original)


if __name__ == "__main__":
    main()
