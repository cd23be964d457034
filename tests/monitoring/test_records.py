"""Lines of a log: closed fields, an hour for a time, and none while rows are read."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice.errors import LONGEST_MESSAGE
from suffice.monitoring.records import FIELDS, RunLog

BEGAN = datetime(2013, 2, 4, 2, 59, 59, tzinfo=UTC)


def written(capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    return [json.loads(line) for line in capsys.readouterr().err.splitlines()]


def test_a_line_has_the_hour_in_which_its_run_began(capsys: pytest.CaptureFixture[str]) -> None:
    log = RunLog("release", run="7", now=BEGAN)
    log.write("started")
    log.write("ended", exit_status=0)
    first, last = written(capsys)
    assert first == {
        "event": "started", "run": "7", "line": 1, "started": "2013-02-04T02Z", "command": "release",
    }  # fmt: skip
    assert last == {**first, "event": "ended", "line": 2, "exit_status": 0}


@pytest.mark.parametrize("fields", [{"rows": 600}, {"seconds": 1}, {"time": "2013-02-04T02:59:59Z"}])
def test_a_field_that_is_not_public_is_refused(
    fields: dict[str, int], capsys: pytest.CaptureFixture[str]
) -> None:
    log = RunLog("release")
    with pytest.raises(ValueError, match="no public field"):
        log.write("notice", **fields)
    with pytest.raises(ValueError, match="no public field"):
        log.about(**fields)
    with pytest.raises(ValueError, match="no event"):
        log.write("read")
    assert written(capsys) == []


def test_what_is_held_comes_when_the_run_has_ended(capsys: pytest.CaptureFixture[str]) -> None:
    log = RunLog("release", run="7", now=BEGAN)
    log.write("started")
    log.hold()
    assert len(written(capsys)) == 1
    log.write("notice", message="the store failed")
    log.about(charge="c")
    log.write("error", message="it ended")
    assert written(capsys) == []
    log.write("ended")
    assert [(record["event"], record["line"]) for record in written(capsys)] == [
        ("notice", 2), ("error", 3), ("ended", 4),
    ]  # fmt: skip


@given(text=st.text(), name=st.sampled_from(sorted(FIELDS.keys() - {"event", "run", "line", "started"})))
def test_any_text_is_one_short_line(text: str, name: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        lines: list[str] = []
        patch.setattr("sys.stderr.write", lines.append)
        RunLog("release").write("notice", **{name: text})
    (line,) = lines
    assert line.endswith("}\n")
    assert line.isascii()
    assert line[:-1].isprintable()
    written_text = json.loads(line)[name]
    assert written_text == text or len(written_text) <= LONGEST_MESSAGE
