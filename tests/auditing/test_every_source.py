"""`make audit`: every kind of source and path, and random specs, with 50,000 joint pairs in all."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np
import pytest

import suffice
from suffice.auditing.levels import try_chains
from suffice.auditing.scratch_sources import LOOSE
from support.audited import SPECS, random_spec, running

if TYPE_CHECKING:
    from pathlib import Path

N_SPECS = int(os.environ.get("SUFFICE_AUDIT_SPECS", "200"))
N_SPECS_IN_RHO = int(os.environ.get("SUFFICE_AUDIT_SPECS", "12"))
N_PAIRS = int(os.environ.get("SUFFICE_AUDIT_PAIRS", "250"))
"""Pairs of each random spec: 50,000 in all, and 3,000 in rho."""


@pytest.mark.audit
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", SPECS)
def test_every_source_is_audited_and_every_mutant_caught(name: str) -> None:
    spec = suffice.load_spec(SPECS[name])
    done = suffice.audit(spec, seconds=800)
    assert done.findings == ()
    assert done.survivors == ()
    assert len(done.mutants) >= 12
    assert done.ok


@pytest.mark.audit
@pytest.mark.timeout(7200)
@pytest.mark.parametrize(("measure", "n_specs"), [("epsilon", N_SPECS), ("rho", N_SPECS_IN_RHO)])
def test_neighbours_of_random_specs_lose_no_more_than_declared(
    tmp_path: Path, measure: str, n_specs: int
) -> None:
    """That neighbours come near what is declared is shown for stated specs, in `test_exact_level.py`."""
    rng = np.random.default_rng(27)
    pairs = 0
    for number in range(n_specs):
        spec = random_spec(rng, measure)
        directory = tmp_path / str(number)
        directory.mkdir()
        modes = (("spark", "pandas"), ("pandas",), ("single",), ("postgres",))
        with running(spec, directory, seed=number) as (runner, maker):
            chains = maker.chains(N_PAIRS, modes if spec.source.kind in LOOSE else (("spark", "spark"),))
            level = try_chains(runner, chains, first_only=False)
        assert level.findings == [], (number, spec.canonical_plan(), level.findings[:3])
        assert level.largest <= 1
        pairs += level.pairs
    assert pairs == n_specs * N_PAIRS
