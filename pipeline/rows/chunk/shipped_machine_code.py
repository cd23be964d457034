"""Where numba finds the machine code of an image whose root cannot be written.

numba's own locators ask for a folder that can be written, even to read from it. The environment of the images
in ``deploy/image`` names this one in ``NUMBA_CACHE_LOCATOR_CLASSES``.
"""

from __future__ import annotations

from pathlib import Path

from numba.core.caching import InTreeCacheLocator


class ShippedMachineCode(InTreeCacheLocator):
    """The ``__pycache__`` beside a module, to read.

    Code that is not there, or is of another source or processor, is compiled; `compiled` does without keeping
    it where the folder cannot be written.
    """

    def ensure_cache_path(self) -> None:
        """Be content with a folder that is there; elsewhere numba compiles without one."""
        if not Path(self.get_cache_path()).is_dir():  # type: ignore[no-untyped-call]
            raise FileNotFoundError
