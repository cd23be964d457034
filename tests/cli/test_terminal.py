"""What reaches a terminal or a spreadsheet: no key of a release moves a cursor, turns text around or runs."""

from __future__ import annotations

import ast
import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from suffice.cli import app, options, output
from suffice.data_files.source import Provenance
from suffice.errors import SpecError
from suffice.pipeline.spec.spec import load_spec
from suffice.pipeline.terms.declaration.wording import escaped, is_safe
from support.making import mapping
from support.releases import make_plan, publish

CLI = Path(output.__file__).parent

UNSAFE = [chr(code) for code in (*range(0x20), *range(0x7F, 0xA0))] + list(
    "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u2028\u2029\ufeff\ufff9\ud800\U000e0041"
    "\u00ad\u034f\u115f\u17b4\u180e\u200b\u2060\u3164\uffa0\u200c\u200d\ufe0f\U000e0100"
)
SAFE = ["Zürich", "東京", "م\u200cن", "a b", "👩\u200d🔬", "❤\ufe0f", "e\u0301", "\u00a0"]


def test_text_is_printed_in_one_module_alone() -> None:
    """Commands call `say`; anything else could let a key through."""
    names = {"print", "echo", "secho", "pprint"}
    printing: dict[str, list[str]] = {}
    for path in CLI.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            called = isinstance(node, ast.Call) and (
                getattr(node.func, "id", None) in names or getattr(node.func, "attr", None) in names
            )
            written = isinstance(node, ast.Attribute) and node.attr in {"stdout", "stderr"}
            if called or written:
                printing.setdefault(path.name, []).append(ast.unparse(node))
    assert printing.pop("output.py")
    # Whether standard error is a terminal is asked; standard output is flushed, to see a closed pipe.
    assert printing.pop("messages.py") == ["sys.stderr"]
    assert printing.pop("app.py") == ["sys.stdout"]
    assert printing == {}


def test_the_search_for_prints_finds_one() -> None:
    node = next(node for node in ast.walk(ast.parse("import sys\nprint(1)\n")) if isinstance(node, ast.Call))
    assert getattr(node.func, "id", None) == "print"


@pytest.mark.parametrize("character", UNSAFE, ids=ascii)
def test_what_cannot_be_seen_is_escaped_everywhere(
    character: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = f"a{character}b"
    assert not is_safe(text)
    output.say("key", output.in_line(text))
    output.say(text, error=True)
    output.say_json({text: [text]})
    output.say_progress(text, done=False)
    output.print_rows([{text: text}])
    with pytest.raises(SystemExit):
        app.main(["show", f"x{text}"])
    with pytest.raises(SystemExit):
        app.main(["show", f"x{text}", "--json"])
    captured = capsys.readouterr()
    seen = (captured.out + captured.err).replace("\n", "").replace("\ra", "a")
    assert is_safe(seen), ascii(seen)
    assert character == "\n" or text not in captured.err


def test_json_reads_back_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    document = {"".join(UNSAFE[:-2]) + UNSAFE[-1]: SAFE}
    output.say_json(document)
    assert json.loads(capsys.readouterr().out) == document


@pytest.mark.parametrize("text", SAFE)
def test_what_can_be_seen_is_left(text: str) -> None:
    assert escaped(text) == text
    assert load_spec(mapping("data", groups={"origin": [text, "x"]})).groups["origin"].keys[0] == text


def test_a_terminal_of_another_encoding_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", stream)
    output.say("Zürich")
    stream.flush()
    assert stream.buffer.getvalue() == b"Z\\xfcrich\n"


@pytest.mark.parametrize("character", [character for character in UNSAFE if character != "\ud800"], ids=ascii)
def test_a_spec_with_such_a_key_is_refused_and_shows_it_escaped(character: str) -> None:
    key = f"a{character}b"
    variables = {"x": {"categories": [key, "y"]}}
    refused: list[tuple[dict[str, Any], str]] = [
        ({"groups": {"origin": ["EWR", key]}}, "groups"),
        ({"groups": {key: ["EWR"]}}, "groups"),
        (
            {"statistics": {"c": {"family": "categorical", "column": "c", "categories": ["x", key]}}},
            "statistics.c.categories",
        ),
        ({"statistics": {"c": {"family": "contingency", "columns": variables}}}, "statistics.c.columns"),
        ({"statistics": {"c": {"family": "bernoulli", "column": key}}}, "statistics.c.column"),
    ]
    for changes, place in refused:
        with pytest.raises(SpecError, match=place) as caught:
            load_spec(mapping("data", **changes))
        assert is_safe(str(caught.value)), ascii(str(caught.value))


RUN = ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\tx", "\rx", " =x", "＝1", "-", "=HYPERLINK(1)"]
SOURCE = Provenance(what="a table", releases=(), statistic="flag")
LEFT = ["-5", "+3.5", "-1e-3", "a=b", "EWR", "", "1-2", "sum(X - Y)"]


def test_cells_that_a_spreadsheet_would_run_are_quoted(tmp_path: Path) -> None:
    texts = [*RUN, *LEFT, None]
    columns = {"+key": texts, "mean": [-1.5] * len(texts), "count": [-3] * len(texts)}
    output.write_table(columns, tmp_path / "out.csv", SOURCE, overwrite=False)
    text = (tmp_path / "out.csv").read_bytes().decode()
    rows = list(csv.reader(io.StringIO(text, newline="")))
    assert rows[0] == ["'+key", "mean", "count"]
    assert [row[0] for row in rows[1:]] == [*(f"'{text}" for text in RUN), *LEFT, ""]
    assert {tuple(row[1:]) for row in rows[1:]} == {("-1.5", "-3")}
    output.write_table(columns, tmp_path / "out.parquet", SOURCE, overwrite=False)
    import pyarrow.parquet as pq

    assert pq.read_table(tmp_path / "out.parquet")["+key"].to_pylist() == texts


def test_a_table_opens_its_release_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = publish(tmp_path / "store", make_plan())
    opened = []
    original = options.open_for_reading

    def count(reference: str, *args: Any, **terms: Any) -> object:
        opened.append(reference)
        return original(reference, *args, **terms)

    monkeypatch.setattr(options, "open_for_reading", count)
    with pytest.raises(SystemExit) as caught:
        app.main(["table", str(directory), "cancelled", "--where", "origin=EWR"])
    assert caught.value.code == 0
    assert len(opened) == 1
    assert "EWR" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("words", [("list",), ("show", "flights", "--json"), ("posterior", "--help")])
def test_a_command_whose_reader_has_gone_ends_quietly(tmp_path: Path, words: tuple[str, ...]) -> None:
    publish(tmp_path / "releases", make_plan(name="flights"))
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "suffice", *words]
    environment = {**os.environ, "SUFFICE_STORE": str(tmp_path / "releases")}
    ended = subprocess.run(
        command, stdout=writer, stderr=subprocess.PIPE, env=environment, check=False, timeout=120
    )
    os.close(writer)
    assert (ended.returncode, ended.stderr) == (app.CLOSED_PIPE, b"")
