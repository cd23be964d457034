"""The page of a publication: what was asked, its summaries as pictures and tables, and its files."""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING, Any

from suffice.data_files.tables import METADATA_SUFFIX
from suffice.pages.drawing import fitted
from suffice.pages.release_page import Link, Site, size_text, table_rows
from suffice.pages.rendering import asset, is_inert_policy, render

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from suffice.pages.published_tables import PublishedTable


_SCRIPTS = ("theme.js", "catalogue.js")
_STYLES = ("style.css",)
_LONGEST_HEADING = 72
_ROLES = {
    "summaries": "summaries",
    "draws": "posterior draws",
    "card": "a card: one page to look at",
    "part": "one part of the cells",
    "likelihood": "the log likelihood, as tables",
}
_DIRECTIVE = re.compile(r"http-equiv|<form|<base", re.IGNORECASE)
"""What sends a reader elsewhere without any script; a policy stands in one ``http-equiv``."""
_PROLOGUE = re.compile(
    r'<!DOCTYPE html>\s*<html lang="en">\s*<head>\s*<meta charset="utf-8">\s*'
    r'<meta http-equiv="Content-Security-Policy" content="([^"<>]{1,2000})">'
)


def is_inert(page: bytes) -> bool:
    """Tell whether a page forbids itself, first of all, scripts that are not ours, and leads nowhere.

    What others published is put beside our pages: a script in it would run in their place.
    """
    try:
        text = page.decode("utf-8")
    except UnicodeDecodeError:
        return False
    prologue = _PROLOGUE.match(text)
    if prologue is None or len(_DIRECTIVE.findall(text)) > 1:
        return False
    ours = [asset(name) for name in ("theme.js", "catalogue.js")]
    return is_inert_policy(html.unescape(prologue[1]), ours)


def publication_page(
    manifest: Mapping[str, Any],
    *,
    site: Site,
    root: str,
    tables: Sequence[PublishedTable],
    cards: Sequence[str],
    copied: Collection[str],
    where: str,
    releases: Sequence[tuple[str, Link | None]],
    signature_note: str,
) -> str:
    """Return the page of a publication.

    Parameters
    ----------
    manifest : mapping
        As it was read and checked.
    site, root
        As for a release's page.
    tables : sequence of PublishedTable
        Of its summaries; empty where there is none to show.
    cards : sequence of str
        Files of its cards, beside the page.
    copied : collection of str
        Files that stand beside the page.
    where : str
        Where the others are.
    releases : sequence of (str, Link or None)
        What it rests on: a label, and the page of it where the catalogue has one; its text says how it was
        withdrawn, if it was.
    signature_note : str
    """
    request = {
        name: value
        for name, value in manifest["request"].items()
        if name not in {"releases", "algorithm", "statistics"} and value not in (None, [], {}, "")
    }
    return render(
        "publication.html",
        scripts=_SCRIPTS,
        styles=_STYLES,
        site=site,
        root=root,
        here="",
        crumbs=[("Data", "index.html")],
        manifest=manifest,
        heading=_heading(manifest),
        signature_note=signature_note,
        request=[
            *(("statistic", _statistic(statistic)) for statistic in manifest["request"]["statistics"]),
            *((name.replace("_", " "), _in_words(value)) for name, value in request.items()),
        ],
        diagnostics=[
            (of, ", ".join(f"{name} {value}" for name, value in diagnostics.items()))
            for of, diagnostics in manifest["diagnostics"].items()
        ],
        releases=releases,
        kind="likelihood" if manifest["request"]["kind"] == "likelihood" else "posterior",
        mass=_mass(manifest["request"]["mass"]),
        interval=" or ".join(
            filter(None, dict.fromkeys(asked["interval"] for asked in manifest["request"]["statistics"]))
        ),
        cards=[(card, _card_of(card)) for card in cards],
        where=where,
        tables=[{"is_of": table, "rows": table_rows(table.rows)} for table in tables],
        downloads=[
            {
                **file,
                "size_text": size_text(file["size"]),
                "is_copied": file["path"] in copied,
                "is": _what_is(file),
            }
            for file in manifest["files"]
        ],
    )


def _mass(stated: str | None) -> str:
    return "" if stated is None else f"{100 * float(stated):g} %"


def _heading(manifest: Mapping[str, Any]) -> str:
    """Return the title where it is short enough to be a heading; else what is asked, without the priors."""
    title = str(manifest["title"])
    if len(title) <= _LONGEST_HEADING:
        return title
    names = [statistic["statistic"] for statistic in manifest["request"]["statistics"]]
    labels = [release["label"] for release in manifest["request"]["releases"]]
    of = labels[0] if len(labels) == 1 else f"{labels[0]} to {labels[-1]}"
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return f"{fitted(names[0], _LONGEST_HEADING)}{more}: {fitted(of, _LONGEST_HEADING)}"


def _what_is(file: Mapping[str, Any]) -> str:
    """Say in words what a file of a publication is there for."""
    described = file["name"].removesuffix(METADATA_SUFFIX)
    if described != file["name"]:
        return f"says what the columns of {described} are, and what they rest on"
    rows = "" if file["rows"] is None else f", {file['rows']:,} {'row' if file['rows'] == 1 else 'rows'}"
    return f"{_ROLES[file['role']]}{rows}"


def _card_of(path: str) -> str:
    """Return the statistic whose card a file is, by its name; empty where it names none."""
    _, _, name = path.partition("-")
    return name.removesuffix("-card.html") if name.endswith("-card.html") else ""


def _in_words(value: Any) -> str:
    if isinstance(value, dict):
        stated = {key: of for key, of in value.items() if of not in (None, [], {}, "")}
        return ", ".join(f"{key.replace('_', ' ')} {_in_words(of)}" for key, of in stated.items())
    if isinstance(value, list):
        return "; ".join(map(_in_words, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def _statistic(asked: Mapping[str, Any]) -> str:
    """Say which statistic was asked, and under which priors."""
    priors = [
        f"prior {prior['prior']}" if prior["name"] is None else f"prior {prior['name']}: {prior['prior']}"
        for prior in asked["priors"]
    ]
    counts = [] if asked["n_prior"] is None else [f"prior of N {asked['n_prior']}"]
    predictors = (
        [] if asked["predictor_prior"] is None else [f"prior of predictors {asked['predictor_prior']}"]
    )
    intervals = [] if asked["interval"] is None else [f"{asked['interval']} intervals"]
    return "; ".join([asked["statistic"], *priors, *counts, *predictors, *intervals])
