"""A tree of a release: the keys of its nodes, which its plan holds, and the noisy counts of every level."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from suffice.errors import UnknownNameError, UsageError
from suffice.pipeline.spec.hierarchies import tree_of
from suffice.pipeline.spec.spec import read_derived_columns
from suffice.pipeline.terms.declaration.hierarchy import level_name
from suffice.pipeline.terms.declaration.spec_text import read_mapping

if TYPE_CHECKING:
    from collections.abc import Mapping

    from suffice.pipeline.ask.pooling.release import Release
    from suffice.pipeline.terms.declaration.key_tree import KeyTree
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic


def released_tree(
    release: Release, name: str, where: Mapping[str, object] | None = None
) -> tuple[KeyTree, list[NoisyStatistic]]:
    """Return the tree of a release that a spec called so, and the statistic of each of its levels.

    Parameters
    ----------
    release : Release
    name : str
        As the spec's statistic: ``visits`` of ``visits.state``.
    where : mapping, optional
        One key of every group beside the leaves'.

    Returns
    -------
    KeyTree, list of NoisyStatistic
        Each statistic's cells are the level's nodes, in their order.

    Raises
    ------
    UsageError
        Where the release has no such tree, or groups beside it have several keys and none is chosen.
    """
    plan: Mapping[str, Any] = release.manifest.get("plan", {})
    hierarchies: Mapping[str, list[str]] = plan.get("hierarchies", {})
    if name not in hierarchies:
        known = f"its trees are {', '.join(hierarchies)}" if hierarchies else "it has none"
        way_out = "a spec states one as hierarchy: [nation, state, county]"
        raise UnknownNameError(f"the release has no tree {name!r}: {known}; {way_out}")
    levels = hierarchies[name]
    document = read_mapping(dict(plan), "plan")
    derived = read_derived_columns(document, document.content, None)
    groups = release.cells(level_name(name, levels[-1])).plan.groups
    tree = tree_of(f"hierarchies.{name}", levels, groups, derived)
    chosen = dict(release.in_names(where) or {})
    leaf = levels[-1]
    stray = next((column for column in chosen if column == leaf or column not in groups), None)
    if stray is not None:
        message = (
            f"{stray!r} is no group beside the tree's: a tree has all of its nodes, which its levels name"
        )
        raise UsageError(message)
    open_groups = [column for column in groups if column != leaf and column not in chosen]
    if open_groups:
        example = {column: str(groups[column][0]) for column in open_groups}
        message = f"there is a tree for each key of {', '.join(open_groups)}: choose one, as where={example}"
        raise UsageError(message)
    return tree.keys, [release.selected(level_name(name, level), chosen) for level in levels]
