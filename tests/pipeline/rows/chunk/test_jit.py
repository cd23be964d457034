"""Machine code beside its module is found where numba's own locators would want to write."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

from suffice.pipeline.rows.chunk.numba_loops import ShippedMachineCode

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def a_function(module: Path) -> Callable[[], int]:
    module.write_text("def one():\n    return 1\n")
    spec = importlib.util.spec_from_file_location("one", module)
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    function: Callable[[], int] = loaded.one
    return function


def test_a_folder_that_is_there_is_read_and_not_written(tmp_path: Path) -> None:
    module = tmp_path / "one.py"
    function = a_function(module)
    cache = tmp_path / "__pycache__"
    cache.mkdir(exist_ok=True)
    before = cache.stat().st_mtime_ns, sorted(cache.iterdir())
    found = ShippedMachineCode.from_function(function, str(module))  # type: ignore[no-untyped-call]
    assert found is not None
    assert found.get_cache_path() == str(cache)
    assert (cache.stat().st_mtime_ns, sorted(cache.iterdir())) == before


def test_without_the_folder_there_is_no_place_and_none_is_made(tmp_path: Path) -> None:
    module = tmp_path / "one.py"
    function = a_function(module)
    cache = tmp_path / "__pycache__"
    if cache.exists():
        for path in cache.iterdir():
            path.unlink()
        cache.rmdir()
    found = ShippedMachineCode.from_function(function, str(module))  # type: ignore[no-untyped-call]
    assert found is None
    assert not cache.exists()
