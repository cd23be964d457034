"""The density of Student's t, as the marginal distribution of a mean or a coefficient."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from suffice.typing import Floats

_LARGE = 100.0


def log_student(degrees: Floats, loc: Floats, width: Floats, points: Floats) -> Floats:
    """Log densities of t distributions with these degrees of freedom, centres and widths."""
    from scipy.special import gammaln

    half = degrees / 2.0
    large = np.maximum(half, _LARGE)
    # Two large log gammas would cancel.
    series = 0.5 * np.log(large) - 1.0 / (8.0 * large) + 1.0 / (192.0 * large**3)
    small = np.minimum(half, _LARGE)
    ratio = np.where(half < _LARGE, gammaln(small + 0.5) - gammaln(small), series)
    standard = (points - loc) / width
    log_density: Floats = (
        ratio
        - 0.5 * np.log(np.pi * degrees)
        - np.log(width)
        - (half + 0.5) * np.log1p(standard * standard / degrees)
    )
    return log_density
