"""The special functions of SciPy, without what ``scipy.special`` loads besides.

That package rewrites the documentation of a hundred functions for other array libraries, and imports
``numpy.f2py`` and ``numpy.testing`` on its way: eight times the processor time of its compiled functions.
These are the same objects, so that every digit is the same.
"""

# ruff: noqa: F405 - ruff does not look into the stubs that the names come from

from __future__ import annotations

import sys
import threading
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType

    from scipy.special import *  # noqa: F403

__all__ = [
    "bdtr",
    "bdtrc",
    "betainc",
    "betaincc",
    "betaincinv",
    "betaln",
    "chdtrc",
    "digamma",
    "exp1",
    "expn",
    "gammainc",
    "gammaincc",
    "gammainccinv",
    "gammaincinv",
    "gammaln",
    "log_ndtr",
    "loggamma",
    "ndtr",
    "ndtri",
    "pdtr",
    "pdtrc",
    "smirnov",
    "stdtr",
    "stdtrit",
    "xlog1py",
    "xlogy",
]

_PACKAGE, _COMPILED = "scipy.special", "scipy.special._ufuncs"
_COMPILED_NAMES = {"digamma": "psi"}
"""Where they differ from the public ones; the package knows both."""


def _compiled_functions() -> ModuleType | None:
    """Return the module of compiled functions, or nothing where the package has to be loaded for it.

    Before a module its package is imported, so that an empty one stands in meanwhile. Another thread could
    take that for the real one: where there are other threads, nothing stands in.
    """
    if _PACKAGE in sys.modules or threading.active_count() > 1:
        return None
    spec = PathFinder.find_spec(_PACKAGE, import_module("scipy").__path__)
    if spec is None:
        return None
    sys.modules[_PACKAGE] = module_from_spec(spec)
    try:
        return import_module(_COMPILED)
    except ImportError:  # its place is private to SciPy
        return None
    finally:
        del sys.modules[_PACKAGE]


_functions = _compiled_functions() or import_module(_PACKAGE)
globals().update({name: getattr(_functions, _COMPILED_NAMES.get(name, name)) for name in __all__})
