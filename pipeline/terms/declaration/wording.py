"""How messages and reports count things."""

from __future__ import annotations

_LONGEST_NAME = 70
"""Characters of a name that messages show whole."""


def counted(count: int, one: str, many: str = "") -> str:
    """Return how many there are of something, in words that fit the number.

    Parameters
    ----------
    count : int
    one : str
        What is counted, in the singular.
    many : str
        In the plural, where that is more than an `s`.

    Examples
    --------
    >>> counted(1, "release"), counted(0, "release"), counted(2, "entry", "entries")
    ('1 release', '0 releases', '2 entries')
    """
    return f"{count} {one if count == 1 else many or one + 's'}"


def shortened_name(name: str) -> str:
    """Return a name, or the end of a long one."""
    return name if len(name) <= _LONGEST_NAME else f"...{name[-_LONGEST_NAME:]}"
