"""What distributions of other libraries are called: their kinds, with all numbers that tell them apart.

A distribution that is made of others, as truncated and transformed ones and mixtures are, is called by all of
these. Names longer than ``LONGEST`` characters are cut, and end with a checksum of the whole.
"""

from __future__ import annotations

import inspect
import zlib
from typing import Any

import numpy as np

LONGEST = 240
"""Characters of a name."""
_SILENT = (
    *("self", "validate_args", "args", "kwargs", "support", "domain", "codomain"),
    *("log_density", "event_dim"),
)
"""Arguments of NumPyro's that say nothing about where the mass is."""
_STORED = ("{}", "_{}", "base_dist")
"""Attributes in which NumPyro keeps an argument, by its name."""


def named_by_scipy(prior: Any) -> str:
    """Return what a frozen distribution of ``scipy.stats`` is called."""
    arguments = [_text(value) for value in prior.args]
    arguments += [f"{key}={_text(value)}" for key, value in prior.kwds.items()]
    of = prior.dist
    if hasattr(of, "xk"):
        return _cut("scipy.stats.rv_discrete", [f"values=({_text(of.xk)}, {_text(of.pk)})", *arguments])
    if hasattr(of, "_histogram"):
        heights, edges = of._histogram  # noqa: SLF001 - nothing else tells two of them apart
        return _cut("scipy.stats.rv_histogram", [f"({_text(heights)}, {_text(edges)})", *arguments])
    # Of a class of the consumer's own that has no name.
    name = of.name if of.name != "Distribution" else type(of).__name__
    return _cut(f"scipy.stats.{name}", arguments)


def named_by_numpyro(prior: Any) -> str:
    """Return what a distribution of NumPyro is called."""
    return _cut(f"numpyro.{type(prior).__name__}", _arguments(prior))


def named_by_preliz(prior: Any) -> str:
    """Return what a distribution of PreliZ is called."""
    arguments = [f"{name}={_text(value)}" for name, value in prior.params_dict.items()]
    return _cut(f"preliz.{type(prior).__name__}", arguments)


def _cut(kind: str, arguments: list[str]) -> str:
    whole = f"{kind}({', '.join(arguments)})"
    if len(whole) <= LONGEST:
        return whole
    return f"{whole[: LONGEST - 14]}... #{zlib.crc32(whole.encode()):08x})"


def _arguments(of: Any) -> list[str]:
    """Return what a distribution of NumPyro, or a transform, was made with."""
    arguments = []
    for name in inspect.signature(type(of).__init__).parameters:
        stored = [way.format(name) for way in _STORED if hasattr(of, way.format(name))]
        if name not in _SILENT and stored:
            arguments.append(f"{name}={_text(getattr(of, stored[0]))}")
    return arguments


def _text(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_text, value))}]"
    if type(value).__module__.startswith("numpyro."):
        return f"{type(value).__name__}({', '.join(_arguments(value))})"
    try:
        numbers = np.asarray(value)
        kind = numbers.dtype.type
        if numbers.ndim:
            return _text(numbers.tolist() if kind is np.float64 else [kind(each) for each in numbers])
        # Shortest, unless digits are lost.
        short = f"{float(numbers):g}"
        return short if kind(float(short)) == numbers else str(kind(numbers))
    except (TypeError, ValueError):
        return str(value)
