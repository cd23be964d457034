"""What a release shows of itself: its words, its statistics, and the keys by which one asks."""

from __future__ import annotations

import difflib
from typing import Any

from suffice.errors import UnknownNameError
from suffice.pipeline.terms.declaration.hierarchy import level_name
from suffice.pipeline.terms.declaration.row_rules import in_words
from suffice.pipeline.terms.released.table import card, html_table, markup, text_of

CALLED_HERE = {
    "describe": "print(release); suffice.describe(release, about) mends its words",
    **dict.fromkeys(("summary", "info", "show", "head"), "print(release)"),
    **dict.fromkeys(("to_frame", "to_pandas", "to_df", "to_dataframe"), "release[NAME].to_frame()"),
    **dict.fromkeys(("data", "loc", "iloc", "get_statistic", "query", "sel"), "release[NAME]"),
    **dict.fromkeys(("columns", "names", "variables", "list"), "list(release)"),
    **dict.fromkeys(("groups", "keys_of", "dims", "coords"), "group_columns, and release[NAME].groups"),
    **dict.fromkeys(("plot", "hist"), "release[NAME].posterior().plot()"),
    **dict.fromkeys(("mean", "interval", "sample", "sd", "std"), "release[NAME].posterior().$()"),
    **dict.fromkeys(("eps", "epsilon"), "loss"),
    "metadata": "manifest",
    "title": "about.title",
    "description": "about.description",
}
_KEYS_SHOWN = 12
"""Of a group column, where a release shows itself."""


def release_text(release: Any) -> str:
    """Return what a release is, its statistics, and the keys by which one asks."""
    title = [release.about.title, release.label] if release.about.title else [release.label]
    said = [release.about.description] if release.about.description else []
    keys = _keys(release)
    table = str(release.statistics.table())
    return "\n".join([*title, *said, *_about(release), "", table, *([""] if keys else []), *keys])


def release_html(release: Any) -> str:
    """Return the same as a card of a notebook."""
    rows = release.statistics.table()
    cells = [[markup(text_of(value)) for value in row.values()] for row in rows]
    first = next(iter(release))
    asked = f'release["{first}"].posterior()' if first in release.noisy else f'release["{first}"].table()'
    about = _about(release)
    said = [text for text in (release.about.description, about[-1]) if text]
    return card(
        f"{release.about.title} ({release.label})" if release.about.title else release.label,
        lead=" ".join(said),
        warnings=about[:-1],
        body=html_table(rows.columns, cells, [name in {"cells", "epsilon", "rho"} for name in rows.columns])
        + "".join(f'<p class="quiet">{markup(line)}</p>' for line in _keys(release))
        + f'<p class="quiet">Ask: <code>{markup(asked)}</code></p>',
    )


def unknown_statistic(release: Any, name: object) -> UnknownNameError:
    """Return the error of a name that is not there; it says which one may have been meant."""
    if name in release.trees:
        levels = ", ".join(level_name(str(name), level) for level in release.trees[str(name)])
        message = (
            f"{name} is a tree: suffice tree RELEASE {name}, in Python release.tree({name!r}); "
            f"its levels are the statistics {levels}"
        )
        return UnknownNameError(message)
    near = difflib.get_close_matches(str(name), list(release), n=1)
    meant = f"; did you mean {near[0]}?" if near else ""
    return UnknownNameError(f"the release has no statistic {name!r}: it has {', '.join(release)}{meant}")


def _keys(release: Any) -> list[str]:
    """Return the keys of every group column, by which one asks, with their labels; and the trees."""
    from suffice.pipeline.terms.declaration.domains import key_columns  # only who looks needs it

    domains = key_columns(release.plan_of(name).groups for name in release)
    lines = []
    for column in release.group_columns:
        for domain in domains[column]:
            first = [_called(str(key), release.about.key(column, key)) for key in domain[:_KEYS_SHOWN]]
            more = len(domain) - len(first)
            rest = f", ... and {more} more, up to {domain[-1]}" if more else ""
            lines.append(f"{_called(column, release.about.column(column))}: {', '.join(first)}{rest}")
    return [*lines, *(f"tree {name}: {', '.join(levels)}" for name, levels in release.trees.items())]


def _about(release: Any) -> list[str]:
    """Return that it was withdrawn, where it was; and what it is of, at which price."""
    public = "" if release.public_n is None else f", {release.public_n} records"
    columns = ", ".join(release.about.column(column) for column in release.group_columns)
    by = f"; cells by {columns}" if columns else ""
    about = (
        f"Dataset {release.dataset}{public}; {release.loss} for one "
        f"{in_words(release.unit)} ({str(release.neighboring).replace('_', ' ')}){by}; "
        f"release {release.release_id}"
    )
    return [about] if release.withdrawn is None else [f"This release was {release.withdrawn}.", about]


def _called(name: str, label: str) -> str:
    """Return a name with its label beside it, where it has another."""
    return name if label == name else f"{name} ({label})"
