"""Conjugate priors of several parameters at once: of a mean vector and a covariance, and of a regression.

Written as the others in `priors.py`; a vector is a list of numbers, a matrix a list of its rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from suffice.errors import PriorError

if TYPE_CHECKING:
    from suffice.typing import Floats


Entries: TypeAlias = float | Sequence[float] | Sequence[Sequence[float]]


@dataclass(frozen=True, slots=True)
class NormalInverseWishart:
    r"""Joint prior of the mean and the covariance of several columns.

    .. math::
        \Sigma \sim \mathrm{InverseWishart}(\nu, \Psi), \qquad
        m \mid \Sigma \sim \mathrm{Normal}(\mu, \Sigma / \kappa)

    The covariance is :math:`\Psi / (\nu - d - 1)` on average.

    Parameters
    ----------
    loc : float or list of float
        The prior mean of the means, in the columns' units: one for all, or one per column.
    precision : float, > 0
        kappa: how many rows the prior mean weighs.
    df : float, > d - 1
        nu: the degrees of freedom.
    scale : float, list or list of lists, > 0
        Psi, in products of the columns' units: a multiple of the identity, a diagonal, or a positive
        definite matrix.
    """

    loc: Entries
    precision: float
    df: float
    scale: Entries

    def __post_init__(self) -> None:
        _freeze(self)
        _require_positive(self, "precision", "df")

    def __str__(self) -> str:
        return _written(self)

    def of(self, size: int) -> tuple[Floats, float, float, Floats]:
        """Return loc (size,), precision, df and scale (size, size).

        Raises
        ------
        PriorError
            Where the prior is not one of so many columns.
        """
        if self.df <= size - 1:
            message = f"NormalInverseWishart: df must be above {size - 1} for {size} columns, not {self.df!r}"
            raise PriorError(message)
        loc, scale = _vector(self, "loc", size), _matrix(self, "scale", size)
        return loc, float(self.precision), float(self.df), scale

    def sample(self, size: int, rng: np.random.Generator, columns: int) -> tuple[Floats, Floats]:
        """Return independent draws of means (size, columns) and covariances (size, columns, columns)."""
        from suffice.pipeline.distributions.wishart_draws import sample_normal_inverse_wishart  # noqa: PLC0415 - consumers

        loc, precision, df, scale = self.of(columns)
        mean, covariance = sample_normal_inverse_wishart(
            loc[None], np.array([precision]), np.array([df]), scale[None], size, rng
        )
        return mean[:, 0], covariance[:, 0]


@dataclass(frozen=True, slots=True)
class NormalInverseGammaRegression:
    r"""Joint prior of a regression's coefficients and the variance of its residuals.

    .. math::
        v \sim \mathrm{InverseGamma}(a, s), \qquad
        \beta \mid v \sim \mathrm{Normal}(\mu, v \Lambda^{-1})

    Parameters
    ----------
    loc : float or list of float
        The prior mean of the coefficients, in order of the predictors, the intercept (of predictors that are
        all 0) last where there is one: one for all, or one each.
    precision : float, list or list of lists, > 0
        Lambda: a multiple of the identity, a diagonal, or a positive definite matrix.
    concentration : float, > 0
        a: the shape of the variance's inverse gamma.
    scale : float, > 0
        s, in the square of the outcome's unit.
    """

    loc: Entries
    precision: Entries
    concentration: float
    scale: float

    def __post_init__(self) -> None:
        _freeze(self)
        _require_positive(self, "concentration", "scale")

    def __str__(self) -> str:
        return _written(self)

    def of(self, size: int) -> tuple[Floats, Floats, float, float]:
        """Return loc (size,), precision (size, size), concentration and scale.

        Raises
        ------
        PriorError
            Where the prior is not one of so many coefficients.
        """
        loc, precision = _vector(self, "loc", size), _matrix(self, "precision", size)
        return loc, precision, float(self.concentration), float(self.scale)

    def sample(self, size: int, rng: np.random.Generator, coefficients: int) -> tuple[Floats, Floats]:
        """Return independent draws of coefficients (size, coefficients) and variances (size,)."""
        loc, precision, concentration, scale = self.of(coefficients)
        variance = scale / rng.standard_gamma(concentration, size)
        # With precision = L L^T, L^-T is a root of its inverse.
        root = np.linalg.inv(np.linalg.cholesky(precision))
        spread = rng.standard_normal((size, coefficients)) @ root
        return loc + np.sqrt(variance)[:, None] * spread, variance


JointPrior: TypeAlias = NormalInverseWishart | NormalInverseGammaRegression


def _freeze(prior: JointPrior) -> None:
    """Turn lists into tuples, so that a prior is a value, and refuse what holds no finite numbers."""
    for field in fields(prior):
        object.__setattr__(prior, field.name, _frozen(prior, field.name, getattr(prior, field.name)))


def _frozen(prior: JointPrior, name: str, value: object, depth: int = 0) -> object:
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, list | tuple) and depth < 2 and value:
        return tuple(_frozen(prior, name, entry, depth + 1) for entry in value)
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool | np.bool_)
    try:
        finite = number and math.isfinite(float(value))  # type: ignore[arg-type]
    except OverflowError:
        finite = False
    if not finite:
        message = f"{type(prior).__name__}: {name} must hold finite numbers, not {value!r}"
        raise PriorError(message)
    return value.item() if isinstance(value, np.number) else value


def _require_positive(prior: JointPrior, *names: str) -> None:
    for name in names:
        value = getattr(prior, name)
        if isinstance(value, tuple) or value <= 0:
            message = (
                f"{type(prior).__name__}: {name} must be a number above 0 (the prior must be proper), "
                f"not {value!r}"
            )
            raise PriorError(message)


def _vector(prior: JointPrior, name: str, size: int) -> Floats:
    value = np.array(_regular(prior, name), dtype=np.float64)
    if value.shape not in {(), (size,)}:
        message = f"{type(prior).__name__}: {name} needs 1 or {size} numbers"
        raise PriorError(message)
    return np.broadcast_to(value, (size,)).copy()


def _matrix(prior: JointPrior, name: str, size: int) -> Floats:
    value = np.array(_regular(prior, name), dtype=np.float64)
    kind = type(prior).__name__
    if value.shape not in {(), (size,), (size, size)}:
        message = f"{kind}: {name} needs 1 or {size} numbers, or {size} lists of {size}"
        raise PriorError(message)
    matrix: Floats = value if value.ndim == 2 else np.diag(np.broadcast_to(value, (size,)))
    symmetric = np.allclose(matrix, matrix.T, rtol=1e-9, atol=0.0)
    root = np.sqrt(np.abs(np.diag(matrix)))
    # Judged in units in which the diagonal is 1: columns may have very different ones.
    if not symmetric or root.min() == 0.0 or np.linalg.eigvalsh(matrix / root / root[:, None]).min() <= 0.0:
        message = f"{kind}: {name} must be symmetric and positive definite (the prior must be proper)"
        raise PriorError(message)
    return (matrix + matrix.T) / 2.0


def _regular(prior: JointPrior, name: str) -> Entries:
    value: Entries = getattr(prior, name)
    rows = [entry for entry in value if isinstance(entry, tuple)] if isinstance(value, tuple) else []
    if rows and (len(rows) != len(value) or len({len(row) for row in rows}) != 1):  # type: ignore[arg-type]
        message = f"{type(prior).__name__}: {name} is neither a number, a list nor a list of equal lists"
        raise PriorError(message)
    return value


def _text(value: object) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(_text, value))}]"
    if isinstance(value, float) and not (value.is_integer() and abs(value) < 1e15):
        return repr(value)
    return str(int(value))  # type: ignore[call-overload]


def _written(prior: JointPrior) -> str:
    values = ", ".join(_text(getattr(prior, field.name)) for field in fields(prior))
    return f"{type(prior).__name__}({values})"
