"""Hold imports between rooms to the names that a room lists: ``python -m scripts.public_names [--write]``.

The ``__init__.py`` of each room of ``suffice.pipeline`` and ``suffice.storage`` lists in ``PUBLIC``, module
by module, the names that other rooms may import; an empty tuple stands for the module as a whole. The lists
are exact: a name that nobody outside of the room imports is refused as well. With ``--write`` they are
written anew from what is imported: a change of a list is then seen in review.
"""

from __future__ import annotations

import ast
import sys
import tomllib
from collections import defaultdict
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

from scripts.imports import PACKAGE, Module, origin, read_modules
from scripts.structure import NO_LOOSE_MODULES, where

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Names = dict[str, frozenset[str]]
"""Names by module, whose own name is relative to the room; "" is the room's ``__init__.py``."""

FROM_OUTSIDE = "suffice.auditing."
"""Audits put mutants in the place of what is inside of rooms: that makes nothing public."""

_SAYS = '"""What other rooms may import, by module; empty: the module as a whole."""\n'


def room_of(name: str) -> str | None:
    """Return the room that a module stands in, or None where it is in none."""
    for house in NO_LOOSE_MODULES:
        if name.startswith(f"{house}."):
            return f"{house}.{name.removeprefix(f'{house}.').partition('.')[0]}"
    return None


def crossing(modules: Mapping[str, Module]) -> Iterator[tuple[str, int, str, str, str | None]]:
    """Yield importer, line, room, module within the room, and name of each import into another room."""
    for module in modules.values():
        if module.name.startswith(FROM_OUTSIDE):
            continue
        own = room_of(module.name)
        for node in module.nodes:
            if isinstance(node, ast.Import):
                for alias in node.names:
                    room = room_of(alias.name)
                    if room is not None and room != own:
                        yield module.name, node.lineno, room, alias.name.removeprefix(room).lstrip("."), None
            if not isinstance(node, ast.ImportFrom) or not origin(node, module).startswith(f"{PACKAGE}."):
                continue
            for alias in node.names:
                whole = f"{origin(node, module)}.{alias.name}"
                target = whole if whole in modules else origin(node, module)
                room = room_of(target)
                if room is not None and room != own:
                    inside = target.removeprefix(room).lstrip(".")
                    yield module.name, node.lineno, room, inside, None if target == whole else alias.name


def used(modules: Mapping[str, Module]) -> dict[str, Names]:
    """Return, for every room, the names that are imported from outside of it."""
    rooms = [name for name, module in modules.items() if module.is_package and room_of(name) == name]
    found: dict[str, dict[str, set[str]]] = {room: defaultdict(set) for room in rooms}
    for _, _, room, inside, name in crossing(modules):
        found[room][inside] |= {name} if name else set()
    return {room: {inside: frozenset(names) for inside, names in of.items()} for room, of in found.items()}


def listed(module: Module) -> Names:
    """Return what a room lists."""
    for node in module.nodes:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if ast.unparse(targets[0]) == "PUBLIC":
                return {name: frozenset(names) for name, names in ast.literal_eval(node.value).items()}
    return {}


def defects(modules: Mapping[str, Module]) -> list[str]:
    """Return a line for every import of a name that is not listed, and every list that is not exact."""
    public = {room: listed(modules[room]) for room in used(modules)}
    found = [
        f"not public: {where(modules, importer, line)} imports {'.'.join(filter(None, (room, inside, name)))}"
        for importer, line, room, inside, name in crossing(modules)
        if inside not in public[room] or (name and (name not in public[room][inside] or name.startswith("_")))
    ]
    for room, names in used(modules).items():
        for inside, own in public[room].items():
            idle = own - names.get(inside, frozenset())
            if idle or inside not in names:
                found.append(f"public without use: {room} lists {inside}: {', '.join(sorted(idle))}")
    return found


def written(names: Names) -> str:
    """Return the list as it stands in a room's ``__init__.py``."""
    lines = ["\nPUBLIC: dict[str, tuple[str, ...]] = {\n"]
    for inside in sorted(names):
        items = ", ".join(f'"{name}"' for name in sorted(names[inside]))
        comma = "," if len(names[inside]) == 1 else ""
        lines.append(f'    "{inside}": ({items}{comma}),\n')
    return "".join([*lines, "}\n", _SAYS])


def _without_list(text: str) -> str:
    """Return the text of an ``__init__.py`` without its list, and what is said of it."""
    lines, body = text.splitlines(keepends=True), ast.parse(text).body
    for node, after in zip_longest(body, body[1:]):
        if isinstance(node, ast.Assign | ast.AnnAssign) and ast.unparse(node).startswith("PUBLIC"):
            is_said = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
            end = after.end_lineno if is_said and after is not None else node.end_lineno
            del lines[node.lineno - 1 : end]
            break
    return "".join(lines)


def write(modules: Mapping[str, Module]) -> None:
    """Write every room's list anew."""
    for room, names in used(modules).items():
        text = _without_list(modules[room].text)
        if names:
            text = f"{text.rstrip()}\n{written(names)}"
        modules[room].path.write_text(text)


def main(repository: Path, words: list[str]) -> int:
    """Print what is not as it should be, or write the lists anew; return the exit status."""
    pyproject = tomllib.loads((repository / "pyproject.toml").read_text())
    directories = pyproject["tool"]["setuptools"]["package-dir"]
    modules = read_modules({package: repository / directory for package, directory in directories.items()})
    if "--write" in words:
        write(modules)
        return 0
    found = defects(modules)
    total = sum(len(names) for of in used(modules).values() for names in of.values())
    print(*found, f"names that cross between rooms: {total}; defects: {len(found)}", sep="\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(Path(__file__).resolve().parents[1], sys.argv[1:]))
