"""Mutants of the scale of noise: too small by a factor, or by another sensitivity."""

from __future__ import annotations

import contextlib
import dataclasses
import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from suffice.auditing.running import patched
from suffice.pipeline.rows.mechanism import held_noise, noise, sampling
from suffice.pipeline.rows.mechanism.cone.sampler import cone_noise
from suffice.pipeline.spec import compiled_statistics

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from suffice.pipeline.spec.plan import Plan
    from suffice.pipeline.terms.declaration.privacy_loss import PrivacyLoss
    from suffice.pipeline.terms.statistics.statistic_plan import StatisticPlan


def has_noise(plan: Plan) -> bool:
    """Tell whether some noise is large enough that draws alike are a surprise."""
    return any(map(_is_noisy, plan.statistics))


def has_several(plan: Plan) -> bool:
    """Tell whether some statistic has several draws of noise."""
    return any(_is_noisy(each) and each.n_values * each.n_cells > 1 for each in plan.statistics)


def _is_noisy(statistic: StatisticPlan) -> bool:
    return statistic.sample is None and (statistic.cone is not None or statistic.scale >= 0.2)


@contextlib.contextmanager
def drawn(divisor: float) -> Iterator[None]:
    """Draw noise of a scale that many times too small, without asking OpenDP's map."""

    def sampler(*, scale: float, **bounds: Any) -> Any:  # noqa: ARG001
        return noise.Sampler(noise._measurement(scale / divisor))  # noqa: SLF001

    def selector(*, scale: int, **bounds: Any) -> Any:  # noqa: ARG001
        return sampling.Selector(sampling._measurement(max(1, round(scale / divisor))))  # noqa: SLF001

    def on_cone(*, rate: Fraction, **shape: Any) -> Any:
        return cone_noise(rate=rate * Fraction(divisor), **shape)

    with (
        patched(held_noise, "discrete_laplace", sampler),
        patched(held_noise, "cone_noise", on_cone),
        patched(sampling, "exponential_mechanism", selector),
    ):
        yield


@contextlib.contextmanager
def half_sensitivity() -> Iterator[None]:
    """Plan half of the noise, everywhere alike."""
    compiling = vars(compiled_statistics)
    scale, compile_sample = compiling["noise_scale"], compiling["compile_sample"]

    def half_sample(*arguments: Any, **fields: Any) -> Any:
        sample = compile_sample(*arguments, **fields)
        return sample and dataclasses.replace(sample, scale=max(1, sample.scale // 2))

    records = compiling["cone_records"]
    with (
        patched(compiled_statistics, "cone_records", lambda *stated: Fraction(records(*stated), 2)),
        patched(compiled_statistics, "noise_scale", lambda *stated, **bounds: scale(*stated, **bounds) / 2),
        patched(compiled_statistics, "compile_sample", half_sample),
        drawn(1.0),
    ):
        yield


def planned(divisor: float) -> AbstractContextManager[None]:
    """Plan noise of a loss of rho so many times too small."""
    return _planned_by(lambda rho, _, l2_squared: math.sqrt(l2_squared / (2 * rho)) / divisor)


def root_of_l1() -> AbstractContextManager[None]:
    """Plan noise of a loss of rho by the L1 sensitivity, where the square of the L2 sensitivity belongs."""
    return _planned_by(lambda rho, l1_sensitivity, _: math.sqrt(l1_sensitivity / (2 * rho)))


@contextlib.contextmanager
def _planned_by(scale_of: Callable[[float, int, int], float]) -> Iterator[None]:
    """Plan other scales, without asking OpenDP's map."""

    def scale(loss: PrivacyLoss, *, l1_sensitivity: int, l2_squared: int) -> float:
        return scale_of(float(loss.amount), l1_sensitivity, l2_squared)

    with patched(compiled_statistics, "noise_scale", scale), drawn(1.0):
        yield
