"""The special functions are SciPy's own, however they were loaded."""

from __future__ import annotations

import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import scipy.special

import suffice.special
from suffice.special import _compiled_functions

if TYPE_CHECKING:
    import pytest

ALONE = """
import sys
import suffice.special as ours
assert "scipy.special" not in sys.modules and "scipy.special._ufuncs" in sys.modules
assert ours.ndtri(0.5) == 0.0
import scipy.special
assert all(getattr(ours, name) is getattr(scipy.special, name) for name in ours.__all__)
assert scipy.special.logsumexp([0.0]) == 0.0
"""


def test_compiled_functions_come_without_the_package_and_are_its_own() -> None:
    subprocess.run([sys.executable, "-c", ALONE], check=True)


def test_in_a_process_that_has_the_package_they_are_its_own() -> None:
    ours = suffice.special
    assert all(getattr(ours, name) is getattr(scipy.special, name) for name in ours.__all__)
    assert _compiled_functions() is None


def test_nothing_stands_in_for_the_package_beside_other_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "scipy.special")
    is_over = threading.Event()
    other = threading.Thread(target=is_over.wait)
    other.start()
    try:
        assert _compiled_functions() is None
    finally:
        is_over.set()
        other.join()
    assert "scipy.special" not in sys.modules
