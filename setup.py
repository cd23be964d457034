"""The inner loops in C, built where there is a compiler; everything else stands in pyproject.toml.

Without a compiler, or with ``SUFFICE_PURE=1``, the installation has none of them, and numba compiles the same
loops. One build serves every Python from 3.11 on, by its stable interface.
"""

import os
from pathlib import Path

from setuptools import Extension, setup

NATIVE = Path("pipeline/rows/chunk/native")

if os.environ.get("SUFFICE_PURE") == "1":
    setup()
else:
    setup(
        ext_modules=[
            Extension(
                "suffice.pipeline.rows.chunk._native",
                sources=sorted(str(path) for path in NATIVE.glob("*.c")),
                depends=sorted(str(path) for path in NATIVE.glob("*.h")),
                # Sums wrap as integers of 64 bits; a product and a sum are rounded one after the other.
                extra_compile_args=[
                    "-O3",
                    "-std=c11",
                    "-fwrapv",
                    "-ffp-contract=off",
                    "-fno-trapping-math",
                    "-g0",
                ],
                libraries=["m"],
                py_limited_api=True,
                optional=True,
            )
        ],
        options={"bdist_wheel": {"py_limited_api": "cp311"}},
    )
