"""Classify the Adult test rows by noisy naive Bayes, and time classes and queries beside plain ways.

python benchmarks/classifying.py [--noises 20]

Accuracy and mean log score (nats) of four ways, the same noisy counts for all: chances averaged over draws
of the noise-aware posterior, which is `models.classifier`; chances of that posterior's means; the plug-in
posterior, averaged likewise; and exact counts plus one, without noise. Numbers are means over noises, with
standard deviations in brackets.
"""

from __future__ import annotations

import argparse
import itertools
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from measuring import versions

from suffice import models
from suffice.pipeline.math.engines.elimination import Factor, marginal
from support import adult
from support.real_data import REAL_DATA

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.pipeline.ask.models.classifier import Classifier
    from suffice.typing import Floats

EPSILONS = ("0.1", "0.5", "1")
MILLION = 1_000_000
LENGTH = 12


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--noises", type=int, default=20)
    noises = parser.parse_args().noises
    data = adult.adult(REAL_DATA / "adult")
    print(versions())
    accuracy, log_score = adult.add_one(data)
    print(
        f"\nexact counts plus one: accuracy {accuracy:.4f}, mean log score {log_score:.4f}; {noises} noises\n"
    )
    print(f"{'epsilon':8}{'way':24}{'accuracy':>18}{'mean log score':>20}")
    for epsilon in EPSILONS:
        times: dict[str, list[tuple[float, float]]] = {}
        for seed in range(noises):
            for way, scored in scores(data, epsilon, seed).items():
                times.setdefault(way, []).append(scored)
        for way, each in times.items():
            mean, spread = np.mean(each, axis=0), np.std(each, axis=0)
            print(
                f"{epsilon:8}{way:24}{mean[0]:>10.4f} ({spread[0]:.4f}){mean[1]:>12.4f} ({spread[1]:.4f})",
                flush=True,
            )
    with tempfile.TemporaryDirectory() as root:
        release = adult.released(data, "1", Path(root), np.random.default_rng(1))
        found_one = models.classifier(release, "income", rng=1)
    time_classes(data, found_one)
    time_queries()


def scores(data: adult.Adult, epsilon: str, seed: int) -> dict[str, tuple[float, float]]:
    """Return accuracy and mean log score of each way, by one release."""
    with tempfile.TemporaryDirectory() as root:
        release = adult.released(data, epsilon, Path(root), np.random.default_rng(seed))
        aware = models.classifier(release, "income", rng=seed)
        plug_in = models.classifier(release, "income", method="plug-in", rng=seed)
    ways = {"noise-aware": aware.predict_proba(data.test), "its posterior means": of_means(aware, data)}
    ways["plug-in"] = plug_in.predict_proba(data.test)
    classes, _ = adult.codes(data.test, data)
    of_class = {way: chances[np.arange(len(classes)), classes] for way, chances in ways.items()}
    return {
        way: (float(np.mean(chances.argmax(axis=1) == classes)), float(np.log(of_class[way]).mean()))
        for way, chances in ways.items()
    }


def of_means(classifier: Classifier, data: adult.Adult) -> Floats:
    """Return chances by the means of all probabilities, as if they were known."""
    means = classifier.posterior.mean("probability")[0]
    _, features = adult.codes(data.test, data)
    log_joint = np.log(means[:2])[None, :]
    start = 2
    for name, entries in data.categories.items():
        table = means[start : start + 2 * len(entries)].reshape(2, -1)
        start += table.size
        log_joint = log_joint + np.log(table)[:, features[name]].T
    chances: Floats = np.exp(log_joint - np.logaddexp.reduce(log_joint, axis=1, keepdims=True))
    return chances


def time_classes(data: adult.Adult, classifier: Classifier) -> None:
    """Time a million rows, beside as many of which most are alike."""
    rng = np.random.default_rng(3)
    rows = {name: rng.choice(np.array(entries), MILLION) for name, entries in data.categories.items()}
    whole = seconds(lambda: classifier.classify(rows))
    places = rng.integers(0, 1000, MILLION)
    alike = {name: column[places] for name, column in rows.items()}
    repeated = seconds(lambda: classifier.classify(alike))
    print(
        f"\nCPU seconds of {MILLION:,} rows, {classifier.draws} draws, {len(data.categories)} features, "
        "2 classes"
    )
    print(f"rows drawn at random {whole:.1f}; of 1,000 different rows {repeated:.1f}")


def time_queries() -> None:
    """Time a query of a chain by elimination, beside the table of all variables."""
    rng = np.random.default_rng(4)
    draws = 100
    names = tuple(f"x{place}" for place in range(LENGTH))
    factors = [Factor(variables=names[:1], values=rng.dirichlet(np.ones(3), (draws, 1)))]
    factors += [
        Factor(variables=pair, values=rng.dirichlet(np.ones(3), (draws, 1, 3)))
        for pair in itertools.pairwise(names)
    ]

    def enumerated() -> Floats:
        joint = factors[0].values
        for factor in factors[1:]:
            joint = joint[..., None] * factor.values.reshape(draws, 1, *(1,) * (joint.ndim - 3), 3, 3)
        total: Floats = joint.sum(axis=tuple(range(2, joint.ndim - 1)))
        return total

    np.testing.assert_allclose(marginal(factors, names[-1:]), enumerated())
    eliminated, whole = (
        seconds(lambda: [marginal(factors, names[-1:]) for _ in range(10)]) / 10,
        seconds(enumerated),
    )
    print(f"\nCPU seconds of the last of {LENGTH} variables of three categories in a chain, {draws} draws")
    print(f"elimination {eliminated:.4f}; the joint table {whole:.2f}; ratio {whole / eliminated:.0f}")


def seconds(work: Callable[[], object]) -> float:
    """Return the CPU seconds of a call."""
    start = time.process_time()
    work()
    return time.process_time() - start


if __name__ == "__main__":
    main()
