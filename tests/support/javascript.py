"""Asks the JavaScript reader by Node: one process for many questions."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

_READER = Path(__file__).with_name("javascript.mjs")
ONE_SUM = (
    "bernoulli",
    "binomial",
    "poisson",
    "geometric",
    "negative_binomial",
    "exponential",
    "gamma",
    "weibull",
    "pareto",
    "laplace",
    "normal_known_mean",
    "normal_known_variance",
)
"""Families whose posterior the reader computes from one sum."""
_LARGEST_BATCH = 20_000_000
"""Bytes of manifests that one process gets."""


def node() -> str:
    """Return Node's path; skip where there is none, unless ``NODE=required``."""
    path = shutil.which("node")
    if path is None:
        if os.environ.get("NODE") == "required":
            pytest.fail("node is required and not installed")
        pytest.skip("the JavaScript reader: node is not installed")
    return path


def ask(directory: Path, questions: list[dict[str, Any]], keys: list[str] | None = None) -> dict[str, Any]:
    """Return what the reader says of one release."""
    (answer,) = ask_all([{"directory": str(directory), "questions": questions, "publicKeys": keys}])
    return answer


def ask_all(asked: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what the reader says of several releases: each a ``directory`` with ``questions``."""
    answers: list[dict[str, Any]] = _run(asked)
    return answers


def read_publication(folder: Path, **options: Any) -> dict[str, Any]:
    """Return all that the reader gives of a publication, or the error that refuses it."""
    (publication,) = read_publications([(folder, options)])
    return publication


def read_publications(asked: list[tuple[Path, dict[str, Any]]]) -> list[dict[str, Any]]:
    """Return what the reader gives of publications, each read with options of its own."""
    publications: list[dict[str, Any]] = _run(
        [{"publication": str(folder), "options": given} for folder, given in asked]
    )
    return publications


def judge(manifests: list[bytes]) -> list[dict[str, Any]]:
    """Return for every manifest the code of the error that refuses it; None where it is read."""
    verdicts: list[dict[str, Any]] = []
    batch: list[str] = []
    for position, manifest in enumerate(manifests):
        batch.append(base64.b64encode(manifest).decode())
        if sum(map(len, batch)) > _LARGEST_BATCH or position == len(manifests) - 1:
            verdicts += _run([{"manifests": batch}])[0]
            batch = []
    return verdicts


def _run(asked: list[dict[str, Any]]) -> Any:
    done = subprocess.run(
        [node(), str(_READER)],
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)
