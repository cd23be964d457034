r"""Pareto with a known minimum ``x_m``: a column clipped to ``minimum..upper``.

.. math:: p(x \mid a) = a x_m^a x^{-a - 1}, \quad x \ge x_m, \quad T(x) = \log(x / x_m)

Sensitivity in `sensitivity.md`: partition-of-unity (X, M - X) or minimal-sum (X): ``M = 2**lattice_bits``
lattice steps from 0 to ``log(upper / minimum)``.
"""

from __future__ import annotations

from typing import Self

import numpy as np
from pydantic import model_validator

from suffice.pipeline.families.gamma import rate_of_gamma_sums
from suffice.pipeline.families.shared.one_sum import LatticeSumSpec, SumLattice, one_sum_family
from suffice.pipeline.terms.declaration.fields import Positive
from suffice.pipeline.terms.statistics.lattice import NARROWEST_LOGS, Quantiser, Shape, Transform, log_bound


class ParetoSpec(LatticeSumSpec):
    """A numeric column clipped to ``minimum..upper``."""

    minimum: Positive
    upper: Positive

    @model_validator(mode="before")
    @classmethod
    def _minimum_is_known(cls, data: object) -> object:
        if isinstance(data, dict) and "minimum" not in data:
            message = (
                "a pareto statistic needs its public minimum: with an unknown one it is not an exponential "
                "family, since the data enter through their smallest value and not through a sum"
            )
            raise ValueError(message)
        return data

    @model_validator(mode="after")
    def _bounds_are_an_interval(self) -> Self:
        if self.minimum >= self.upper:
            message = "minimum must be below upper"
            raise ValueError(message)
        if log_bound(self.upper / self.minimum) < NARROWEST_LOGS:
            message = "upper is too close to minimum for float64 logarithms"
            raise ValueError(message)
        return self


def lattice(spec: ParetoSpec) -> SumLattice:
    """Return the lattice of the logarithm from 0 to its bound."""
    upper = log_bound(spec.upper / spec.minimum)
    return SumLattice(
        quantiser=Quantiser.from_zero(upper, spec.lattice_bits),
        transform=Transform(shape=Shape.LOG, unit=float(spec.minimum)),
        upper=upper,
        bits=spec.lattice_bits,
    )


FAMILY = one_sum_family(
    name="pareto",
    spec=ParetoSpec,
    lattice=lattice,
    clipping_bounds=lambda spec: (spec.minimum, spec.upper),
    model=rate_of_gamma_sums("shape"),
    draw=lambda spec, shape, rng: float(spec.minimum) * np.exp(rng.standard_exponential(shape.shape) / shape),
    mean="minimum * shape / (shape - 1) of a shape above 1",
    example={"minimum": "0.7", "upper": "90"},
    generative_case={"minimum": "2", "upper": "2e26"},
    generative_prior="Gamma(8, 8)",
)
