"""The Adult data as the naive Bayes studies of this project read them: 11 features and an income."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from suffice.pipeline.spec.plan import compile_plan
from suffice.pipeline.spec.spec import load_spec
from suffice.storage.releases.release_store import open_release
from support.noisy import discrete_laplace
from support.releases import publish

if TYPE_CHECKING:
    from pathlib import Path

    from suffice.pipeline.ask.pooling.release import Release
    from suffice.typing import Codes, Counts

TEXTS = ("workclass", "education", "marital-status", "occupation", "relationship", "race", "sex")
FLAGS = ("capital-gain", "capital-loss")
CLASSES = ("<=50K", ">50K")


@dataclass(frozen=True, slots=True, kw_only=True)
class Adult:
    """Rows by their split, and the public categories of each feature."""

    train: pa.Table
    test: pa.Table
    categories: dict[str, list[str]]


def adult(directory: Path) -> Adult:
    """Read the file: tens of years of age in 1..8 and of hours a week in 0..9, gains and losses as 0 or 1."""
    raw = pq.read_table(directory / "adult.parquet")
    columns = {name: raw[name] for name in TEXTS}
    columns["age"] = pc.min_element_wise(pc.max_element_wise(pc.divide(raw["age"], 10), 1), 8)
    columns["hours-per-week"] = pc.min_element_wise(pc.divide(raw["hours-per-week"], 10), 9)
    columns |= {name: pc.cast(pc.greater(raw[name], 0), pa.int8()) for name in FLAGS}
    table = pa.table({**columns, "income": pc.utf8_rtrim(raw["income"], characters=".")})
    categories = {name: sorted(pc.unique(raw[name]).to_pylist()) for name in TEXTS}
    categories |= {"age": _texts(1, 8), "hours-per-week": _texts(0, 9)}
    categories |= {name: ["0", "1"] for name in FLAGS}
    is_train = pc.equal(raw["split"], "train")
    return Adult(train=table.filter(is_train), test=table.filter(pc.invert(is_train)), categories=categories)


def _texts(first: int, last: int) -> list[str]:
    return [str(number) for number in range(first, last + 1)]


def spec_of(data: Adult, epsilon: str) -> dict[str, Any]:
    """Return a spec that releases incomes by the 11 features."""
    return {
        "name": "adult",
        "dataset": "census",
        "source": {"parquet": "adult.parquet"},
        "privacy": {"epsilon": epsilon, "neighboring": "add_or_remove_one", "unit": "row"},
        "statistics": {
            "income": {
                "family": "naive_bayes",
                "outcome": {"income": list(CLASSES)},
                "features": {
                    name: {"column": name, "categories": list(entries)}
                    for name, entries in data.categories.items()
                },
            }
        },
    }


def codes(table: pa.Table, data: Adult) -> tuple[Codes, dict[str, Codes]]:
    """Return the class and the code of each feature of all rows, by plain lookup of texts."""

    def looked_up(name: str, categories: list[str]) -> Codes:
        texts = pc.cast(table[name], pa.string())
        return np.asarray(pc.index_in(texts, value_set=pa.array(categories)), dtype=np.int32)

    return looked_up("income", list(CLASSES)), {
        name: looked_up(name, entries) for name, entries in data.categories.items()
    }


def counts(data: Adult) -> dict[str, Counts]:
    """Return the exact counts of each feature by class of the rows to train on, (2, n_categories)."""
    classes, features = codes(data.train, data)
    by_place: dict[str, Counts] = {}
    for name, entries in data.categories.items():
        flat = np.bincount(classes * len(entries) + features[name], minlength=2 * len(entries))
        by_place[name] = flat.reshape(2, -1)
    return by_place


def released(data: Adult, epsilon: str, root: Path, rng: np.random.Generator) -> Release:
    """Publish the exact counts with simulated noise of the plan's scale, and open the release."""
    plan = compile_plan(load_spec(spec_of(data, epsilon)))
    (statistic,) = plan.statistics
    exact = np.concatenate([table.ravel() for table in counts(data).values()])
    noise = discrete_laplace(float(statistic.scale), exact.shape, rng)
    values = np.array([int(entry) for entry in exact + noise], dtype=object)[None, :]
    return open_release(str(publish(root, plan, {"income": values})))


def add_one(data: Adult) -> tuple[float, float]:
    """Return accuracy and mean log score of non-private naive Bayes with add-one counts on the test rows."""
    tables = counts(data)
    classes, features = codes(data.test, data)
    totals = next(iter(tables.values())).sum(axis=1)
    log_joint = np.log((totals + 1) / (totals.sum() + 2))[None, :]
    for name, table in tables.items():
        smoothed = (table + 1) / (totals[:, None] + table.shape[1])
        log_joint = log_joint + np.log(smoothed)[:, features[name]].T
    log_chances = log_joint - np.logaddexp.reduce(log_joint, axis=1, keepdims=True)
    of_class = log_chances[np.arange(len(classes)), classes]
    return float(np.mean(log_chances.argmax(axis=1) == classes)), float(of_class.mean())
