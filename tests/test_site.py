"""The documentation site: what it is laid out from, and pages that repeat what the code says."""

from __future__ import annotations

import ast
import inspect
import itertools
import re
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest

import suffice
from scripts.site.__main__ import build
from scripts.site.accessible import accessible
from scripts.site.api import FOREIGN, GROUPS, entry
from scripts.site.commands import command_pages, escaped
from scripts.site.contents import contents
from scripts.site.layout import lay_out, linked_pages, pages
from scripts.site.versions import versions, write_versions
from suffice import errors
from suffice.profile.model import DeploymentProfile
from suffice.storage.ledger.chain import EntryKind
from suffice.storage.ledger.charge import ChargeState
from support.browser import running_browser

if TYPE_CHECKING:
    from collections.abc import Iterator

REPOSITORY = Path(__file__).resolve().parents[1]
REFERENCE = REPOSITORY / "docs" / "reference"
CODE = ("flows", "pipeline", "storage", "src/suffice")


def first_cells(text: str) -> list[str]:
    """Return what stands as code in the first cell of each row of a page's tables."""
    return [
        cell
        for line in re.findall(r"^\| (`[^|]*)\|", text, re.MULTILINE)
        for cell in re.findall(r"`([^`]+)`", line)
    ]


def test_every_variable_is_on_the_page_of_configuration() -> None:
    files = [path for folder in CODE for path in (REPOSITORY / folder).rglob("*.py")]
    named = {
        name
        for path in files
        for name in re.findall(r"\bSUFFICE_[A-Z_]+\b", path.read_text(encoding="utf-8"))
    }
    listed = first_cells((REFERENCE / "configuration.md").read_text(encoding="utf-8"))
    assert named == {name for name in listed if name.startswith("SUFFICE_")}
    assert set(DeploymentProfile.model_fields) == {name for name in listed if not name.startswith("SUFFICE_")}


def test_every_event_is_on_the_page_of_events() -> None:
    from suffice.flows import endings

    ends = {
        (ending.event, ending.name) for ending in vars(endings).values() if isinstance(ending, endings.Ending)
    }
    text = (REFERENCE / "events.md").read_text(encoding="utf-8")
    entries, charges, runs, _ = re.split(r"^## (?:States of|Endings|Lines)", text, flags=re.MULTILINE)
    assert first_cells(entries) == [str(kind) for kind in EntryKind]
    assert first_cells(charges) == [str(state) for state in ChargeState]
    assert set(re.findall(r"^\| `([\w.-]+)` \| `([^`]+)` \|$", runs, re.MULTILINE)) == ends


def test_every_public_name_is_in_the_reference_once() -> None:
    listed = [name for _, _, names in GROUPS.values() for name in names]
    assert len(listed) == len(set(listed))
    assert {*listed, "SufficeError", "__version__"} == set(suffice.__all__)


def test_a_class_shows_what_it_inherits_from_ours_and_nothing_of_others() -> None:
    classes = {
        name: value
        for _, _, names in GROUPS.values()
        for name in names
        if inspect.isclass(value := getattr(suffice, name))
    }
    for name, value in classes.items():
        assert f"   :inherited-members: {FOREIGN}\n" in entry(name)
        shown = itertools.takewhile(lambda base: base.__name__ not in FOREIGN.split(", "), value.__mro__[:-1])
        bases = [value, *shown]
        assert all(base.__module__.startswith("suffice.") for base in bases), name
    for method in ("mean", "quantile", "credible_interval"):
        shown = getattr(classes["Posterior"], method)
        assert inspect.getdoc(shown), f"{method} has no docstring: autodoc would leave it out"
    assert "mean" not in vars(classes["Posterior"]), "an inherited method holds the option"


def test_every_command_and_option_is_in_the_reference() -> None:
    made = command_pages()
    release = made["docs/reference/commands/release.md"]
    assert release.startswith("# suffice release\n")
    assert "| `--ledger URL` | The privacy ledger. | `sqlite:///ledger.db` | `SUFFICE_LEDGER` |" in release
    assert "## suffice ledger grant" in made["docs/reference/commands/ledger.md"]
    assert r"`--cluster threads\|local\|ADDRESS\|MODULE:FUNCTION`" in release
    root = made["docs/reference/commands/index.md"]
    assert all(f"]({Path(name).name})" in root for name in made if not name.endswith("index.md"))


@pytest.mark.slow
def test_messages_name_pages_by_their_titles() -> None:
    """A wheel has none of these files; and a title that no page has helps nobody."""
    titles = {
        line.removeprefix("# ")
        for path in pages()
        for line in (REPOSITORY / path).read_text(encoding="utf-8").splitlines()[:1]
    }
    named = set()
    for path in (path for folder in CODE for path in (REPOSITORY / folder).rglob("*.py")):
        program = path.read_text(encoding="utf-8")
        if not re.search(r"\b(docs|deploy)/|\.md\b|documentation\W{1,2}s page", program):
            continue
        for text in _texts(ast.parse(program)):
            assert not re.search(r"\b(docs|deploy)/|\.md\b", text), f"{path}: {text}"
            named |= set(re.findall(r'documentation\'s page "([^"]+)"', text))
    assert len(named) > 5
    assert named <= titles


def _texts(module: ast.Module) -> Iterator[str]:
    """Give every text of a program but those that stand alone: documentation of the code."""
    for node in ast.walk(module):
        if not isinstance(node, ast.Expr):
            for inner in ast.iter_child_nodes(node):
                if isinstance(inner, ast.Constant) and isinstance(inner.value, str):
                    yield inner.value


@pytest.mark.parametrize(
    ("text", "shown"),
    [("a < b | c", r"a &lt; b \| c"), ("`a<b|c`", r"`a<b\|c`"), ("[x](y) *z*", r"\[x](y) \*z\*")],
)
def test_help_is_text_in_markdown(text: str, shown: str) -> None:
    assert escaped(text) == shown


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site") / "source"
    lay_out(folder)
    return folder


def test_a_builder_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("scripts.site.__main__.NEEDED", ("sys", "no_such_theme", "no_such_builder"))
    with pytest.raises(SystemExit, match=r"not installed: no_such_theme, no_such_builder: .*'\.\[docs\]'"):
        build(tmp_path / "site")
    assert not (tmp_path / "site").exists()


def test_what_only_looks_like_a_structure_is_none() -> None:
    signature = "<dt>f(<dl>\n<dd><em>a: int</em>,</dd>\n<dd><em>b</em>,</dd>\n</dl>\n)</dt>"
    shown = accessible(signature)
    assert [*re.findall(r'<span class="parameter">(.*?)</span>', shown)] == [
        "<em>a: int</em>,",
        "<em>b</em>,",
    ]
    assert "<dl>" not in shown
    assert "<dd>" not in shown

    definitions = (
        '<dl class="py">\n<dt>f</dt>\n<dd><p>What it is.</p>\n<dl>\n<dt>g</dt>\n<dd>h</dd>\n</dl></dd>\n</dl>'
    )
    assert accessible(definitions) == definitions

    table = '<th class="head"><p></p></th><th class="head"><p>n</p></th>'
    assert accessible(table) == '<td class="head"></td><th class="head"><p>n</p></th>'


@pytest.mark.audit
@pytest.mark.timeout(1800)
def test_every_page_of_the_site_is_accessible_in_both_themes(tmp_path: Path) -> None:
    from axe_playwright_python.sync_playwright import Axe

    try:
        build(tmp_path)
    except SystemExit as error:
        if "not installed" in str(error):
            pytest.skip(str(error))
        raise
    violations = []
    with running_browser() as browser:
        screens: tuple[tuple[int, Literal["dark", "light"]], ...] = ((390, "dark"), (1280, "light"))
        for width, theme in screens:
            page = browser.new_page(viewport={"width": width, "height": 844}, color_scheme=theme)
            for path in sorted((tmp_path / suffice.__version__).rglob("*.html")):
                page.goto(path.as_uri())
                result = Axe().run(page).response
                assert result["passes"]
                violations += [(path.name, theme, violation["id"]) for violation in result["violations"]]
    assert not violations


def test_the_list_of_pages_names_each_once(source: Path) -> None:
    front = (source / "docs/index.md").read_text(encoding="utf-8")
    entries = re.findall(r"^(/\S+)$", front, re.MULTILINE)
    assert len(entries) == len(set(entries))
    subordinate = ("docs/reference/api", "docs/reference/commands")
    whole = {
        "/" + path.with_suffix("").as_posix()
        for path in pages()
        if not path.as_posix().startswith(subordinate) and path != Path("docs/README.md")
    }
    assert whole <= set(entries)


def test_every_page_of_docs_is_listed_in_its_readme() -> None:
    listed = contents(REPOSITORY, [])
    unlisted = [
        path.as_posix()
        for path in pages()
        if path.parts[0] == "docs"
        and path.name != "README.md"
        and f"\n/{path.with_suffix('').as_posix()}\n" not in listed
    ]
    assert not unlisted, "add a line to docs/README.md"


def test_every_link_of_the_site_leads_to_a_file(source: Path) -> None:
    missing = []
    for page in source.rglob("*.md"):
        text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
        for target in re.findall(r"(?<!\\)\]\(([^)\s#:]+)(?:#[^)\s]*)?\)", text):
            path = page.parent / target
            made = path.suffix == ".rst" or (path / "README.md").is_file()
            if not made and not path.is_file() and "`" not in target:
                missing.append((page.relative_to(source).as_posix(), target))
    assert not missing


def test_a_link_to_a_folder_leads_to_what_stands_for_it(tmp_path: Path) -> None:
    (tmp_path / "docs/decisions").mkdir(parents=True)
    (tmp_path / "deploy").mkdir()
    (tmp_path / "deploy/README.md").touch()
    text = "[a](decisions/) [b](../deploy) [c](page.md#x) [d](https://a.example/)"
    expected = "[a](decisions/index.md) [b](../deploy/README.md) [c](page.md#x) [d](https://a.example/)"
    assert linked_pages(tmp_path, Path("docs/README.md"), text) == expected


def test_the_front_page_of_the_site_is_the_list_of_pages(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/README.md").touch()
    text = "[a](docs/README.md#tutorials) [b](docs/)"
    expected = "[a](docs/index.md#tutorials) [b](docs/index.md)"
    assert linked_pages(tmp_path, Path("README.md"), text) == expected
    assert linked_pages(tmp_path, Path("docs/page.md"), "[a](README.md)") == "[a](index.md)"


def test_decisions_and_the_papers_reproduced_are_files_of_the_repository_not_pages(source: Path) -> None:
    assert not [path for path in pages() if path.is_relative_to("docs/decisions")]
    assert not (source / "docs/papers.md").exists()
    assert (source / "docs/papers.md.txt").is_file()
    assert [path.name for path in (source / "docs/decisions").glob("*.md")] == ["index.md"]
    text = "[why](decisions/0001-packages-at-the-top.md#context)"
    shown = linked_pages(REPOSITORY, Path("docs/page.md"), text)
    assert shown == "[why](decisions/0001-packages-at-the-top.md.txt)"


def test_versions_lie_side_by_side(tmp_path: Path) -> None:
    for name in ("0.9.0", "0.10.0", "0.10.0rc1", "notes"):
        (tmp_path / name / "docs").mkdir(parents=True)
        (tmp_path / name / "docs/index.html").touch()
    (tmp_path / "1.0.0").mkdir()
    assert write_versions(tmp_path) == versions(tmp_path) == ["0.10.0", "0.10.0rc1", "0.9.0"]
    assert "url=0.10.0/docs/index.html" in (tmp_path / "index.html").read_text(encoding="utf-8")
    assert '"0.9.0"' in (tmp_path / "versions.js").read_text(encoding="utf-8")


def test_the_errors_of_the_reference_are_those_that_there_are(source: Path) -> None:
    text = (source / "docs/reference/api/errors.rst").read_text(encoding="utf-8")
    listed = re.findall(r"autoexception:: suffice\.errors\.(\w+)", text)
    assert set(listed) == {
        name
        for name, value in vars(errors).items()
        if isinstance(value, type) and value.__module__ == "suffice.errors"
    } - {name for name in vars(errors) if name.startswith("_")}
