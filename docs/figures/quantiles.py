"""Draw the figure of `ask-for-quantiles.md`, by the commands of the page.

It needs the extras ``pipeline`` and ``plot``::

    python docs/figures/quantiles.py
"""

from __future__ import annotations

import contextlib
import re
import tempfile
from pathlib import Path

from typer.testing import CliRunner

from suffice.cli.app import whole
from suffice.cli.demo import run_demo

OUT = Path(__file__).with_name("quantiles.svg")
PAGE = Path(__file__).parents[1] / "how-to" / "ask-for-quantiles.md"


def main() -> None:
    """Release the page's histogram of the demo's flights, and draw it."""
    (spec,) = re.findall(r"```yaml\n(name: .*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        run_demo(Path(), quiet=True)
        Path("delays.yaml").write_text(spec, encoding="utf-8")
        for words in (
            ["release", "delays.yaml"],
            ["quantiles", "delays-by-airport", "delay", "--seed", "1", "--plot", str(OUT), "--overwrite"],
        ):
            result = CliRunner().invoke(whole(), words)
            if result.exit_code:
                raise SystemExit(result.output)


if __name__ == "__main__":
    main()
