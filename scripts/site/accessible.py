"""The structure of pages, mended where screen readers and keyboards stumble over what Sphinx writes."""

from __future__ import annotations

import re

_SIGNATURE = re.compile(r"<dl>\n((?:<dd>(?:(?!</?d[ld]>).)*</dd>\n)+)</dl>", re.DOTALL)
_PARAMETER = re.compile(r"<dd>(.*?)</dd>", re.DOTALL)
_HEADING_OF_NOTHING = re.compile(r'<th class="([^"]*)"><p></p></th>')
_FORMULA = re.compile(r'<div class="(math-wrapper [^"]*)">')


def accessible(page: str) -> str:
    """Return a page whose structure is what it looks like.

    - Parameters of a signature are lines of a definition, not a list of definitions without terms.
    - A column without a heading has none.
    - A formula wider than a phone can be moved by the keyboard.
    """
    page = _SIGNATURE.sub(
        lambda signature: _PARAMETER.sub(r'<span class="parameter">\1</span>', signature[1]), page
    )
    page = _HEADING_OF_NOTHING.sub(r'<td class="\1"></td>', page)
    return _FORMULA.sub(r'<div class="\1" tabindex="0" role="group" aria-label="Formula">', page)
