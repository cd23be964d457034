"""Release differentially private sufficient statistics once; draw posteriors from them for ever.

A consumer starts with :func:`open_release` and :meth:`Release.posterior`; a data owner with
:func:`load_spec`, :func:`plan` and :func:`release`. Names load when they are first used: importing the
package imports neither NumPy nor anything heavier.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from suffice.errors import SufficeError
    from suffice.pipeline.calibration import calibrate
    from suffice.pipeline.densities import Density
    from suffice.pipeline.joint_priors import NormalInverseGammaRegression, NormalInverseWishart
    from suffice.pipeline.mixtures import Mixture
    from suffice.pipeline.n_prior import Reciprocal, Uniform
    from suffice.pipeline.needed_epsilon import smallest_epsilon
    from suffice.pipeline.plan import Plan
    from suffice.pipeline.plan import compile_plan as plan
    from suffice.pipeline.planes.densities import Independent, JointDensity
    from suffice.pipeline.pooling.comparison import compare
    from suffice.pipeline.pooling.releases import pool
    from suffice.pipeline.posterior import Posterior
    from suffice.pipeline.priors import (
        Beta,
        Dirichlet,
        Gamma,
        InverseGamma,
        Normal,
        NormalInverseGamma,
    )
    from suffice.pipeline.release import Release
    from suffice.pipeline.spec import Spec, load_spec
    from suffice.pipeline.verdict import Calibration
    from suffice.releasing import run_release as release
    from suffice.storage.release_store import open_release

__version__ = "0.1.0"

__all__ = [
    "Beta",
    "Calibration",
    "Density",
    "Dirichlet",
    "Gamma",
    "Independent",
    "InverseGamma",
    "JointDensity",
    "Mixture",
    "Normal",
    "NormalInverseGamma",
    "NormalInverseGammaRegression",
    "NormalInverseWishart",
    "Plan",
    "Posterior",
    "Reciprocal",
    "Release",
    "Spec",
    "SufficeError",
    "Uniform",
    "__version__",
    "calibrate",
    "compare",
    "load_spec",
    "open_release",
    "plan",
    "pool",
    "release",
    "smallest_epsilon",
]

_HOMES = {
    "SufficeError": ("suffice.errors", "SufficeError"),
    "Calibration": ("suffice.pipeline.verdict", "Calibration"),
    "calibrate": ("suffice.pipeline.calibration", "calibrate"),
    "Plan": ("suffice.pipeline.plan", "Plan"),
    "plan": ("suffice.pipeline.plan", "compile_plan"),
    "compare": ("suffice.pipeline.pooling.comparison", "compare"),
    "pool": ("suffice.pipeline.pooling.releases", "pool"),
    "Density": ("suffice.pipeline.densities", "Density"),
    **{prior: ("suffice.pipeline.planes.densities", prior) for prior in ("Independent", "JointDensity")},
    "Mixture": ("suffice.pipeline.mixtures", "Mixture"),
    "Posterior": ("suffice.pipeline.posterior", "Posterior"),
    "Release": ("suffice.pipeline.release", "Release"),
    "Spec": ("suffice.pipeline.spec", "Spec"),
    "load_spec": ("suffice.pipeline.spec", "load_spec"),
    "release": ("suffice.releasing", "run_release"),
    "smallest_epsilon": ("suffice.pipeline.needed_epsilon", "smallest_epsilon"),
    "open_release": ("suffice.storage.release_store", "open_release"),
    **{
        prior: ("suffice.pipeline.priors", prior)
        for prior in ("Beta", "Dirichlet", "Gamma", "InverseGamma", "Normal", "NormalInverseGamma")
    },
    **{
        prior: ("suffice.pipeline.joint_priors", prior)
        for prior in ("NormalInverseGammaRegression", "NormalInverseWishart")
    },
    **{prior: ("suffice.pipeline.n_prior", prior) for prior in ("Reciprocal", "Uniform")},
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        message = f"module 'suffice' has no attribute {name!r}"
        raise AttributeError(message)
    module, attribute = _HOMES[name]
    value = getattr(importlib.import_module(module), attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
