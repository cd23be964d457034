"""Print the rooms of the code, and what breaks their order: ``python -m scripts.structure``.

A room is a package or a module directly inside ``suffice.pipeline``, ``suffice.storage`` or ``suffice``.
The order of rooms stands in one place: the import-linter contracts of type ``layers`` in
``pyproject.toml``. Every import counts: at the top of a module, inside a function, under
``TYPE_CHECKING``, and a string that is the name of a module (``"suffice.pipeline.spec"`` or
``"suffice.flows.release:release_statistics"``). A name that is put together at run time cannot be
followed, and is refused.

The exit status is 1 where

- a room imports against the order, or has no place in it;
- imports run in a circle between rooms, or through more than two files of one room;
- a module of ``suffice.pipeline`` or ``suffice.storage`` stands in no room;
- a module imports all of `suffice.pipeline` or `suffice.storage`, or puts a module's name together;
- less than nine files of ten have at most 300 lines.
"""

from __future__ import annotations

import os
import re
import sys
import tomllib
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scripts.imports import Import, Module, imports_of, names_made_at_run_time, read_modules

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

HOUSES = ("suffice.pipeline", "suffice.storage", "suffice")
NO_LOOSE_MODULES = ("suffice.pipeline", "suffice.storage")
MOST_LINES = 300
FEWEST_SHORT = 0.9
"""Share of files with at most `MOST_LINES` lines."""
LARGEST_CIRCLE = 2
"""Files of one room that may import each other in a circle."""


@dataclass(frozen=True)
class Layer:
    """Rooms on one level of an order; where they are independent, neither imports another."""

    rooms: tuple[str, ...]
    independent: bool


Order = tuple[Layer, ...]
"""The layers of one contract, from the top down."""


@dataclass(frozen=True)
class Findings:
    """What a source tree looks like; `defects` holds one line for each thing that must not be."""

    rooms: tuple[tuple[str, int, int], ...]
    """Name, number of files and number of lines of each room, from the ground up, house by house."""
    defects: tuple[str, ...]
    not_followed: tuple[str, ...]
    long_files: tuple[tuple[str, int], ...]
    n_files: int


def read_orders(pyproject: Mapping[str, Any]) -> list[Order]:
    """Return the layers of every import-linter contract that has them, once for each of its containers."""
    orders = []
    for contract in pyproject.get("tool", {}).get("importlinter", {}).get("contracts", []):
        if contract["type"] == "layers":
            containers = contract.get("containers", [""])
            orders += [tuple(_read_layer(text, name) for text in contract["layers"]) for name in containers]
    return orders


def _read_layer(text: str, container: str) -> Layer:
    names = [name.strip().strip("()").strip() for name in re.split(r"[|:]", text)]
    return Layer(tuple(f"{container}.{name}".lstrip(".") for name in names), independent="|" in text)


def imports_against(order: Order, imports: Iterable[Import]) -> list[Import]:
    """Return the imports from a layer into one above it, or between independent rooms of one layer."""
    level = {room: (depth, layer) for depth, layer in enumerate(order) for room in layer.rooms}
    against = []
    for found in imports:
        importer, imported = (_innermost(name, level) for name in (found.importer, found.imported))
        if importer is None or imported is None or importer == imported:
            continue
        (from_depth, layer), (to_depth, _) = level[importer], level[imported]
        if to_depth < from_depth or (to_depth == from_depth and layer.independent):
            against.append(found)
    return sorted(against)


def _innermost(name: str, rooms: Iterable[str]) -> str | None:
    inside = [room for room in rooms if name == room or name.startswith(f"{room}.")]
    return max(inside, key=len, default=None)


def room_of(name: str, house: str) -> str | None:
    """Return the room of a house that a module stands in; the house itself for its ``__init__.py``."""
    if name == house:
        return house
    if not name.startswith(f"{house}."):
        return None
    return f"{house}.{name.removeprefix(f'{house}.').partition('.')[0]}"


def circles(edges: Iterable[tuple[str, str]]) -> list[list[str]]:
    """Return the sets of two or more nodes that all reach each other, the largest first."""
    graph: dict[str, set[str]] = defaultdict(set)
    for start, end in edges:
        graph[start].add(end)
        graph.setdefault(end, set())
    reached = {node: _reachable(graph, node) for node in graph}
    found = {
        tuple(sorted(other for other in reached[node] if node in reached[other]))
        for node in graph
        if node in reached[node]
    }
    return sorted(
        (list(circle) for circle in found if len(circle) > 1), key=lambda circle: (-len(circle), circle)
    )


def _reachable(graph: Mapping[str, set[str]], start: str) -> set[str]:
    seen: set[str] = set()
    waiting = list(graph[start])
    while waiting:
        node = waiting.pop()
        if node not in seen:
            seen.add(node)
            waiting.extend(graph[node] - seen)
    return seen


def circles_of_rooms(imports: Iterable[Import], house: str) -> list[list[str]]:
    """Return the circles between the rooms of a house."""
    pairs = {(room_of(found.importer, house), room_of(found.imported, house)) for found in imports}
    return circles((start, end) for start, end in pairs if start and end and start != end)


def circles_of_files(imports: Iterable[Import], room: str) -> list[list[str]]:
    """Return the circles of more than `LARGEST_CIRCLE` files inside a room."""
    inside = [(found.importer, found.imported) for found in imports if _is_inside(found, room)]
    return [circle for circle in circles(inside) if len(circle) > LARGEST_CIRCLE]


def _is_inside(found: Import, room: str) -> bool:
    return all(_innermost(name, [room]) for name in (found.importer, found.imported))


def ordered_rooms(modules: Iterable[str], house: str, orders: Iterable[Order]) -> list[str]:
    """Return the rooms of a house from the ground up; those without a place in an order come last."""
    rooms = {room for name in modules if (room := room_of(name, house)) and room != house}
    placed = [room for order in orders for layer in reversed(order) for room in layer.rooms]
    last = len(placed)
    return sorted(rooms, key=lambda room: (placed.index(room) if room in placed else last, room))


def examine(modules: Mapping[str, Module], orders: list[Order]) -> Findings:
    """Put together what a source tree looks like."""
    imports = sorted({found for module in modules.values() for found in imports_of(module, modules)})
    listed = {room for order in orders for layer in order for room in layer.rooms}
    rooms, defects = [], []
    for order in orders:
        defects += [
            f"against the order: {where(modules, found.importer, found.line)} imports {found.imported}"
            for found in imports_against(order, imports)
        ]
    for house in HOUSES:
        defects += [f"circle of rooms: {', '.join(circle)}" for circle in circles_of_rooms(imports, house)]
        for room in ordered_rooms(modules, house, orders):
            inside = [module for name, module in modules.items() if _innermost(name, [room])]
            rooms.append((room, len(inside), sum(module.lines for module in inside)))
            if house in NO_LOOSE_MODULES and not modules[room].is_package:
                defects.append(f"loose module: {room}")
            elif room not in listed:
                defects.append(f"no place in the order: {room}")
            if room not in HOUSES:
                found_circles = circles_of_files(imports, room)
                defects += [f"circle of {len(c)} files in {room}: {', '.join(c)}" for c in found_circles]
    lengths = sorted(((name, module.lines) for name, module in modules.items()), key=lambda pair: -pair[1])
    long_files = tuple((name, lines) for name, lines in lengths if lines > MOST_LINES)
    if len(modules) - len(long_files) < FEWEST_SHORT * len(modules):
        defects.append(
            f"long files: {_share(len(long_files), len(modules))} have more than {MOST_LINES} lines"
        )
    defects += [
        f"imports a whole house: {where(modules, found.importer, found.line)} imports {found.imported}"
        for found in imports
        if found.imported in NO_LOOSE_MODULES
    ]
    not_followed = tuple(
        f"{where(modules, name, line)} {text}"
        for name, module in modules.items()
        for line, text in names_made_at_run_time(module)
    )
    defects += [f"cannot be followed: {text}" for text in not_followed]
    return Findings(tuple(rooms), tuple(defects), not_followed, long_files, len(modules))


def where(modules: Mapping[str, Module], name: str, line: int) -> str:
    """Say where a line of a module is, in a form that editors open."""
    return f"{os.path.relpath(modules[name].path)}:{line}"


def _share(part: int, whole: int) -> str:
    return f"{part} of {whole} files ({100 * part / max(whole, 1):.1f} %)"


def report(findings: Findings) -> str:
    """Write the findings as text."""
    lines = [f"{'room, from the ground up':44}{'files':>7}{'lines':>8}"]
    lines += [f"{name:44}{files:>7}{count:>8,}" for name, files, count in findings.rooms]
    lines += ["", f"more than {MOST_LINES} lines: {_share(len(findings.long_files), findings.n_files)}"]
    lines += [f"  {name} {count}" for name, count in findings.long_files]
    lines += [
        "",
        f"imports that could not be followed: {len(findings.not_followed)}",
        *(f"  {text}" for text in findings.not_followed),
    ]
    lines += ["", f"defects: {len(findings.defects)}", *(f"  {text}" for text in findings.defects)]
    return "\n".join(lines)


def main(repository: Path) -> int:
    """Print the report on a repository; return the exit status."""
    pyproject = tomllib.loads((repository / "pyproject.toml").read_text())
    directories = pyproject["tool"]["setuptools"]["package-dir"]
    modules = read_modules({package: repository / directory for package, directory in directories.items()})
    findings = examine(modules, read_orders(pyproject))
    print(report(findings))
    return 1 if findings.defects else 0


if __name__ == "__main__":
    sys.exit(main(Path(__file__).resolve().parents[1]))
