"""A small release to publish posteriors of, with keys that are hostile text."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING, Any

import numpy as np

import suffice
from suffice.publishing.publish import publish
from suffice.storage.publications.publication_store import PublicationStore
from support.faults import interpose
from support.releases import make_plan
from support.releases import publish as publish_release

if TYPE_CHECKING:
    from multiprocessing.synchronize import Barrier
    from pathlib import Path

    from suffice.pipeline.ask.pooling.release import Release

KEYS = ["=1+1", "<script>x", 'a"b']
STATISTICS = {
    "flag": {"family": "bernoulli", "column": "c"},
    "delay": {"family": "normal", "column": "v", "lower": 0, "upper": 10},
    "kind": {"family": "categorical", "column": "k", "categories": ["x", "=y"]},
}


def make_release(folder: Path, **changes: Any) -> Release:
    """Publish a release of three statistics in six cells, and open it."""
    groups = {"place": KEYS, "month": {"range": [1, 2]}}
    plan = make_plan(**{"groups": groups, "statistics": STATISTICS, **changes})
    rng = np.random.default_rng(7)
    values = {
        statistic.name: rng.integers(40, 90, (plan.n_cells, len(statistic.components))).astype(object)
        for statistic in plan.statistics
    }
    return suffice.open_release(publish_release(folder, plan, values))


def publish_until(uri: str, to: str, n_files: int) -> None:
    """Publish in this process, which is killed once so many files were put."""
    put: list[str] = []

    def die(_: object, __: str, name: str, *___: object) -> None:
        put.append(name)
        if len(put) == n_files:
            os.kill(os.getpid(), signal.SIGKILL)

    interpose(PublicationStore, "put_file", "after", die)
    publish(uri, ["flag", "kind"], draws=20, to=to)


def publish_at_once(uri: str, to: str, barrier: Barrier, results: Any) -> None:
    """Publish when all are ready, and report which manifest stands there."""
    from suffice.publishing.asking import question_of
    from suffice.publishing.publish import carry_out, publications_of

    question = question_of(suffice.open_release(uri), "flag", draws=20)
    barrier.wait(timeout=60)
    outcome = carry_out(question, publications_of(question, to))
    results.put((outcome.is_new, outcome.publication.data.decode()))
