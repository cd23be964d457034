"""The explorer's script that pages carry: made of the sources as they are, and fit to stand in a page."""

from __future__ import annotations

import hashlib
import re
import subprocess
from importlib.resources import files
from pathlib import Path

import pytest

from support.javascript import node

READER = Path(__file__).resolve().parents[2] / "readers" / "javascript"
MAKE_IT_AGAIN = "run `npm install && npm run build` in readers/javascript"


def test_the_bundle_is_of_the_sources_as_they_are() -> None:
    sources, stated = _header(_bundle())
    assert stated == _hash_of(sources), MAKE_IT_AGAIN
    ours = {f"explorer/{path.name}" for path in (READER / "explorer").glob("*.js")}
    assert ours <= set(sources), MAKE_IT_AGAIN
    assert "src/index.js" in sources


def test_the_bundle_holds_no_code_of_others() -> None:
    """So the wheel needs no licence but its own; a bundler may add helpers of its own to what it bundles."""
    sources, _ = _header(_bundle())
    assert all(re.fullmatch(r"(explorer|src)(/[\w-]+){1,2}\.js", source) for source in sources)
    assert set(re.findall(r"^  // (\S+\.js)$", _bundle(), re.MULTILINE)) <= set(sources)
    assert not re.search(r"^  var __\w+ =", _bundle(), re.MULTILINE)


def test_a_source_that_changed_is_seen() -> None:
    sources, stated = _header(_bundle())
    assert _hash_of(sources[1:]) != stated


MARKUP = (
    "</script",
    "<!--",
    "innerHTML",
    "outerHTML",
    "insertAdjacentHTML",
    "document.write",
    "new Function",
)
REQUESTS = ("fetch(", "XMLHttpRequest", "WebSocket", "sendBeacon", "EventSource", "import(", "new Worker")


@pytest.mark.parametrize("mark", [*MARKUP, *REQUESTS, "eval(", 'setAttribute("style"'])
def test_the_bundle_neither_parses_markup_nor_asks_elsewhere(mark: str) -> None:
    assert mark not in _bundle()


def test_the_bundle_is_what_esbuild_makes(tmp_path: Path) -> None:
    if not (READER / "node_modules" / "esbuild").exists():
        pytest.skip(f"esbuild is not installed: {MAKE_IT_AGAIN}")
    target = tmp_path / "explorer.js"
    subprocess.run([node(), READER / "scripts" / "build.js", target], check=True, capture_output=True)
    assert target.read_text(encoding="utf-8") == _bundle()


@pytest.mark.slow
def test_its_own_tests_pass() -> None:
    """Contrasts against closed forms, sliders, lines for shells and for Python, addresses."""
    done = subprocess.run(
        [node(), "--test", "test/explorer/"],
        cwd=READER,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout
    assert "# fail 0" in done.stdout
    assert "# pass 0" not in done.stdout


def _bundle() -> str:
    return (files("suffice.pages") / "assets" / "explorer.js").read_text(encoding="utf-8")


def _header(bundle: str) -> tuple[list[str], str]:
    sources = re.search(r"^// sources: (.+)$", bundle, re.MULTILINE)
    stated = re.search(r"^// sha256: ([0-9a-f]{64})$", bundle, re.MULTILINE)
    assert sources is not None
    assert stated is not None
    return sources[1].split(), stated[1]


def _hash_of(sources: list[str]) -> str:
    told = hashlib.sha256()
    for source in sources:
        content = hashlib.sha256((READER / source).read_bytes()).hexdigest()
        told.update(f"{source}\n{content}\n".encode())
    return told.hexdigest()
