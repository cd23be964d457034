"""Every module of a source tree, and what it imports, however it says so."""

from __future__ import annotations

import ast
import os
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

PACKAGE = "suffice"

_MODULE_STRING = re.compile(rf"({PACKAGE}(?:\.\w+)+)(?::[\w.]+)?")


@dataclass(frozen=True)
class Module:
    """One file of Python: its dotted name, where it is, and its text."""

    name: str
    path: Path
    text: str

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """Every node of its syntax tree."""
        return tuple(ast.walk(ast.parse(self.text)))

    @property
    def lines(self) -> int:
        """The number of lines."""
        return len(self.text.splitlines())

    @property
    def is_package(self) -> bool:
        """Whether it is the ``__init__.py`` of a package."""
        return self.path.name == "__init__.py"


@dataclass(frozen=True, order=True)
class Import:
    """One import, and the line that it stands on."""

    importer: str
    imported: str
    line: int


def read_modules(directories: Mapping[str, Path]) -> dict[str, Module]:
    """Read the modules below the directory of each package, by dotted name; links are not followed."""
    modules = {}
    for package, top in directories.items():
        for directory, folders, files in os.walk(top):
            folders[:] = sorted(folder for folder in folders if folder != "__pycache__")
            for file in sorted(file for file in files if file.endswith(".py")):
                path = Path(directory, file)
                parts = path.relative_to(top).with_suffix("").parts
                name = ".".join([package, *(parts[:-1] if file == "__init__.py" else parts)])
                modules[name] = Module(name=name, path=path, text=path.read_text())
    return modules


def imports_of(module: Module, known: Iterable[str]) -> Iterator[Import]:
    """Yield what a module imports of the `known` modules, wherever in it and by whatever spelling."""
    known = frozenset(known)
    for node in module.nodes:
        for name in _names_imported(node, module, known):
            found = _longest_known(name, known)
            if found is not None and found != module.name:
                yield Import(module.name, found, getattr(node, "lineno", 0))


def _longest_known(name: str, known: frozenset[str]) -> str | None:
    """Return the module that a dotted name begins with; strings and annotations may name what is in it."""
    parts = name.split(".")
    prefixes = (".".join(parts[:length]) for length in range(len(parts), 1, -1))
    return next((prefix for prefix in prefixes if prefix in known), name if name in known else None)


def _names_imported(node: ast.AST, module: Module, known: frozenset[str]) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        source = origin(node, module)
        for alias in node.names:
            inner = f"{source}.{alias.name}"
            yield inner if inner in known else source
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        found = _MODULE_STRING.fullmatch(node.value)
        if found:
            yield found[1]


def origin(node: ast.ImportFrom, module: Module) -> str:
    """Return the module that names are imported from."""
    if not node.level:
        return node.module or ""
    parts = module.name.split(".")
    above = parts[: len(parts) - node.level + module.is_package]
    return ".".join([*above, *([node.module] if node.module else [])])


def names_made_at_run_time(module: Module) -> Iterator[tuple[int, str]]:
    """Yield line and source text of each f-string or sum of strings that makes a module's name."""
    for node in module.nodes:
        match node:
            case (
                ast.JoinedStr(values=[ast.Constant(value=str(start)), *_])
                | ast.BinOp(left=ast.Constant(value=str(start)), op=ast.Add())
            ) if re.fullmatch(rf"{PACKAGE}\.[\w.]*", start):
                yield node.lineno, ast.unparse(node)
