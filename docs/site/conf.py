"""How Sphinx builds the documentation site; `python -m scripts.site` lays the pages out and calls it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from pygments.lexers.special import TextLexer

import suffice

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.writers.html5 import HTML5Translator

project = "suffice"
author = "The suffice developers"
project_copyright = "The suffice developers, Apache-2.0"
version = release = suffice.__version__
root_doc = "docs/index"
language = "en"

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
]
templates_path = ["templates"]
exclude_patterns = ["docs/site"]

# Pages are written for a forge first: headings have its anchors, and comments stay invisible.
source_suffix = {".md": "myst-nb", ".ipynb": "myst-nb", ".rst": "restructuredtext"}
myst_enable_extensions = ["attrs_block", "colon_fence", "dollarmath"]
myst_heading_anchors = 5
myst_links_external_new_tab = False

# A notebook is run anew at every build, in a folder of its own; an error in a cell is an error of the build.
nb_execution_mode = "force"
nb_execution_in_temp = True
nb_execution_raise_on_error = True
nb_execution_timeout = 60
nb_merge_streams = True

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
napoleon_preprocess_types = False
default_role = "literal"
add_module_names = False
python_maximum_signature_line_length = 88
toc_object_entries_show_parents = "hide"

copybutton_exclude = ".linenos, .gp, .go"

html_theme = "furo"
html_math_renderer = "mathml"
html_title = "suffice"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_search_scorer = str(Path(__file__).with_name("scorer.js"))
html_js_files = ["../../versions.js", "version.js"]
html_copy_source = False
html_show_sourcelink = False
html_show_search_summary = False  # a page opened from a disk may not read the others
html_last_updated_fmt = None
html_permalinks_icon = "#"
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "sidebar/version.html",
        "sidebar/search.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "sidebar/scroll-end.html",
    ]
}
pygments_style = "a11y-light"
pygments_dark_style = "a11y-dark"
html_theme_options = {
    "top_of_page_buttons": [],
    "footer_icons": [],
    "light_css_variables": {
        "color-brand-primary": "#0b5a72",
        "color-brand-content": "#0b5a72",
        "color-brand-visited": "#0b5a72",
        "color-background-primary": "#faf9f6",
        "color-background-secondary": "#f1efe9",
        "color-background-border": "#dedbd2",
        "color-background-hover": "#e9e6de",
        "color-foreground-primary": "#1c2127",
        "color-foreground-secondary": "#59626d",
        "color-foreground-muted": "#5f6873",
        "color-foreground-border": "#8c949c",
        "color-code-background": "#ffffff",
        "color-code-foreground": "#1c2127",
        "color-inline-code-background": "#f1efe9",
        "color-link-underline": "#a9cdd8",
        "color-table-header-background": "#f1efe9",
        "color-table-border": "#dedbd2",
        "color-highlight-on-target": "#f5efdc",
    },
    "dark_css_variables": {
        "color-brand-primary": "#7cc4d8",
        "color-brand-content": "#7cc4d8",
        "color-brand-visited": "#7cc4d8",
        "color-background-primary": "#13171b",
        "color-background-secondary": "#1a2026",
        "color-background-border": "#323b44",
        "color-background-hover": "#20272e",
        "color-foreground-primary": "#e9e7e1",
        "color-foreground-secondary": "#a7b0b9",
        "color-foreground-muted": "#939da7",
        "color-foreground-border": "#6b757e",
        "color-code-background": "#1a2026",
        "color-code-foreground": "#e9e7e1",
        "color-inline-code-background": "#20272e",
        "color-link-underline": "#2f6375",
        "color-table-header-background": "#20272e",
        "color-table-border": "#323b44",
        "color-highlight-on-target": "#2e2a1c",
    },
}


def write_formula(translator: HTML5Translator, node: nodes.math | nodes.math_block) -> None:
    """Write a formula as MathML, which browsers draw themselves: no script from elsewhere."""
    translator.body.append(tex2mathml(node.astext(), as_block=isinstance(node, nodes.math_block)))
    raise nodes.SkipNode


def split_attributes(
    _app: Sphinx, _what: str, _name: str, _object: object, _options: object, lines: list[str]
) -> None:
    """Give each of several attributes that a docstring describes at once an entry, as parameters have."""
    listed: list[str] = []
    several: tuple[str, ...] = ()
    field: list[str] = []
    for line in [*lines, ""]:
        if not line.startswith(" "):
            listed += [part.replace("NAMES", name, 1) for name in several for part in field]
            several, field = (), []
        if begun := re.match(r":(ivar|vartype) (\w+(?:, \w+)+):", line):
            several = tuple(begun[2].split(", "))
            field = [f":{begun[1]} NAMES:{line[begun.end() :]}"]
        elif several:
            field.append(line)
        else:
            listed.append(line)
    lines[:] = listed


def setup(app: Sphinx) -> None:
    """Add what Sphinx lacks: blocks of CSV are text, formulas are MathML, each attribute has its entry."""
    app.connect("autodoc-process-docstring", split_attributes, priority=600)  # Napoleon's is 500
    app.add_lexer("csv", TextLexer)
    app.add_html_math_renderer("mathml", (write_formula, None), (write_formula, None))
