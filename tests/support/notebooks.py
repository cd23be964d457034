"""A notebook run cell by cell, as a kernel shows it: what is printed, and what a last line gives.

`python -m support.notebooks FILE` (from `tests/`) writes the outputs into it, in a folder of their own.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any


def read_notebook(path: Path) -> dict[str, Any]:
    """Return a notebook's document."""
    notebook: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return notebook


def run_cells(notebook: dict[str, Any], names: dict[str, Any]) -> list[list[dict[str, Any]]]:
    """Run the code in the current folder; return the outputs of each cell. `names` holds what it leaves."""
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    return [_run(cell, names, number) for number, cell in enumerate(cells, start=1)]


def _run(cell: str, names: dict[str, Any], number: int) -> list[dict[str, Any]]:
    tree = ast.parse(cell)
    end = tree.body[-1]
    last = end.value if isinstance(end, ast.Expr) else None
    if last is not None:
        tree.body.pop()
    printed = io.StringIO()
    outputs: list[dict[str, Any]] = []
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, f"cell {number}", "exec"), names)  # noqa: S102 - our own text
        code = None if last is None else compile(ast.Expression(last), f"cell {number}", "eval")
        value = None if code is None else eval(code, names)  # noqa: S307 - our own text
    if printed.getvalue():
        text = printed.getvalue().splitlines(keepends=True)
        outputs.append({"name": "stdout", "output_type": "stream", "text": text})
    if value is not None:
        outputs.append(
            {
                "data": _shown(value),
                "execution_count": number,
                "metadata": {},
                "output_type": "execute_result",
            }
        )
    return outputs


def _shown(value: Any) -> dict[str, list[str]]:
    """Return what a kernel shows of a value."""
    plain = str(value) if hasattr(value, "_repr_pretty_") else repr(value)
    shown = {"text/plain": plain.splitlines(keepends=True)}
    if hasattr(value, "_repr_html_"):
        shown["text/html"] = value._repr_html_().splitlines(keepends=True)
    return shown


if __name__ == "__main__":
    file = Path(sys.argv[1]).resolve()
    document = read_notebook(file)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        made = run_cells(document, {})
    code_cells = [cell for cell in document["cells"] if cell["cell_type"] == "code"]
    for count, (code_cell, outputs) in enumerate(zip(code_cells, made, strict=True), start=1):
        code_cell["outputs"], code_cell["execution_count"] = outputs, count
    file.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
