"""One contradicted prior, and every tool that prints its interval: none without the conflict."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import suffice as package
from suffice.cataloguing.catalogue import catalogue
from suffice.errors import ConflictWarning
from support import releases
from support.catalogued import make_small
from support.javascript import node

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.running import Runner

PRIOR = "Beta(900, 100)"
READER = Path(__file__).parents[2] / "readers" / "javascript"
SAID = f"conflict: the prior of the parameters, {PRIOR},"
JAVASCRIPT = """
import { readFileSync } from "node:fs";
import { readRelease } from "./src/index.js";
import { readPage } from "./explorer/page-data.js";
import { reading } from "./explorer/reading.js";
const [folder, prior, how] = process.argv.slice(1);
const bytes = (name) => new Uint8Array(readFileSync(`${folder}/${name}`));
const manifest = bytes("manifest.json");
const text = new TextDecoder().decode(manifest);
const names = JSON.parse(text).files.map(({ path }) => path);
const files = Object.fromEntries(names.map((name) => [name, bytes(name)]));
const release = await readRelease(manifest, files);
let found;
if (how === "api") {
  found = release.posterior("cancelled", { prior, where: release.cells()[0] });
} else {
  const base64 = names.map((name) => [name, Buffer.from(files[name]).toString("base64")]);
  const carried = { label: "", uri: "", manifest: text, files: Object.fromEntries(base64) };
  const page = readPage(JSON.stringify(carried));
  const asked = { prior, nPrior: "", method: "noise-aware", parameters: [] };
  found = await reading(page).posterior("cancelled", page.groups.map((group) => group.key(0)), asked);
}
console.log(JSON.stringify(found.interval(0.95)), found.conflict.lines.join(" "));
"""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("conflict")
    for number, window in enumerate(("2013-01", "2013-02"), start=1):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(releases, "RELEASE_ID", f"{number:016x}")
            make_small(root, window)
    return root / "store"


@pytest.fixture
def posterior(store: Path) -> Any:
    release = package.open_release("monthly@2013-01", store=str(store))
    answer = release.posterior("cancelled", prior=PRIOR)
    assert any(answer.conflict.lines())
    return answer


def words(text: str) -> str:
    """A text on one line, as wrapped sentences are read, whichever letter they begin with."""
    return " ".join(text.split()).replace("Conflict: ", "conflict: ")


@pytest.mark.filterwarnings("ignore::suffice.errors.ConflictWarning")
@pytest.mark.parametrize(
    "shown",
    [str, lambda conflicted: conflicted._repr_html_(), lambda conflicted: str(conflicted.summary())],
    ids=["text", "html", "summary"],
)
def test_what_python_shows(posterior: Any, shown: Callable[[Any], str]) -> None:
    assert SAID in words(shown(posterior))


def test_what_python_returns(posterior: Any) -> None:
    with pytest.warns(ConflictWarning):
        posterior.credible_interval("probability")


def test_what_python_makes_a_frame_of(posterior: Any) -> None:
    with pytest.warns(ConflictWarning):
        assert set(posterior.to_frame()["conflict"]) == {True}


COMMANDS = {
    "posterior": ("posterior", "monthly@2013-01", "cancelled"),
    "compare": ("compare", "monthly@2013-01", "monthly@2013-02", "cancelled"),
    "pool": ("pool", "cancelled", "--disjoint", "monthly@2013-01", "--disjoint", "monthly@2013-02"),
}


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_what_commands_print_write_and_draw(
    suffice: Runner, store: Path, tmp_path: Path, command: str
) -> None:
    picture = tmp_path / "picture.svg"
    asked = (*COMMANDS[command], "--prior", PRIOR, "--store", str(store))
    text = words(suffice.text(*asked, "--plot", str(picture)))
    assert SAID in text
    assert "conflict: " in json.dumps(suffice.json(*asked))
    assert SAID in words(picture.read_text(encoding="utf-8").replace("<!--", "").replace("-->", ""))


@pytest.mark.slow
def test_what_is_published(suffice: Runner, store: Path, tmp_path: Path) -> None:
    made = suffice.json(
        *("publish", "monthly@2013-01", "cancelled", "--prior", PRIOR, "--draws", "3", "--store", str(store))
    )
    folder = tmp_path / "fetched"
    suffice.json("publications", "fetch", made["uri"], "--out", str(folder))
    card = next(folder.glob("*card.html")).read_text(encoding="utf-8")
    assert SAID in words(card)
    catalogue(store, tmp_path / "site")
    page = next((tmp_path / "site" / "publications").rglob("index.html")).read_text(encoding="utf-8")
    assert SAID in words(page)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["api", "explorer"])
def test_what_javascript_shows(store: Path, how: str) -> None:
    folder = next((store / "monthly" / "2013-01").iterdir())
    done = subprocess.run(
        [node(), "--input-type=module", "--eval", JAVASCRIPT, str(folder), PRIOR, how],
        cwd=READER,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert SAID in done.stdout


@pytest.mark.slow
def test_a_contradicted_row_of_a_command_has_its_conflict_beside_it(store: Path, suffice: Runner) -> None:
    months = ("--disjoint", "monthly@2013-01", "--disjoint", "monthly@2013-02")
    for words in (("posterior", "monthly@2013-01", "cancelled"), ("pool", "cancelled", *months)):
        asked = (*words, "--store", str(store))
        head, _, *rows = suffice.text(*asked, "--prior", PRIOR).splitlines()
        assert head.split()[-1] == "conflict"
        assert "yes" in {row.split()[-1] for row in rows if row.split()}
        assert "conflict" not in suffice.text(*asked).splitlines()[0]
