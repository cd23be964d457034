"""How pages are made: templates that escape every text, styles inline, and a policy that allows nothing else.

Names, keys and categories come from other people's specs. A page forbids itself whatever its policy does not
name by its hash, and anything from elsewhere.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jinja2 import Environment
    from markupsafe import Markup

_HERE = Path(__file__).parent
_IN_SCRIPT = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"}


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


def policy(styles: Sequence[str], scripts: Sequence[str] = (), *, forms: bool = False) -> str:
    """Return a content security policy that allows these inline texts and nothing else.

    `forms` allows forms, which name pages beside their own.
    """
    parts = ["default-src 'none'", "img-src data:", "base-uri 'none'"]
    for kind, texts in (("style-src", styles), ("script-src", scripts)):
        if texts:
            parts.append(" ".join([kind, *map(_hash, texts)]))
    return "; ".join([*parts, *([] if forms else ["form-action 'none'"])])


def is_inert_policy(text: str, scripts: Sequence[str]) -> bool:
    """Tell whether a policy allows no more than :func:`policy` does, of scripts none but the given ones."""
    found: dict[str, list[str]] = {}
    for directive in text.split(";"):
        name, *sources = directive.split() or [""]
        found.setdefault(name.lower(), sources)
    styles = found.pop("style-src", [])
    return (
        found.pop("default-src", []) == ["'none'"]
        and set(found.pop("script-src", [])) <= {"'none'", *map(_hash, scripts)}
        and all(source == "'none'" or source.startswith("'sha256-") for source in styles)
        and set(found.pop("img-src", [])) <= {"data:", "'none'"}
        and set(found) <= {"base-uri", "form-action", ""}
    )


def render(template: str, **values: Any) -> str:
    """Return a page; values are text that is escaped, but for ``markup``."""
    return _environment().get_template(template).render(**values)


def render_page(template: str, *, scripts: Sequence[str], styles: Sequence[str], **values: Any) -> str:
    """Return a page of the catalogue, with scripts and styles of this room in it.

    Parameters
    ----------
    template : str
    scripts, styles : sequence of str
        Names of assets; the first script runs before the page is painted.
    **values
        As for :func:`render`.
    """
    script_texts, style_texts = (tuple(map(asset, names)) for names in (scripts, styles))
    return render(
        template,
        **values,
        policy=policy(style_texts, script_texts, forms=True),
        scripts=[markup(text) for text in script_texts],
        styles=[markup(text) for text in style_texts],
    )


def markup(text: str) -> Markup:
    """Mark HTML or SVG of our own as such."""
    from markupsafe import Markup  # noqa: PLC0415 - with Jinja, slow to import

    return Markup(text)  # noqa: S704 - figures, styles: their texts are escaped where they are made


def json_script(document: object) -> Markup:
    """Return JSON for a ``<script type="application/json">``: no text in it can end the element."""
    text = json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return markup(text.translate(_IN_SCRIPT))


@cache
def design_fingerprint() -> str:
    """Return a hash of all that pages are made with: templates, assets and the code of this room."""
    digest = hashlib.sha256()
    for path in sorted(_HERE.rglob("*")):
        if path.suffix in {".py", ".html", ".css", ".js"}:
            digest.update(path.relative_to(_HERE).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # noqa: PLC0415 - slow to import

    environment = Environment(
        loader=FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.globals.update(json_script=json_script, newline=markup("\n"))
    return environment


def _shown(value: Any) -> Any:
    """What an expression of a template shows: markup as it is, nothing of None, anything else visibly."""
    if value is None:
        return ""
    return value if hasattr(value, "__html__") else visible(value)


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
