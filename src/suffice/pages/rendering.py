"""How pages are made: templates that escape every text, styles inline, and a policy that allows nothing else.

Names, keys and categories come from other people's specs. A page forbids itself whatever its policy does not
name by its hash, and anything from elsewhere.
"""

from __future__ import annotations

import base64
import hashlib
import html
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jinja2 import Environment
    from markupsafe import Markup

_HERE = Path(__file__).parent


def visible(value: object) -> str:
    r"""Return a text in which what cannot be seen is written as its code: ``\u{200b}``."""
    return "".join(sign if sign.isprintable() else f"\\u{{{ord(sign):x}}}" for sign in str(value))


def escape(value: object) -> str:
    """Return a text as HTML and SVG show it literally; what cannot be seen is written as its code."""
    return html.escape(visible(value), quote=True)


@cache
def asset(name: str) -> str:
    """Return the text of a style sheet or a script of this room."""
    return (_HERE / "assets" / name).read_text(encoding="utf-8")


def policy(styles: Sequence[str], scripts: Sequence[str] = ()) -> str:
    """Return a content security policy that allows these inline texts and nothing else."""
    parts = ["default-src 'none'"]
    for kind, texts in (("style-src", styles), ("script-src", scripts)):
        if texts:
            parts.append(" ".join([kind, *map(_hash, texts)]))
    return "; ".join([*parts, "base-uri 'none'", "form-action 'none'"])


def render(template: str, **values: Any) -> str:
    """Return a page; values are text that is escaped, but for ``markup``."""
    return _environment().get_template(template).render(**values)


def markup(text: str) -> Markup:
    """Mark HTML or SVG of our own as such."""
    from markupsafe import Markup  # noqa: PLC0415 - with Jinja, slow to import

    return Markup(text)  # noqa: S704 - figures, styles: their texts are escaped where they are made


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # noqa: PLC0415 - slow to import

    return Environment(
        loader=FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def _shown(value: Any) -> Any:
    """What an expression of a template shows: markup as it is, nothing of None, anything else visibly."""
    if value is None:
        return ""
    return value if hasattr(value, "__html__") else visible(value)


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
