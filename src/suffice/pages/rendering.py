"""Pages from templates: everything escaped, scripts and styles pinned by their hashes."""

from __future__ import annotations

import base64
import hashlib
import html
import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from suffice.pipeline.terms.declaration.wording import escaped

if TYPE_CHECKING:
    from collections.abc import Sequence

    import jinja2
    from markupsafe import Markup

_ROOM = Path(__file__).parent
_IN_SCRIPT = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"}


@cache
def asset(name: str) -> str:
    """Return the text of a style sheet or a script of this room."""
    return (_ROOM / "assets" / name).read_text(encoding="utf-8")


@cache
def design_fingerprint() -> str:
    """Return a hash of all that pages are made with: templates, assets and the code of this room."""
    digest = hashlib.sha256()
    for path in sorted(_ROOM.rglob("*")):
        if path.suffix in {".py", ".html", ".css", ".js"}:
            digest.update(path.relative_to(_ROOM).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def content_policy(scripts: Sequence[str], styles: Sequence[str]) -> str:
    """Return a content security policy that admits these inline scripts and styles, and nothing else.

    Parameters
    ----------
    scripts, styles : sequence of str
        The texts of the elements, byte by byte.
    """

    def sources(texts: Sequence[str]) -> str:
        return " ".join(f"'sha256-{_digest(text)}'" for text in texts) or "'none'"

    return (
        f"default-src 'none'; script-src {sources(scripts)}; style-src {sources(styles)}; img-src data:; "
        "base-uri 'none'"
    )


def is_inert_policy(text: str, scripts: Sequence[str]) -> bool:
    """Tell whether a policy allows no more than :func:`content_policy` does with these scripts."""
    directives: dict[str, list[str]] = {}
    for directive in text.split(";"):
        name, *sources = directive.split() or [""]
        directives.setdefault(name.lower(), sources)
    ours = {f"'sha256-{_digest(script)}'" for script in scripts}
    return (
        directives.pop("default-src", []) == ["'none'"]
        and set(directives.pop("script-src", [])) <= {"'none'", *ours}
        and all(
            source == "'none'" or source.startswith("'sha256-") for source in directives.pop("style-src", [])
        )
        and set(directives.pop("img-src", [])) <= {"data:", "'none'"}
        and set(directives) <= {"base-uri", "form-action", ""}
    )


def json_script(document: object) -> Markup:
    """Return JSON for a ``<script type="application/json">``: no text in it can end the element."""
    text = json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return markup(text.translate(_IN_SCRIPT))


def render(
    template: str, *, scripts: Sequence[str] = (), styles: Sequence[str] = ("style.css",), **context: Any
) -> str:
    """Return a page.

    Parameters
    ----------
    template : str
        Its name in ``templates/``.
    scripts, styles : sequence of str
        The assets that stand in the page, which its policy admits.
    **context
        What the template names; a name that is missing is an error.
    """
    script_texts, style_texts = (list(map(asset, names)) for names in (scripts, styles))
    return (
        _environment()
        .get_template(template)
        .render(
            **context,
            policy=content_policy(script_texts, style_texts),
            scripts=[*map(markup, script_texts)],
            styles=[*map(markup, style_texts)],
        )
    )


def visible(text: object) -> str:
    """Return a text as a page shows it: what cannot be seen, or turns text around, is written as its code."""
    shown = escaped(str(text), keep_newlines=True)
    # Beyond what upsets a terminal, signs without any width: two keys must not look the same.
    return "".join(sign if sign.isprintable() or sign == "\n" else f"\\u{ord(sign):04x}" for sign in shown)


def escape(text: object) -> str:
    """Return a text as HTML and SVG show it literally."""
    return html.escape(visible(text), quote=True)


def markup(text: str) -> Markup:
    """Mark a text of our own as HTML, SVG or a script."""
    from markupsafe import Markup  # only pages need it

    return Markup(text)  # noqa: S704 - what it holds of others' is escaped where it is made


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _finalize(value: Any) -> Any:
    """What an expression of a template shows: markup as it is, nothing of None, anything else visibly."""
    if value is None:
        return ""
    return value if hasattr(value, "__html__") else visible(value)


@cache
def _environment() -> jinja2.Environment:
    import jinja2  # only pages need it

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_ROOM / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_finalize,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["json_script"] = json_script
    return environment
