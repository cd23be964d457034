"""What a method is called where its numbers are read by others."""

from __future__ import annotations


def method_text(method: str) -> str:
    """Return a method as files name it: with a word on whether it is calibrated where it is not."""
    return f"{method}: not calibrated" if method == "plug-in" else method
