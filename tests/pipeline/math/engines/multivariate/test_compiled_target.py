"""The compiled log density of moments against that of arrays, and what it leaves to these."""

from __future__ import annotations

import importlib
import pickle
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy import special

from suffice.pipeline.math.distributions.many_cells import MOMENT_DENSITY
from suffice.pipeline.math.engines.cone.latent_noise import LatentConeNoise
from suffice.pipeline.math.engines.multivariate import compiled_target
from suffice.pipeline.math.engines.multivariate.compiled_target import (
    CompiledTarget,
    can_compile,
    compiled_if_it_pays,
)
from suffice.pipeline.math.engines.multivariate.evidence import OutcomeNoise, RegressionEvidence
from suffice.pipeline.math.engines.multivariate.exact_moments import (
    SpreadNormalEvidence,
    SpreadRegressionEvidence,
)
from suffice.pipeline.math.engines.multivariate.log_posterior import LatentN, LatentTarget
from suffice.pipeline.math.engines.multivariate.shared_target import SharedTarget
from suffice.pipeline.terms.released.noise_distribution import NoisyTotals
from suffice.pipeline.terms.statistics.cone_noise import ConeNoise

if TYPE_CHECKING:
    from suffice.typing import Floats

CELLS, CHAINS = 7, 13
"""States are no multiple of the lanes, and cells begin within them."""
ALIKE = 1e-10
"""What other orders of the same sums may change, beside 1 and the number itself."""
KINDS = [
    (d, is_regression, noise)
    for d in range(1, 9)
    for is_regression in (False, True)
    for noise in ("cone", "laplace")
    if d > int(is_regression)
]


def target_of(d: int, *, is_regression: bool, noise: str) -> SharedTarget:
    """Return a density whose every number is another one."""
    rng = np.random.default_rng(3)
    p, every = d - int(is_regression), 1 + d + d * (d + 1) // 2
    normal = SpreadNormalEvidence(
        loc=rng.normal(size=p) / 5, half_range=rng.uniform(0.5, 1.5, p), concentration=0.7, linear=True
    )
    shared: tuple[Any, ...] = (normal,)
    outcome = None
    if is_regression:
        root = np.eye(d) + rng.normal(size=(d, d)) / 5
        shared = (SpreadRegressionEvidence(loc=rng.normal(size=d) / 5, root=root, outcome=0.8, linear=True),)
        outcome = OutcomeNoise(
            rows=rng.uniform(100, 900, CELLS),
            noise=rng.uniform(0.1, 0.4, (p, CELLS)),
            noise_of_mean=rng.uniform(0.1, 0.4, CELLS),
            most=rng.uniform(0.5, 2.0, CELLS),
        )
    cone: tuple[LatentConeNoise, ...] = ()
    scaled = NoisyTotals(coefficients=np.zeros((0, every)), values=np.zeros((CELLS, 0)), scale=np.zeros(0))
    if noise == "cone":
        law = ConeNoise(rate=Fraction(1, 300), columns=d, linear=True, steps=4)
        values = np.rint(rng.normal(size=(CELLS, every)) * 1e4).astype(object)
        cone = (LatentConeNoise.of(law, values),)
    else:
        coefficients = np.eye(every) / 20.0 + np.triu(rng.normal(size=(every, every)), 1) / 100.0
        scaled = replace(
            scaled,
            coefficients=coefficients,
            values=rng.normal(size=(CELLS, every)) * 5.0,
            scale=np.ones(every),
        )
    target = LatentTarget(
        size=d,
        linear=True,
        evidence=(normal,) if is_regression else (),
        latent_n=LatentN(lowest=d + 1.5, highest=1e6 + 0.5, reciprocal=True, fixed=False),
        scaled=scaled,
        relative=rng.uniform(0.2, 1.5, (3, d * (d - 1) // 2, CELLS)),
        units=rng.uniform(0.2, 1.5, (d, CELLS)),
        outcome=outcome,
        cone=cone,
    )
    return SharedTarget(targets=(target,), shared=shared)


def states_of(target: SharedTarget) -> Floats:
    """Return coordinates of some 20 to 10,000 rows, of columns that are no multiples of each other.

    Of nearly singular matrices either path has fewer digits: about those that a change of coordinates by one
    rounding leaves.
    """
    d = target.targets[0].size
    x = 0.3 * np.random.default_rng(7).normal(size=(target.n_coordinates, CELLS * CHAINS))
    x[0] = 2.5 * x[0] - 8.0
    x[d + np.cumsum(np.arange(1, d + 1))] += 2.0
    return x


@pytest.mark.slow
@pytest.mark.parametrize(("d", "is_regression", "noise"), KINDS)
def test_loops_agree_with_arrays(d: int, is_regression: bool, noise: str) -> None:
    target = target_of(d, is_regression=is_regression, noise=noise)
    assert can_compile(target)
    compiled, x = CompiledTarget.of(target), states_of(target)
    value, gradient = target(x)
    assert np.isfinite(value).all()
    given, slopes = compiled(x)
    assert np.all(np.abs(given - value) <= ALIKE * (1.0 + np.abs(value)))
    assert np.all(np.abs(slopes - gradient) <= ALIKE * (1.0 + np.abs(gradient).max(axis=0)))
    part = np.array([5, 2])
    of_part = x.reshape(len(x), CELLS, CHAINS)[:, part].reshape(len(x), -1)
    assert np.array_equal(compiled.take(part)(of_part)[0].reshape(2, -1), given.reshape(CELLS, -1)[part])


@pytest.mark.slow
@pytest.mark.parametrize("noise", ["cone", "laplace"])
def test_arrays_may_be_read_only(noise: str) -> None:
    """As those are that a worker gets from another process."""
    target = target_of(3, is_regression=True, noise=noise)
    x, buffers = states_of(target), list[pickle.PickleBuffer]()
    content = pickle.dumps((target, x), protocol=5, buffer_callback=buffers.append)
    received, same = pickle.loads(content, buffers=[bytes(buffer.raw()) for buffer in buffers])  # noqa: S301
    assert not same.flags.writeable
    assert np.array_equal(CompiledTarget.of(received)(same)[0], CompiledTarget.of(target)(x)[0])


@pytest.mark.slow
@pytest.mark.parametrize("is_regression", [False, True])
def test_scatters_that_rounding_makes_singular_have_no_density(is_regression: bool) -> None:
    """Their logarithms are noise: thousands of nats above what is likely, where a proposal finds them."""
    target = target_of(3, is_regression=is_regression, noise="laplace")
    compiled, x = CompiledTarget.of(target), states_of(target)[:, :CELLS]
    before = compiled(x)[0]
    x[3 + 1 + 2, ::2] = -13.0  # of the second column, next to nothing beside what it shares with the first
    with np.errstate(all="ignore"):
        value, given = target(x)[0], compiled(x)[0]
    assert np.array_equal(given[1::2], before[1::2])
    assert np.isneginf(value[::2]).all()
    assert np.isneginf(given[::2]).all()


@pytest.mark.slow
@pytest.mark.parametrize("noise", ["cone", "laplace"])
def test_loops_accept_no_state_that_has_no_density(noise: str) -> None:
    """Far out either path may overflow or lose all digits, of densities that no chain comes to."""
    target = target_of(3, is_regression=True, noise=noise)
    compiled, x = CompiledTarget.of(target), states_of(target)[:, :CELLS]
    least = compiled(x)[0].min() - 300.0
    for far in (np.nan, np.inf, 1e3, -1e3, 1e200, -1e200):
        for coordinate in range(len(x)):
            moved = x.copy()
            moved[coordinate, ::2] = far
            with np.errstate(all="ignore"):
                value, given = target(moved)[0], compiled(moved)[0]
            likely = value > least
            assert likely[1::2].all()
            assert np.array_equal(given > least, likely)
            assert given[likely] == pytest.approx(value[likely], rel=1e-8)


@pytest.mark.slow
def test_gamma_functions_are_right() -> None:
    lanes: Any = importlib.import_module("suffice.pipeline.math.engines.multivariate.lanes")
    for x in [*np.geomspace(1e-3, 1e12, 200), 0.5, 1.0, 2.0]:
        log_gamma, digamma = lanes.gamma_functions(x)
        assert log_gamma == pytest.approx(special.gammaln(x), rel=1e-13, abs=2e-13)
        assert digamma == pytest.approx(special.digamma(x), rel=1e-13, abs=2e-13)


@pytest.mark.slow
def test_what_loops_are_not_made_for_is_left_to_arrays() -> None:
    importlib.import_module(MOMENT_DENSITY.module)
    target = target_of(3, is_regression=True, noise="cone")
    only, laplace = target.targets[0], target_of(3, is_regression=True, noise="laplace").targets[0]
    assert isinstance(compiled_if_it_pays(target, CELLS), CompiledTarget)
    conjugate = RegressionEvidence(
        loc=np.zeros(3), precision=np.eye(3), concentration=3.0, scale=1.0, linear=True
    )
    others = (
        replace(target, targets=(only, only)),
        replace(target, targets=(replace(only, cone=(*only.cone, *only.cone)),)),
        replace(target, targets=(replace(only, scaled=laplace.scaled),)),
        replace(target, targets=(replace(only, cone=()),)),
        replace(target, targets=(replace(only, linear=False),)),
        replace(target, targets=(replace(only, latent_n=replace(only.latent_n, fixed=True)),)),
        replace(target, targets=(replace(only, relative=None),)),
        replace(target, targets=(replace(only, units=None),)),
        replace(target, targets=(replace(only, outcome=None),)),
        replace(target, shared=(conjugate,)),
    )
    for other in others:
        assert compiled_if_it_pays(other, 10**6) is other


def test_few_cells_wait_for_no_machine_code(monkeypatch: pytest.MonkeyPatch) -> None:
    target = target_of(2, is_regression=True, noise="laplace")
    loops = replace(MOMENT_DENSITY, module="no_such_kernel")
    monkeypatch.setattr(compiled_target, "MOMENT_DENSITY", loops)
    assert compiled_if_it_pays(target, int(loops.made_in / loops.saves) - 1) is target
